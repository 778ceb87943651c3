"""Chains reach every table of a fibre and meet each as often as the target says."""

from __future__ import annotations

import itertools
import math
import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from audit.fibres import QUICK, axis, fitting
from lustrum.audit import ContradictionError, Knowledge, PublishedTable, from_margins, from_tables
from lustrum.audit.bounding.lattice import integer_kernel, reduced, short_moves
from lustrum.audit.fibre import (
    FibreMargins,
    distribution,
    effective_size,
    enumerate_fibre,
    sample_fibre,
    split_rhat,
)
from lustrum.audit.fibre.margins import junction_tree
from lustrum.audit.fibre.moves import Lines, Squares
from lustrum.audit.fibre.sampler import joined_table
from lustrum.audit.fibre.system import FibreSystem
from lustrum.model import InputError
from lustrum.numeric.structure import TableLayout

ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]
LATIN = FibreMargins((3, 3, 3), {pair: np.ones((3, 3), dtype=int) for pair in ALL_PAIRS})

# Each comparison below is a chi-square test that a right sampler fails once in ten thousand seeds;
# the seeds are fixed, so it fails never or always.
FALSE_ALARM = 1e-4


def sparse_cube() -> FibreMargins:
    return FibreMargins.of(np.random.default_rng(4).poisson(1.0, (3, 3, 3)), ALL_PAIRS)


SMALL_CUBE = FibreMargins.of(np.random.default_rng(5).poisson(1.0, (3, 3, 3)), ALL_PAIRS)


def suppressed() -> Knowledge:
    """A 4 x 4 table with margins, of which ten cells are suppressed, two of them known roughly."""
    table = np.random.default_rng(2).poisson(2, (4, 4))
    known = FibreMargins.of(table, [(0,), (1,)]).knowledge()
    mask = np.array([[1, 1, 0, 1], [1, 1, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]], dtype=bool).ravel()
    flat = table.ravel()
    low = np.where(mask, 0, flat)
    high = np.where(mask, 40, flat)
    high[5] = flat[5] + 1
    return known.within(low, high)


CASES = {
    "two-way 3 x 3": FibreMargins.of([[2, 1, 0], [1, 1, 1], [0, 2, 1]], [(0,), (1,)]),
    "two-way with structural zeros": FibreMargins.of(
        [[0, 2, 1], [1, 0, 2], [2, 1, 0]], [(0,), (1,)], possible=1 - np.eye(3)
    ),
    "2 x 2 x 2, all pairs": FibreMargins.of([[[3, 2], [4, 1]], [[2, 3], [1, 5]]], ALL_PAIRS),
    "3 x 3 x 3, all pairs": sparse_cube(),
    "Latin squares of side 3": LATIN,
    "decomposable, three cliques": FibreMargins.of(
        np.random.default_rng(8).poisson(0.6, (2, 2, 2, 2)), [(0, 1), (1, 2), (2, 3)]
    ),
    "suppressed cells": suppressed(),
    "facts with two ends": Knowledge.of("abc")
    .fact({"a": 1, "b": 2, "c": 1}, 7, 9)
    .fact({"a": 1, "b": -1}, -1, 3),
}


def exact_weights(tables: np.ndarray, target: str) -> np.ndarray:
    logs = np.zeros(len(tables))
    if target == "hypergeometric":
        logs = -np.array([sum(math.lgamma(v + 1) for v in t) for t in tables])
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def tallied(drawn: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """How often each table of a fibre was drawn; none may lie outside of it."""
    place = {t.tobytes(): k for k, t in enumerate(tables)}
    rows = np.ascontiguousarray(drawn.reshape(-1, tables.shape[1]))
    return np.bincount([place[t.tobytes()] for t in rows], minlength=len(tables))


@pytest.mark.parametrize("target", ["uniform", "hypergeometric"])
@pytest.mark.parametrize("name", CASES)
def test_every_table_is_met_as_often_as_it_should_be(name, target):
    fibre = enumerate_fibre(CASES[name])
    assert fibre.complete
    assert 2 <= len(fibre) <= 2000
    drawn = sample_fibre(CASES[name], target=target, rng=11, draws=2000, burn=50, thin=150)
    seen = tallied(drawn, fibre.tables)
    wanted = exact_weights(fibre.tables, target) * seen.sum()
    # Tables too rare for the approximation are thrown together.
    common = wanted >= 5
    seen, wanted = (
        np.append(a[common], a[~common].sum()) if (~common).any() else a for a in (seen, wanted)
    )
    if wanted[-1] == 0 or wanted.size < 2:
        pytest.fail("the case is too small to tell anything")
    assert stats.chisquare(seen, wanted).pvalue > FALSE_ALARM


def square_moves(margins: FibreMargins) -> np.ndarray:
    """Every square once, as a vector."""
    squares, out = Squares.of(margins, np.arange(margins.size)), []
    for begin, sizes in zip(squares.begin, squares.counts, strict=True):
        offsets = squares.offsets[begin : begin + sizes.sum()]
        separator, left, right = np.split(offsets, np.cumsum(sizes)[:-1])
        for s, rows, columns in itertools.product(
            separator, itertools.combinations(left, 2), itertools.combinations(right, 2)
        ):
            move = np.zeros(margins.size, dtype=np.int64)
            move[s + np.array(rows) + np.array(columns)] = 1
            move[s + np.array(rows) + np.array(columns[::-1])] = -1
            out.append(move)
    return np.array(out, dtype=np.int64).reshape(-1, margins.size)


@pytest.mark.parametrize("name", ["two-way 3 x 3", "decomposable, three cliques"])
def test_squares_connect_every_pair_of_tables(name):
    margins = CASES[name]
    assert connected(enumerate_fibre(margins).tables, square_moves(margins))


@QUICK
@given(st.lists(st.integers(0, 2), min_size=12, max_size=12), st.integers(0, 2))
def test_squares_connect_the_tables_of_any_decomposable_margins(values, kind):
    kept = [[(0, 1), (1, 2)], [(0,), (1,), (2,)], [(0, 2), (1,)]][kind]
    margins = FibreMargins.of(np.array(values).reshape(2, 3, 2), kept)
    fibre = enumerate_fibre(margins, most=400)
    if fibre.complete:
        assert connected(fibre.tables, square_moves(margins))


def connected(tables: np.ndarray, moves: np.ndarray) -> bool:
    """Whether one can walk from any table to any other, each step a single move."""
    place = {t.tobytes(): k for k, t in enumerate(tables)}
    reached, waiting = {0}, [0]
    while waiting:
        here = tables[waiting.pop()]
        for move in (*moves, *-moves):
            there = place.get((here + move).tobytes())
            if there is not None and there not in reached:
                reached.add(there)
                waiting.append(there)
    return len(reached) == len(tables)


def test_basic_moves_alone_do_not_leave_a_latin_square():
    # No square of side 3 holds a smaller one, so two up and two down in two layers never fit.
    lines = Lines.of(FibreSystem.of(LATIN).blocks[0])
    moves = lines.vectors()
    basic = moves[np.abs(moves).sum(axis=1) == 8]
    assert len(basic) == 27
    assert not connected(enumerate_fibre(LATIN).tables, basic)


@pytest.mark.parametrize(
    "name", [n for n in CASES if n not in ("two-way 3 x 3", "decomposable, three cliques")]
)
def test_the_difference_of_any_two_tables_is_a_sum_of_moves_that_has_a_chance(name):
    # A sum of any number of moves of either sign is proposed with a probability above 0, so this
    # is all that one step from any table to any other needs.
    for block in FibreSystem.of(CASES[name]).blocks:
        lines = Lines.of(block)
        assert lines.mixed > 0
        listed = {tuple(v) for v in (*lines.vectors(), *-lines.vectors())}
        assert all(tuple(v) in listed for v in lines.basis)
        cells = enumerate_fibre(CASES[name]).tables[:, block.cells]
        tables = np.array([block.extended(t) for t in np.unique(cells, axis=0)])
        for differences in (tables - tables[0], tables - tables[-1]):
            times, *_ = np.linalg.lstsq(lines.basis.T.astype(float), differences.T, rcond=None)
            assert (np.rint(times).T.astype(int) @ lines.basis == differences).all()


@pytest.mark.parametrize("margins", [LATIN, SMALL_CUBE])
def test_from_every_table_every_other_is_reached(margins):
    tables = enumerate_fibre(margins).tables
    for start in tables:
        drawn = sample_fibre(margins, rng=1, draws=400, burn=0, thin=100, chains=1, start=start)
        assert (tallied(drawn, tables) > 0).all()


@st.composite
def matrices(draw: st.DrawFn) -> np.ndarray:
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    entries = st.integers(-3, 3)
    flat = draw(st.lists(entries, min_size=rows * columns, max_size=rows * columns))
    return np.array(flat).reshape(rows, columns)


@QUICK
@given(matrices())
def test_a_lattice_basis_spans_all_whole_solutions_and_not_a_part_of_them(matrix):
    basis = integer_kernel(sparse.csr_array(matrix))
    columns = matrix.shape[1]
    assert len(basis) == columns - np.linalg.matrix_rank(matrix)
    for vectors in (basis, reduced(basis)):
        assert not (matrix @ vectors.T).any()
        points = np.argwhere(np.ones((5,) * columns)) - 2
        points = points[~(points @ matrix.T).any(axis=1)]
        times, *_ = np.linalg.lstsq(vectors.T.astype(float), points.T, rcond=None)
        assert (np.rint(times).T.astype(int) @ vectors == points).all()
    short = short_moves(reduced(basis))
    assert not (matrix @ short.T).any()
    assert np.abs(reduced(basis)).sum() <= max(np.abs(basis).sum(), 1) * columns


def test_a_table_that_took_months_in_2001_takes_seconds():
    table = np.random.default_rng(2001).poisson(4, (5, 4, 3))
    for target in ("uniform", "hypergeometric"):
        found = distribution(FibreMargins.of(table, ALL_PAIRS), target, "sample", rng=5, thin=200)
        assert found.worst_rhat < 1.05
        assert found.agreed
        assert np.nanmin(found.effective) > 1000


def test_a_sampled_large_two_way_table_has_the_exact_hypergeometric_cells():
    table = np.random.default_rng(20).poisson(6, (12, 12))
    margins = FibreMargins.of(table, [(0,), (1,)])
    exact = distribution(margins, "hypergeometric", "exact")
    found = distribution(margins, "hypergeometric", "sample", rng=6, thin=1100)
    assert found.agreed
    apart = []
    for cell in range(144):
        wanted = dict(zip(*(a.tolist() for a in exact.of(cell)), strict=True))
        got = dict(zip(*(a.tolist() for a in found.of(cell)), strict=True))
        apart.append(sum(abs(wanted.get(v, 0) - got.get(v, 0)) for v in {*wanted, *got}) / 2)
    # 4000 draws of some ten values: the total variation is about sqrt(10 / (2 pi 4000)) = 0.02.
    assert max(apart) < 0.06
    assert float(np.mean(apart)) < 0.03


def test_small_blocks_are_exact_and_only_the_rest_is_sampled():
    big = FibreMargins.of(np.full((4, 4, 3), 5), ALL_PAIRS).knowledge()
    size = len(big)
    known = Knowledge(
        names=[*big.names, "extra"],
        low=np.append(big.low, 2),
        high=np.append(big.high, 4),
        matrix=sparse.hstack([big.matrix, sparse.csr_array((big.matrix.shape[0], 1), dtype=int)]),
        fact_low=big.fact_low,
        fact_high=big.fact_high,
    )
    found = distribution(known, rng=1, draws=200, nodes=1000)
    assert found.exact.tolist() == [False] * size + [True]
    assert found.of("extra")[1] == pytest.approx([1 / 3] * 3)
    assert found.tables is None
    assert "48 sampled" in repr(found)


def test_margins_from_tables_go_by_squares_and_hidden_margins_follow():
    rng = np.random.default_rng(9)
    cube = rng.poisson(3, (3, 4, 3, 2))
    margins = {
        ("A", "B"): cube.sum((2, 3)),
        ("B", "C"): cube.sum((0, 3)),
        ("C", "D"): cube.sum((0, 1)),
    }
    known = from_margins({"A": 3, "B": 4, "C": 3, "D": 2}, margins, hidden=[("A", "D")])
    system = FibreSystem.of(known)
    assert system.margins.decomposable
    drawn = sample_fibre(known, rng=3, draws=20).reshape(-1, len(known))
    inner = drawn[:, :72].reshape(-1, 3, 4, 3, 2)
    assert (drawn[:, known.table(1)] == inner.sum(axis=(2, 3)).reshape(-1, 6)).all()
    assert (inner.sum(axis=(3, 4)) == cube.sum((2, 3))).all()
    assert len(np.unique(drawn, axis=0)) > 50


def test_joined_margins_are_kept_whatever_the_tree():
    rng = np.random.default_rng(1)
    table = rng.poisson(2, (2, 3, 2, 2, 3))
    for kept in ([(0, 1), (1, 2), (1, 3, 4)], [(0,), (1, 2), (3, 4)], [(0, 1, 2), (2, 3), (2, 4)]):
        margins = FibreMargins.of(table, kept)
        made = joined_table(margins, rng)
        for axes, sums in margins.sums.items():
            rest = tuple(a for a in range(5) if a not in axes)
            assert (made.sum(axis=rest) == sums).all()
    assert junction_tree([(0, 1), (1, 2), (2, 3), (0, 3)], 4) is None
    assert junction_tree([(0, 1)], 3) is None


@pytest.mark.parametrize("margins", [CASES["3 x 3 x 3, all pairs"], CASES["two-way 3 x 3"]])
def test_the_same_seed_gives_the_same_tables_for_any_number_of_threads(margins):
    first = sample_fibre(margins, rng=4, draws=50, workers=1)
    assert (sample_fibre(margins, rng=np.random.default_rng(4), draws=50, workers=3) == first).all()
    assert (sample_fibre(margins, rng=5, draws=50, workers=1) != first).any()


def test_progress_is_told_in_the_calling_thread_and_a_stop_leaves_shorter_chains():
    told: list[tuple[int, int, int]] = []
    margins = CASES["Latin squares of side 3"]
    whole = sample_fibre(
        margins,
        rng=4,
        draws=100,
        burn=20,
        progress=lambda done, total: told.append((done, total, threading.get_ident())),
    )
    assert told[-1][:2] == (120, 120)
    assert {t[2] for t in told} == {threading.get_ident()}
    rounds = iter([False] * 10 + [True] * 90)
    found = distribution(
        margins, method="sample", rng=4, draws=100, burn=20, stop=lambda: next(rounds)
    )
    assert found.stopped
    assert not found.agreed
    assert 4 <= found.draws < 100
    assert whole.shape == (4, 100, 27)
    with pytest.raises(InputError, match="stopped before"):
        distribution(margins, method="sample", rng=4, stop=lambda: True)


def test_equations_that_leave_one_table_are_no_obstacle():
    known = Knowledge.of("xy").fact({"x": 2, "y": 3}, 12, 12).fact({"x": 3, "y": -1}, 7, 7)
    assert distribution(known, method="sample", rng=1).of("x")[0].tolist() == [3]
    with pytest.raises(ContradictionError):
        sample_fibre(Knowledge.of("xy").fact({"x": 2, "y": -4}, 3, 3).within(0, 5), rng=1)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"start": [1, 2]}, "27 whole numbers"),
        ({"start": np.zeros(27, dtype=int)}, "does not fit"),
        ({"chains": 0}, "'chains'"),
        ({"thin": 0}, "'thin'"),
        ({"draws": 10**9}, "memory"),
    ],
)
def test_a_mistake_in_sampling_is_told_in_one_sentence(changes, says):
    with pytest.raises(InputError, match=says):
        sample_fibre(LATIN, rng=1, **changes)
    with pytest.raises(InputError, match="decomposable"):
        Squares.of(LATIN, np.arange(27))


def test_moves_known_by_heart_keep_every_sum_and_join_a_large_fibre():
    rng = np.random.default_rng(6)
    table = rng.poisson(1.5, (6, 6, 5))
    possible = (table > 0) | (rng.random(table.shape) < 0.9)
    for mask in (None, possible):
        margins = FibreMargins.of(table, ALL_PAIRS, mask)
        block = max(FibreSystem.of(margins).blocks, key=len)
        lines = Lines.of(block, margins)
        assert len(lines.vectors()) > len(lines.basis) > 64
        assert not (block.matrix @ lines.vectors().T).any()
    found = distribution(margins, method="sample", rng=2, draws=400, thin=400)
    assert found.worst_rhat < 1.2
    drawn = sample_fibre(margins, rng=2, draws=50, thin=400).reshape(-1, *table.shape)
    assert not drawn[:, ~possible].any()
    assert (drawn.sum(axis=1) == table.sum(axis=0)).all()


def test_suppressed_cells_of_a_larger_table_move_in_closed_walks():
    rng = np.random.default_rng(3)
    table = rng.poisson(8, (30, 30))
    mask = (rng.random(table.shape) < 0.2).ravel()
    flat = table.ravel()
    known = FibreMargins.of(table, [(0,), (1,)]).knowledge()
    known = known.within(np.where(mask, 0, flat), np.where(mask, table.sum(), flat))
    block = max(FibreSystem.of(known).blocks, key=len)
    moves = Lines.of(block).vectors()
    assert {4, 6} <= set(np.abs(moves).sum(axis=1).tolist())
    assert not (block.matrix @ moves.T).any()
    found = distribution(known, method="sample", rng=2, draws=300, thin=1000)
    assert found.worst_rhat < 1.1
    assert found.exact[~mask].all()


def test_the_example_of_2001_stays_between_its_integer_bounds():
    ij = [[3, 87, 68, 72], [5, 8, 80, 4], [3, 4, 7, 107], [64, 6, 56, 7]]
    jk = [[5, 2, 68], [10, 10, 85], [69, 81, 61], [7, 132, 51]]
    ik = [[74, 75, 81], [3, 85, 9], [8, 61, 52], [6, 4, 123]]
    margins = {("I", "J"): ij, ("J", "K"): jk, ("I", "K"): ik}
    known = from_margins({"I": 4, "J": 4, "K": 3}, margins)
    found = distribution(known, rng=1, draws=1000, thin=200)
    assert found.agreed
    for codes, low, high in (
        (("1", "3", "3"), 0, 13),
        (("1", "3", "1"), 54, 68),
        (("1", "2", "3"), 67, 81),
        (("4", "1", "3"), 57, 64),
    ):
        values, _ = found.of(codes)
        assert low <= values.min()
        assert values.max() <= high
        assert values.size > 5


CUBE = FibreMargins.of([[[1, 2, 0], [0, 1, 2]], [[2, 0, 1], [1, 1, 1]]], ALL_PAIRS)
PLANE = CASES["two-way 3 x 3"]


@pytest.mark.parametrize("given", [CUBE, PLANE])
@pytest.mark.parametrize("target", ["uniform", "hypergeometric"])
def test_draws_are_places_on_one_walk(given, target):
    def drawn(**how):
        return sample_fibre(given, target=target, rng=5, chains=3, workers=1, **how)

    every = drawn(draws=40, burn=0, thin=1)
    tables = {tuple(t) for t in enumerate_fibre(given).tables.tolist()}
    assert {tuple(t) for t in every.reshape(-1, given.size).tolist()} <= tables
    assert drawn(draws=25, burn=15, thin=1).tolist() == every[:, 15:].tolist()
    assert drawn(draws=20, burn=0, thin=2).tolist() == every[:, 1::2].tolist()
    assert drawn(draws=6, thin=1).tolist() == every[:, 3:9].tolist()
    free = sum(b.cells.size for b in FibreSystem.of(given).blocks)
    automatic = drawn(draws=4, burn=0)
    assert automatic.tolist() == drawn(draws=4, burn=0, thin=10 * free).tolist()
    assert len({c.tobytes() for c in every}) == 3
    first = next(iter(tables))
    begun = drawn(draws=4, burn=0, thin=1, start=np.array(first))
    steps = np.abs(begun[:, 0] - np.array(first)).sum(axis=1)
    assert (steps <= 4 * max(map(max, tables))).all()


@pytest.mark.parametrize("given", [CUBE, PLANE])
def test_a_stopped_chain_is_the_beginning_of_the_whole(given):
    told: list[tuple[int, int]] = []

    def run(stop_after):
        told.clear()
        how = {"progress": lambda *at: told.append(at), "stop": lambda: len(told) >= stop_after}
        return sample_fibre(given, rng=1, draws=100, burn=20, chains=2, thin=1, workers=1, **how)

    whole = run(10**6)
    assert told[-1] == (120, 120)
    assert whole.shape[1] == 100
    for rounds in (1, 2, 5, 12):
        part = run(rounds)
        assert part.shape[1] == max(0, told[-1][0] - 20)
        assert part.tolist() == whole[:, : part.shape[1]].tolist()


@pytest.mark.parametrize("counted", [(), (0,), (0, 1), (1, 2), (0, 1, 2), (0, 1, 2, 3)])
def test_samples_weigh_the_cells_that_are_counted(counted):
    # Once as margins, and once as published tables with a hidden one, which may be counted instead.
    plane = FibreMargins.two_way([3, 3], [4, 2])
    tables = from_margins({"A": 2, "B": 2}, {"A": [3, 3], "B": [4, 2]})
    pairs = {("A", "B"): [[1, 2], [2, 1]], ("B", "C"): [[2, 1], [1, 2]]}
    beside = from_margins({"A": 2, "B": 2, "C": 2}, pairs, hidden=[("A", "C")])
    parted = FibreMargins((2, 2, 2), {(0, 1): pairs["A", "B"], (1, 2): pairs["B", "C"]})
    rest = (4, 5, 6, 7)
    for known, more in (
        (plane, ()),
        (tables, ()),
        (parted, rest),
        (parted, (4, 5)),
        (beside, rest),
        (beside, (8, 11)),
        # A bound beyond those of counts: a structure without margins of its own.
        (beside.bound(0, high=1), rest),
    ):
        size = known.size if isinstance(known, FibreMargins) else len(known)
        marks = np.isin(np.arange(size), [*counted, *more])
        how = {"target": "hypergeometric", "counted": marks}
        exact = distribution(known, method="exact", **how)
        sampled = distribution(known, method="sample", rng=1, draws=400, **how)
        for cell in np.flatnonzero(~sampled.exact):
            chances = dict(zip(*map(np.ndarray.tolist, sampled.of(int(cell))), strict=True))
            for value, chance in zip(*exact.of(int(cell)), strict=True):
                # 1600 draws that mix well: five deviations of half as many.
                assert chances.get(value, 0.0) == pytest.approx(
                    chance, abs=5 * math.sqrt(chance * (1 - chance) / 800) + 1e-12
                )


def test_a_table_to_start_from_must_fit():
    known = Knowledge.of("ab").within([1, 0], [4, 3]).fact({"a": 1, "b": 1}, 3, 5)
    fits = fitting(known).tolist()
    for start in np.argwhere(np.ones((6, 6))).tolist():
        if start in fits:
            assert sample_fibre(known, rng=1, draws=4, start=start).shape[1] == 4
        else:
            with pytest.raises(InputError, match="table to start from"):
                sample_fibre(known, rng=1, draws=4, start=start)
    with pytest.raises(InputError, match="table to start from"):
        sample_fibre(known, rng=1, draws=4, start=[2.0, 2.0])


def test_counts_are_needed_where_factorials_are():
    debts = Knowledge.of("abcd", low=-2).within(-2, 3).fact({"a": 1, "b": 1}, 2, 2)
    debts = debts.bound("a", low=0).bound("b", low=0).bound("c", low=0)
    assert len(FibreSystem.of(debts).blocks) == 3
    for draw in (sample_fibre, distribution):
        with pytest.raises(InputError, match="below 0"):
            draw(debts, target="hypergeometric", rng=1)
    sample_fibre(debts, rng=1, draws=4)
    # A cell that is not counted may be below 0.
    counted = [True, True, True, False]
    drawn = sample_fibre(debts, target="hypergeometric", rng=1, draws=50, counted=counted)
    assert set(drawn[:, :, 3].ravel().tolist()) == set(range(-2, 4))
    both = Knowledge.of("ab", low=-1).within(-1, 3).fact({"a": 1, "b": 1}, 2, 2).bound("a", low=0)
    with pytest.raises(InputError, match="below 0"):
        sample_fibre(both, target="hypergeometric", rng=1)


NAMES = list(from_margins({"A": 3, "B": 3}, {"A": [2, 2, 2], "B": [2, 2, 2]}).names)
FIRST, SECOND = axis("A", [0], [1], [2]), axis("B", [0], [1])
GROUPS, ROW = axis("A", [0, 1], [2]), axis("A", [1])
HIDDEN = PublishedTable.hidden([FIRST, SECOND])
ALL = PublishedTable.exact([axis("A", [0, 1, 2])], [5])
BESIDE = {
    "a lower bound": lambda k: k.bound(0, low=1),
    "an upper bound": lambda k: k.bound(0, high=1),
    "a range of a sum": lambda k: k.fact({NAMES[0]: 1, NAMES[4]: 1}, 2, 3),
    "a sum": lambda k: k.fact({NAMES[0]: 1, NAMES[4]: 1}, 3, 3),
    "a difference": lambda k: k.fact({NAMES[0]: 1, NAMES[1]: -1}, 0, 0),
    "what sums imply": lambda k: k.fact(dict.fromkeys(NAMES[:3], 1), 2, 2),
    "groups": lambda _: from_tables([HIDDEN, PublishedTable.exact([GROUPS], [3, 2])]),
    "some rows": lambda _: from_tables(
        [HIDDEN, ALL, PublishedTable.exact([ROW, SECOND], [[1, 2]])]
    ),
    "a filter": lambda _: from_tables(
        [HIDDEN, ALL, PublishedTable.exact(TableLayout((SECOND,), (ROW,)), [1, 2])]
    ),
    "the cube last": lambda _: from_tables([PublishedTable.exact([FIRST], [2, 1, 2]), HIDDEN]),
}


@pytest.mark.parametrize("name", BESIDE)
def test_what_is_known_beside_margins_counts_in_samples_too(name):
    known = BESIDE[name](from_margins({"A": 3, "B": 3}, {"A": [2, 2, 2], "B": [2, 2, 2]}))
    drawn = sample_fibre(known, rng=1, draws=300, thin=20).reshape(-1, len(known))
    every = enumerate_fibre(known).tables
    sums = every @ known.matrix.toarray().T
    assert ((known.low <= every) & (every <= known.high)).all()
    assert ((known.fact_low <= sums) & (sums <= known.fact_high)).all()
    assert {tuple(t) for t in drawn.tolist()} == {tuple(t) for t in every.tolist()}


def test_cells_that_agree_and_cells_that_do_not():
    sampled = distribution(CUBE, method="sample", rng=1, draws=40, chains=2)
    for rhat, stopped, agreed in (
        ([1.0, 1.05], False, True),
        ([1.0, 1.06], False, False),
        ([np.nan, 1.0], False, True),
        ([1.0, 1.0], True, False),
    ):
        own = replace(sampled, rhat=np.array(rhat), stopped=stopped)
        assert own.agreed == agreed
        assert own.worst_rhat == np.nanmax([*rhat, 1.0])
    drawn = sample_fibre(CUBE, rng=1, draws=40, chains=2)
    assert sampled.rhat == pytest.approx(split_rhat(drawn), nan_ok=True)
    assert sampled.effective == pytest.approx(effective_size(drawn), nan_ok=True)
