"""Whole solutions of equations, and cells that equations give away, on systems that can be written out."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import gcd

import numpy as np
import pytest
from scipy import sparse

from lustrum.audit import Knowledge
from lustrum.audit.bounding import elimination
from lustrum.audit.bounding.elimination import exactly_disclosed
from lustrum.audit.bounding.lattice import (
    integer_kernel,
    integer_solution,
    reduced,
    short_moves,
)
from lustrum.audit.knowledge.independent import echelon, independent_rows, without_repeats
from lustrum.audit.knowledge.reduce import Piece
from lustrum.model import InputError
from lustrum.numeric.structure import UNBOUNDED


def rank(rows: list[list[int]]) -> int:
    """The rank, by exact fractions."""
    left = [[Fraction(v) for v in row] for row in rows]
    found = 0
    for column in range(len(left[0]) if left else 0):
        pivot = next((i for i in range(found, len(left)) if left[i][column]), None)
        if pivot is None:
            continue
        left[found], left[pivot] = left[pivot], left[found]
        for i in range(found + 1, len(left)):
            times = left[i][column] / left[found][column]
            left[i] = [a - times * b for a, b in zip(left[i], left[found], strict=True)]
        found += 1
    return found


def spanned(vector: np.ndarray, basis: np.ndarray) -> bool:
    """Whether a vector is a whole sum of the vectors of a basis."""
    times, *_ = np.linalg.lstsq(basis.T.astype(float), vector.astype(float), rcond=None)
    return bool((np.rint(times).astype(np.int64) @ basis == vector).all())


BOX = np.array(list(product(range(-2, 3), repeat=5)))


@pytest.mark.parametrize("seed", range(12))
def test_a_kernel_spans_every_whole_change_that_keeps_the_equations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.choice([-3, -2, -1, 0, 0, 0, 1, 2, 3], (1 + seed % 4, 5))
    matrix = sparse.csr_array(rows)
    kernel = integer_kernel(matrix)
    assert kernel.shape == (5 - rank(rows.tolist()), 5)
    assert not (rows @ kernel.T).any()
    for change in BOX[~(BOX @ rows.T).any(axis=1)][:200]:
        assert spanned(change, kernel)
    for vector in kernel:
        assert vector[np.flatnonzero(vector)[0]] > 0
    short = reduced(kernel)
    assert all(spanned(v, kernel) for v in short)
    assert all(spanned(v, short) for v in kernel)
    products = short @ short.T
    for i, j in product(range(len(short)), repeat=2):
        assert i == j or 2 * abs(products[i, j]) <= products[i, i]
    lengths = np.abs(short).sum(axis=1)
    assert (np.diff(lengths) >= 0).all()


def test_changes_with_large_entries_are_refused() -> None:
    assert integer_kernel(sparse.csr_array([[2**25 - 1, 2**25 - 2]])).tolist() == [
        [2**25 - 2, -(2**25 - 1)]
    ]
    with pytest.raises(OverflowError):
        integer_kernel(sparse.csr_array([[2**25, 2**25 - 1]]))


def test_a_whole_solution_is_found_exactly_where_there_is_one() -> None:
    for a, b, total in product(range(-4, 5), range(-4, 5), range(-3, 4)):
        found = integer_solution(sparse.csr_array([[a, b]]), np.array([total]))
        divisor = gcd(a, b)
        assert (found is not None) == (total % divisor == 0 if divisor else total == 0)
        assert found is None or a * found[0] + b * found[1] == total
    box = np.array(list(product(range(-5, 6), repeat=3)))
    rng = np.random.default_rng(5)
    missing = 0
    for _ in range(30):
        rows, totals = rng.integers(-2, 5, (2, 3)), rng.integers(-3, 4, 2)
        rows[1] = 2 * rows[0] if rng.random() < 0.3 else rows[1]
        totals[1] = 2 * totals[0] if rng.random() < 0.3 else totals[1]
        found = integer_solution(sparse.csr_array(rows), totals)
        if found is None:
            missing += 1
            assert not (box @ rows.T == totals).all(axis=1).any()
        else:
            assert (rows @ found == totals).all()
    assert 0 < missing < 30


def test_short_moves_are_the_basis_and_its_short_sums() -> None:
    chain = np.array([[1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]])
    moves = short_moves(chain)
    assert moves[:3].tolist() == chain.tolist()
    pairs = {(i, j) for i in range(4) for j in range(i + 1, 4)}
    assert {tuple(np.flatnonzero(m).tolist()) for m in moves} == pairs
    assert len(moves) == len(pairs)
    assert all(m[np.flatnonzero(m)[0]] == 1 for m in moves)
    # Sums up to half as long again as the longest vector: 6 for 4, and none of 8.
    squares = np.array([[1, -1, -1, 1, 0, 0], [0, 0, 1, -1, -1, 1]])
    assert short_moves(squares).tolist() == [*squares.tolist(), [1, -1, 0, 0, -1, 1]]
    apart = np.array([[1, -1, 0, 0, 0], [0, 0, 1, 1, -2], [0, 1, -1, 0, 0]])
    assert [1, -1, 1, 1, -2] in short_moves(apart).tolist()
    # Again while there are new ones: six cells take three rounds to reach from the first to the last.
    assert len(short_moves(np.eye(5, 6, dtype=np.int64) - np.eye(5, 6, 1, dtype=np.int64))) == 15
    assert [0, 1, -1] in short_moves(np.array([[1, -1, 0], [1, 0, -1]])).tolist()  # a difference
    assert [0, 1] in short_moves(np.array([[1, 1], [1, 0]])).tolist()
    assert short_moves(np.zeros((0, 3), dtype=np.int64)).shape == (0, 3)
    assert reduced(np.zeros((0, 3), dtype=np.int64)).shape == (0, 3)
    assert reduced(chain[:1]).tolist() == chain[:1].tolist()
    # A vector is replaced where its square becomes less by 1 alone.
    assert reduced(np.array([[1, 0], [1, 1]])).tolist() == [[1, 0], [0, 1]]
    assert short_moves(chain, most=3).tolist() == chain.tolist()
    assert len(short_moves(chain, most=5)) == 5
    assert short_moves(chain[:1]).tolist() == chain[:1].tolist()


def systems(seed: int) -> Knowledge:
    """Cells far from any bound, tied by a few equations, some cells given and some facts only ranges."""
    rng = np.random.default_rng(seed)
    cells, facts = int(rng.integers(3, 9)), int(rng.integers(1, 9))
    rows = rng.choice([-2, -1, 0, 0, 0, 0, 1, 1, 3], (facts, cells))
    value = rng.integers(0, 9, cells)
    slack = rng.choice([0, 0, 0, 1], facts)
    given = rng.random(cells) < 0.15
    return Knowledge(
        [f"x{i}" for i in range(cells)],
        np.where(given, value, -1000),
        np.where(given, value, 1000),
        sparse.csr_array(rows),
        rows @ value,
        rows @ value + slack,
    )


def determined(known: Knowledge) -> list[bool]:
    """Whether the unit row of each cell is a sum of equations and of rows of given cells."""
    units = np.eye(len(known), dtype=np.int64)
    equations = known.matrix.toarray()[known.fact_low == known.fact_high]
    rows = np.vstack([equations, units[known.low == known.high]]).tolist()
    full = rank(rows)
    return [rank([*rows, unit.tolist()]) == full for unit in units]


@pytest.mark.parametrize("seed", range(16))
def test_what_equations_give_away_is_what_exact_fractions_say(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for known in (systems(2 * seed), systems(2 * seed + 1)):
        expected = determined(known)
        assert exactly_disclosed(known).tolist() == expected
        with monkeypatch.context() as written_out:
            written_out.setattr(elimination, "_MOST_STEPS", -1)
            assert exactly_disclosed(known).tolist() == expected


KNOT = [[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 0]]  # no equation can be peeled


def test_a_knot_is_solved_and_two_knots_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    loose = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    rows = np.block([[np.array(KNOT), np.zeros((4, 4))], [np.zeros((4, 4)), np.array(loose)]])
    rows = rows.astype(np.int64)
    known = Knowledge(
        list("abcdefgh"), [0] * 8, [UNBOUNDED] * 8, sparse.csr_array(rows), [6] * 8, [6] * 8
    )
    for steps in (3 * 10**9, -1):
        monkeypatch.setattr(elimination, "_MOST_STEPS", steps)
        assert exactly_disclosed(known).tolist() == [True] * 4 + [False] * 4
    # Written out in full, four equations of four cells take 64 steps.
    monkeypatch.setattr(elimination, "_MOST_WORK", 64)
    exactly_disclosed(known)
    monkeypatch.setattr(elimination, "_MOST_WORK", 63)
    with pytest.raises(InputError, match="4 cells are tied by 4 equations"):
        exactly_disclosed(known)


def test_a_cell_put_off_is_solved_with_its_own_weight() -> None:
    """3 a + b = 5 and b + c = 4 with c + d = 2: nothing is given away until d is known."""
    known = Knowledge.of("abcd", low=-99)
    known = known.fact({"a": 3, "b": 1}, 5, 5).fact({"b": 1, "c": 1}, 4, 4)
    known = known.fact({"c": -1, "d": 2}, 2, 2)
    assert exactly_disclosed(known).tolist() == [False] * 4
    assert exactly_disclosed(known.bound("d", 1, 1)).tolist() == [True] * 4
    assert exactly_disclosed(known.fact({"a": 6, "b": 2, "d": 5}, 15, 15)).tolist() == [True] * 4
    twice = Knowledge.of("xyz").fact({"x": 3, "y": 2}, 9, 9).fact({"x": 6, "y": 4, "z": 1}, 20, 20)
    assert exactly_disclosed(twice).tolist() == [False, False, True]


def test_two_equations_of_one_cell_give_away_that_cell_only() -> None:
    known = Knowledge.of("xyz").fact({"x": 1}, 5, 5).fact({"x": 2}, 10, 10)
    known = known.fact({"y": 1, "z": 1}, 3, 3)
    assert exactly_disclosed(known).tolist() == [True, False, False]
    assert exactly_disclosed(known.fact({"z": 1}, 1, 1).fact({"z": 3}, 3, 3)).all()


def test_a_cell_put_off_sees_the_signs_of_a_knot(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a square of sums ``a - d`` and ``a + b`` are fixed; ``a + d`` and ``a - b`` are not."""
    square = Knowledge.of("abcdz", low=-99)
    for pair in ("ab", "cd", "ac", "bd"):
        square = square.fact(dict.fromkeys(pair, 1), 4, 4)
    for steps in (3 * 10**9, -1):
        monkeypatch.setattr(elimination, "_MOST_STEPS", steps)
        for other, weight, given in (
            ("d", -1, True), ("d", 1, False), ("b", 1, True), ("b", -1, False),
        ):  # fmt: skip
            known = square.fact({"a": 1, other: weight, "z": 1}, 2, 2)
            assert exactly_disclosed(known).tolist() == [False] * 4 + [given]


def test_cells_that_stay_open_are_not_named_by_chance() -> None:
    cells = 3000
    rows = np.vstack([np.ones(cells), 1 + np.arange(cells) % 2]).astype(np.int64)
    known = Knowledge(
        [str(i) for i in range(cells)], [0] * cells, [9] * cells,
        sparse.csr_array(rows), [cells, cells], [cells, cells],
    )  # fmt: skip
    assert not exactly_disclosed(known).any()
    apart = sparse.kron(sparse.eye_array(cells // 3), np.ones((1, 3))).astype(np.int64)
    sums = np.full(cells // 3, 9)
    alone = Knowledge(known.names, known.low, known.high, apart, sums, sums)
    assert not exactly_disclosed(alone).any()


def test_the_work_of_a_knot_grows_with_its_shorter_side_squared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.array([[1, 1, 0, 1, 1], [0, 1, 1, 1, 2], [1, 2, 1, 0, 1]])
    known = Knowledge(list("abcde"), [0] * 5, [9] * 5, sparse.csr_array(rows), [9] * 3, [9] * 3)
    monkeypatch.setattr(elimination, "_MOST_STEPS", -1)
    monkeypatch.setattr(elimination, "_MOST_WORK", 3 * 5 * 3)
    assert not exactly_disclosed(known).any()
    monkeypatch.setattr(elimination, "_MOST_WORK", 3 * 5 * 3 - 1)
    with pytest.raises(InputError, match="5 cells are tied by 3 equations"):
        exactly_disclosed(known)


def piece(rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> Piece:
    """Facts about cells from 0 to 9."""
    ends = np.zeros(rows.shape[1], dtype=np.int64), np.full(rows.shape[1], 9)
    return Piece(np.arange(rows.shape[1]), sparse.csr_array(rows), low, high, *ends)


@pytest.mark.parametrize("seed", range(8))
def test_equations_that_follow_from_shorter_ones_go_and_nothing_else_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base = rng.choice([-2, -1, 0, 0, 1, 1, 2], (int(rng.integers(2, 5)), 5))
    rows = np.concatenate([base, rng.integers(-2, 3, (4, base.shape[0])) @ base])
    rows = rows[rng.permutation(rows.shape[0])]
    total = rows @ rng.integers(0, 9, 5)
    kept = independent_rows(piece(rows, total, total))
    assert kept.size == rank(rows.tolist()) == rank(rows[kept].tolist())
    assert kept.tolist() == sorted(kept)
    length = np.count_nonzero(rows, axis=1)
    for row in np.setdiff1d(np.arange(rows.shape[0]), kept):
        shorter = rows[kept[length[kept] <= length[row]]].tolist()
        assert rank([*shorter, rows[row].tolist()]) == rank(shorter)
    # Ranges always stay, and so does an equation that contradicts the others.
    slack = rng.integers(0, 2, total.size)
    loose = independent_rows(piece(rows, total, total + slack))
    assert np.isin(np.flatnonzero(slack), loose).all()
    exact = np.intersect1d(loose, np.flatnonzero(slack == 0))
    assert exact.size == rank(rows[slack == 0].tolist())
    wrong = total.copy()
    gone = int(np.setdiff1d(np.arange(rows.shape[0]), kept)[0])
    wrong[gone] += 1
    assert independent_rows(piece(rows, wrong, wrong)).size > kept.size
    less = without_repeats(piece(rows, total, total))
    assert less.matrix.toarray().tolist() == rows[kept].tolist()
    assert less.fact_low.tolist() == less.fact_high.tolist() == total[kept].tolist()
    whole = piece(rows[kept], total[kept], total[kept])
    assert without_repeats(whole) is whole


def test_equations_are_kept_whose_numbers_only_look_alike() -> None:
    multiples = np.array([[61, 0, 0], [0, 43, 0], [61, 43, 0]])
    total = np.array([122, 86, 208])
    assert independent_rows(piece(multiples, total, total)).tolist() == [0, 1]
    # The second says that the last cell is 0, which the first does not.
    rows = np.array([[1, 1, 0], [1, 1, 1]])
    assert independent_rows(piece(rows, np.array([5, 5]), np.array([5, 5]))).tolist() == [0, 1]


def test_equations_that_fill_in_while_they_are_combined_keep_their_rank() -> None:
    rng = np.random.default_rng(2)
    rows = np.zeros((40, 40), dtype=np.int64)
    for row in rows:
        row[rng.choice(40, 3, replace=False)] = rng.choice([-1, 1, 2], 3)
    rows = np.concatenate([rows, rows[:5] + rows[5:10]])
    total = rows @ rng.integers(0, 9, 40)
    kept = independent_rows(piece(rows, total, total))
    assert kept.size == np.linalg.matrix_rank(rows) == np.linalg.matrix_rank(rows[kept])


def test_combined_equations_find_room_however_much_they_fill_in() -> None:
    """A full row first, and its first cell in every other row: each of them fills up."""
    size, prime = 40, 2**31 - 1
    rows = np.eye(size, dtype=np.int64) * 2
    rows[:, 0] = 1
    rows[0] = 1
    matrix = sparse.csr_array(rows)
    kept, cell_of, begin, end, cells, values, done = echelon(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data,
        np.zeros(size, dtype=np.int64), np.arange(size), np.zeros(size, dtype=np.int64),
        10**9, prime,
    )  # fmt: skip
    assert kept.all()
    assert done
    assert sorted(cell_of.tolist()) == list(range(size))
    assert end[size - 1] > 4 * matrix.nnz + 16  # more than there was room for at first
    for row in range(size):
        part = slice(begin[row], end[row])
        own = dict(zip(cells[part].tolist(), values[part].tolist(), strict=True))
        assert own[int(cell_of[row])] == 1
        assert not set(cell_of[:row].tolist()) & set(own)


def test_rows_of_one_cell_go_first_and_then_cells_of_one_row():
    def peeled(rows):
        matrix = sparse.csr_array(np.array(rows))
        columns = matrix.tocsc()
        ends = (matrix.indptr, matrix.indices, columns.indptr, columns.indices)
        return [part.tolist() for part in elimination._peel(*(e.astype(np.int64) for e in ends))]

    # Each row settles a cell, which leaves the next row with one.
    assert peeled([[1, 0, 0], [1, 1, 0], [0, 1, 1]]) == [[0, 1, 2], [0, 1, 2], [False] * 3]
    # No row has one cell: a cell that stands in one row takes its row with it.
    assert peeled([[1, 1, 0], [0, 1, 1]]) == [[1, 0], [2, 1], [True, True]]
    assert peeled([[1, 1], [1, -1]]) == [[], [], []]
