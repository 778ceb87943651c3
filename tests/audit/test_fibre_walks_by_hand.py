"""Moves, chains and first tables of a fibre beside their definitions."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from audit.fibres import fitting
from lustrum.audit import ContradictionError, Knowledge, from_margins
from lustrum.audit.bounding.lattice import short_moves
from lustrum.audit.fibre import FibreMargins, distribution, enumerate_fibre, sample_fibre
from lustrum.audit.fibre import basic as basic_module
from lustrum.audit.fibre import moves as moves_module
from lustrum.audit.fibre import sampler as sampler_module
from lustrum.audit.fibre import start as start_module
from lustrum.audit.fibre.basic import cycle_moves, free_sets, tensor_moves
from lustrum.audit.fibre.moves import MIXED, Lines, Squares, _known_moves
from lustrum.audit.fibre.sampler import ChainPlan, sample_blocks
from lustrum.audit.fibre.start import _corner, any_table, joined_table
from lustrum.audit.fibre.system import FibreBlock, FibreSystem
from lustrum.audit.fibre.two_way import TwoWay
from lustrum.model import InputError, InternalError

ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]


def as_vectors(found, size) -> list[tuple[int, ...]]:
    """Moves as vectors with a positive first step, sorted."""
    out = []
    for cells, steps in found:
        assert cells.min() >= 0
        for own, by in zip(cells.tolist(), steps.tolist(), strict=True):
            move = np.zeros(size, int)
            np.add.at(move, own, by)
            out.append(move)
    return sorted(tuple((m * np.sign(m[np.flatnonzero(m)[0]])).tolist()) for m in out)


# Moves in closed form

KEPT = [
    ((2, 3, 2), ALL_PAIRS),
    ((2, 3, 2), [(0, 1), (2,)]),
    ((3, 1, 2), [(0,), (1,), (2,)]),
    ((2, 2, 3), [(0, 1)]),
    ((3, 3), [(0,), (1,)]),
    ((2, 2), [(0, 1)]),
]


@pytest.mark.parametrize("case", range(len(KEPT)))
def test_boxes_over_free_axes_are_listed_once_each(case):
    shape, kept = KEPT[case]
    margins = FibreMargins.of(np.ones(shape, int), kept)
    axes = range(len(shape))
    sets = [s for n in range(1, len(shape) + 1) for s in itertools.combinations(axes, n)]
    free = [s for s in sets if not any(set(s) <= set(k) for k in kept)]
    least = [s for s in free if not any(set(t) < set(s) for t in free)]
    assert free_sets(margins) == least
    wanted = []
    for own in least:
        pairs = [itertools.combinations(range(shape[a]), 2) for a in own]
        rest = [range(shape[a]) for a in axes if a not in own]
        for corners, fixed in itertools.product(
            itertools.product(*pairs), list(itertools.product(*rest))
        ):
            move = np.zeros(shape, int)
            for picks in itertools.product((0, 1), repeat=len(own)):
                at, others = {}, iter(fixed)
                for a, pair, pick in zip(own, corners, picks, strict=True):
                    at[a] = pair[pick]
                place = tuple(at[a] if a in at else next(others) for a in axes)
                move[place] = (-1) ** sum(picks)
            wanted.append(tuple(move.ravel().tolist()))
    found = tensor_moves(margins)
    assert as_vectors(found, margins.size) == sorted(wanted)
    # Exactly as many fit, and one less: then some of them are chosen.
    if len(least) == 1 and wanted:
        assert as_vectors(tensor_moves(margins, len(wanted)), margins.size) == sorted(wanted)
    for most in (0, 1, 5, len(wanted) - 1):
        for cells, steps in tensor_moves(margins, most):
            room = max(1, most // len(least))
            assert len(cells) == len(steps)
            if len(cells) > room:
                pytest.fail("more moves than asked for")
            assert set(as_vectors([(cells, steps)], margins.size)) <= set(wanted)


def rings(there, size):
    """Closed walks of four or six cells: each row and each column of them is used twice."""
    cells = [tuple(c) for c in np.argwhere(there)]
    half = size // 2
    found = []
    for rows in itertools.combinations(range(there.shape[0]), half):
        for columns in itertools.combinations(range(there.shape[1]), half):
            box = [c for c in cells if c[0] in rows and c[1] in columns]
            for ring in itertools.combinations(box, size):
                twice = [sum(c[0] == r for c in ring) == 2 for r in rows]
                twice += [sum(c[1] == k for c in ring) == 2 for k in columns]
                if all(twice):
                    found.append(frozenset(ring))
    return found


TABLES = [
    np.ones((3, 3), int),
    1 - np.eye(3, dtype=int),
    np.array([[1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]]),
    np.array([[1, 1, 1, 0], [1, 1, 0, 1]]),
    np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]]),
    np.array([[0, 0, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1]]),
]


def table_of(there) -> TwoWay:
    """A two-way table with cells where they are marked, row by row."""
    place = np.argwhere(there)
    sums = there.sum(axis=1), there.sum(axis=0)
    return TwoWay(*sums, place, np.zeros(len(place), int), np.full(len(place), 9))


@pytest.mark.parametrize("case", range(len(TABLES)))
def test_closed_walks_through_a_table_with_holes(case):
    there = TABLES[case]
    table = table_of(there)
    place = [tuple(p) for p in table.positions.tolist()]
    found = {cells.shape[1]: (cells, steps) for cells, steps in cycle_moves(table, 60)}
    for size in (4, 6):
        wanted = rings(there.astype(bool), size)
        if not wanted:
            assert size not in found
            continue
        cells, steps = found[size]
        listed = [frozenset(place[c] for c in row) for row in cells.tolist()]
        assert set(listed) == set(wanted)
        assert len(listed) == len(wanted)
        assert steps.shape == cells.shape
        for row, by in zip(cells.tolist(), steps.tolist(), strict=True):
            move = np.zeros(there.shape, int)
            for c, step in zip(row, by, strict=True):
                move[place[c]] += step
            assert not move.sum(axis=0).any()
            assert not move.sum(axis=1).any()
            assert by[0] == 1
        for most in (1, 2, len(wanted)):
            short = {c.shape[1]: len(c) for c, _ in cycle_moves(table, most)}
            assert short[size] == min(most, len(wanted))


@pytest.mark.parametrize("case", range(len(TABLES)))
def test_the_search_for_hexagons_ends_with_the_last_one(
    case: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = TABLES[case].astype(bool)
    count = basic_module._count_hexagons
    if min(there.shape) >= 3:
        ways = math.prod(math.comb(size, 3) for size in there.shape)
        assert count(there, ways) == len(rings(there, 6))
        assert count(there, ways - 1) == ways - 1
    found = [cells.tolist() for cells, _ in cycle_moves(table_of(TABLES[case]), 60)]
    monkeypatch.setattr(basic_module, "_count_hexagons", lambda _, most: most)
    assert [cells.tolist() for cells, _ in cycle_moves(table_of(TABLES[case]), 60)] == found


# Squares and lines


def test_tables_of_one_row_have_no_square():
    for margins in (
        FibreMargins.two_way([5], [2, 3]),
        FibreMargins.two_way([2, 3], [5]),
        FibreMargins.of([[[1, 2]], [[3, 4]]], [(0, 1), (0, 2)]),
    ):
        squares = Squares.of(margins, [0])
        assert squares.empty
        assert squares.offsets.size == 0
        assert squares.vectors().shape == (0, margins.size)
        x, out = np.arange(margins.size), np.full((2, 1), -1)
        state = np.array([1, 1], dtype=np.uint64)
        how = {"hypergeometric": False, "logs": np.zeros(1), "thin": 1}
        assert squares.run(x, state, out=out, **how) == 0
        assert out.tolist() == [[0], [0]]
    one = Squares.of(FibreMargins.of(np.ones((2, 1, 3), int), [(0, 1), (1, 2)]), np.arange(6))
    assert (one.counts.tolist(), one.empty) == ([[1, 2, 3]], False)
    assert len(one.vectors()) == 3
    assert 0 < moves_module.MIXED < 1


@pytest.mark.parametrize(
    ("shape", "kept"),
    [
        ((3, 3), [(0,), (1,)]),
        ((2, 4), [(0,), (1,)]),
        ((2, 2, 3), [(0, 1), (1, 2)]),
        ((2, 3, 2), [(0, 1), (2,)]),
        ((2, 2, 2), [(1, 2), (0, 2)]),
    ],
)
def test_squares_are_all_moves_of_four_cells(shape, kept):
    margins = FibreMargins.of(np.ones(shape, int), kept)
    equations = margins.knowledge().matrix.toarray()
    wanted = set()
    for cells in itertools.combinations(range(margins.size), 4):
        for minus in itertools.combinations(cells[1:], 2):
            move = np.zeros(margins.size, int)
            move[list(cells)] = 1
            move[list(minus)] = -1
            if not (equations @ move).any():
                wanted.add(tuple(move.tolist()))
    listed = Squares.of(margins, [0]).vectors()
    found = [tuple((v * v[np.flatnonzero(v)[0]]).tolist()) for v in listed]
    assert sorted(found) == sorted(wanted)
    assert len(found) > 0


def test_squares_are_refused_where_they_do_not_connect_the_tables():
    cube = FibreMargins.of(np.ones((2, 2, 2), int), ALL_PAIRS)
    ring = FibreMargins.two_way([1, 1, 1], [1, 1, 1], possible=1 - np.eye(3))
    for margins in (cube, ring):
        with pytest.raises(InputError, match=r"^Squares alone connect only tables .*\.$"):
            Squares.of(margins, [0])


def test_lines_of_a_block_by_hand():
    margins = FibreMargins.of(np.ones((2, 2, 2), int), ALL_PAIRS)
    (block,) = FibreSystem.of(margins).blocks
    lines = Lines.of(block, margins, mixed=0.5)
    assert lines.mixed == 0.5
    assert not lines.empty
    assert np.abs(lines.vectors()).tolist() == [[1] * 8]
    assert lines.basis.shape == (1, 8)
    # Equations that leave one table.
    equations = sparse.csr_array(np.array([[1, 1], [1, -1]]))
    ends = np.array([5, 1]), np.zeros(2, int), np.full(2, 5)
    single = Lines.of(FibreBlock(np.arange(2), equations, *ends, np.ones(2, bool)))
    assert single.empty
    x, out = np.array([3, 2]), np.full((2, 2), -1)
    state = np.array([1, 1], dtype=np.uint64)
    how = {"hypergeometric": False, "logs": np.zeros(1), "thin": 1}
    assert single.run(x, state, out=out, **how) == 0
    assert out.tolist() == [[3, 2], [3, 2]]
    # No random number is used where there is nothing to choose.
    assert state.tolist() == [1, 1]


def test_known_moves_of_a_block_touch_its_own_cells_alone(monkeypatch):
    table = np.array([[[0, 1, 2], [1, 2, 1], [2, 1, 1]], [[1, 1, 1], [2, 1, 0], [1, 2, 2]]])
    possible = np.ones(table.shape, bool)
    possible[0, 0, 0] = possible[1, 1, 2] = False
    margins = FibreMargins.of(table, ALL_PAIRS, possible)
    (block,) = FibreSystem.of(margins).blocks
    found = as_vectors(_known_moves(block, margins), len(block))
    all_moves = np.array(as_vectors(tensor_moves(margins), margins.size))
    outside = np.setdiff1d(np.arange(margins.size), block.cells)
    inside = all_moves[~all_moves[:, outside].any(axis=1)][:, block.cells]
    assert found == sorted(map(tuple, inside.tolist()))
    assert 0 < len(found) < len(all_moves)
    assert not (block.matrix @ np.array(found).T).any()
    assert _known_moves(block, None) == []
    # A fact with two ends adds a column that no margin knows.
    loose = margins.knowledge().fact({"cell 0,0,1": 1, "cell 1,2,2": 1}, 1, 3)
    (slack,) = FibreSystem.of(loose).blocks
    assert len(slack) > slack.cells.size
    assert _known_moves(slack, margins) == []
    # Cells beyond the cube, such as a hidden margin.
    equation = sparse.csr_array(np.ones((1, 4), np.int64))
    for last in (3, 4, 9):
        ends = np.array([5]), np.zeros(4, int), np.full(4, 5)
        own = FibreBlock(np.array([0, 1, 2, last]), equation, *ends, np.ones(4, bool))
        moves = _known_moves(own, FibreMargins.two_way([3, 2], [1, 4]))
        assert len(moves) == (last == 3)
    (two,) = FibreSystem.of(PLANE).blocks
    monkeypatch.setattr(moves_module, "cycle_moves", lambda table: [repr(table)])
    assert _known_moves(two, margins) == ["TwoWay(3 x 3, 9 cells)"]


def test_many_directions_take_known_moves_and_few_do_not(monkeypatch):
    table = np.array([[[1, 2, 0], [0, 1, 2], [1, 1, 1]], [[2, 0, 1], [1, 1, 1], [2, 2, 1]]])
    margins = FibreMargins.of(table, ALL_PAIRS)
    (block,) = FibreSystem.of(margins).blocks
    known = as_vectors(_known_moves(block, margins), len(block))
    for small, listed in ((3, True), (4, False)):
        monkeypatch.setattr(moves_module, "_SMALL", small)
        lines = Lines.of(block, margins)
        vectors = lines.vectors()
        assert len(lines.basis) == 4
        assert vectors[:4].tolist() == lines.basis.tolist()
        if listed:
            later = [tuple((v * np.sign(v[np.flatnonzero(v)[0]])).tolist()) for v in vectors[4:]]
            assert sorted(later) == known
            assert len(known) == 9
        else:
            assert vectors.tolist() == short_moves(lines.basis).tolist()
            assert len(vectors) > 4
    assert Lines.of(block).mixed == MIXED


# First tables


def test_first_tables_are_corners_with_the_right_sums():
    rng = np.random.default_rng(2)
    for _ in range(20):
        table = rng.poisson(2, (int(rng.integers(1, 4)), int(rng.integers(1, 5))))
        made = _corner(table.sum(axis=1), table.sum(axis=0), rng)
        assert made.sum(axis=0).tolist() == table.sum(axis=0).tolist()
        assert made.sum(axis=1).tolist() == table.sum(axis=1).tolist()
        assert (made > 0).sum() <= sum(table.shape) - 1
        assert made.min() >= 0
    # Sides of different sizes, and axes that are joined in another order than they come in.
    for shape, kept in (
        ((2, 3), [(0,), (1,)]),
        ((2, 3, 4), [(0, 1), (1, 2)]),
        ((4, 2, 3), [(1, 2), (0, 2)]),
        ((2, 3, 4), [(0, 2), (1,)]),
        ((2, 3, 1, 2), [(1, 3), (0, 3), (2,)]),
    ):
        margins = FibreMargins.of(rng.poisson(3, shape), kept)
        joined = joined_table(margins, rng)
        assert (joined.shape, joined.min() >= 0) == (shape, True)
        for axes, sums in margins.sums.items():
            rest = tuple(a for a in range(len(shape)) if a not in axes)
            assert joined.sum(axis=rest).tolist() == sums.tolist()
    with pytest.raises(InternalError, match="junction tree"):
        joined_table(FibreMargins.of(np.ones((2, 2, 2), int), ALL_PAIRS), rng)


def test_a_first_table_fits_or_is_refused(monkeypatch):
    rng = np.random.default_rng(3)
    (block,) = FibreSystem.of(FibreMargins.of(np.ones((2, 2, 2), int), ALL_PAIRS)).blocks
    made = {tuple(any_table(block, rng).tolist()) for _ in range(8)}
    assert len(made) == 2
    assert all(block.holds(np.array(t)) for t in made)
    (alone,) = FibreSystem.of(Knowledge.of("x").bound("x", 2, 4)).blocks
    assert {int(any_table(alone, rng)[0]) for _ in range(9)} == {2, 4}
    (never,) = FibreSystem.of(
        Knowledge.of("xyz").within(0, 5).fact({"x": 2, "y": 2, "z": -2}, 3, 3)
    ).blocks
    with pytest.raises(ContradictionError, match="no table"):
        any_table(never, rng)
    for point in (None, np.zeros(8), np.full(8, 9.0)):
        monkeypatch.setattr(start_module, "solved", lambda model, point=point: point)
        with pytest.raises(InputError, match="No first table"):
            any_table(block, rng)
    # A whole corner is taken as it is; otherwise any whole table will do.
    for corners in ([np.ones(8)], [np.full(8, 0.5), np.ones(8)], [None, np.ones(8)]):
        seen, answers = [], iter(corners)
        monkeypatch.setattr(
            start_module,
            "solved",
            lambda model, seen=seen, answers=answers: seen.append(model) or next(answers),
        )
        assert any_table(block, rng, 7.0).tolist() == [1] * 8
        assert len(seen) == len(corners)
        for model in seen:
            assert model.getOptionValue("time_limit")[1] == 7.0
        # Costs must be told apart for the corner to be the same on every machine.
        assert seen[0].getOptionValue("dual_feasibility_tolerance")[1] <= 1e-10


# Chains

CUBE = FibreMargins.of([[[1, 2, 0], [0, 1, 2]], [[2, 0, 1], [1, 1, 1]]], ALL_PAIRS)
PLANE = FibreMargins.of([[2, 1, 0], [1, 1, 1], [0, 2, 1]], [(0,), (1,)])


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


def test_a_plan_counts_rounds_burnt_draws_and_moves():
    system = FibreSystem.of(PLANE)
    told: list[tuple[int, int]] = []

    def run(stop_after=10**6, **how):
        told.clear()
        plan = ChainPlan(
            progress=lambda *at: told.append(at),
            stop=lambda: len(told) >= stop_after,
            workers=1,
            **how,
        )
        return sample_blocks(system, system.blocks, plan, np.random.default_rng(1))

    whole = run(draws=100, burn=20, chains=2, thin=1)
    # A twentieth at a time, with a stop where the burnt draws end.
    assert told == [(k, 120) for k in (6, 12, 18, *range(20, 120, 6), 120)]
    assert (whole.tables.shape, whole.stopped) == ((2, 100, 9), False)
    run(draws=10, chains=2)
    assert told == [(k, 15) for k in range(1, 16)]
    run(draws=21, burn=0)
    assert told == [*((k, 21) for k in range(2, 21, 2)), (21, 21)]
    assert ChainPlan().burn is None
    # The share of moves that changed a table, from every single move.
    start = np.array([2, 1, 0, 1, 1, 1, 0, 2, 1])
    plan = ChainPlan(draws=200, burn=0, thin=1, chains=2, workers=1)
    walk = sample_blocks(system, system.blocks, plan, np.random.default_rng(2), start)
    places = np.concatenate([np.broadcast_to(start, (2, 1, 9)), walk.tables], axis=1)
    changed = (np.diff(places, axis=1) != 0).any(axis=2).mean()
    assert 0 < changed < 1
    assert walk.moved == pytest.approx(changed)
    # Stopped: what was drawn until then is kept, and is the beginning of the whole.
    part = run(stop_after=5, draws=100, burn=20, chains=2, thin=1)
    assert (part.tables.shape, part.stopped) == ((2, 6, 9), True)
    assert part.tables.tolist() == whole.tables[:, :6].tolist()
    early = run(stop_after=2, draws=100, burn=20, chains=2, thin=1)
    assert (early.tables.shape, early.stopped) == ((2, 0, 9), True)
    # Nothing to move.
    none = sample_blocks(
        FibreSystem.of(FibreMargins.two_way([3, 0], [1, 2])), [], plan, np.random.default_rng(1)
    )
    assert (none.tables.shape, none.moved, none.stopped) == ((2, 200, 4), 0.0, False)
    assert none.tables[1, 7].tolist() == [1, 2, 0, 0]
    # Blocks that are not drawn keep their lower bounds.
    two = FibreSystem.of(Knowledge.of("abc").within([0, 0, 2], 4).fact({"a": 1, "b": 1}, 4, 4))
    half = sample_blocks(two, two.blocks[:1], plan, np.random.default_rng(1))
    assert set(half.tables[:, :, 2].ravel().tolist()) == {2}
    assert set(half.tables[:, :, 0].ravel().tolist()) == set(range(5))


def test_plans_and_rooms_at_their_limits(monkeypatch):
    least = {"draws": 4, "chains": 1, "burn": 0, "thin": 1, "workers": 1}
    ChainPlan(**least)
    ChainPlan(**{name: np.int64(value) for name, value in least.items()})
    assert (ChainPlan().burn, ChainPlan().thin, ChainPlan().workers) == (None, None, None)
    for name in ("draws", "chains"):
        with pytest.raises(InputError, match=f"'{name}' must be a whole number"):
            ChainPlan(**{name: None})
    for name, value in least.items():
        for wrong in (value - 1, float(value), True, str(value)):
            with pytest.raises(InputError, match=f"'{name}' must be a whole number of {value}"):
                ChainPlan(**{**least, name: wrong})
    assert sample_fibre(PLANE, rng=1, draws=5, chains=2, stop=lambda: True).shape == (2, 0, 9)
    size = 2 * 5 * 9 * 8
    for room, fine in ((size, True), (size - 1, False)):
        monkeypatch.setattr(sampler_module, "_ROOM", room)
        if fine:
            assert sample_fibre(PLANE, rng=1, draws=5, chains=2).shape == (2, 5, 9)
        else:
            with pytest.raises(InputError, match="memory"):
                sample_fibre(PLANE, rng=1, draws=5, chains=2)
    assert sampler_module._ROUNDS == 20
    for target in ("normal", "Uniform", None):
        with pytest.raises(InputError, match=r"^There is no target .*uniform.*\.$"):
            sample_fibre(PLANE, target=target)
    monkeypatch.undo()
    with pytest.raises(InputError, match="memory"):
        sample_fibre(PLANE, rng=1, draws=10**12)


def test_chains_go_by_squares_where_these_connect_all_tables(monkeypatch):
    cube = np.array([[[1, 2], [0, 1]], [[2, 0], [1, 1]]])
    parted = FibreMargins.of(cube, [(0, 1), (1, 2)])
    assert len(FibreSystem.of(parted).blocks) == 2
    hidden = from_margins(
        {"A": 2, "B": 2, "C": 2},
        {("A", "B"): cube.sum(2), ("B", "C"): cube.sum(0)},
        hidden=[("A", "C")],
    )
    rng = np.random.default_rng(1)
    plans = [ChainPlan(target, chains=8) for target in sampler_module.TARGETS]
    kinds = ((PLANE, Squares), (parted, Squares), (hidden, Squares), (CUBE, Lines))
    for plan, (given, kind) in itertools.product(plans, kinds):
        system = FibreSystem.of(given)
        jobs = sampler_module._jobs(system, system.blocks, plan, rng, None)
        (job,) = jobs
        assert isinstance(job.moves, kind)
        inner = [c for b in system.blocks for c in b.cells.tolist() if c < system.margins.size]
        assert job.cells.tolist() == sorted(inner)
        assert job.thin == 10 * len(inner)
        # Every stream has an odd increment, so that it comes back only after all words.
        assert all(int(state[1]) % 2 == 1 for state in job.states)
        assert len({state.tobytes() for state in job.states}) == 8
        # Where a stream begins is drawn apart from its increment, with every bit.
        assert all(int(state[0]) | 1 != int(state[1]) for state in job.states)
        assert {int(state[0]) % 2 for state in job.states} == {0, 1}
    lone, drawn = FibreSystem.of(CUBE), []
    monkeypatch.setattr(sampler_module, "any_table", lambda *a: drawn.append(a))
    first = np.array([1, 2, 0, 0, 1, 2, 2, 0, 1, 1, 1, 1])
    (job,) = sampler_module._jobs(lone, lone.blocks, plan, rng, first)
    assert drawn == []
    assert [s.tolist() for s in job.starts] == [first[lone.blocks[0].cells].tolist()] * 8
    seen = []
    monkeypatch.setattr(
        sampler_module,
        "Lines",
        SimpleNamespace(of=lambda block, margins=None: seen.append(margins)),
    )
    sampler_module._jobs(lone, lone.blocks, plan, rng, first)
    assert seen == [CUBE]


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


@pytest.mark.parametrize("counted", [(), (0,), (0, 1), (1, 2), (0, 1, 2), (0, 1, 2, 3)])
def test_samples_weigh_the_cells_that_are_counted(counted):
    # Once as margins, and once as published tables with a hidden one, which may be counted instead.
    plane = FibreMargins.two_way([3, 3], [4, 2])
    tables = from_margins({"A": 2, "B": 2}, {"A": [3, 3], "B": [4, 2]})
    pairs = {("A", "B"): [[1, 2], [2, 1]], ("B", "C"): [[2, 1], [1, 2]]}
    beside = from_margins({"A": 2, "B": 2, "C": 2}, pairs, hidden=[("A", "C")])
    parted = FibreMargins((2, 2, 2), {(0, 1): pairs["A", "B"], (1, 2): pairs["B", "C"]})
    rest = (4, 5, 6, 7)
    for given, more in (
        (plane, ()),
        (tables, ()),
        (parted, rest),
        (parted, (4, 5)),
        (beside, rest),
        (beside, (8, 11)),
        # A bound beyond those of counts: a structure without margins of its own.
        (beside.bound(0, high=1), rest),
    ):
        size = given.size if isinstance(given, FibreMargins) else len(given)
        marks = np.isin(np.arange(size), [*counted, *more])
        how = {"target": "hypergeometric", "counted": marks}
        exact = distribution(given, method="exact", **how)
        sampled = distribution(given, method="sample", rng=1, draws=400, **how)
        for cell in np.flatnonzero(~sampled.exact):
            chances = dict(zip(*map(np.ndarray.tolist, sampled.of(int(cell))), strict=True))
            for value, chance in zip(*exact.of(int(cell)), strict=True):
                # 1600 draws that mix well: five deviations of half as many.
                assert chances.get(value, 0.0) == pytest.approx(
                    chance, abs=5 * math.sqrt(chance * (1 - chance) / 800) + 1e-12
                )


def test_first_tables_that_were_given_are_checked():
    good = [2, 1, 0, 1, 1, 1, 0, 2, 1]
    assert sample_fibre(PLANE, rng=1, draws=4, start=np.array(good).reshape(3, 3)).shape[2] == 9
    low = Knowledge.of("ab").within([1, 0], [4, 3]).fact({"a": 1, "b": 1}, 3, 5)
    for start in ([1, 2], [4, 1], [2, 3]):
        sample_fibre(low, rng=1, draws=4, start=start)
    two = low.fact({"a": 1, "b": -1}, 0, 4)
    sample_fibre(two, rng=1, draws=4, start=[2, 1])
    for start in ([1, 2], [4, 2]):
        with pytest.raises(InputError, match="table to start from"):
            sample_fibre(two, rng=1, draws=4, start=start)
    for start in ([0, 3], [1, 4], [1, 1], [4, 2], [1.0, 2.0], [1, 2, 3]):
        with pytest.raises(InputError, match="table to start from"):
            sample_fibre(low, rng=1, draws=4, start=start)


def test_blocks_of_their_own_and_hidden_margins_are_drawn_together():
    two = Knowledge.of("abcde").within(0, 4).fact({"a": 1, "b": 1}, 4, 4)
    two = two.fact({"c": 1, "d": 1}, 2, 3).fact({"e": 1}, 1, 1)
    drawn = sample_fibre(two, rng=1, draws=80, chains=2).reshape(-1, 5)
    assert {tuple(t) for t in drawn.tolist()} == {tuple(t) for t in fitting(two).tolist()}
    cube = np.array([[[1, 2], [0, 1]], [[2, 0], [1, 1]]])
    known = from_margins(
        {"A": 2, "B": 2, "C": 2},
        {("A", "B"): cube.sum(2), ("B", "C"): cube.sum(0)},
        hidden=[("A", "C"), ("A",)],
    )
    tables = sample_fibre(known, rng=1, draws=60).reshape(-1, len(known))
    inner = tables[:, :8].reshape(-1, 2, 2, 2)
    assert tables[:, known.table(1)].tolist() == inner.sum(axis=2).reshape(-1, 4).tolist()
    assert {tuple(t) for t in tables.tolist()} == {
        tuple(t) for t in enumerate_fibre(known).tables.tolist()
    }
