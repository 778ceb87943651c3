"""What a protected population leaves open and states in public, from definitions and by enumeration."""

from __future__ import annotations

import hashlib
import hmac
from itertools import pairwise, product
from math import floor, log2

import numpy as np
import pytest

from lustrum.model import Category, Dataset, InputError
from lustrum.protect.population import channel as channels
from lustrum.protect.population import public as public_module
from lustrum.protect.population import support as supports
from lustrum.protect.population.candidates import candidates
from lustrum.protect.population.cells import FinestCells, possible_cells
from lustrum.protect.population.channel import (
    ERROR_ENDS,
    SIZE_ENDS,
    SMALL,
    PopulationChannel,
    coarse_rates,
    error_class,
    nearest_rates,
    size_class,
)
from lustrum.protect.population.public import (
    GROUP_ERROR_STEP,
    SEARCH,
    PublicReport,
    coarse_error,
    coarse_share,
    keyed_shift,
    stated_search,
)
from lustrum.protect.population.readers import (
    KnownTotals,
    Left,
    base_needed,
    known_totals,
    left_to,
)
from lustrum.protect.population.support import Combinations, Support, possible_combinations
from protect.population.worlds import cells_of, town


def shown_for(true: int, support: Support) -> set[int]:
    """The numbers that a cell with this many people may show, from the definition of the method."""
    base = support.base
    below, above = true // base * base, -(-true // base) * base
    if true == 0:
        return {0, base} if support.empty_shown else {0}
    if support.small_only and true >= base:
        return {true}
    # A multiple may also move to a neighbour in the list, but by less than the base: it stays.
    return {below, above}


@pytest.mark.parametrize("base", [2, 3, 5])
@pytest.mark.parametrize("small_only", [False, True])
@pytest.mark.parametrize("empty_shown", [False, True])
def test_bounds_are_the_ends_of_all_true_counts_that_can_show_a_number(
    base: int, small_only: bool, empty_shown: bool
) -> None:
    support = Support(base, small_only, empty_shown)
    behind: dict[int, list[int]] = {}
    for true in range(6 * base):
        for shown in shown_for(true, support):
            behind.setdefault(shown, []).append(true)
    for shown in range(-base, 4 * base + 1):
        if shown in behind:
            low, high = support.bounds(shown)
            assert (int(low), int(high)) == (behind[shown][0], behind[shown][-1])
        else:
            with pytest.raises(InputError, match="does not produce"):
                support.bounds([0, shown])
    assert support.most_unlisted == behind[0][-1]
    low, high = support.bounds([0, base])
    assert low.dtype == high.dtype == np.int64


def test_bounds_of_a_sum_count_every_possible_cell_that_is_not_listed() -> None:
    support = Support(4)
    low, high = support.aggregate([5, 0], [9, 0], [2, 0], [4, 3])
    assert low.tolist() == [5, 0]
    assert high.tolist() == [9 + 3 * 2, 3 * 3]
    low, high = support.aggregate([5], [9], [2], [2])  # all possible cells are listed
    assert (low.tolist(), high.tolist()) == ([5], [9])
    with pytest.raises(InputError, match="More finest cells are listed"):
        support.aggregate([5, 0], [9, 0], [3, 0], [2, 3])


def tied() -> Dataset:
    """Five variables: zeros tie a to b and b to c; d is tied to e; one zero has two codes on a side."""
    sizes = {"a": 3, "b": 2, "c": 4, "d": 2, "e": 3}
    return Dataset.from_mapping(
        {
            "dataset": {"name": "tied"},
            "variables": [
                {"name": name, "codes": [f"{name}{c}" for c in range(n)]}
                for name, n in sizes.items()
            ],
            "structural_zeros": [
                {"reason": "1", "where": {"a": ["a0", "a2"], "b": ["b1"]}},
                {"reason": "2", "where": {"c": ["c3"], "b": ["b0"]}},
                {"reason": "3", "where": {"e": ["e1"], "d": ["d0"]}},
                {"reason": "4", "where": {"a": ["a1"], "b": ["b0"], "c": ["c0", "c1"]}},
            ],
        }
    )


def every_cell(dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    shape = tuple(len(v.codes) for v in dataset.variables)
    grid = np.indices(shape).reshape(len(shape), -1)
    return grid, possible_cells(dataset, grid)


def counted(
    dataset: Dataset,
    axes: list[tuple[str, tuple[Category, ...]]],
    passing: dict[str, frozenset[int]],
) -> np.ndarray:
    """Count the possible cells of each cell of a table one by one."""
    grid, possible = every_cell(dataset)
    names = [v.name for v in dataset.variables]
    out = np.zeros(tuple(len(c) for _, c in axes), dtype=np.int64)
    for column in grid[:, possible].T.tolist():
        codes = dict(zip(names, column, strict=True))
        if any(codes[name] not in allowed for name, allowed in passing.items()):
            continue
        rows = [
            [k for k, category in enumerate(categories) if codes[name] in category.members]
            for name, categories in axes
        ]
        for place in product(*rows):
            out[place] += 1
    return out


def test_possible_cells_of_a_table_are_those_that_counting_finds() -> None:
    dataset = tied()
    c = (Category("x", "x", (0, 3)), Category("y", "y", (1, 2, 3)), Category("z", "z", ()))
    finest = {v.name: tuple(v.finest) for v in dataset.variables}
    for axes, passing in [
        ([], {}),
        ([("a", finest["a"])], {}),
        ([("c", c), ("a", finest["a"])], {}),
        ([("a", finest["a"]), ("c", c)], {}),
        ([("e", finest["e"]), ("c", c), ("b", finest["b"])], {"a": frozenset({1, 2})}),
        ([("c", c), ("d", finest["d"])], {"c": frozenset({0, 2, 3}), "e": frozenset({0})}),
        ([("b", finest["b"])], {"b": frozenset({1}), "d": frozenset({1})}),
    ]:
        wanted = counted(dataset, axes, passing)
        assert possible_combinations(dataset, axes, passing).tolist() == wanted.tolist()
        assert Combinations.of(dataset).within(axes, passing).tolist() == wanted.tolist()
        if not passing:
            assert Combinations.of(dataset).cells(axes) == int((wanted > 0).sum())
    assert {frozenset(names) for names, _ in Combinations.of(dataset).components} == {
        frozenset("abc"),
        frozenset("de"),
    }


def test_zeros_that_tie_too_many_variables_are_left_out_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset = tied()
    exact = int(possible_combinations(dataset))
    monkeypatch.setattr(supports, "_MOST_COMBINATIONS", 3 * 2 * 4)  # exactly a, b and c
    assert int(possible_combinations(dataset)) == exact
    monkeypatch.setattr(supports, "_MOST_COMBINATIONS", 3 * 2 * 4 - 1)
    # Only a and b, and d and e: the second and the fourth zero are left out.
    assert int(possible_combinations(dataset)) == (3 * 2 - 2) * 4 * (2 * 3 - 1)
    monkeypatch.setattr(supports, "_MOST_COMBINATIONS", 1)
    assert int(possible_combinations(dataset)) == 3 * 2 * 4 * 2 * 3


@pytest.mark.parametrize(
    ("shown", "known", "left", "sentence"),
    [
        (0, 0, 3, "A shown 0 leaves 3 counts, 0 to 2."),
        (3, 1, 5, "A shown 3 leaves 5 counts, 1 to 5."),
        (3, 5, 1, "A shown 3 tells 5 people of the cell that it holds exactly 5."),
        (3, 6, 0, "A cell with 6 people cannot show 3."),
        (6, 2, 5, "A shown 6 leaves 5 counts, 4 to 8."),
        (3, 9, 0, "A cell with 9 people cannot show 3."),
    ],
)
def test_candidates_of_one_cell(shown: int, known: int, left: int, sentence: str) -> None:
    found = candidates(Support(3), shown, known)
    assert found.left == left
    assert str(found) == sentence
    assert (found.shown, found.known) == (shown, known)


DATASET = town((2, 3), zeros=True)  # the last row cannot have the first column
GRID = np.indices((2, 3)).reshape(2, -1)
POSSIBLE = possible_cells(DATASET, GRID).reshape(2, 3)
FILE = np.array([[3, 0, 0], [0, 3, 6]])
LISTED = FinestCells(DATASET, np.stack(np.nonzero(FILE)), FILE[FILE > 0])


SPARSE_FILE = np.array([[6, 0, 0], [0, 0, 0]])  # nobody is listed in the last row
SPARSE = FinestCells(DATASET, np.stack(np.nonzero(SPARSE_FILE)), SPARSE_FILE[SPARSE_FILE > 0])


def behind_the_file(shown: np.ndarray, support: Support) -> np.ndarray:
    """All populations that may stand behind a file, one by one."""
    low, high = support.bounds(shown)
    high = np.where(POSSIBLE, high, 0)
    ends = zip(low.ravel().tolist(), high.ravel().tolist(), strict=True)
    return np.array(list(product(*(range(a, b + 1) for a, b in ends)))).reshape(-1, 2, 3)


EVERY = behind_the_file(FILE, Support(3))
EVERY_SPARSE = behind_the_file(SPARSE_FILE, Support(3))


@pytest.mark.parametrize("coalition", [0, 1, 2, 4, 6, 8, 11])
@pytest.mark.parametrize(
    ("cells", "every", "totals"),
    [
        *((LISTED, EVERY, t) for t in (None, (4, 9), (9, 13), (2, 5), (1, 13), (0, 4))),
        *((SPARSE, EVERY_SPARSE, t) for t in (None, (5, 1), (4, 0), (12, 4), (8, 3), (9, 2))),
    ],
)
def test_counts_left_to_a_coalition_with_totals_are_those_of_enumeration(
    coalition: int, cells: FinestCells, every: np.ndarray, totals: tuple[int, int] | None
) -> None:
    kept = every if totals is None else every[(every.sum(axis=2) == totals).all(axis=1)]
    assert len(kept)
    wanted: dict[int, int] = {}
    for row, column in zip(*np.nonzero(POSSIBLE), strict=True):
        held = kept[:, row, column]
        left = np.unique(held[held >= coalition]).size
        wanted[left] = wanted.get(left, 0) + 1
    known = () if totals is None else (KnownTotals(("v0",), totals),)
    found = left_to(cells, Support(3), known, coalition)
    assert found.histogram() == {k: wanted[k] for k in sorted(wanted) if k}
    assert list(found.histogram()) == sorted(found.histogram())
    assert found.pinned == wanted.get(1, 0)
    for number in range(6):
        assert found.fewer_than(number) == sum(n for k, n in wanted.items() if 0 < k < number)


def test_two_sets_of_totals_leave_what_either_leaves() -> None:
    rows, columns = KnownTotals(("v0",), (2, 12)), KnownTotals(("v1",), (5, 5, 7))
    one = left_to(LISTED, Support(3), (rows,))
    other = left_to(LISTED, Support(3), (columns,))
    both = left_to(LISTED, Support(3), (rows, columns))
    # Rows leave 0 to 2, 4 to 5 and 7 to 8; columns leave 5, 3 to 5 and 5 to 7.
    assert one.listed.tolist() == [3, 2, 2]
    assert other.listed.tolist() == [1, 3, 3]
    # Nothing is both 0 to 2 and 5: these totals contradict each other, which is not looked for.
    assert both.listed.tolist() == [0, 2, 1]
    # Of cells that are not listed the first set is followed.
    assert both.unlisted == one.unlisted
    assert left_to(LISTED, Support(3), (columns, rows)).unlisted == other.unlisted
    for values in ((10, 9), (4, 14), (4, 3)):
        with pytest.raises(InputError, match="does not fit"):
            left_to(LISTED, Support(3), (KnownTotals(("v0",), values),))
    # Exactly at the ends a total fits.
    for values in ((9, 13), (0, 4)):
        assert left_to(LISTED, Support(3), (KnownTotals(("v0",), values),)).listed.size == 3


def test_cells_that_are_exact_by_choice_are_not_judged() -> None:
    shown = np.array([[3, 0, 4], [0, 3, 7]])
    cells = FinestCells(DATASET, np.stack(np.nonzero(shown)), shown[shown > 0])
    found = left_to(cells, Support(3, small_only=True), (), 1)
    assert found.listed.tolist() == [3, 0, 3, 0]  # a shown 3 stands for 1 to 3, with somebody in it
    assert found.fewer_than(2) == 0
    assert left_to(cells, Support(3, small_only=True), (), 3).pinned == 2


def test_a_cell_in_which_readers_cannot_be_is_not_pinned() -> None:
    found = Left(np.array([0, 1, 2, 3]), {0: 4, 1: 2, 2: 7, 5: 0})
    assert found.pinned == 1 + 2
    assert found.fewer_than(3) == 2 + 9
    assert found.histogram() == {1: 3, 2: 8, 3: 1}


def test_totals_are_counted_by_their_categories() -> None:
    dataset = town((4, 3), zeros=False)
    counts = np.arange(12).reshape(4, 3)
    cells = cells_of(dataset, counts)
    rows, both = known_totals(cells, [["v0"], ["v1", "v0"]])
    assert rows == KnownTotals(("v0",), tuple(counts.sum(axis=1).tolist()))
    assert both == KnownTotals(("v1", "v0"), tuple(counts.T.ravel().tolist()))
    assert KnownTotals.from_mapping(both.to_mapping()) == both
    assert both.to_mapping() == {"by": ["v1", "v0"], "values": list(both.values)}
    with pytest.raises(InputError, match="twice"):
        known_totals(cells, [["v0", "v0:half"]])
    (half,) = known_totals(cells, [["v0:half"]])
    assert half.values == (counts[:2].sum(), counts[2].sum(), counts[3].sum())
    assert base_needed(2, 3) == 5


# --- how counts err


def class_of_size(true: int, base: int) -> int:
    return 0 if true == 0 else 1 + sum(true >= base * end for end in SIZE_ENDS[1:])


def class_of_error(error: int, base: int) -> int:
    if error == 0:
        return 0
    return min(1 + sum(abs(error) >= base * end for end in ERROR_ENDS[1:]), len(ERROR_ENDS) - 1)


@pytest.mark.parametrize("base", [2, 3, 5])
def test_classes_of_sizes_and_errors(base: int) -> None:
    sizes, errors = range(12 * base), range(-25 * base, 25 * base)
    assert size_class(sizes, base).tolist() == [class_of_size(n, base) for n in sizes]
    assert error_class(errors, base).tolist() == [class_of_error(e, base) for e in errors]


def examples(base: int) -> list[range]:
    """True counts of each class; of the open one a round of residues at thirty times the base."""
    ends = [0, 1, base, 3 * base, 10 * base]
    kept = [range(a, b) for a, b in pairwise(ends)]
    return [*kept, range(30 * base, 31 * base)]


def numbers_around(true: int, base: int, step: int) -> list[int]:
    reach = base * ERROR_ENDS[-1]
    return [m for m in range(0, true + reach + step, step) if abs(m - true) < reach]


RATES = tuple(tuple((3 * row + 5 * column) % 12 for column in range(8)) for row in range(5))


@pytest.mark.parametrize(("base", "step"), [(3, 3), (3, 1), (2, 2)])
def test_a_rate_is_spread_evenly_over_the_numbers_of_its_class(base: int, step: int) -> None:
    channel = PopulationChannel(base, step, RATES)
    assert channel.reach == base * ERROR_ENDS[-1] - 1
    shares = []
    for rates, kind in zip(RATES, examples(base), strict=True):
        found = [class_of_error(m - t, base) for t in kind for m in numbers_around(t, base, step)]
        mean = [found.count(k) / len(kind) for k in range(8)]
        shares.append([0.5**r / n if n else 0.0 for r, n in zip(rates, mean, strict=True)])
    true = [0, 1, base, 3 * base - 1, 3 * base, 10 * base, 40 * base + 1]
    rows = channel.transitions(np.array(true))
    assert rows.origin.tolist() == sorted(rows.origin.tolist())
    for place, n in enumerate(true):
        numbers = numbers_around(n, base, step)
        chances = [shares[class_of_size(n, base)][class_of_error(m - n, base)] for m in numbers]
        mine = rows.origin == place
        assert rows.published[mine].tolist() == numbers
        assert np.allclose(rows.probability[mine], np.array(chances) / sum(chances), rtol=1e-12)


@pytest.mark.parametrize(("base", "step"), [(3, 3), (3, 1), (5, 5), (2, 2), (7, 7)])
def test_the_least_rates_are_those_of_the_numbers_next_to_a_count(base: int, step: int) -> None:
    wanted = []
    for kind in examples(base):
        shares = [0.0] * 8
        for true in kind:
            near = [m for m in numbers_around(true, base, step) if abs(m - true) < step]
            for m in near:
                shares[class_of_error(m - true, base)] += 1 / len(near) / len(kind)
        powers = [floor(-log2(share) + 0.5) if share else 99 for share in shares]
        wanted.append(tuple(p if p <= 4 else s for p, s in zip(powers, SMALL, strict=True)))
    assert nearest_rates(base, step) == tuple(wanted)


def test_shares_below_one_in_32_are_stated_by_a_schedule() -> None:
    # Powers 0 to 4 are measured; from 5 on the schedule says them, whatever the share.
    shares = [1, 0.5, 0.25, 0.125, 1 / 16, 1 / 32, 1 / 64, 0]
    assert coarse_rates(shares, 0.0) == (0, 1, 2, 3, 4, 10, 11, 12)
    assert coarse_rates([1 / 32, 1 / 33, 0, 0, 0, 0, 0, 0], 0.0)[:2] == (6, 6)
    assert coarse_rates([0.3] * 8, 0.0) == (1,) * 8
    assert coarse_rates([0.3] * 8, 0.5) == (2,) * 8
    assert channels._LAST_MEASURED == 4


def test_nothing_is_certain_from_a_number_alone() -> None:
    low, high = PopulationChannel(3, 3, RATES).support(np.array([0, 300]))
    assert low.tolist() == [0, 0]
    assert (high >= 2**62).all()


@pytest.mark.parametrize("highest", [9, None])
def test_the_chance_to_stay_is_the_mean_over_a_range(highest: int | None) -> None:
    channel = PopulationChannel(3, 3, RATES)
    last = 5 + 49 if highest is None else highest
    chances = []
    for true in range(5, last + 1):
        rows = channel.transitions(np.array([true]))
        chances.append(float(rows.probability[rows.published == true].sum()))
    assert channel.stay(5, highest) == pytest.approx(sum(chances) / len(chances), rel=1e-12)


@pytest.mark.parametrize(
    ("base", "step", "rates", "good"),
    [
        (1, 1, RATES, True),
        (3, 3, ((0,) * 8,) * 4 + ((12,) * 8,), True),
        (0, 1, RATES, False),
        (3, 0, RATES, False),
        (3.0, 3, RATES, False),
        (3, True, RATES, False),
        (3, 3, RATES[:4], False),
        (3, 3, (*RATES, RATES[0]), False),
        (3, 3, (*RATES[:4], (1,) * 7), False),
        (3, 3, (*RATES[:4], (13,) * 8), False),
        (3, 3, (*RATES[:4], (-1,) * 8), False),
        (3, 3, (*RATES[:4], (1,) * 7 + (1.0,)), False),
    ],
)
def test_a_channel_of_other_rates_is_refused(
    base: int, step: int, rates: channels.Rates, good: bool
) -> None:
    if good:
        PopulationChannel(base, step, rates)
        return
    with pytest.raises(InputError, match="of a channel"):
        PopulationChannel(base, step, rates)


# --- what is stated in public


def test_the_shift_of_a_figure_is_drawn_by_the_key_and_its_name() -> None:
    for key, name in [(b"a", "changed"), (b"a", "errors 1"), (b"b", "changed")]:
        digest = hmac.new(key, f"lustrum public report {name}".encode(), hashlib.sha256).digest()
        wanted = sum(byte / 256 ** (k + 1) for k, byte in enumerate(digest[:4]))
        assert keyed_shift(key, name) == wanted
        assert 0 <= wanted < 1


@pytest.mark.parametrize("step", [None, GROUP_ERROR_STEP, 0.25])
def test_an_error_is_rounded_up_from_the_keyed_beginning(step: float | None) -> None:
    size = 0.5 if step is None else step
    words = () if step is None else (step,)
    for name in ("x", "y", "z"):
        shift = keyed_shift(b"key", name)
        for measured in (0.0, 0.1, 0.5, 2.2, 7.25):
            found = coarse_error(measured, b"key", name, *words)
            steps = found / size
            assert steps == round(steps)
            assert found >= max(measured, size)
            # The next smaller step would be below the measured figure with its shift.
            assert steps == 1 or (steps - 1) < measured / size + shift
            assert steps >= measured / size + shift or steps == 1


def test_an_error_of_nothing_is_stated_as_one_step_and_never_less() -> None:
    names = [f"figure {k}" for k in range(40)]
    assert {coarse_error(0.0, b"key", name) for name in names} == {0.5}
    # Own groups make few large cells, so that their errors are twice as coarse.
    step = public_module.GROUP_ERROR_STEP
    assert {coarse_error(0.0, b"key", name, step) for name in names} == {1.0}
    # Half a step: one step or two, as the key has it.
    assert {coarse_error(0.25, b"key", name) for name in names} == {0.5, 1.0}


def test_a_share_is_rounded_to_either_side_and_never_0_or_1() -> None:
    names = [f"figure {k}" for k in range(60)]
    for measured, wanted in [
        (0.0, {0.05}),
        (0.02, {0.05}),
        (0.075, {0.05, 0.1}),
        (0.5125, {0.5, 0.55}),
        (0.96, {0.95}),
        (1.0, {0.95}),
    ]:
        assert {coarse_share(measured, b"key", name) for name in names} == wanted
    up = [name for name in names if coarse_share(0.51, b"key", name) == 0.55]
    assert up == [name for name in names if 0.51 / 0.05 + keyed_shift(b"key", name) >= 11]


def report(**words: object) -> PublicReport:
    made: dict[str, object] = {
        "method": {"max_variables": 2, "base": 3},
        "support": Support(3, empty_shown=False),
        "changed": 0.5,
        "errors": {1: 0.5, 2: 1.0, 4: 2.25},
        "group_errors": {1: 3.0, 2: 4.0},
        "rates": RATES,
        "free_rates": RATES[::-1],
        "known": (KnownTotals(("v0",), (1, 2)),),
    }
    return PublicReport(**{**made, **words})  # type: ignore[arg-type]


def test_a_figure_is_that_of_the_kind_of_table_or_of_the_next_larger_one() -> None:
    public = report()
    assert [public.error(n) for n in range(6)] == [0.5, 0.5, 1.0, 2.25, 2.25, 2.25]
    assert [public.error(n, own_groups=True) for n in (1, 2, 3)] == [3.0, 4.0, 4.0]
    assert [public.margin(n) for n in (1, 2, 4)] == [1, 2, 5]
    assert public.margin(2, own_groups=True) == 8
    assert public.channel(2) == PopulationChannel(3, 3, RATES)
    assert public.channel(3) == PopulationChannel(3, 3, RATES[::-1])
    assert public.channel(1, own_groups=True) == PopulationChannel(3, 3, RATES[::-1])
    small = report(support=Support(5, small_only=True))
    assert small.channel(1) == PopulationChannel(5, 1, RATES)


def test_a_report_comes_back_from_plain_values() -> None:
    public = report(search=3)
    words = public.to_mapping()
    assert words == {
        "method": {"max_variables": 2, "base": 3},
        "support": {"base": 3, "small_only": False, "empty_shown": False},
        "changed": 0.5,
        "errors": {"1": 0.5, "2": 1.0, "4": 2.25},
        "group_errors": {"1": 3.0, "2": 4.0},
        "rates": [list(row) for row in RATES],
        "free_rates": [list(row) for row in RATES[::-1]],
        "known": [{"by": ["v0"], "values": [1, 2]}],
        "search": 3,
        "releases": {
            "odds": None,
            "left": {"0": [0, 2], "3": [1, 5], "6": [4, 8], "0 and 3": [1, 2], "3 and 6": [4, 5]},
        },
    }
    assert list(report(errors={4: 1.0, 1: 0.5}).to_mapping()["errors"]) == ["1", "4"]
    assert list(report(group_errors={4: 1.0, 1: 0.5}).to_mapping()["group_errors"]) == ["1", "4"]
    assert PublicReport.from_mapping(words) == public
    assert report().search == SEARCH
    del words["search"]
    assert PublicReport.from_mapping(words).search == stated_search(words) == 2
    for missing in ("method", "support", "changed", "errors", "rates", "known"):
        with pytest.raises(InputError, match="other words"):
            PublicReport.from_mapping({k: v for k, v in words.items() if k != missing})
    with pytest.raises(InputError, match="other words"):
        PublicReport.from_mapping({**words, "changed": "much"})


def test_a_code_in_which_nobody_is_listed_has_a_total_too() -> None:
    (counted,) = known_totals(SPARSE, [["v0"]])
    assert counted.values == (6, 0)
