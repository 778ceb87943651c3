"""Blocks of a fibre and two-way tables beside all tables that fit, one by one."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from audit.fibres import fitting
from lustrum.audit import ContradictionError, Knowledge, from_margins
from lustrum.audit.fibre import (
    FibreMargins,
    count_tables,
    distribution,
    enumerate_fibre,
    sample_fibre,
)
from lustrum.audit.fibre.system import FibreBlock, FibreSystem
from lustrum.audit.fibre.two_way import TwoWay, _sides
from lustrum.model import InputError
from lustrum.numeric.structure import UNBOUNDED

ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]


# Blocks


def systems():
    """Small boxes with facts of every kind: one or two ends, signs, weights, twice the same."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        names = "abcde"[: int(rng.integers(1, 6))]
        known = Knowledge.of(names, low=-9)
        for name in names:
            low = int(rng.integers(-1, 2))
            known = known.bound(name, low, low + int(rng.integers(0, 4)))
        for _ in range(int(rng.integers(0, 4))):
            weights = {n: int(rng.integers(-2, 3)) for n in names}
            low = int(rng.integers(-2, 4))
            high = low + int(rng.choice([0, 0, 1, 3]))
            known = known.fact(weights, low, high)
            if rng.random() < 0.3:
                known = known.fact({n: -w for n, w in weights.items()}, -high, -low)
        yield known


def points(block: FibreBlock) -> np.ndarray:
    """Every point of a block, by its definition."""
    ranges = [range(a, b + 1) for a, b in zip(block.low, block.high, strict=True)]
    every = np.array(list(itertools.product(*ranges)), dtype=np.int64)
    return every[(every @ block.matrix.toarray().T == block.totals).all(axis=1)]


@pytest.mark.parametrize("first", range(0, 30, 5))
def test_blocks_together_hold_what_fits_and_nothing_else(first):
    seen = 0
    for known in itertools.islice(systems(), first, first + 5):
        tables = fitting(known)
        try:
            system = FibreSystem.of(known)
        except ContradictionError:
            assert len(tables) == 0
            continue
        parts = [points(b) for b in system.blocks]
        assert math.prod(map(len, parts)) == len(tables)
        out = set()
        for rows in itertools.product(*parts):
            table = system.settled.copy()
            for block, row in zip(system.blocks, rows, strict=True):
                table[block.cells] = row[: block.cells.size]
                assert block.holds(row)
                assert block.extended(row[: block.cells.size]).tolist() == row.tolist()
            out.add(tuple(table.tolist()))
        assert out == {tuple(t) for t in tables.tolist()}
        for block in system.blocks:
            # Equations are told once, with a positive first weight.
            rows = block.matrix.toarray()
            assert all(r[np.flatnonzero(r)[0]] > 0 for r in rows)
            assert len({tuple(r) for r in rows.tolist()}) == len(rows)
            assert block.counted.tolist() == [True] * block.cells.size + [False] * (
                len(block) - block.cells.size
            )
            inside = points(block)
            if len(inside):
                for bad in (inside[0] + 1, inside[0] - 1):
                    assert block.holds(bad) == (bad == inside).all(axis=1).any()
        if len(tables):
            seen += 1
            assert enumerate_fibre(known).tables.tolist() == sorted(tables.tolist())
            found = distribution(known, method="exact")
            for cell in range(len(known)):
                values, counts = np.unique(tables[:, cell], return_counts=True)
                assert found.of(cell)[0].tolist() == values.tolist()
                assert found.of(cell)[1] == pytest.approx(counts / len(tables))
    assert seen >= 1


@pytest.mark.parametrize(
    ("weights", "low", "high"),
    [
        # One end alone says something: at least 3, at most 1, and the same with a weight below 0.
        ({"a": 1, "b": 1}, 3, 9),
        ({"a": 1, "b": 1}, -9, 1),
        ({"a": 1, "b": -1}, 2, 9),
        ({"a": 1, "b": -1}, -9, 2),
        ({"a": -1, "b": -2}, 0, 9),
        ({"a": -1, "b": -2}, -9, 1),
    ],
)
def test_a_fact_with_one_end_that_says_something_is_kept(weights, low, high):
    known = Knowledge.of("ab", low=-1).within(-1, [3, 2]).fact(weights, low, high)
    found = enumerate_fibre(known)
    assert found.tables.tolist() == fitting(known).tolist()
    assert 0 < len(found) < 5 * 4


def test_only_whole_knowledge_has_a_fibre():
    real = Knowledge.of("ab").within(0, 3).relaxed()
    for ask in (distribution, enumerate_fibre, sample_fibre):
        with pytest.raises(InputError, match=r"^A fibre holds whole numbers; .* real ones\.$"):
            ask(real)
        with pytest.raises(InputError, match=r"^A fibre needs Knowledge or Margins to be given\.$"):
            ask([[1, 2], [3, 4]])


def test_sums_beyond_64_bits_leave_a_fact_as_it_is():
    # The difference of both is at most 2; in units of 2**40 it could be 2**70, were it not known.
    unit = 2**40
    known = Knowledge.of("ab").within(0, 2**30).fact({"a": unit, "b": -unit}, -2 * unit, 2 * unit)
    (block,) = FibreSystem.of(known).blocks
    assert (block.low[2], block.high[2]) == (-2 * unit, 2 * unit)
    for apart in range(-3, 4):
        point = np.array([9 + apart, 9])
        assert block.holds(block.extended(point)) == (abs(apart) <= 2)
    # A fact that 64 bits just hold, and that follows from the bounds, says nothing.
    for weight, kept in ((2**33 + 1, True), (2**31 + 1, True), (2**31, False)):
        for low, high, ends in (
            (0, 2**30, (0,)),
            (-(2**30), 0, (-UNBOUNDED, 0)),
            (-(2**30), 5, ()),
        ):
            wide = Knowledge.of("abc", low=low).within([low, low, 0], [high, high, 1])
            wide = wide.fact({"a": weight, "b": weight}, *ends)
            wide = wide.fact({"a": 1, "b": -1, "c": 1}, -1, 1)
            assert len(FibreSystem.of(wide).blocks[0]) == 4 + (kept and ends != ())
    # As many values as 64 bits cannot count are too many to try.
    many = FibreMargins((1200,), {(): 9 * 10**15})
    assert not enumerate_fibre(many, most=1).complete


@pytest.mark.parametrize(("shape", "kept"), [((2, 2), "B"), ((3, 1), "B"), ((2, 3), "A")])
def test_hidden_margins_do_not_weigh_beside_their_cells(shape, kept):
    other = "A" if kept == "B" else "B"
    sums = [3, 2, 1][: shape["AB".index(kept)]]
    known = from_margins({"A": shape[0], "B": shape[1]}, {kept: sums}, hidden=[other])
    found = distribution(known, "hypergeometric", "exact")
    tables = enumerate_fibre(known).tables
    size = shape[0] * shape[1]
    inner = tables[:, :size].tolist()
    # Every way to put so many people into so many cells, and nothing else.
    ways = math.prod(math.comb(n + size // len(sums) - 1, n) for n in sums)
    assert (len(inner), len(known)) == (ways, size + sum(shape))
    weights = np.array([1 / math.prod(map(math.factorial, t)) for t in inner])
    for cell in range(len(known)):
        values, chances = found.of(cell)
        wanted = [weights[tables[:, cell] == v].sum() / weights.sum() for v in values]
        assert chances == pytest.approx(wanted)
        assert chances.sum() == pytest.approx(1)


def test_a_system_by_hand():
    known = Knowledge.of("abcd").within(0, [5, 5, 9, 4])
    known = known.fact({"a": 1, "b": 1}, 4, 6).fact({"a": -1, "b": -1}, -6, -5)
    known = known.fact({"a": 1, "b": 1}, -3, 30).fact({"c": 1}, 7, 7)
    known = known.fact({"a": 1, "b": 1}, 0, 10)
    system = FibreSystem.of(known)
    assert repr(system) == "FibreSystem(4 cells, 2 blocks)"
    pair, alone = system.blocks
    assert repr(pair) == "FibreBlock(2 cells, 2 equations, 4 columns)"
    # The sum of both, once from 4 to 6 and once from 5 to 6; 3 or less and 10 or more cannot be.
    assert pair.matrix.toarray().tolist() == [[1, 1, -1, 0], [1, 1, 0, 1]]
    assert (pair.low.tolist()[2:], pair.high.tolist()[2:]) == ([4, -6], [6, -5])
    assert pair.totals.tolist() == [0, 0]
    assert (alone.cells.tolist(), alone.low.tolist(), alone.high.tolist()) == ([3], [0], [4])
    assert (alone.matrix.shape, alone.totals.size) == ((0, 1), 0)
    # All sums hold, but two cells are below 0.
    (square,) = FibreSystem.of(FibreMargins.two_way([3, 3, 3], [3, 3, 3])).blocks
    assert square.holds(np.array([2, 0, 1, 0, 2, 1, 1, 1, 1]))
    assert not square.holds(np.array([3, -1, 1, -1, 3, 1, 1, 1, 1]))
    assert (system.settled.tolist()[2], len(alone), alone.holds(np.array([5]))) == (7, 1, False)
    assert (
        repr(FibreSystem.of(FibreMargins.two_way([3, 2], [1, 4])))
        == "FibreSystem(4 cells, 1 block)"
    )
    assert FibreSystem.of(known, [1, 0, 1, 0]).blocks[0].counted.tolist() == [
        True,
        False,
        False,
        False,
    ]
    assert FibreSystem.of(known, [1, 0, 1, 0]).blocks[1].counted.tolist() == [False]
    with pytest.raises(InputError, match="'counted' marks 3"):
        FibreSystem.of(known, [1, 0, 1])
    # The numbers or the names of cells are no marks.
    for wrong in ([0, 1, 2, 3], [-1, 0, 0, 1], list("abcd")):
        with pytest.raises(InputError, match=r"^'counted' is True or False for each cell"):
            FibreSystem.of(known, wrong)
    with pytest.raises(InputError, match="Nothing bounds d"):
        FibreSystem.of(Knowledge.of("cd").fact({"c": 1}, 0, 3))
    # Linear programs bound what sums alone leave open.
    open_ends = Knowledge.of("xy", low=-UNBOUNDED)
    open_ends = open_ends.fact({"x": 1, "y": 1}, 2, 5).fact({"x": 1, "y": -1}, -1, 1)
    found = FibreSystem.of(open_ends)
    assert (found.low.tolist(), found.high.tolist()) == ([1, 1], [3, 3])
    open_ends = Knowledge.of("zwvu", low=-UNBOUNDED).bound("v", 0, 4)
    open_ends = open_ends.fact({"z": 1, "w": 1}, 2, 5).fact({"z": 1, "w": -1}, -1, 1)
    found = FibreSystem.of(open_ends.bound("u", 5, 6))
    assert found.low.tolist() == [1, 1, 0, 5]
    assert found.high.tolist() == [3, 3, 4, 6]
    for half in (open_ends.bound("u", low=5), open_ends.bound("u", high=5), open_ends):
        with pytest.raises(InputError, match="Nothing bounds u"):
            FibreSystem.of(half)
    cells = from_margins({"A": 2, "B": 2}, {"A": [3, 4], "B": [2, 5]}, ["A"])
    # Each inner cell once: margins follow from them.
    assert FibreSystem.of(cells).blocks[0].counted.tolist() == [True] * 4
    contradiction = Knowledge.of("xyz").within(0, 9)
    contradiction = contradiction.fact({"x": 2, "y": 3, "z": 2}, 9, 9)
    with pytest.raises(ContradictionError, match="two different values"):
        FibreSystem.of(contradiction.fact({"x": -2, "y": -3, "z": -2}, -10, -10))


# Two-way tables


def block_of(margins: FibreMargins, low=None, high=None) -> FibreBlock:
    known = margins.knowledge()
    if high is not None:
        known = known.within(0 if low is None else low, high)
    (block,) = FibreSystem.of(known).blocks
    return block


BOUNDED = [
    ([[2, 1, 0], [1, 1, 1]], None, None),
    ([[2, 1], [1, 1], [0, 3]], None, None),
    # At least 2 of the 4 in the first column are in the first row.
    ([[3, 2], [1, 1]], None, None),
    ([[2, 1, 0], [1, 1, 1]], [0, 0, 0, 1, 0, 0], [2, 9, 9, 9, 2, 1]),
    ([[1, 1, 1], [2, 0, 1], [0, 1, 2]], None, [0, 9, 9, 9, 9, 9, 9, 9, 2]),
    ([[1, 1, 1], [2, 0, 1], [0, 1, 2]], [1, 0, 0, 0, 0, 0, 0, 0, 0], [9] * 9),
    ([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]], None, [9, 9, 0, 0, 9, 9, 9, 0, 9, 9, 9, 0]),
    # Sums leave a value open to the upper right cell that no table has.
    (
        [[0, 0, 0, 2], [0, 2, 1, 0], [2, 0, 0, 0], [2, 2, 1, 0]],
        None,
        [9, 0, 0, 9, 0, 9, 9, 0, 9, 0, 0, 9, 9, 9, 9, 9],
    ),
]


@pytest.mark.parametrize("hypergeometric", [False, True])
@pytest.mark.parametrize("case", range(len(BOUNDED)))
def test_two_way_tables_are_counted_one_by_one(case, hypergeometric):
    table, low, high = BOUNDED[case]
    if high is not None:
        table = np.clip(table, 0 if low is None else np.reshape(low, np.shape(table)), None)
    block = block_of(FibreMargins.of(table, [(0,), (1,)]), low, high)
    every = points(block)
    two_way = TwoWay.of(block)
    assert (two_way.rows.size, two_way.columns.size) in (np.shape(table), np.shape(table)[::-1])
    sums = np.zeros((two_way.rows.size, two_way.columns.size))
    sums[two_way.positions[:, 0], two_way.positions[:, 1]] = every[0]
    assert sums.sum(axis=1).tolist() == two_way.rows.tolist()
    assert sums.sum(axis=0).tolist() == two_way.columns.tolist()
    weights = np.ones(len(every))
    if hypergeometric:
        weights = np.array([1 / math.prod(map(math.factorial, t)) for t in every.tolist()])
    found = two_way.exact(hypergeometric=hypergeometric)
    assert found.total == (None if hypergeometric else len(every))
    for k, chances in enumerate(found.probabilities):
        wanted = np.bincount(every[:, k] - found.low[k], weights) / weights.sum()
        assert chances == pytest.approx(wanted)
        assert chances[0] > 0
        assert chances[-1] > 0
    if hypergeometric and two_way.free:
        formula = two_way.hypergeometric()
        assert formula.total is None
        assert formula.low.tolist() == found.low.tolist()
        for one, other in zip(formula.probabilities, found.probabilities, strict=True):
            assert one == pytest.approx(other)
    assert two_way.free == (high is None)
    if not two_way.free:
        with pytest.raises(InputError, match="full two-way"):
            two_way.hypergeometric()


def test_two_way_tables_are_recognised():
    full = block_of(FibreMargins.two_way([3, 3], [3, 3]))
    assert repr(TwoWay.of(full)) == "TwoWay(2 x 2, 4 cells)"
    ring = FibreMargins.two_way([2, 2, 2], [2, 2, 2], possible=1 - np.eye(3))
    holes = TwoWay.of(block_of(ring))
    assert repr(holes) == "TwoWay(3 x 3, 6 cells)"
    assert not holes.free
    # A cell in one sum alone, a cube, a weight of 2, a slack, three sums in a ring, one pair twice.
    loose = Knowledge.of("abc").within(0, 3)
    for other in (
        loose.fact({"a": 1, "b": 1}, 3, 3).fact({"b": 1, "c": 1}, 3, 3),
        FibreMargins.of(np.ones((2, 2, 2), int), ALL_PAIRS).knowledge(),
        loose.fact({"a": 1, "b": 1, "c": 1}, 4, 4).fact({"a": 2, "b": 1, "c": 1}, 6, 6),
        loose.fact({"a": 1, "b": 1, "c": 1}, 4, 5),
        Knowledge.of("abc").fact({"a": 1, "b": 1}, 4, 4).fact({"b": 1, "c": 1}, 4, 4)
        .fact({"a": 1, "c": 1}, 4, 4),
    ):  # fmt: skip
        assert all(TwoWay.of(b) is None for b in FibreSystem.of(other).blocks)
    twice = FibreBlock(
        np.arange(2),
        sparse.csr_array(np.ones((2, 2), np.int64)),
        np.array([3, 3]),
        np.zeros(2, np.int64),
        np.full(2, 3),
        np.ones(2, bool),
    )
    assert TwoWay.of(twice) is None
    assert _sides(np.array([[0, 1], [1, 2], [3, 4]]), 5).tolist() == [0, 1, 0, 0, 1]
    assert _sides(np.array([[0, 1], [1, 2], [0, 2]]), 3) is None
    assert _sides(np.array([[0, 1], [1, 3], [2, 3]]), 4).tolist() == [0, 1, 1, 0]
    rng = np.random.default_rng(4)
    for _ in range(60):
        edges = np.array([e for e in itertools.combinations(range(6), 2) if rng.random() < 0.3])
        found = _sides(edges.reshape(-1, 2), 6)
        ways = itertools.product((0, 1), repeat=6)
        possible = any(all(way[a] != way[b] for a, b in edges) for way in ways)
        assert (found is not None) == possible
        if possible:
            assert all(found[a] != found[b] for a, b in edges)
            assert set(found.tolist()) <= {0, 1}
    # Cells in one, two or three sums, and a weight of 2.
    for wrong in (
        [[1, 0, 0], [1, 0, 1], [0, 1, 0]],
        [[1, 2, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]],
    ):
        size = len(wrong)
        block = FibreBlock(
            np.arange(size),
            sparse.csr_array(np.array(wrong)),
            np.full(size, 3),
            np.zeros(size, np.int64),
            np.full(size, 3),
            np.ones(size, bool),
        )
        assert TwoWay.of(block) is None
    # Equations in any order, so that a column may come before its row.
    plain = block_of(FibreMargins.two_way([3, 2], [1, 1, 3]))
    wanted = TwoWay.of(plain).exact()
    for order in itertools.permutations(range(5)):
        mixed = replace(plain, matrix=plain.matrix[list(order)], totals=plain.totals[list(order)])
        found = TwoWay.of(mixed).exact()
        assert (found.total, found.low.tolist()) == (wanted.total, wanted.low.tolist())
        for one, other in zip(found.probabilities, wanted.probabilities, strict=True):
            assert one == pytest.approx(other)
    # Bounds that are as wide as the margins, and one that is narrower.
    wide = TwoWay.of(full)
    for low, high, free in ((0, 3, True), (0, 2, False), (1, 3, False)):
        own = TwoWay(wide.rows, wide.columns, wide.positions, np.full(4, low), np.full(4, high))
        assert own.free == free
    forced = TwoWay.of(block_of(FibreMargins.two_way([5, 2], [4, 3])))
    assert (forced.free, forced.low.min()) == (True, 0)
    assert forced.low.max() == 2


def test_tables_are_counted_within_the_steps_allowed():
    assert count_tables([3, 3, 3], [3, 3, 3]) == 55
    assert count_tables([2, 2, 2], [2, 2, 2], 1 - np.eye(3)) == 3
    assert count_tables([2, 0], [1, 1]) == 1
    assert count_tables([1, 1, 0, 2], [1, 1, 2, 0], np.kron(np.eye(2), np.ones((2, 2)))) == 2 * 1
    # A 2 x 2 table: 4 values of the first cell, and each leaves one for every other.
    two_way = TwoWay.of(block_of(FibreMargins.two_way([3, 3], [3, 3])))
    assert two_way.exact(steps=16).total == 4
    assert two_way.exact(steps=15) is None
    with pytest.raises(InputError, match="too many states"):
        count_tables([3, 3], [3, 3], steps=15)
    assert count_tables([3, 3], [3, 3], steps=16) == 4
    with pytest.raises(InputError, match=r"^'steps' must be a whole number of 1 or more"):
        count_tables([3, 3], [3, 3], steps=0)
    # Bounds that no table meets.
    closed = TwoWay(
        np.array([1, 1]),
        np.array([1, 1]),
        np.array([[0, 0], [0, 1], [1, 0], [1, 1]]),
        np.array([1, 0, 0, 0]),
        np.array([1, 0, 1, 0]),
    )
    nothing = closed.exact()
    assert (nothing.total, nothing.probabilities, nothing.low.tolist()) == (0, (), [0] * 4)
