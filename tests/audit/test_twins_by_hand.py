"""Cells that move together, piece by piece: the merged piece has the same tables, found by enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from lustrum.audit import ContradictionError
from lustrum.audit.bounding.twins import Twins
from lustrum.audit.knowledge.reduce import Piece
from lustrum.numeric.structure import UNBOUNDED


def piece(
    rows: list[list[int]],
    fact_low: list[int],
    fact_high: list[int],
    low: list[int],
    high: list[int],
) -> Piece:
    """A piece whose cells are numbered from 10."""
    ends = [np.array(end, dtype=np.int64) for end in (fact_low, fact_high, low, high)]
    matrix = sparse.csr_array(np.array(rows, dtype=np.int64))
    return Piece(np.arange(10, 10 + len(low)), matrix, *ends)


def tables(of: Piece) -> set[tuple[int, ...]]:
    """All tables of a piece whose cells are from -4 to 6."""
    points = np.indices((11,) * of.low.size).reshape(of.low.size, -1) - 4
    sums = of.matrix.toarray() @ points
    fit = ((of.low[:, None] <= points) & (points <= of.high[:, None])).all(axis=0)
    fit &= ((of.fact_low[:, None] <= sums) & (sums <= of.fact_high[:, None])).all(axis=0)
    return set(map(tuple, points[:, fit].T.tolist()))


def groups(rows: list[list[int]], fact_low: list[int], fact_high: list[int]) -> list[list[int]]:
    """Cells that equations of two cells with weights of 1 or -1 tie, in plain loops."""
    found = [{cell} for cell in range(len(rows[0]))]
    for row, low, high in zip(rows, fact_low, fact_high, strict=True):
        used = [cell for cell, weight in enumerate(row) if weight]
        if len(used) == 2 and low == high and all(abs(row[cell]) == 1 for cell in used):
            both = [group for group in found if group & set(used)]
            found = [group for group in found if group not in both] + [set().union(*both)]
    return sorted(sorted(group) for group in found)


@pytest.mark.parametrize("seed", range(4))
def test_every_merged_piece_has_the_tables_of_the_piece(seed: int) -> None:
    """Small systems; of those that fit no table some are found to contradict themselves."""
    rng = np.random.default_rng(seed)
    merged = contradicted = 0
    for _ in range(60):
        count, facts = int(rng.integers(2, 5)), int(rng.integers(1, 5))
        rows = np.zeros((facts, count), dtype=np.int64)
        for row in rows:
            used = rng.choice(count, min(count, int(rng.choice([2, 2, 2, 3]))), replace=False)
            row[used] = rng.choice([1, 1, -1, -1, 2], used.size, p=[0.3, 0.2, 0.2, 0.2, 0.1])
        point = rng.integers(-2, 4, count)
        totals = rows @ point + (rng.random(facts) < 0.1)
        fact_low, fact_high = totals - rng.choice([0, 0, 0, 1], facts), totals.copy()
        low, high = point - rng.integers(0, 3, count), point + rng.integers(0, 3, count)
        args = [end.tolist() for end in (rows, fact_low, fact_high, low, high)]
        whole = piece(*args)
        expected = groups(*args[:3])
        every = tables(whole)
        try:
            twins = Twins.of(whole)
        except ContradictionError:
            contradicted += 1
            assert not every
            continue
        if len(expected) == count:
            assert twins is None
            continue
        assert twins is not None
        merged += 1
        roots = [group[0] for group in expected]
        assert twins.piece.cells.tolist() == [10 + root for root in roots]
        assert [np.flatnonzero(twins.stands == k).tolist() for k in range(len(roots))] == expected
        assert (twins.sign[roots] == 1).all()
        assert (twins.shift[roots] == 0).all()
        own = twins.piece
        assert own.matrix.nnz == np.count_nonzero(own.matrix.toarray())
        assert (np.diff(own.matrix.indptr) > 0).all()
        found = {
            tuple((twins.sign * np.array(y)[twins.stands] + twins.shift).tolist())
            for y in tables(own)
        }
        assert found == every
        # The range of a merged cell is what the ranges of its cells leave, and nothing narrower.
        for k, cells in enumerate(expected):
            left = [
                y
                for y in range(-20, 21)
                if all(low[c] <= twins.sign[c] * y + twins.shift[c] <= high[c] for c in cells)
            ]
            assert (own.low[k], own.high[k]) == (left[0], left[-1])
    assert merged > 25
    assert contradicted > 0


@pytest.mark.parametrize("first", [1, -1])
@pytest.mark.parametrize("second", [1, -1])
def test_signs_of_both_cells_count(first: int, second: int) -> None:
    """5 and 3 satisfy the equation; the second cell follows from the first."""
    total = first * 5 + second * 3
    twins = Twins.of(piece([[first, second]], [total], [total], [0, 0], [9, 9]))
    assert twins is not None
    assert twins.stands.tolist() == [0, 0]
    assert twins.sign[1] == -first * second
    assert twins.sign[1] * 5 + twins.shift[1] == 3
    assert twins.piece.matrix.shape == (0, 1)


def test_cells_without_bounds_and_sums_with_one_end_stay_as_they_are() -> None:
    """b = 7 - a; a + b + c + d is at most 20, and at least anything."""
    rows = [[1, 1, 0, 0], [1, 0, 1, 1], [0, 1, 1, 0]]
    whole = piece(
        rows,
        [7, -UNBOUNDED, 2],
        [7, 20, UNBOUNDED],
        [-UNBOUNDED, -UNBOUNDED, 0, 0],
        [UNBOUNDED, 9, UNBOUNDED, 4],
    )
    twins = Twins.of(whole)
    assert twins is not None
    assert twins.piece.matrix.toarray().tolist() == [[1, 1, 1], [-1, 1, 0]]
    assert twins.piece.fact_low.tolist() == [-UNBOUNDED, -5]
    assert twins.piece.fact_high.tolist() == [20, UNBOUNDED]
    assert twins.piece.low.tolist() == [-2, 0, 0]
    assert twins.piece.high.tolist() == [UNBOUNDED, UNBOUNDED, 4]
    free = Twins.of(piece([[1, 1]], [7], [7], [-UNBOUNDED] * 2, [UNBOUNDED] * 2))
    assert free is not None
    assert (free.piece.low[0], free.piece.high[0]) == (-UNBOUNDED, UNBOUNDED)


@pytest.mark.parametrize(("ends", "fits"), [((3, 9), True), ((7, 7), True), ((8, 9), False)])
def test_a_range_of_a_settled_sum_must_hold_it(ends: tuple[int, int], fits: bool) -> None:
    """a + b = 7 settles 2 a + 2 b = 14 and the range of a + b."""
    for row, times in (([1, 1], 1), ([2, 2], 2), ([-1, -1], -1)):
        low, high = sorted(times * end for end in ends)
        both = piece([[1, 1], row], [7, low], [7, high], [0, 0], [9, 9])
        if fits:
            twins = Twins.of(both)
            assert twins is not None
            assert twins.piece.fact_low.size == twins.piece.fact_high.size == 0
        else:
            with pytest.raises(ContradictionError, match="a sum of them does not match"):
                Twins.of(both)


def test_ranges_that_meet_in_one_value_fit_and_ranges_that_do_not_meet_contradict() -> None:
    """a + b = 9 with b of at least 5 leaves a at most 4."""
    met = Twins.of(piece([[1, 1]], [9], [9], [4, 5], [9, 9]))
    assert met is not None
    assert (met.piece.low[0], met.piece.high[0]) == (4, 4)
    with pytest.raises(ContradictionError, match="no value is left for some of them"):
        Twins.of(piece([[1, 1]], [9], [9], [5, 5], [9, 9]))
    # One pair that does not fit is enough, whatever fits beside it.
    rows = [[1, 1, 0, 0], [0, 0, 1, 1]]
    with pytest.raises(ContradictionError, match="no value is left for some of them"):
        Twins.of(piece(rows, [9, 9], [9, 9], [5, 5, 0, 0], [9] * 4))


def test_shifts_of_large_sums_are_exact() -> None:
    """A float would round the sum, and the bounds with it."""
    total = 2**53 + 1
    twins = Twins.of(piece([[1, 1]], [total], [total], [0, 0], [total, total]))
    assert twins is not None
    assert twins.shift.tolist() == [0, total]
    assert (twins.piece.low[0], twins.piece.high[0]) == (0, total)


def test_ranges_of_all_cells_come_from_those_that_stand_for_them() -> None:
    """b = 7 - a and c = a + 2."""
    twins = Twins.of(piece([[1, 1, 0], [-1, 0, 1]], [7, 2], [7, 2], [0, 0, 0], [9, 9, 9]))
    assert twins is not None
    low, high, sharp = twins.spread(np.array([1.0]), np.array([np.inf]), np.array([True]))
    assert low.tolist() == [1, -np.inf, 3]
    assert high.tolist() == [np.inf, 6, np.inf]
    assert sharp.tolist() == [True] * 3
    assert twins.asked(np.array([2, 1])).tolist() == [0]
