"""The walk among whole tables, on pieces so small that every step can be followed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from lustrum.audit.bounding import lattice_walk
from lustrum.audit.bounding import lattice_walk_kernels as kernels
from lustrum.audit.bounding.lattice import integer_kernel, reduced
from lustrum.audit.bounding.lattice_walk import LatticeWalker, _middle, central_table, stream
from lustrum.audit.knowledge.reduce import Piece
from lustrum.numeric.solve import Outcome
from lustrum.numeric.solve.quadratic import QuadraticOptimum


@pytest.fixture
def plain():
    """Words of 64 bits wrap round without a warning where nothing is compiled."""
    with np.errstate(over="ignore"):
        yield


def piece_of(rows, totals, low, high) -> Piece:
    matrix = sparse.csr_array(np.array(rows, dtype=np.int64))
    ends = np.array(totals, dtype=np.int64)
    return Piece(
        cells=np.arange(matrix.shape[1]),
        matrix=matrix,
        low=np.array(low, dtype=np.int64),
        high=np.array(high, dtype=np.int64),
        fact_low=ends,
        fact_high=ends,
    )


def square(low=(0, 0, 0, 0), high=(9, 9, 9, 9), rows=(5, 4), columns=(6, 3)) -> Piece:
    """A 2 x 2 table with its margins."""
    sums = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    return piece_of(sums, [*rows, *columns], low, high)


def tables_of(piece: Piece) -> np.ndarray:
    boxes = [range(a, b + 1) for a, b in zip(piece.low, piece.high, strict=True)]
    every = np.array(list(itertools.product(*boxes)))
    return every[((every @ piece.matrix.toarray().T) == piece.fact_low).all(axis=1)]


def test_a_middle_keeps_away_from_all_ends():
    piece = square()
    middle = _middle(piece)
    assert piece.matrix @ middle == pytest.approx(piece.fact_low)
    # One number is free, from 2 to 5 in the first cell: 3.5 keeps 1.5 of everybody's ends. Nine tenths of
    # that are kept, and within them the table is as near to the middles of all cells, 4.5, as it can be.
    assert middle == pytest.approx([3.35, 1.65, 2.65, 1.35], abs=1e-3)
    # From 4 to 5 in the first cell it can keep a tenth of a unit, and the others as large a share. Nine tenths
    # of that are kept; the middle of the narrow cell pulls most.
    narrow = _middle(square(low=(4, 0, 0, 0), high=(5, 9, 9, 9)))
    assert (narrow[0], narrow[1]) == pytest.approx((4.19, 0.81), abs=1e-3)
    assert _middle(square(low=(6, 0, 0, 0))) is None
    # Wide cells need no more than 50 units.
    wide = piece_of([[1, 1]], [10**6], [0, 0], [10**6, 10**6])
    assert _middle(wide) == pytest.approx([5e5, 5e5])


@pytest.mark.parametrize(
    ("low", "high", "total"),
    [
        # In the middle, beside it on both sides, and so far from it that a cell must keep its distance.
        ([0, 10, 4], [10, 30, 6], 30),
        ([0, 10, 4], [10, 30, 6], 31),
        ([0, 10, 4], [10, 30, 6], 29),
        ([0, 10, 4], [10, 30, 6], 36),
        ([0, 10, 4], [10, 30, 6], 24),
        # A cell of two values beside wide ones; many narrow ones beside a wide one.
        ([3, 0, 0], [4, 3, 6], 9),
        ([0] * 11, [2] * 10 + [20], 24),
        ([0] * 11, [2] * 10 + [20], 16),
        # Wide cells keep 45 units from their ends, not more.
        ([0, 0], [1000, 200], 1080),
        ([0, 0], [1000, 200], 120),
        ([-700, 50], [300, 250], 480),
    ],
)
def test_a_middle_is_the_nearest_table_that_keeps_its_distance(low, high, total):
    piece = piece_of([[1] * len(low)], [total], low, high)
    low, high = piece.low.astype(float), piece.high.astype(float)
    room = np.minimum((high - low) / 2, 50)
    # One sum: cells together can move away from their ends until the sum does not allow it.
    far = 0.9 * min(1, (high.sum() - total) / room.sum(), (total - low.sum()) / room.sum())
    below, above = low + far * room, high - far * room
    least, most = -1e4, 1e4
    for _ in range(100):
        pull = (least + most) / 2
        table = np.clip((low + high) / 2 + pull * (high - low) ** 2, below, above)
        least, most = (pull, most) if table.sum() < total else (least, pull)
    # Distances are rounded to 12 bits of a share.
    assert _middle(piece) == pytest.approx(table, abs=room.max() / 2**12)


def test_a_central_table_is_the_nearest_by_planes(monkeypatch):
    rows = np.zeros((6, 9), dtype=int)
    for i in range(3):
        rows[i, 3 * i : 3 * i + 3] = 1
        rows[3 + i, i::3] = 1
    rng = np.random.default_rng(6)
    weighted = [[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]]
    seen = 0
    for equations in [rows] * 4 + [np.array(weighted)] * 8:
        inner = rng.integers(20, 60, equations.shape[1])
        piece = piece_of(equations, equations @ inner, inner * 0, inner * 0 + 99)
        basis = reduced(integer_kernel(piece.matrix))
        table = central_table(piece, basis)
        assert piece.holds(table)
        # Babai: after the vectors before it have done what they can, no vector is off by more than a half.
        steps = np.linalg.qr(basis.T.astype(float))
        off = (steps.Q.T @ (table - _middle(piece))) / np.diag(steps.R)
        assert np.abs(off).max() <= 0.5 + 1e-6
        seen += len(basis)
    assert seen >= 4 * 4 + 8 * 4
    # Vectors that are no basis, and a solver that ends without a table.
    piece = square()
    basis = reduced(integer_kernel(piece.matrix))
    assert central_table(piece, np.concatenate([basis, basis])) is None
    monkeypatch.setattr(
        "lustrum.numeric.solve.quadratic.minimise_quadratic",
        lambda problem: QuadraticOptimum(Outcome.CUT_SHORT, np.inf),
    )
    assert _middle(piece) is None
    assert central_table(piece, basis) is None


def test_a_central_table_is_whole_and_fits():
    piece = square()
    basis = reduced(integer_kernel(piece.matrix))
    table = central_table(piece, basis)
    assert any((table == other).all() for other in tables_of(piece))
    assert np.abs(table - [3.5, 1.5, 2.5, 1.5]).max() == 0.5
    # Three cells that add up to 4 and twice the last: whole tables are few.
    odd = piece_of([[2, 3, 5]], [20], [0, 0, 0], [10, 10, 10])
    table = central_table(odd, reduced(integer_kernel(odd.matrix)))
    assert table is None or odd.holds(table)
    assert 2 * table[0] + 3 * table[1] + 5 * table[2] == 20
    assert np.abs(table - _middle(odd)).max() < 3
    halves = piece_of([[2, 2]], [3], [0, 0], [3, 3])
    assert central_table(halves, reduced(integer_kernel(halves.matrix))) is None
    nothing = square(low=(6, 0, 0, 0))
    assert central_table(nothing, basis) is None
    # 2 a + 3 b = 7 has real tables with a up to 1 and b from 1 to 2, and no whole one.
    between = piece_of([[2, 3]], [7], [0, 1], [1, 2])
    assert _middle(between) is not None
    assert central_table(between, reduced(integer_kernel(between.matrix))) is None


def walker_of(piece: Piece, table) -> LatticeWalker:
    basis = reduced(integer_kernel(piece.matrix))
    return LatticeWalker(piece, basis, np.array(table), piece.low, piece.high)


@pytest.mark.usefixtures("plain")
def test_a_walk_reaches_every_end_of_a_small_piece():
    piece = square()
    every = tables_of(piece)
    least, most = every.min(axis=0), every.max(axis=0)
    for question in range(8):
        walker = walker_of(piece, [3, 2, 3, 1])
        walker.low, walker.high = least, most
        assert walker.seek(question, stream(question), 50)
        assert piece.holds(walker.table)
        cell, upper = divmod(question, 2)
        reached = walker.most if upper else walker.least
        assert reached[cell] == (most if upper else least)[cell]
        assert (walker.least >= least).all()
        assert (walker.most <= most).all()
    # A bound that no table reaches is not reached.
    walker = walker_of(piece, [3, 2, 3, 1])
    assert not walker.seek(0, stream(1), 50)
    assert not walker.seek(1, stream(1), 50)
    # Without a try nothing moves, and a bound that was met before is reached at once.
    walker = walker_of(piece, [3, 2, 3, 1])
    assert not walker.seek(0, stream(1), 0)
    assert walker.table.tolist() == [3, 2, 3, 1]
    walker.low = np.array([3, 0, 0, 0])
    assert walker.seek(0, stream(1), 1)
    assert walker.table.tolist() == [3, 2, 3, 1]
    walker.high = np.array([9, 9, 9, 1])
    assert walker.seek(7, stream(1), 1)


@pytest.mark.usefixtures("plain")
def test_a_larger_walk_stays_among_tables():
    rows = np.zeros((6, 9), dtype=int)
    for i in range(3):
        rows[i, 3 * i : 3 * i + 3] = 1
        rows[3 + i, i::3] = 1
    inner = np.array([2, 1, 0, 1, 3, 1, 0, 2, 2])
    piece = piece_of(rows, rows @ inner, [0] * 9, [6] * 9)
    free = np.array(list(itertools.product(range(6), repeat=4))).reshape(-1, 2, 2)
    every = np.zeros((len(free), 3, 3), dtype=int)
    every[:, :2, :2] = free
    every[:, :2, 2] = (rows @ inner)[:2] - free.sum(axis=2)
    every[:, 2] = (rows @ inner)[3:] - every.sum(axis=1)
    every = every[(every >= 0).all(axis=(1, 2))].reshape(-1, 9)
    assert all(piece.holds(t) for t in every)
    least, most = every.min(axis=0), every.max(axis=0)
    walker = walker_of(piece, inner)
    walker.low, walker.high = least, most
    luck, met = stream(5), [inner]
    for question in range(18):
        for _ in range(40):
            if walker.seek(question, luck, 1):
                break
            met.append(walker.table.copy())
            assert piece.holds(walker.table)
            assert (walker.table >= least).all()
            assert (walker.table <= most).all()
    # Every value that counts as met was that of a table on the way.
    assert walker.least.tolist() == np.min(met, axis=0).tolist()
    assert walker.most.tolist() == np.max(met, axis=0).tolist()
    assert len({tuple(t) for t in met}) > 5
    twin = walker.copy()
    twin.table[0] += 100
    twin.least[0] = twin.most[0] = 100
    assert walker.table[0] < 100
    assert max(walker.least[0], walker.most[0]) < 100
    assert twin.basis is walker.basis
    assert (twin.least[1:] == walker.least[1:]).all()


@pytest.mark.usefixtures("plain")
def test_steps_of_several_units_keep_the_equations():
    # 2 a = b + 3 and c = 3 a: a step changes the cells by 1, 2 and 3.
    piece = piece_of([[2, -1, 0], [3, 0, -1]], [3, 0], [2, 1, 6], [7, 11, 21])
    walker = walker_of(piece, [4, 5, 12])
    luck = stream(3)
    for question in itertools.chain(range(6), range(6)):
        walker.seek(question, luck, 1)
        assert piece.holds(walker.table)
        assert (walker.least <= walker.table).all()
        assert (walker.most >= walker.table).all()
    assert all(walker.seek(question, luck, 60) for question in range(6))
    assert walker.least.tolist() == [2, 1, 6]
    assert walker.most.tolist() == [7, 11, 21]


def test_the_shortest_equation_that_gives_a_bound_is_tied():
    # The first cell is in a long and a short sum; both give 2 as its least value.
    rows = [[1, 1, 1, 1], [1, 1, 0, 0]]
    piece = piece_of(rows, [8, 5], [0] * 4, [4, 3, 2, 1])
    walker = walker_of(piece, [2, 3, 2, 1])
    walker.low = np.array([2, 1, 0, 0])
    assert walker._tied(0, -1).tolist() == [1, 0]
    # 4 is the most: 5 less 1 by the short sum.
    assert walker._tied(0, 1).tolist() == [1, 0]
    # 8 less 4, 3 and 1: only the long sum gives 0 as the least of the third cell.
    assert walker._tied(2, -1).tolist() == [0, 1, 3, 2]
    walker.low = np.array([1, 1, 0, 0])
    assert walker._tied(0, -1).tolist() == [0]
    # Weights and signs: 2 a - b = 3 with b from 1 to 5 gives a from 2 to 4.
    signs = piece_of([[2, -1]], [3], [0, 1], [9, 5])
    own = walker_of(signs, [2, 1])
    own.low, own.high = np.array([2, 1]), np.array([4, 5])
    assert own._tied(0, -1).tolist() == [1, 0]
    assert own._tied(0, 1).tolist() == [1, 0]
    assert own._tied(1, 1).tolist() == [0, 1]
    own.high = np.array([5, 5])
    assert own._tied(0, 1).tolist() == [0]


def test_walkers_are_made_for_equations_of_moderate_size(monkeypatch):
    piece = square()
    ends = piece.low.astype(float), piece.high.astype(float)
    assert LatticeWalker.of(piece, *ends) is None  # four cells are searched otherwise
    monkeypatch.setattr(lattice_walk, "LEAST", 4)
    monkeypatch.setattr(lattice_walk, "MOST", 4)
    found = LatticeWalker.of(piece, *ends)
    assert piece.holds(found.table)
    assert found.least.tolist() == found.most.tolist() == found.table.tolist()
    assert not (piece.matrix @ found.basis.T).any()
    assert (found.low.tolist(), found.high.tolist()) == ([0] * 4, [9] * 4)
    # The table lies within the bounds that were proven, not only within those of the piece.
    at_most = LatticeWalker.of(piece, np.array([5.0, 0, 0, 0]), ends[1])
    assert at_most.table.tolist() == [5, 0, 1, 3]
    at_least = LatticeWalker.of(piece, ends[0], np.array([2.0, 9, 9, 9]))
    assert at_least.table.tolist() == [2, 3, 4, 0]
    twin = at_least.copy()
    assert (twin.low.tolist(), twin.high.tolist()) == ([0, 0, 0, 0], [2, 9, 9, 9])
    monkeypatch.setattr(lattice_walk, "MOST", 3)
    assert LatticeWalker.of(piece, *ends) is None
    monkeypatch.setattr(lattice_walk, "MOST", 9)
    monkeypatch.setattr(lattice_walk, "LEAST", 5)
    assert LatticeWalker.of(piece, *ends) is None
    monkeypatch.setattr(lattice_walk, "LEAST", 1)
    assert LatticeWalker.of(piece, ends[0], np.array([9, 9, np.inf, 9])) is None
    loose = square()
    object.__setattr__(loose, "fact_high", loose.fact_high + np.array([0, 1, 0, 0]))
    assert LatticeWalker.of(loose, *ends) is None
    # One table only: there are no steps. No table: nowhere to begin.
    sure = piece_of([[1, 0], [0, 1]], [3, 4], [0, 0], [9, 9])
    assert LatticeWalker.of(sure, np.zeros(2), np.full(2, 9.0)) is None
    halves = piece_of([[2, 2]], [3], [0, 0], [3, 3])
    assert LatticeWalker.of(halves, np.zeros(2), np.full(2, 3.0)) is None

    def too_large(matrix):
        raise OverflowError

    monkeypatch.setattr(lattice_walk, "integer_kernel", too_large)
    assert LatticeWalker.of(piece, *ends) is None


def test_vectors_are_set_apart_without_changing_what_they_span():
    basis = np.array([[2, 1, 0, -1], [3, -1, 1, 0], [1, 0, 2, 5]])
    for tied in ([0], [0, 1], [1, 3], [0, 1, 2], []):
        vectors = basis.copy()
        few = int(kernels.apart(vectors, np.array(tied, dtype=np.int64)))
        assert few == (np.linalg.matrix_rank(basis[:, tied]) if tied else 0)
        assert not vectors[few:, tied].any()
        # The same lattice: whole numbers lead from one basis to the other, both ways.
        for one, other in ((basis, vectors), (vectors, basis)):
            times = np.linalg.lstsq(other.T.astype(float), one.T.astype(float), rcond=None)[0]
            assert times == pytest.approx(np.rint(times), abs=1e-9)
            assert (np.rint(times).T @ other == one).all()


def test_a_step_is_taken_as_often_as_all_cells_allow():
    reach = getattr(kernels._reach, "py_func", kernels._reach)
    x, low, high = np.array([5, 5, 5]), np.array([0, 1, 0]), np.array([9, 9, 12])
    # The first vector changes cells 0 and 1 by 1 and -2, the second cell 2 by 3.
    vectors = np.array([0, 2, 3]), np.array([0, 1, 2]), np.array([1, -2, 3])
    one = np.int64(1)
    assert reach(x, low, high, *vectors, 0, one) == 2  # 4 up, or 4 down by twos
    assert reach(x, low, high, *vectors, 0, -one) == 2  # 5 down, or 4 up by twos
    assert reach(x, low, high, *vectors, 1, one) == 2  # 7 up by threes
    assert reach(x, low, high, *vectors, 1, -one) == 1  # 5 down by threes
    assert reach(high, low, high, *vectors, 1, one) == 0


def test_streams_differ_by_their_seed():
    assert stream(0).tolist() == [0, 0x9E3779B97F4A7C15]
    assert stream(1).tolist() == [0xD1342543DE82EF95, 0x9E3779B97F4A7C15]
    assert stream(3).tolist()[0] == 3 * 0xD1342543DE82EF95 % 2**64


@pytest.mark.usefixtures("plain")
def test_random_numbers_are_below_their_count_and_take_all_values():
    below = getattr(kernels._below, "py_func", kernels._below)
    sign = getattr(kernels._sign, "py_func", kernels._sign)
    state = stream(7)
    drawn = [int(below(state, np.int64(3))) for _ in range(300)]
    assert set(drawn) == {0, 1, 2}
    assert min(drawn.count(k) for k in range(3)) > 60
    signs = [int(sign(state)) for _ in range(300)]
    assert set(signs) == {-1, 1}
    assert 90 < signs.count(1) < 210
