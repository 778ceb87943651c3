"""Cells that move together: one stands for all, and nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from audit.fibres import fitting
from examples import examples
from lustrum.audit import ContradictionError, Knowledge, bounds
from lustrum.audit.bounding.compute import Twins
from lustrum.audit.knowledge.reduce import pieces
from lustrum.numeric.solve import Highs


def piece_of(known: Knowledge) -> object:
    every = np.ones(len(known), dtype=np.bool_)
    (piece,) = pieces(known, known.low, known.high, every)
    return piece


def test_signs_and_shifts_follow_chains_of_equations() -> None:
    """a + b = 10, b - c = 2, c + d = 7; e is tied to d by a longer sum only."""
    known = Knowledge.of("abcdef").within([0] * 6, [9] * 6)
    for row, total in (
        ({"b": 1, "a": 1}, 10),
        ({"b": 1, "c": -1}, 2),
        ({"d": 1, "c": 1}, 7),
        ({"d": 1, "e": 1, "f": 1}, 9),
    ):
        known = known.fact(row, total, total)
    twins = Twins.of(piece_of(known))  # type: ignore[arg-type]
    assert twins.stands.tolist() == [0, 0, 0, 0, 1, 2]
    # b = 10 - a, c = 8 - a, d = a - 1
    assert twins.sign.tolist() == [1, -1, -1, 1, 1, 1]
    assert twins.shift.tolist() == [0, 10, 8, -1, 0, 0]
    assert (twins.piece.low[0], twins.piece.high[0]) == (1, 8)
    assert twins.piece.matrix.toarray().tolist() == [[1, 1, 1]]
    assert twins.piece.fact_low.tolist() == [10]
    low, high, sharp = twins.spread(
        np.array([2.0, 0, 0]), np.array([5.0, 9, 9]), np.array([True, False, False])
    )
    assert low.tolist() == [2, 5, 3, 1, 0, 0]
    assert high.tolist() == [5, 8, 6, 4, 9, 9]
    assert sharp.tolist() == [True, True, True, True, False, False]
    assert twins.asked(np.array([3, 5])).tolist() == [0, 2]


def test_two_equations_of_the_same_cells_settle_or_contradict() -> None:
    known = Knowledge.of("ab").within([0, 0], [9, 9]).fact({"a": 1, "b": 1}, 8, 8)
    settled = known.fact({"a": 1, "b": -1}, 2, 2)
    found = bounds(settled)
    assert found.low.tolist() == found.high.tolist() == [5, 3]
    assert found.sharp.all()
    with pytest.raises(ContradictionError):
        bounds(known.fact({"a": 2, "b": 2}, 14, 14))


@st.composite
def tables(draw: st.DrawFn) -> Knowledge:
    """Cells with sums of two and three of them, as suppression leaves them; some table fits."""
    count = draw(st.integers(3, 8))
    point = np.array(draw(st.lists(st.integers(0, 9), min_size=count, max_size=count)))
    known = Knowledge.of([f"x{i}" for i in range(count)]).within([0] * count, [20] * count)
    for _ in range(draw(st.integers(1, 6))):
        size = draw(st.sampled_from([2, 2, 3, 4]))
        cells = draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=size, unique=True))
        signs = [draw(st.sampled_from([1, 1, 1, -1, 2])) for _ in cells]
        total = int(sum(s * point[c] for s, c in zip(signs, cells, strict=True)))
        known = known.fact({f"x{c}": s for s, c in zip(signs, cells, strict=True)}, total, total)
    return known


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.deep) for n in (2, 3))])
def test_bounds_with_ranges_are_those_of_a_solver_that_sees_every_cell(seed: int) -> None:
    """Ranges can leave a merged cell without any fact, and a piece can become a network by merging."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        count, facts = int(rng.integers(3, 7)), int(rng.integers(2, 6))
        rows = rng.choice([-1, 0, 0, 1, 1], (facts, count))
        rows[0, :3] = [1, -1, 0] if rng.random() < 0.5 else [1, 1, 0]
        rows[0, 2:] = 0
        rows = rows[np.abs(rows).sum(axis=1) > 1]
        totals = rows @ rng.integers(0, 4, count)
        slack = rng.choice([0, 0, 1, 2], (2, totals.size))
        slack[:, 0] = 0
        known = Knowledge(
            [f"x{i}" for i in range(count)], [0] * count, [5] * count,
            sparse.csr_array(rows), totals - slack[0], totals + slack[1],
        )  # fmt: skip
        ours, theirs = (bounds(known.relaxed(), solver=s, workers=1) for s in (None, Highs()))
        assert ours.low == pytest.approx(theirs.low, abs=1e-6)
        assert ours.high == pytest.approx(theirs.high, abs=1e-6)
        tables, exact = fitting(known), bounds(known, integer=True, workers=1)
        assert exact.low.tolist() == tables.min(axis=0).tolist()
        assert exact.high.tolist() == tables.max(axis=0).tolist()


def test_shifts_of_large_sums_are_exact() -> None:
    """A float would round the sum, and the bounds with it."""
    big = 2**52 + 1
    known = Knowledge.of("abcd").within([0, 0, 0, 0], [2, 2**53, 2, 2])
    known = known.fact({"a": 1, "b": 1}, big, big).fact({"b": 1, "c": 1, "d": 1}, big + 1, big + 1)
    known = known.fact({"a": 1, "c": 2, "d": 3}, 0, 9)
    found = bounds(known, integer=True)
    assert (found.low[1], found.high[1]) == (big - 2, big)


@settings(max_examples=examples(15, 120))
@given(tables())
def test_bounds_are_those_of_a_solver_that_sees_every_cell(known: Knowledge) -> None:
    """A solver that the caller names gets all cells, by themselves and without a core."""
    for one in (known, known.relaxed()):
        ours, theirs = bounds(one, workers=1), bounds(one, solver=Highs(), workers=1)
        assert ours.low == pytest.approx(theirs.low, abs=1e-6)
        assert ours.high == pytest.approx(theirs.high, abs=1e-6)
    exact = bounds(known, integer=True, workers=1)
    whole = bounds(known, integer=True, solver=Highs(), workers=1)
    assert exact.low.tolist() == whole.low.tolist()
    assert exact.high.tolist() == whole.high.tolist()
    assert exact.sharp.all()
