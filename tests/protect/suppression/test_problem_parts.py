"""Parts, unions, whole numbers, certificates and the method for tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lustrum.model import CellStatus, Contributions, InputError, Table
from lustrum.protect.suppression import (
    RuleOnUnions,
    Suppression,
    SuppressionProblem,
    audit_pattern,
    cell_costs,
    suppress,
)
from lustrum.protect.suppression.search.parts import parts_of
from lustrum.sensitivity import PPercent, Threshold
from protect.suppression.test_contributors import axis
from protect.suppression.test_suppress import three_way, two_way


def magnitudes(values: np.ndarray, holding: np.ndarray, contributors: np.ndarray) -> Table:
    """A two-way table with totals where every inner cell shows its largest contributor alone."""
    full, _ = two_way(values)
    count, _ = two_way(contributors)
    shape = (values.shape[0] + 1, values.shape[1] + 1)
    largest = np.zeros((*shape, 2), dtype=np.int64)
    who = np.full((*shape, 2), -1, dtype=np.int64)
    largest[:-1, :-1, 0], who[:-1, :-1, 0] = values, holding
    # The totals are spread over many small ones.
    largest[-1, :, :] = largest[:, -1, :] = 1
    who[-1, :, :] = who[:, -1, :] = np.array([900, 901])
    return Table(
        axes=(axis("a", values.shape[0]), axis("b", values.shape[1])),
        values=full.reshape(shape),
        kind="magnitude",
        contributors=count.reshape(shape),
        contributions=Contributions(largest, who),
    )


def test_frozen_totals_make_parts_and_parts_give_the_same_optimum() -> None:
    one, ties = two_way(np.array([[4, 9, 30], [8, 20, 25]]))
    two = [(t + one.size, [p + one.size for p in parts]) for t, parts in ties]
    values = np.concatenate([one, one + 0, [2 * one[-1]]])
    joined = [*ties, *two, (2 * one.size, [one.size - 1, 2 * one.size - 1])]
    loose = SuppressionProblem.of(values, joined, [0, one.size], [2, 2])
    tied = SuppressionProblem.of(
        values, joined, [0, one.size], [2, 2], frozen=[one.size - 1, 2 * one.size - 1]
    )
    assert parts_of(loose) is None
    parts = parts_of(tied)
    assert len(parts) == 2
    single = SuppressionProblem.of(
        one, ties, [0], [2], frozen=[one.size - 1], high=int(values.max())
    )
    whole = suppress(tied, algorithm="exact")
    assert whole.safe
    assert whole.optimal
    assert whole.cost == 2 * suppress(single, algorithm="exact").cost
    assert "2 parts" in whole.why


def test_counts_are_protected_among_whole_tables() -> None:
    values, relations = three_way(np.random.default_rng(2).integers(1, 5, (3, 3, 3)))
    inner = [0, 5, 17]
    problem = SuppressionProblem.of(values, relations, inner, [1, 1, 1], whole=True)
    pattern = suppress(problem)
    assert pattern.safe
    assert pattern.audited.sharp.all()
    assert (pattern.audited.high > pattern.audited.low).all()


def test_a_line_whose_suppressed_cells_belong_to_one_holding_needs_another() -> None:
    values = np.array([[50, 60, 900, 800], [70, 800, 900, 700], [80, 900, 950, 990]])
    holding = np.array([[1, 1, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]])
    counts = np.array([[1, 1, 30, 30], [1, 30, 30, 30], [1, 30, 30, 30]])
    table = magnitudes(values, holding, counts)
    judge = RuleOnUnions(table, PPercent(p=10))
    assert judge.reveals(np.array([0, 1]))
    number = np.arange(20).reshape(4, 5)
    full, relations = two_way(values)
    plain = SuppressionProblem.of(full, relations, [0, 1], [5, 5])
    aware = SuppressionProblem.of(full, relations, [0, 1], [5, 5], unions=judge)
    row = number[0, :4]
    one, two = suppress(plain, algorithm="exact"), suppress(aware, algorithm="exact")
    assert one.suppressed[row].sum() == 2
    assert not audit_pattern(aware, np.asarray(one.suppressed)).safe
    assert two.safe
    assert two.suppressed[row].sum() >= 3


def test_the_method_shows_statuses_and_no_suppressed_value() -> None:
    values = np.array([[50, 60, 900], [70, 800, 900], [80, 900, 950]])
    counts = np.array([[1, 9, 30], [30, 30, 30], [30, 30, 30]])
    table = magnitudes(values, np.arange(9).reshape(3, 3), counts)
    words = {"rule": "threshold", "minimum": 3}
    spec = Suppression(rule=words, attacker="outsider", reasons=True)
    told = spec.apply(table)
    assert told.status[0, 0] == CellStatus.SMALL_COUNT
    assert (told.status == CellStatus.SECONDARY).sum() == 3
    assert told.method["rule"]["minimum"] == 3
    release = replace(spec, reasons=False).apply(table)
    hidden = ~release.shown
    # Hidden cells are told apart by nothing, and the rule is not stated.
    assert (release.status[hidden] == CellStatus.NOT_FOR_PUBLICATION).all()
    assert dict(release.method) == {"method": "suppression"}
    assert not np.isin(release.published[hidden], [*values.ravel(), 0]).any()
    assert np.array_equal(release.published[~hidden], table.values[~hidden])
    assert (release.least[hidden] == 0).all()
    assert np.unique(release.most[hidden]).size == 1


def test_costs() -> None:
    assert cell_costs("unity", [3, 4]).tolist() == [1, 1]
    assert cell_costs("frequency", [3, 4], contributors=[2, 5]).tolist() == [2, 5]
    near = cell_costs(
        "distance", np.ones(6), primary=[True, False, False, False, False, False], shape=(2, 3)
    )
    assert near.tolist() == [1, 2, 3, 2, 3, 4]
    with pytest.raises(InputError, match="contributors"):
        cell_costs("count", [3])
    with pytest.raises(InputError, match="cannot be"):
        cell_costs("weight", [3])  # type: ignore[arg-type]


def test_a_hopeless_cell_in_one_part_leaves_the_others_protected() -> None:
    one, ties = two_way(np.array([[4, 9, 30], [8, 20, 25]]))
    two = [(t + one.size, [p + one.size for p in parts]) for t, parts in ties]
    values = np.concatenate([one, one])
    # The second table publishes everything, so its primary cell can be worked out.
    frozen = [one.size + c for c in range(1, one.size)]
    problem = SuppressionProblem.of(values, [*ties, *two], [0, one.size], [2, 2], frozen=frozen)
    pattern = suppress(problem)
    assert not pattern.safe
    assert [u.cell for u in pattern.unprotectable] == [one.size]
    audit = audit_pattern(problem, np.asarray(pattern.suppressed))
    assert audit.short == ((one.size, -1),)


def test_a_reader_who_knows_that_empty_cells_are_shown_learns_nothing_exactly() -> None:
    """Four ones in a square have margins of 2: whoever knows that no blank is empty knows them all."""
    counts = np.full((4, 4), 9)
    counts[:2, :2] = 1
    table = with_totals(counts)
    pattern = Suppression(rule=Threshold(3)).pattern(table)
    assert pattern.safe
    hidden = pattern.suppressed.reshape(table.shape)
    assert int(hidden.sum()) > 4
    small = [(int(i), int(j)) for i, j in np.argwhere(hidden & (table.values < 3))]
    assert len(small) == 4
    for cell in small:
        least, most = _ends(table.values, hidden, cell)
        assert least == 1
        assert most >= 3


def test_where_empty_cells_may_be_suppressed_a_hidden_cell_may_be_empty() -> None:
    counts = np.full((3, 3), 9)
    counts[0, 0] = 1
    problem = Suppression(rule=Threshold(3), zeros=True).problem(with_totals(counts))
    assert (problem.low == 0).all()
    shown = Suppression(rule=Threshold(3)).problem(with_totals(counts))
    assert (shown.low == 1).all()
    assert shown.lower[0] == 0


def with_totals(inner: np.ndarray) -> Table:
    """A two-way table of counts with its totals."""
    full, _ = two_way(inner)
    values = np.asarray(full).reshape(inner.shape[0] + 1, inner.shape[1] + 1)
    return Table((axis("a", inner.shape[0]), axis("b", inner.shape[1])), values)


def _ends(values: np.ndarray, hidden: np.ndarray, cell: tuple[int, int]) -> tuple[int, int]:
    """The least and the most of a cell in tables that agree with what is shown, no blank below 1."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    lines = []
    for rows in (values.shape[0] - 1, 0):
        shape = values.shape if rows else values.T.shape
        for i in range(shape[0]):
            line = np.zeros(shape)
            line[i, :-1], line[i, -1] = 1, -1
            lines.append((line if rows else line.T).ravel())
    at = int(np.ravel_multi_index(cell, values.shape))
    low = np.where(hidden, 1, values).ravel()
    high = np.where(hidden, values.max(), values).ravel()
    out = []
    for sign in (1, -1):
        cost = np.zeros(values.size)
        cost[at] = sign
        found = milp(
            cost,
            constraints=LinearConstraint(np.array(lines), 0, 0),
            bounds=Bounds(low, high),
            integrality=np.ones(values.size),
        )
        out.append(round(float(found.x[at])))
    return out[0], out[1]
