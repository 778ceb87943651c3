"""Rows that are kept for later lead to the same optima as rows that take part from the beginning."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.numeric.solve import cutting
from lustrum.numeric.solve.cutting import Cut, CuttingProgram

COLUMNS = 5


def covering(rows: list[list[int]]) -> list[Cut]:
    """Of the columns in every row at least one is 1, counted by weights from 1 upwards."""
    found = []
    for row in rows:
        columns = np.array(sorted(set(row)), dtype=np.intp)
        weights = 1.0 + np.arange(columns.size) % 3
        found.append(Cut(columns, weights, 1.0))
    return found


ROWS = st.lists(
    st.lists(st.integers(0, COLUMNS - 1), min_size=1, max_size=COLUMNS), min_size=1, max_size=12
)
COST = st.lists(st.integers(1, 9), min_size=COLUMNS, max_size=COLUMNS)


@given(ROWS, COST)
def test_kept_rows_lead_to_the_same_bound(rows: list[list[int]], cost: list[int]) -> None:
    added, kept = CuttingProgram(np.array(cost)), CuttingProgram(np.array(cost))
    added.add(covering(rows))
    kept.keep(covering(rows))
    one, other = added.relax(), kept.relax()
    assert other.bound == pytest.approx(one.bound, abs=1e-6)
    assert all(cut.lacks(other.x) <= 1e-6 for cut in covering(rows))
    # None that the optimum satisfies anyway takes part, and none is known twice.
    assert len(kept) <= len(added)
    assert kept.add(covering(rows)) == 0


@given(ROWS, COST)
def test_searches_in_turn_end_at_the_cheapest_whole_solution(
    rows: list[list[int]], cost: list[int]
) -> None:
    program = CuttingProgram(np.array(cost))
    program.keep(covering(rows))
    cheapest = min(
        float(np.dot(cost, x))
        for x in product((0.0, 1.0), repeat=COLUMNS)
        if all(cut.lacks(np.array(x)) <= 0 for cut in covering(rows))
    )
    for _ in range(len(rows) + 1):
        found = program.search(100)
        assert found.x is not None
        # Without the rows that were not violated yet a bound is lower, never higher.
        assert found.bound <= cheapest + 1e-6
        if all(cut.lacks(found.x) <= 1e-6 for cut in covering(rows)):
            break
    assert float(np.dot(cost, found.x)) == pytest.approx(cheapest)


def test_programs_count_for_more_the_more_weights_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = CuttingProgram(np.ones(COLUMNS))
    assert [program.work(programs) for programs in (0, 1, 10)] == [1, 2, 11]
    monkeypatch.setattr(cutting, "_HEAVY", 4)
    program.add(covering([[0, 1, 2], [2, 3, 4], [1, 3]]))
    # Eight weights are two times four, so every program counts three times.
    assert program.work(10) == 31
