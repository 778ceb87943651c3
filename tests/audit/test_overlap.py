"""How many small counts become certain together: in the mean never fewer than trying all values finds."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from lustrum.audit.grids import (
    EMPTY,
    HIDDEN,
    GridAxis,
    GridNesting,
    PopulationGrid,
    PopulationStructure,
)
from lustrum.audit.overlap import SHAPE, Holdings, OpenNoise
from lustrum.model.arrays import Ints
from lustrum.protect.rounding.cells import RoundingChannel

BASE = 3
CODES = {"a": 3, "b": 4, "c": 2}
EVERYTHING = {name: (1 << size) - 1 for name, size in CODES.items()}
NOISE = OpenNoise.of([RoundingChannel(BASE)], 2)


def axis(name: str, *groups: tuple[int, ...]) -> GridAxis:
    chosen = groups or tuple((code,) for code in range(CODES[name]))
    return GridAxis(name, tuple(sum(1 << code for code in group) for group in chosen))


def held(*grids: PopulationGrid) -> Holdings:
    holdings = Holdings(PopulationStructure(EVERYTHING), NOISE)
    holdings.add(grids)
    return holdings


def rounded(counts: Ints, rng: np.random.Generator) -> Ints:
    residue = counts % BASE
    return counts - residue + np.where(rng.random(counts.shape) < residue / BASE, BASE, 0)


def certain(total: int, parts: Ints, shown: int, numbers: Ints, small: int = 2) -> int:
    """Small parts that are certain: all true counts are tried, and equal people show equal numbers."""
    ranges = [range(max(0, n - BASE + 1), n + BASE) for n in numbers.tolist()]
    possible = []
    for tried in product(*ranges):
        whole = sum(tried)
        if not max(0, shown - BASE + 1) <= whole < shown + BASE:
            continue
        if any(t == whole and n != shown for t, n in zip(tried, numbers.tolist(), strict=True)):
            continue
        possible.append(tried)
    assert tuple(parts.tolist()) in possible
    columns = np.array(possible).T
    return sum(
        bool((column == column[0]).all() and 1 <= true <= small)
        for column, true in zip(columns, parts.tolist(), strict=True)
    )


@pytest.mark.parametrize("mean", [1.0, 4.0, 30.0])
@pytest.mark.parametrize("parts", [2, 3])
def test_no_more_become_certain_in_the_mean_than_is_said(mean: float, parts: int) -> None:
    """One table split by one variable, drawn many times from what is assumed of counts."""
    rng = np.random.default_rng(parts)
    name = {2: "c", 3: "a"}[parts]
    found = 0
    said = []
    rounds = examples(1500, 20_000)

    @cache
    def expected(shown: int) -> float:
        return held(PopulationGrid((), np.array(shown))).expected_certain(
            [PopulationGrid((axis(name),))]
        )

    for _ in range(rounds):
        counts = rng.poisson(rng.gamma(SHAPE, mean / SHAPE, parts))
        shown = int(rounded(np.array([counts.sum()]), rng)[0])
        # The same people show the same number.
        numbers = np.where(counts == counts.sum(), shown, rounded(counts, rng))
        found += certain(int(counts.sum()), counts, shown, numbers)
        said.append(expected(shown))
    spread = 3 * np.sqrt(found + 1) / rounds
    assert found / rounds <= float(np.mean(said)) + spread
    assert float(np.mean(said)) < 40 * (found / rounds + 0.002)


PAIRS = {"a": 0b11, "b": 0b11}


def narrow(numbers: dict[tuple[int, ...], int], true: Ints, values: int, base: int) -> int:
    """Groups of one or two people that tables of four cells leave fewer values, by trying all that there are.

    ``numbers`` are what was shown of each set of cells: its bounds hold, a set that shows another number than
    one of its parts has somebody more, and cells within several sets that show 0 are bounded by all of them.
    """
    ends = [np.arange(max(0, numbers[i,] - base + 1), numbers[i,] + base) for i in range(4)]
    tried = np.array(np.meshgrid(*ends, indexing="ij")).reshape(4, -1)
    sums = {cells: tried[list(cells)].sum(axis=0) for cells in numbers}
    right = np.ones(tried.shape[1], dtype=bool)
    for cells, shown in numbers.items():
        right &= (sums[cells] > shown - base) & (sums[cells] < shown + base)
        for part, other in numbers.items():
            if set(part) < set(cells) and other != shown:
                right &= sums[cells] > sums[part]
    left = {cells: np.unique(found[right]) for cells, found in sums.items()}
    assert all(true[list(cells)].sum() in found for cells, found in left.items())
    few = [c for c, f in left.items() if 1 <= true[list(c)].sum() <= 2 and f.size < values]
    return len({tuple(at for at in cells if true[at]) for cells in few})


@pytest.mark.parametrize(("base", "values"), [(3, 2), (3, 3), (5, 3), (5, 4)])
@pytest.mark.parametrize("mean", [1.0, 4.0])
def test_no_more_are_left_few_values_in_the_mean_than_is_said(
    base: int, values: int, mean: float
) -> None:
    """Four cells with their margins and their total, one table after the other."""
    rng = np.random.default_rng(base + values)
    noise = OpenNoise.of([RoundingChannel(base)], 2, values)
    found, said, rounds = 0, 0.0, examples(300, 5000)
    tables: list[tuple[tuple[str, ...], list[tuple[int, ...]]]] = [
        ((), [(0, 1, 2, 3)]),
        (("a",), [(0, 1), (2, 3)]),
        (("b",), [(0, 2), (1, 3)]),
        (("a", "b"), [(0,), (1,), (2,), (3,)]),
    ]
    for _ in range(rounds):
        true = rng.poisson(rng.gamma(SHAPE, mean / SHAPE, 4))
        of_people: dict[tuple[int, ...], int] = {}
        numbers = {}
        for cells in (c for _, every in tables for c in every):
            # The same people show the same number.
            people = tuple(at for at in cells if true[at])
            if people not in of_people:
                residue = int(true[list(people)].sum()) % base
                up = base * (rng.random() < residue / base) if residue else 0
                of_people[people] = int(true[list(people)].sum()) - residue + int(up)
            numbers[cells] = of_people[people]
        holdings = Holdings(PopulationStructure(PAIRS), noise)
        for names, every in tables:
            axes = tuple(GridAxis(name, (1, 2)) for name in names)
            said += holdings.expected_certain([PopulationGrid(axes)])
            shown = np.array([numbers[c] for c in every]).reshape((2,) * len(names))
            holdings.add([PopulationGrid(axes, shown)])
        found += narrow(numbers, true, values, base)
    assert found > 0 or base > 3
    assert found <= said + 3 * np.sqrt(found + 1)


def test_what_is_held_already_tells_nothing_new() -> None:
    table = PopulationGrid((axis("a"), axis("b")), np.arange(12).reshape(3, 4) * 3)
    holdings = held(table)
    assert holdings.expected_certain([PopulationGrid(table.axes)]) == 0.0
    assert (
        holdings.expected_certain([PopulationGrid((axis("a", (1,)), axis("b", (0,), (3,))))]) == 0.0
    )
    assert holdings.expected_certain([PopulationGrid((axis("a", (0, 1)), axis("b")))]) > 0.0


def test_a_part_of_a_table_does_not_stand_for_the_whole() -> None:
    holdings = held(
        PopulationGrid((), np.array(60)), PopulationGrid((axis("a", (0,)),), np.array([9]))
    )
    assert holdings.expected_certain([PopulationGrid((axis("a"),))]) > 0.0


def test_tables_apart_tell_nothing_together() -> None:
    holdings = held(PopulationGrid((axis("a", (0,)),), np.array([30])))
    assert holdings.expected_certain([PopulationGrid((axis("a", (1,)), axis("b")))]) == 0.0
    assert holdings.expected_certain([PopulationGrid((axis("a", (0,)), axis("b")))]) > 0.0


def test_small_populations_cost_more_than_large_ones() -> None:
    def cost(number: int) -> float:
        return held(PopulationGrid((), np.array(number))).expected_certain(
            [PopulationGrid((axis("a"),))]
        )

    costs = [cost(number) for number in (6, 60, 600, 6000, 60_000)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 0.02
    assert costs[-1] < 1e-4


def test_a_split_in_pieces_costs_at_least_what_the_split_costs() -> None:
    """Asking for each category by a filter of its own gets around nothing."""
    whole = held(PopulationGrid((axis("a"),), np.array([9, 12, 60])))
    at_once = whole.expected_certain([PopulationGrid((axis("a"), axis("b")))])
    total = 0.0
    for code in range(CODES["b"]):
        piece = PopulationGrid((axis("a"), axis("b", (code,))))
        total += whole.expected_certain([piece])
        whole.add([piece])
    assert total >= at_once


def test_a_cell_that_is_hidden_or_known_to_be_empty_is_counted_as_such() -> None:
    shown = np.array([3, 12, 60])

    def cost(numbers: Ints) -> float:
        return held(PopulationGrid((axis("a"),), numbers)).expected_certain(
            [PopulationGrid((), None)]
        )

    assert cost(shown) > 0
    assert cost(np.array([3, EMPTY, 60])) > cost(shown)
    assert cost(np.array([HIDDEN, 12, 60])) > 0
    assert cost(np.array([9, 12, 60])) == 0.0
    nobody = held(PopulationGrid((axis("a"),), np.array([EMPTY, EMPTY, EMPTY])))
    assert nobody.expected_certain([PopulationGrid(())]) == 0.0


NUMBERS = st.integers(0, 30).map(lambda n: 3 * n)


@given(st.data())
@settings(max_examples=examples(40, 400), deadline=None)
def test_the_figure_follows_from_what_was_shown_and_leaves_nothing_behind(
    data: st.DataObject,
) -> None:
    """The same shown numbers give the same figure, whatever was asked and judged in between."""

    def drawn() -> PopulationGrid:
        names = data.draw(st.sets(st.sampled_from(sorted(CODES)), max_size=3))
        axes = []
        for name in sorted(names):
            codes = data.draw(st.sets(st.sampled_from(range(CODES[name])), min_size=1))
            axes.append(axis(name, *((code,) for code in sorted(codes))))
        grid = PopulationGrid(tuple(a for a in axes if a.parts != (EVERYTHING[a.variable],)))
        size = int(np.prod(grid.shape, dtype=np.int64))
        numbers = data.draw(st.lists(NUMBERS, min_size=size, max_size=size))
        shown = data.draw(st.booleans())
        return PopulationGrid(
            grid.axes, np.array(numbers, dtype=np.int64).reshape(grid.shape) if shown else None
        )

    grids = [drawn() for _ in range(data.draw(st.integers(1, 5)))]
    asked = [PopulationGrid(drawn().axes) for _ in range(2)]
    one, other = held(*grids), held(*grids)
    other.expected_certain([asked[1]])
    before = {names: list(there) for names, there in other.grids.items()}
    figure = one.expected_certain(asked[:1])
    assert figure >= 0
    assert other.expected_certain(asked[:1]) == figure
    assert {n: list(t) for n, t in other.grids.items() if t} == {
        n: t for n, t in before.items() if t
    }
    # More in hands never makes a table less telling.
    other.add([PopulationGrid(asked[1].axes)])
    if not any(h.holds(asked[0]) for t in other.grids.values() for h in t):
        assert other.expected_certain(asked[:1]) >= figure * (1 - 1e-9)


def drawn_table(rng: np.random.Generator, names: set[str]) -> PopulationGrid:
    """A shown table by some variables: of each some disjoint categories, but never everybody as one."""
    axes = []
    for name in sorted(names):
        group = rng.integers(-1, 3, CODES[name])
        parts = sorted(
            sum(1 << int(i) for i in np.flatnonzero(group == g)) for g in set(group) - {-1}
        )
        axes.append(GridAxis(name, tuple(parts) if parts not in ([], [EVERYTHING[name]]) else (1,)))
    shape = tuple(len(one.parts) for one in axes)
    numbers = np.where(rng.random(shape) < 0.1, EMPTY, 3 * rng.integers(0, 25, shape))
    return PopulationGrid(tuple(axes), numbers)


def plainly(coarse: PopulationGrid, fine: PopulationGrid) -> float:
    """What a new coarse table tells beside a held finer one, cell by cell, where nothing else is known."""
    assert fine.numbers is not None
    small, lowest = [], []
    for number in fine.numbers.ravel().tolist():
        near = min(max(number, 0), len(NOISE.small) - 1)
        large = number >= len(NOISE.small)
        end = NOISE.at_end if large else max(NOISE.lowest[near], NOISE.at_end)
        lowest.append(1.0 if number == EMPTY else end)
        small.append(0.0 if large or number == EMPTY else NOISE.small[near])
    cells = [
        dict(zip(fine.by_name, c, strict=True)) for c in product(*(a.parts for a in fine.axes))
    ]
    found = 0.0
    for outer in product(*(one.parts for one in coarse.axes)):
        around = dict(zip(coarse.by_name, outer, strict=True))
        inside = [
            at for at, cell in enumerate(cells) if all(not cell[n] & ~b for n, b in around.items())
        ]
        # Whether anybody is in the coarse cell and in none of the fine ones.
        shown = [
            around.get(one.variable, EVERYTHING[one.variable]) & ~one.span for one in fine.axes
        ]
        cut = any(
            part & around[n] and part & ~around[n] for n in around for part in fine.by_name[n].parts
        )
        rest = cut or any(shown)
        if not inside or (len(inside) == 1 and not rest):
            continue
        slack = 0.5 if rest else 1.0
        ends = np.array([lowest[at] for at in inside])
        for place, at in enumerate(inside):
            found += small[at] * slack * float(np.delete(ends, place).prod())
        found += 0.5 * float(ends.prod()) * rest
    return NOISE.at_end * found


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(60, 2000), deadline=None)
def test_finer_tables_tell_what_their_cells_tell_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    asked = PopulationGrid(drawn_table(rng, {"a"} if seed % 2 else {"a", "c"}).axes)
    finer = [
        drawn_table(rng, names)
        for names in ({"a", "b"}, {"a", "c"}, {"a", "b", "c"})
        if names > asked.names and rng.random() < 0.8
    ]
    told = sum(plainly(asked, one) for one in finer)
    assert held(*finer).expected_certain([asked]) == pytest.approx(told, rel=1e-9)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(60, 2000), deadline=None)
def test_pieces_of_a_table_count_as_the_table(seed: int) -> None:
    """Whether a table was answered at once or code by code of ``b``, and in which order, changes no figure."""
    rng = np.random.default_rng(seed)
    whole = drawn_table(rng, {"a", "b"} | set(rng.choice(["c"], rng.integers(0, 2)).tolist()))
    codes = sorted(rng.choice(CODES["b"], rng.integers(1, 4), replace=False).tolist())
    shape = tuple(len(codes) if one.variable == "b" else len(one.parts) for one in whole.axes)
    numbers = 3 * rng.integers(0, 25, shape)

    def piece(chosen: list[int]) -> PopulationGrid:
        axes = tuple(
            axis("b", *((code,) for code in chosen)) if one.variable == "b" else one
            for one in whole.axes
        )
        at = [one.variable for one in axes].index("b")
        return PopulationGrid(axes, numbers.take([codes.index(code) for code in chosen], axis=at))

    others = [
        drawn_table(rng, names)
        for names in ({"a"}, {"c"}, {"b"}, {"a", "c"}, {"b", "c"})
        if rng.random() < 0.5
    ]
    order = rng.permutation(codes).tolist()
    at_once = held(*others, piece(codes))
    by_pieces = held(*others, *(piece([code]) for code in order))
    asked = [PopulationGrid(drawn_table(rng, names).axes) for names in ({"a"}, {"b"}, {"a", "b"})]
    rest = [code for code in range(CODES["b"]) if code not in codes]
    asked.append(
        PopulationGrid(piece(codes[:1]).axes)
        if not rest
        else PopulationGrid(
            tuple(axis("b", (rest[0],)) if one.variable == "b" else one for one in whole.axes)
        )
    )
    for question in ([asked[-1]], asked[:1], asked[1:3], asked):
        figure = at_once.expected_certain(question)
        assert by_pieces.expected_certain(question) == pytest.approx(figure, rel=1e-9)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(100, 3000), deadline=None)
def test_many_tables_at_once_count_as_one_after_the_other(seed: int) -> None:
    """To the last bit, also where numbers are hidden, looked at alone, or shown twice, and in portions."""
    rng = np.random.default_rng(seed)

    def piece() -> PopulationGrid:
        whole = drawn_table(rng, set(rng.choice(list(CODES), rng.integers(1, 4), False).tolist()))
        codes = int(rng.integers(CODES["b"]))
        axes = tuple(
            axis("b", (codes,))
            if one.variable == "b" and rng.random() < 0.9
            else axis(one.variable)
            for one in whole.axes
        )
        shape = tuple(len(one.parts) for one in axes)
        numbers = np.where(rng.random(shape) < 0.05, HIDDEN, 3 * rng.integers(0, 25, shape))
        kind = rng.random()
        return PopulationGrid(axes, None if kind < 0.1 else np.maximum(numbers, -(kind < 0.3)))

    pieces = [piece() if rng.random() < 0.8 else drawn_table(rng, {"a", "b"}) for _ in range(30)]
    portions = np.split(np.arange(30), sorted(rng.integers(0, 31, rng.integers(0, 3)).tolist()))
    one_by_one, at_once = held(), held()
    for grid in pieces:
        one_by_one.add([grid])
    for chosen in portions:
        at_once.add(pieces[at] for at in chosen)
    for names in ({"a"}, {"b"}, {"a", "b"}, {"b", "c"}, {"a", "b", "c"}, set()):
        asked = [PopulationGrid(drawn_table(rng, names).axes)]
        assert at_once.expected_certain(asked) == one_by_one.expected_certain(asked)
    kept = [
        {n: [(g.axes, g.is_shown) for g in t] for n, t in h.grids.items()}
        for h in (one_by_one, at_once)
    ]
    assert kept[0] == kept[1]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=examples(100, 3000), deadline=None)
def test_cells_nest_by_what_can_exist_as_their_atoms_do(seed: int) -> None:
    """Whatever is said to lie in a cell does, and whatever is said to be whole leaves nobody out."""
    rng = np.random.default_rng(seed)
    rules = [
        {
            name: int(rng.integers(1, EVERYTHING[name]))
            for name in rng.choice(list(CODES), rng.integers(2, 4), replace=False).tolist()
        }
        for _ in range(rng.integers(0, 5))
    ]
    structure = PopulationStructure(EVERYTHING, rules)
    atoms = [
        atom
        for atom in product(*(range(size) for size in CODES.values()))
        if not any(
            all(rule.get(n, EVERYTHING[n]) >> c & 1 for n, c in zip(CODES, atom, strict=True))
            for rule in rules
        )
    ]

    def drawn() -> PopulationGrid:
        axes = []
        for name, size in CODES.items():
            group = rng.integers(-1, 2, size)
            parts = [sum(1 << i for i in np.flatnonzero(group == g).tolist()) for g in (0, 1)]
            parts = sorted(part for part in parts if part)
            if parts and parts != [EVERYTHING[name]] and rng.random() < 0.7:
                axes.append(GridAxis(name, tuple(parts)))
        return PopulationGrid(tuple(axes))

    def people(grid: PopulationGrid, place: tuple[int, ...]) -> set[tuple[int, ...]]:
        bits = {a.variable: a.parts[at] for a, at in zip(grid.axes, place, strict=True)}
        return {
            atom
            for atom in atoms
            if all(bits.get(n, EVERYTHING[n]) >> c & 1 for n, c in zip(CODES, atom, strict=True))
        }

    coarse, fine = drawn(), drawn()
    nesting = GridNesting.of(coarse, fine, structure)
    for place in np.ndindex(*fine.shape):
        assert structure.possible(fine)[place] or not people(fine, place)
    if nesting is None:
        return
    places = np.arange(int(np.prod(coarse.shape))).reshape(coarse.shape) + 1.0
    around = np.broadcast_to(nesting.spread(places), fine.shape).astype(int) - 1
    shown: dict[int, set[tuple[int, ...]]] = {}
    for place in np.ndindex(*fine.shape):
        if around[place] >= 0:
            outer = tuple(int(i) for i in np.unravel_index(around[place], coarse.shape))
            assert people(fine, place) <= people(coarse, outer)
            shown.setdefault(int(around[place]), set()).update(people(fine, place))
    for flat, outer in enumerate(np.ndindex(*coarse.shape)):
        if not nesting.rest[outer]:
            assert people(coarse, outer) == shown.get(flat, set())


def test_the_same_people_by_another_variable_are_the_same_people() -> None:
    """Who has the last code of ``a`` has the second of ``c``, and nobody else has."""
    rules = [{"a": 0b100, "c": 0b01}, {"a": 0b011, "c": 0b10}]
    fine = PopulationGrid((axis("a", (2,)), axis("b")))
    coarse = PopulationGrid((axis("c", (1,)),), np.array([12]))

    def told(*known: dict[str, int]) -> float:
        holdings = Holdings(PopulationStructure(EVERYTHING, known), NOISE)
        holdings.add([coarse])
        return holdings.expected_certain([fine])

    assert told() == 0.0
    assert told(*rules) > 0.0
    plain = Holdings(PopulationStructure(EVERYTHING, rules), NOISE)
    plain.add([PopulationGrid((axis("a", (2,)),), np.array([12]))])
    assert told(*rules) == pytest.approx(plain.expected_certain([fine]))
    same = Holdings(PopulationStructure(EVERYTHING, rules), NOISE)
    same.add([coarse])
    assert same.expected_certain([PopulationGrid((axis("a", (2,)),))]) == 0.0
