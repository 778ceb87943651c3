"""Later releases: numbers follow changes, tell no more to who knows them, and hide which cells changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InputError
from lustrum.model.finest import FinestCells
from lustrum.protect.population import continued as continued_module
from lustrum.protect.population import prepare as prepare_module
from lustrum.protect.population.continued import FEWEST_SMALL
from lustrum.protect.population.later import RememberedCells, shares_moved, spare
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.prepare import Prepared, prepare
from lustrum.protect.population.readers import known_changes
from lustrum.protect.population.start import cell_numbers
from lustrum.protect.population.support import Support
from lustrum.protect.population.together import (
    Differences,
    NumberChange,
    carried_bounds,
    differences,
    together,
)
from protect.population.worlds import KEY, cells_of, dense, town

SIZES = (20, 10, 6)
DATASET = town(SIZES, zeros=False)
RNG = np.random.default_rng(29)
COUNTS = RNG.choice([0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 7], SIZES)
KEYS = RNG.integers(1, 2**62, SIZES).astype(np.uint64) * (COUNTS > 0)


def cells(counts: np.ndarray, keys: np.ndarray) -> FinestCells:
    at = np.nonzero(counts)
    return FinestCells(DATASET, np.stack(at), counts[at], keys[at])


def memory(counts: np.ndarray, keys: np.ndarray, seed: int = 1) -> RememberedCells:
    """Every cell at one of its two numbers, empty ones at 0 or 3, with offsets of a first release."""
    up = np.random.default_rng(seed).random(SIZES) < 0.35
    shown = counts // 3 * 3 + 3 * (up & ((counts % 3 > 0) | (counts == 0)))
    at = np.nonzero((counts > 0) | (shown > 0) | (np.arange(SIZES[2]) < 2))
    own = FinestCells(DATASET, np.stack(at), shown[at], keys[at])
    offset = shown[at] + spare(own, shown[at], KEY, 3, (1, 1)) - counts[at]
    return remembered(own, offset)


def remembered(own: FinestCells, offset: np.ndarray) -> RememberedCells:
    """What a first release remembers."""
    nothing, alike = np.zeros(len(own), dtype=np.int64), np.ones(len(own))
    rows = own.dataset, own.codes, own.counts, own.keys
    return RememberedCells(*rows, offset, nothing, alike, False, (1, 1))


MEMORY = memory(COUNTS, KEYS)


def later(
    change: Callable[[np.ndarray, np.ndarray], None],
    key: bytes = KEY,
    before: FinestCells = MEMORY,
    **words: float,
) -> tuple[Prepared, np.ndarray, np.ndarray]:
    """A later release before its search, and its counts and keys."""
    counts, keys = COUNTS.copy(), KEYS.copy()
    change(counts, keys)
    said = {"base": 3, "small_only": False, "empty_share": 0.2, **words}
    made = prepare(cells(counts, keys), key, previous=before, **said)  # type: ignore[arg-type]
    return made, counts, keys


def shown(made: Prepared) -> np.ndarray:
    """What all cells start with."""
    return dense(FinestCells(made.every.dataset, made.every.codes, made.numbers(made.problem.up)))


def movable(made: Prepared) -> np.ndarray:
    """Which cells the search may move."""
    codes = made.every.codes[:, made.problem.movable]
    return dense(FinestCells(DATASET, codes, np.ones(codes.shape[1]))) > 0


def one_correction(counts: np.ndarray, keys: np.ndarray) -> None:
    at = tuple(np.argwhere(counts == 1)[0])
    keys[at] += np.uint64(1)


# --- readers who know the changes


def numbers_next_to(count: int, base: int) -> list[int]:
    low = count // base * base
    return [low, low + base] if count > low or count == 0 else [low]


def firsts(base: int) -> list[tuple[int, int, int]]:
    """Every count, first number and spare of a first release."""
    return [
        (count, number, more)
        for count in range(3 * base)
        for number in numbers_next_to(count, base)
        for more in (range(1) if number == base else range(base))
    ]


@pytest.mark.parametrize("base", [2, 3, 4, 5])
def test_numbers_are_a_function_of_the_first_number_the_spare_and_the_changes(
    base: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the count was: so known changes tell nothing about it that the first number did not."""
    monkeypatch.setattr(continued_module, "FEWEST_SMALL", 10**6)  # all records are others here
    rows = firsts(base)
    dataset = town((len(rows),), zeros=False)
    codes = np.arange(len(rows))[None]
    first, number, more = (np.array(column) for column in zip(*rows, strict=True))
    for changes in product(range(-2, 4), repeat=2):
        counts = first.copy()
        keys = np.arange(1, len(rows) + 1, dtype=np.uint64) * np.uint64(100)
        own = FinestCells(dataset, codes, number, keys * (first > 0))
        before, seen, alive = remembered(own, number + more - first), [], np.ones(len(rows), bool)
        for change in changes:
            counts, keys = counts + change, keys + np.uint64(1)
            alive &= counts >= 0
            now = np.maximum(counts, 0)
            listed = now > 0
            made = prepare(
                FinestCells(dataset, codes[:, listed], now[listed], keys[listed]),
                KEY,
                base=base,
                small_only=False,
                empty_share=0.1,
                previous=before,
            )
            levels = made.kept.levels
            assert len(made.every) == len(rows)
            seen.append(levels.number)
            # Cells that are drawn go on as if they had not been.
            before = replace(made.memory(levels.number), counts=levels.number)
        series: dict[tuple[int, int], set[tuple[int, ...]]] = {}
        for row in np.flatnonzero(alive).tolist():
            shown_ = tuple(int(release[row]) for release in seen)
            series.setdefault((rows[row][1], rows[row][2]), set()).add(shown_)
        assert all(len(found) == 1 for found in series.values()), changes


@pytest.mark.parametrize("share", [(1, 1), (2, 5)])
@pytest.mark.parametrize("base", [2, 3, 5])
def test_the_spare_follows_from_key_and_number_by_the_stated_law(
    base: int, share: tuple[int, int]
) -> None:
    """A right law fails once in a million runs (5.2 standard errors); counts and records have no part in it."""
    size = 20_000
    dataset = town((size,), zeros=False)
    one, two = (FinestCells(dataset, np.arange(size)[None], np.full(size, n)) for n in (0, 7))
    for number in (0, base, 2 * base):
        shown_ = np.full(size, number)
        found = spare(one, shown_, KEY, base, share)
        assert np.array_equal(found, spare(two, shown_, KEY, base, share))
        assert (
            not np.array_equal(found, spare(one, shown_, KEY[::-1], base, share)) or number == base
        )
        chance = np.full(base, 1 / base)
        if number == 0:
            chance[:] = share[0] / share[1] / base
            chance[0] = 1 - chance[1:].sum()
        if number == base:
            chance[:] = np.arange(base) == 0
        rate = np.bincount(found, minlength=base) / size
        assert (np.abs(rate - chance) <= 5.2 * np.sqrt(chance * (1 - chance) / size)).all()


@pytest.mark.parametrize("base", [2, 3, 5])
def test_the_wide_support_holds_all_that_later_releases_can_show_and_no_more(base: int) -> None:
    """Every first release, every change of the count, and offsets that were moved by one or not."""
    behind: dict[int, set[int]] = {}
    for (count, number, more), shift in product(firsts(base), (-1, 0, 1)):
        offset = number + more - count + shift
        for now in range(8 * base):
            behind.setdefault(max(0, (now + offset) // base * base), set()).add(now)
    support = Support(base, wide=True)
    for number in range(0, 4 * base, base):
        low, high = support.bounds(number)
        assert behind[number] == set(range(int(low), int(high) + 1)), number
    assert support.most_unlisted == max(behind[0])


def test_which_cells_are_drawn_depends_on_levels_and_never_on_counts() -> None:
    """Half of the cells hold one or two more, and have offsets that are smaller by as much."""
    more = np.random.default_rng(8).integers(0, 3, SIZES) * (COUNTS > 0)
    at = tuple(MEMORY.codes.astype(int))
    other = replace(MEMORY, offset=MEMORY.offset - more[at])

    def change(counts: np.ndarray, keys: np.ndarray) -> None:
        counts[(counts > 2) & (np.indices(SIZES).sum(axis=0) % 5 == 0)] += 2
        keys[(counts > 2) & (np.indices(SIZES).sum(axis=0) % 5 == 0)] += np.uint64(1)

    def larger(counts: np.ndarray, keys: np.ndarray) -> None:
        change(counts, keys)
        counts += more

    one, *_ = later(change, empty_share=0.0)
    two, *_ = later(larger, before=other, empty_share=0.0)
    assert two.kept.levels is not None
    assert (one.kept.levels.one_in > 0).sum() > 20
    for name in ("number", "other", "one_in", "start"):
        assert np.array_equal(getattr(one.kept.levels, name), getattr(two.kept.levels, name))


METHOD = ProtectedPopulation(sweeps=2, extra_tables=0, max_variables=2, empty_share=0.2)


def years(method: ProtectedPopulation, releases: int, changes: int = 20) -> Any:
    """Releases with so many changed cells between them: the release, true counts, and the one before."""
    rng = np.random.default_rng(12)
    counts, keys = COUNTS.copy(), KEYS.copy()
    before = method.protect(cells(counts, keys), KEY)
    for _ in range(releases - 1):
        for place in rng.integers(0, SIZES, (changes, 3)):
            at = tuple(place)
            counts[at] = max(counts[at] + rng.choice([-1, 1]), 0)
            keys[at] = (keys[at] + np.uint64(1)) if counts[at] else 0
        after = method.protect(cells(counts, keys), KEY, previous=before.memory, new_series=True)
        yield after, counts.copy(), before
        before = after


def test_of_each_count_the_search_moves_the_same_share_within_a_tenth() -> None:
    counts = np.random.default_rng(5).choice([1, 2, 4, 5, 7], (30, 30, 6))
    world = cells_of(town((30, 30, 6), zeros=False), counts)
    first = METHOD.protect(world, KEY)
    keys = world.keys.copy()  # type: ignore[union-attr]
    keys[0] += np.uint64(1)
    again = FinestCells(world.dataset, world.codes, world.counts, keys)
    second = replace(METHOD, refresh=1.0).protect(again, KEY, previous=first.memory)
    memory_ = second.memory
    codes = tuple(memory_.codes.astype(int))
    level = counts[codes] + memory_.offset - memory_.shift
    drawn, moved = memory_.odds > 1, memory_.shift != 0
    for up in (True, False):
        edge = (level % 3 == 2) if up else (level % 3 == 0) & (level > 0)
        for number, count in product((0, 3, 6), (1, 2, 4, 5, 7)):
            here = edge & drawn & (level // 3 * 3 == number) & (counts[codes] == count)
            size = int(here.sum())
            # What one in eight does not divide is left to the key, and is not drawn here.
            least, most = (end * size for end in shares_moved(8))
            assert size % 8 == 0
            assert least <= (moved & here).sum() <= most, (up, number, count)
    assert max(memory_.odds) == pytest.approx(11 / 9)
    rates = second.agency.moved
    assert set(rates) >= {"1", "2", "4", "5"}
    assert all(0.08 < rate < 0.17 for name, rate in rates.items() if name in "1245")


@pytest.mark.parametrize(
    ("limit", "choices"), [(1.0, False), (1.3, True), (2.0, True), (0.0, True)]
)
def test_the_search_chooses_no_more_often_than_known_changes_allows(
    limit: float, choices: bool
) -> None:
    method = replace(METHOD, known_changes=limit, refresh=1.0)
    largest, differ = 1.0, 0
    for after, _, _ in years(method, 6):
        largest, differ = after.agency.factor, differ + after.agency.differences.cells
        assert largest <= (limit or np.inf)
        assert largest == after.memory.odds.max()
    # Without a choice the key alone decides which cells move beside those that changed.
    assert differ > 40
    assert (largest > 1) == choices


def test_no_limit_holds_where_larger_counts_are_exact() -> None:
    method = replace(METHOD, cells="small")
    first = method.protect(cells(COUNTS, KEYS), KEY)
    assert method.protect(cells(COUNTS, KEYS), KEY, previous=first.memory).agency.changed == 0
    keys = KEYS.copy()
    keys[tuple(np.argwhere(COUNTS == 1)[0])] += np.uint64(1)
    with pytest.raises(InputError, match="no limit 'known_changes' holds"):
        method.protect(cells(COUNTS, keys), KEY, previous=first.memory)
    free = replace(method, known_changes=0.0)
    for after, counts, _ in years(free, 4):
        low, high = after.public.support.bounds(dense(after.cells))
        assert ((low <= counts) & (counts <= high)).all()
    with pytest.raises(InputError, match="factor of 1 or more"):
        ProtectedPopulation(known_changes=0.5)


def test_a_report_says_how_sure_somebody_is_who_knows_all_changes() -> None:
    shows = {0: {0: 99, 3: 1}, 1: {0: 70, 3: 30}, 2: {0: 40, 3: 60}, 3: {3: 9}, 4: {3: 2, 6: 1}}
    sure = known_changes(shows, Support(3), limit=1.4, draw=1.2)
    odds = 0.99 / 1.1
    assert list(sure) == ["0", "3", "6"]
    for releases, factor in ((1, 1.0), (2, 1.2), (3, 1.4), (6, 1.4), (12, 1.4)):
        assert sure["0"][str(releases)] == pytest.approx(
            odds * factor / (1 + odds * factor), abs=1e-3
        )
    assert known_changes(shows, Support(3), limit=0, draw=2.0)["0"]["12"] > 0.99
    first = METHOD.protect(cells(COUNTS, KEYS), KEY)
    stated = first.agency.to_mapping()["known_changes"]
    assert list(stated["sure"]["0"]) == ["1", "2", "3", "6", "12"]
    assert stated["factor"] == 1.0
    # Of 0, 1 and 2 behind a first 0 none is nearly certain, after any number of releases.
    assert max(stated["sure"]["0"].values()) < 0.8


# --- which cells changed


def test_cells_that_changed_have_company_on_their_side() -> None:
    """Over 12 releases; movement proves neither a change nor that anybody is there."""
    found, moved_alone = Differences(), 0
    ever, shown_both = COUNTS > 0, np.zeros(SIZES, dtype=bool)
    for after, counts, before in years(METHOD, 12):
        low, high = after.public.support.bounds(dense(after.cells))
        assert after.public.support.wide
        assert ((low <= counts) & (counts <= high)).all()
        apart = after.agency.differences
        assert apart.reveals(0.5, 3) is None
        found = Differences(found.cells + apart.cells, found.changed + apart.changed)
        ever = ever | (counts > 0)
        shown_both |= dense(before.cells) != dense(after.cells)
        moved_alone += apart.cells - apart.changed
    assert found.cells > 100
    assert found.changed <= 0.5 * found.cells
    assert (shown_both & ~ever).sum() >= 0.1 * shown_both.sum()


@pytest.mark.parametrize("odds", [0.5, 0.25])
def test_more_cells_are_drawn_where_more_changed(odds: float) -> None:
    """As many to go up as to go down, enough for the odds, and none that changed by itself."""

    def grow(counts: np.ndarray, keys: np.ndarray) -> None:
        at = tuple(np.argwhere((counts > 0) & (counts < 3))[::12].T)
        counts[at] += 2
        keys[at] += np.uint64(1)

    few, *_ = later(one_correction, change_odds=odds)
    made, *_ = later(grow, change_odds=odds)
    levels = made.kept.levels
    drawn = levels.one_in > 0
    assert drawn.sum() > (few.kept.levels.one_in > 0).sum()
    codes = tuple(made.every.codes.astype(int))
    before = dense(MEMORY)[codes]
    real = int(((levels.number > before) & (levels.number <= 3)).sum())
    rises = drawn & (levels.other == 3) & (levels.number == 0)
    falls = drawn & (levels.other == 0) & (levels.number == 3)
    assert real > 10
    assert (0.9 / levels.one_in[rises & ~levels.changed]).sum() > (1 - odds) / odds * real
    assert falls.sum() > 0
    assert (levels.number == before)[drawn].all()


def test_the_same_records_are_the_same_release() -> None:
    made, *_ = later(lambda *_: None, refresh=1.0)
    assert not made.problem.movable.any()
    assert np.array_equal(shown(made), dense(MEMORY))
    assert not made.kept.wide
    first = METHOD.protect(cells(COUNTS, KEYS), KEY)
    second = METHOD.protect(cells(COUNTS, KEYS), KEY, previous=first.memory)
    assert first.public == second.public
    for name in ("counts", "offset", "shift", "odds", "share"):
        known = dense_of(first.memory, name), dense_of(second.memory, name)
        assert np.array_equal(*known), name


def dense_of(memory_: RememberedCells, name: str) -> Any:
    """An array of a memory by cell; cells that are not listed show 0 and have the offset of their key."""
    if name == "share":
        return memory_.share
    out = np.zeros(SIZES)
    if name == "offset":
        every = np.indices(SIZES).reshape(3, -1)
        whole = FinestCells(DATASET, every, np.zeros(every.shape[1]))
        assert memory_.share is not None
        out = spare(whole, whole.counts, KEY, 3, memory_.share).reshape(SIZES).astype(float)
    if name == "odds":
        out += 1
    out[tuple(memory_.codes.astype(int))] = getattr(memory_, name)
    return out


def test_a_memory_of_earlier_versions_is_continued_once_by_the_rule_that_it_knew() -> None:
    """Its numbers stay where they are next to the counts, and have offsets from then on."""
    old = FinestCells(MEMORY.dataset, MEMORY.codes, MEMORY.counts, MEMORY.keys)

    def change(counts: np.ndarray, keys: np.ndarray) -> None:
        at = tuple(np.argwhere(counts > 0)[::4].T)
        counts[at] += 2
        keys[at] += np.uint64(1)

    made, counts, _ = later(change, before=old)
    levels = made.kept.levels
    now = dense(FinestCells(DATASET, made.every.codes, levels.number))
    before = dense(MEMORY)
    for place in np.ndindex(*SIZES):
        two = numbers_next_to(counts[place], 3)
        assert now[place] == np.clip(before[place], two[0], two[-1]), place
    assert made.memory(levels.number).offset is not None


def test_bounds_begin_anew_where_records_changed() -> None:
    dataset = town((2,), zeros=False)

    def own(numbers: list[int], keys: list[int]) -> FinestCells:
        return FinestCells(dataset, [[0, 1]], numbers, np.array(keys, dtype=np.uint64))

    first, second = own([3, 3], [5, 6]), own([6, 6], [5, 7])
    low, high = carried_bounds(first, second, Support(3), Support(3).finest(first))
    assert (low.tolist(), high.tolist()) == ([4, 4], [5, 8])


def test_records_that_were_not_matched_are_refused() -> None:
    def rows(counts: np.ndarray, keys: np.ndarray, less: int = 0) -> None:
        small = np.argwhere((counts > 0) & (counts < 3))
        half = len(small) // 2 + 1 - less
        keys[tuple(small[:half].T)] += np.uint64(1)

    with pytest.raises(InputError, match="not matched"):
        later(rows)
    later(lambda c, k: rows(c, k, less=2))

    def large(counts: np.ndarray, keys: np.ndarray) -> None:
        keys[counts > 2] += np.uint64(1)

    later(large)
    # In few small cells, or large ones, somebody changes nearly always.
    counts, keys = COUNTS.copy(), KEYS + np.uint64(1)
    small = np.argwhere((counts > 0) & (counts < 3))[FEWEST_SMALL - 1 :]
    counts[tuple(small.T)] = 3
    prepare(cells(counts, keys), KEY, base=3, small_only=False, empty_share=0.1, previous=MEMORY)


@given(
    st.lists(
        st.tuples(*[st.sampled_from([0, 0, 3, 6, 9, 12, 18])] * 2, st.booleans()),
        min_size=6,
        max_size=6,
    )
)
def test_differences_are_counted_by_their_steps(moves: list[tuple[int, int, bool]]) -> None:
    """Numbers of three bases and more are one class; cells that are not listed showed 0 to nobody."""
    dataset = town((3, 2), zeros=False)
    at = np.array(list(product(range(3), range(2)))).T
    keys = np.arange(1, 7, dtype=np.uint64)
    before, after, other = (np.array(column) for column in zip(*moves, strict=True))
    own, new = keys * (before > 0), (keys + np.uint64(9) * other) * (after > 0)
    one, two = (
        FinestCells(dataset, at[:, shown > 0], shown[shown > 0], held[shown > 0])
        for shown, held in ((before, own), (after, new))
    )
    found = differences(one, two, 3)
    differ, changed = before != after, own != new
    assert (found.cells, found.changed) == (differ.sum(), (differ & changed).sum())
    assert found.certain == (np.abs(after - before) > 3).sum()
    steps: dict[tuple[int, int], list[bool]] = {}
    for place in np.flatnonzero(differ):
        kind = min(before[place], 9), min(after[place], 9)
        steps.setdefault(kind, []).append(bool(changed[place]))
    assert [(s.before, s.after, s.cells, s.changed) for s in found.steps] == [
        (*kind, len(inside), sum(inside)) for kind, inside in sorted(steps.items())
    ]
    assert differences(None, two, 3) == Differences()


step_counts = st.tuples(st.sampled_from([19, 20, 40]), st.integers(0, 40)).map(
    lambda n: (n[0], min(n))
)


@given(
    st.lists(
        st.tuples(st.sampled_from([(0, 3), (3, 0), (6, 9), (0, 6), (9, 9)]), step_counts),
        max_size=4,
        unique_by=lambda one: one[0],
    ),
    st.sampled_from([0.25, 0.5]),
)
def test_a_release_reveals_who_changed_if_a_kind_or_all_cells_are_beyond_the_odds(
    steps: list[tuple[tuple[int, int], tuple[int, int]]], odds: float
) -> None:
    """Twenty cells are enough to speak of; cells that moved by two steps count with all cells only."""
    kinds = [NumberChange(*ends, *counts) for ends, counts in steps]
    cells_, changed = (sum(getattr(k, name) for k in kinds) for name in ("cells", "changed"))
    found = Differences(cells_, changed, 0, tuple(kinds))
    beyond = [
        k for k in kinds if abs(k.after - k.before) <= 3 and Fraction(k.changed, k.cells) > odds
    ]
    assert found.beyond(odds, 3) == beyond
    large = [k for k in beyond if k.cells >= 20]
    revealed = found.reveals(odds, 3)
    if large:
        assert revealed in [(k.cells, k.changed) for k in large]
        assert Fraction(*revealed[::-1]) == max(Fraction(k.changed, k.cells) for k in large)
    else:
        together_ = cells_ >= 20 and Fraction(changed, cells_) > odds
        assert revealed == ((cells_, changed) if together_ else None)


@pytest.mark.parametrize(
    ("small", "other", "refused"), [(20, 11, True), (20, 10, False), (19, 19, False)]
)
def test_records_count_as_not_matched_from_half_of_twenty_small_cells_on(
    small: int, other: int, refused: bool
) -> None:
    counts, keys = COUNTS.copy(), KEYS.copy()
    places = np.argwhere((counts > 0) & (counts < 3))
    counts[tuple(places[small:].T)] = 3
    before = cells(counts, keys)
    keys[tuple(places[:other].T)] += np.uint64(1)
    said = {"base": 3, "small_only": False, "empty_share": 0.1}
    if refused:
        with pytest.raises(InputError, match="not matched"):
            prepare(cells(counts, keys), KEY, previous=before, **said)  # type: ignore[arg-type]
    else:
        prepare(cells(counts, keys), KEY, previous=before, **said)  # type: ignore[arg-type]


def test_counts_of_thousands_of_millions_are_kept_as_they_are() -> None:
    counts = COUNTS.copy()
    counts[0, 0] = 2**31 + 2  # a multiple of 3, and 1
    keys = KEYS.copy()
    keys[0, 0] = 7
    made = prepare(cells(counts, keys), KEY, base=3, small_only=False, empty_share=0.0)
    assert movable(made)[0, 0].all()
    assert set(shown(made)[0, 0].tolist()) <= {2**31 + 1, 2**31 + 4}
    assert (np.abs(shown(made) - counts) < 3).all()


def parts(counts: np.ndarray, keys: np.ndarray) -> tuple[FinestCells, FinestCells]:
    """Cells of three variables, and the memory of a release of the first two at their lower numbers."""
    at = np.nonzero(counts)
    now = FinestCells(DATASET, np.stack(at), counts[at], keys[at])
    sums, added = counts.sum(axis=2), keys.sum(axis=2)
    first = town(SIZES[:2], zeros=False)
    where = np.nonzero(sums)
    return now, FinestCells(first, np.stack(where), sums[where] // 3 * 3, added[where])


def refined(counts: np.ndarray, keys: np.ndarray, before: FinestCells, **words: float) -> Prepared:
    at = np.nonzero(counts)
    now = FinestCells(DATASET, np.stack(at), counts[at], keys[at])
    said = {"base": 3, "small_only": False, "empty_share": 0.1, **words}
    return prepare(now, KEY, previous=before, **said)  # type: ignore[arg-type]


def free_parents(made: Prepared) -> set[tuple[int, ...]]:
    """Cells of the earlier release whose parts need not add up to what it showed."""
    codes = made.every.codes[:2, made.problem.movable]
    return {tuple(c) for c in codes[:, made.problem.group < 0].T.tolist()}


def test_with_more_variables_the_same_records_add_up_to_the_same_numbers() -> None:
    _, before = parts(COUNTS, KEYS)
    made = refined(COUNTS, KEYS, before, refresh=1.0)
    assert np.array_equal(shown(made).sum(axis=2), dense(before))
    assert not free_parents(made)
    assert not made.kept.wide
    # Sums are kept also where parts were to be held at their upper numbers.
    held = cell_numbers(DATASET, np.argwhere(COUNTS > 0).T)
    made = refined(COUNTS, KEYS, before, held=held)
    assert np.array_equal(shown(made).sum(axis=2), dense(before))


def test_parts_add_up_to_the_number_that_follows_or_are_free() -> None:
    """All parts become 3, so that their sum has one number; other sums follow the changes of their cells."""
    _, old = parts(COUNTS, KEYS)
    sums = COUNTS.sum(axis=2)
    offset = old.counts - sums[tuple(old.codes.astype(int))] + 1
    before = remembered(old, offset)
    counts, keys = COUNTS.copy(), KEYS.copy()
    target = tuple(np.argwhere(sums == 7)[0])
    counts[target], keys[target] = 3, 5
    grown = tuple(np.argwhere(sums == 9)[0])
    part = int(np.argmax(COUNTS[grown]))
    counts[grown][part] += 3
    keys[grown][part] += np.uint64(1)
    made = refined(counts, keys, before)
    after = shown(made).sum(axis=2)
    assert (shown(made)[target] == 3).all()
    assert free_parents(made) <= {target}
    assert after[grown] in (12, 9, 15)
    whole = counts.sum(axis=2)
    whole[tuple(old.codes.astype(int))] += offset
    differs = after != np.maximum(whole // 3 * 3, 0)
    differs[target] = False
    # Beside that, cells at the edge of a number may be drawn by the key.
    assert differs.mean() < 0.1
    low, high = Support(3).bounds(shown(made))
    assert ((low <= counts) & (counts <= high)).all()


def test_a_start_makes_room_for_empty_cells_down_to_a_half_or_as_far_as_siblings_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    total = int((COUNTS % 3).sum())
    # Cells that show 3 without bias: ones and twos that go up, and threes to fives that do not.
    shows = (COUNTS[COUNTS < 3] / 3).sum() + (2 - COUNTS[COUNTS // 3 == 1] / 3).sum()
    real = prepare_module.candidates

    def start(share: float, needed: float | None) -> tuple[int, int]:
        def stand_in(*given: Any) -> Any:
            extra, own, one_in = real(*given)
            return extra, own if needed is None else needed, one_in

        monkeypatch.setattr(prepare_module, "candidates", stand_in)
        made = prepare(cells(COUNTS, KEYS), KEY, base=3, small_only=False, empty_share=share)
        return made.problem.start_share

    assert start(0.0, None) == (total, total)
    assert start(0.1, None) == (total - 3 * int(shows / 9), total)
    assert start(0.8, None) == (total // 2, total)
    # Where cells beside single people need more than the share, the start goes below a half.
    needed = total // 5
    assert start(0.4, needed) == (total - 3 * needed, total)
    assert total - 3 * needed < total // 2


@pytest.mark.parametrize("small_only", [False, True])
@pytest.mark.parametrize("base", [2, 3, 5])
def test_a_report_states_what_first_and_later_numbers_leave(base: int, small_only: bool) -> None:
    method = ProtectedPopulation(base=base, cells="small" if small_only else "all", sweeps=1)
    stated = method.protect(cells(COUNTS, KEYS), KEY).public.releases()
    assert stated["odds"] == 0.5
    for words, wide in (("first", False), ("later", True)):
        support = Support(base, small_only=small_only, wide=wide)
        for number in (0, base, 2 * base):
            low, high = support.bounds(number)
            assert stated["left"][words][str(number)] == [int(low), int(high)]


def test_bounds_of_parts_and_of_their_sum_are_those_of_all_pairs_that_fit() -> None:
    support = Support(3)
    first, both = town((2,), zeros=False), town((2, 2), zeros=False)
    for one, two, total in product(range(3, 13, 3), range(3, 13, 3), range(0, 22, 3)):
        earlier = FinestCells(first, [[0]], [total])
        later_ = FinestCells(both, [[0, 0], [0, 1]], [one, two])
        ranges = [range(int(a), int(b) + 1) for a, b in zip(*support.finest(later_), strict=True)]
        low, high = (int(x[0]) for x in support.bounds(np.array([total])))
        fit = [(a, b) for a, b in product(*ranges) if low <= a + b <= high]
        found = together(earlier, later_, support)
        assert found.changed == (not fit)
        if fit:
            least, most = np.min(fit, axis=0).tolist(), np.max(fit, axis=0).tolist()
            assert (found.low.tolist(), found.high.tolist()) == (least, most)


def test_remembered_offsets_stand_beside_their_cells() -> None:
    rows = MEMORY.dataset, MEMORY.codes, MEMORY.counts, MEMORY.keys
    assert MEMORY.offset is not None
    with pytest.raises(InputError, match="ascending order"):
        RememberedCells(*rows, MEMORY.offset[1:])
    turned = (MEMORY.dataset, MEMORY.codes[:, ::-1], MEMORY.counts[::-1], rows[3][::-1])  # type: ignore[index]
    with pytest.raises(InputError, match="ascending order"):
        RememberedCells(*turned, MEMORY.offset)
