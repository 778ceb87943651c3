"""The search among whole x against enumeration, and against a solver that takes another way."""

from __future__ import annotations

from itertools import product

import highspy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from lustrum.numeric.solve import highs
from lustrum.numeric.solve.cutting import Cut, CuttingProgram, finished_search
from lustrum.numeric.solve.deviations import DeviationProgram
from lustrum.protect.suppression.search.attacks.space import independent_part
from same_bytes.vertices import Shuffled

COLUMNS = 6
WEIGHTS = st.lists(
    st.lists(st.integers(-1, 3), min_size=COLUMNS, max_size=COLUMNS), min_size=1, max_size=8
)
COST = st.lists(st.integers(0, 9), min_size=COLUMNS, max_size=COLUMNS)


@given(
    WEIGHTS,
    COST,
    st.integers(1, 40),
    st.sampled_from([1.0, 0.1]),
    st.one_of(st.none(), st.integers(0, 30)),
)
def test_the_best_is_found_and_no_bound_is_above_it(
    weights: list[list[int]], prices: list[int], nodes: int, unit: float, below: int | None
) -> None:
    matrix, side = np.array(weights, dtype=float), np.ones(len(weights))
    cost, most = np.array(prices) * unit, np.inf if below is None else below * unit
    allowed = [np.array(x) for x in product((0.0, 1.0), repeat=COLUMNS)]
    allowed = [x for x in allowed if (matrix @ x >= side).all()]
    least = min((float(cost @ x) for x in allowed), default=np.inf)
    ended = finished_search(sparse.csr_array(matrix), side, cost, nodes, most)
    if ended is None:
        return  # it was cut short
    best, price = ended
    assert (best is not None) == (least < most - 1e-6)
    if best is not None:
        assert (matrix @ best >= side - 1e-6).all()
        assert cost @ best == pytest.approx(least)
        assert price == pytest.approx(least)


def in_other_orders(monkeypatch: pytest.MonkeyPatch, seed: int | None) -> None:
    real = highspy.Highs
    made = real if seed is None else lambda: Shuffled(real(), seed)
    monkeypatch.setattr(highs.highspy, "Highs", made)


def one_after_the_other(luck: np.random.Generator) -> list[object]:
    """What is asked of a solver in the search for patterns, with many equal costs and ends."""
    out: list[object] = []
    matrix = luck.choice([-1, 0, 0, 0, 1], (7, 24))
    program = DeviationProgram(sparse.csr_array(matrix))
    every = sparse.csr_array(matrix).T.tocsr()
    rows = sparse.csr_array(np.concatenate([matrix, matrix[:2] + matrix[2:4]]))
    chosen, certain = independent_part(rows)
    assert certain
    assert chosen.size == np.linalg.matrix_rank(matrix)
    rows = rows[chosen]
    apart = DeviationProgram(rows, independent=True)
    for column in range(8):
        low, high = -luck.integers(1, 3, 24).astype(float), luck.integers(1, 3, 24).astype(float)
        low[luck.random(24) < 0.3] = 0.0
        question = column, 1, low, high, 2.0
        furthest = program.furthest(*question)
        out.append(furthest.deviation)
        # the other ways to ask agree about how far the column gets
        low[column], high[column] = -2.0, 2.0
        weight = np.zeros(24)
        weight[column] = 1.0
        corner = program.corner(weight, low, high)
        assert np.abs(matrix @ corner).max() < 1e-6
        assert corner[column] == pytest.approx(furthest.reach)
        assert program.reaches(question) == (furthest.reach > 2.0 - 1e-6)
        assert program.reasons(every, column, question)[0] == pytest.approx(furthest.reach)
        out.append(corner)
        known = rows.T.tocsr()
        out.extend(apart.reasons(known, column, question))
        assert apart.reasons(known, column, question)[0] == pytest.approx(furthest.reach)
        out.extend(program.reasons(every, column, question))
        light = program.lightest(column, 0.5, low, high, luck.integers(0, 2, 24).astype(float))
        out.append(None if light is None else light)
    cover = CuttingProgram(luck.integers(1, 4, 24).astype(float))
    for _ in range(6):
        rows = [np.sort(luck.choice(24, 5, replace=False)) for _ in range(6)]
        cover.add([Cut(row.astype(np.intp), np.ones(5), 1.0) for row in rows])
        relaxed = cover.relax()
        found = cover.search(1000)
        out.extend([relaxed.x, relaxed.reduced, relaxed.bound, relaxed.steps])
        out.extend([found.x, found.bound, found.steps, found.finished])
    return out


@pytest.mark.parametrize("seed", range(4))
def test_another_way_of_the_solver_leads_to_the_same_answers(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = one_after_the_other(np.random.default_rng(seed))
    for other in (1, 2):
        in_other_orders(monkeypatch, other)
        found = one_after_the_other(np.random.default_rng(seed))
        in_other_orders(monkeypatch, None)
        for one, two in zip(plain, found, strict=True):
            assert one is two is None or np.allclose(one, two, rtol=1e-9, atol=1e-9)  # type: ignore[arg-type]
