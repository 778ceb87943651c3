"""Later releases: movement does not tell who changed, and k releases leave what enumeration says."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InputError
from lustrum.model.finest import FinestCells
from lustrum.protect.population import prepare as prepare_module
from lustrum.protect.population.channel import nearest_rates
from lustrum.protect.population.later import FEWEST_SMALL
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.prepare import Prepared, prepare
from lustrum.protect.population.public import PublicReport
from lustrum.protect.population.start import cell_numbers
from lustrum.protect.population.support import Support
from lustrum.protect.population.together import (
    Differences,
    NumberChange,
    carried_bounds,
    differences,
    together,
)
from protect.population.worlds import KEY, dense, town

SIZES = (20, 10, 6)
DATASET = town(SIZES, zeros=False)
RNG = np.random.default_rng(29)
COUNTS = RNG.choice([0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 7], SIZES)
KEYS = RNG.integers(1, 2**62, SIZES).astype(np.uint64) * (COUNTS > 0)


def cells(counts: np.ndarray, keys: np.ndarray) -> FinestCells:
    at = np.nonzero(counts)
    return FinestCells(DATASET, np.stack(at), counts[at], keys[at])


def memory(counts: np.ndarray, keys: np.ndarray, seed: int = 1) -> FinestCells:
    """Every cell at one of its two numbers, empty ones at 0 or 3."""
    up = np.random.default_rng(seed).random(SIZES) < 0.35
    shown = counts // 3 * 3 + 3 * (up & ((counts % 3 > 0) | (counts == 0)))
    at = np.nonzero((counts > 0) | (shown > 0) | (np.arange(SIZES[2]) < 2))
    return FinestCells(DATASET, np.stack(at), shown[at], keys[at])


MEMORY = memory(COUNTS, KEYS)
LISTED = dense(FinestCells(DATASET, MEMORY.codes, np.ones(len(MEMORY)))) > 0


def later(
    change: Callable[[np.ndarray, np.ndarray], None], key: bytes = KEY, **words: float
) -> tuple[Prepared, np.ndarray, np.ndarray]:
    """A later release before its search, and its counts and keys."""
    counts, keys = COUNTS.copy(), KEYS.copy()
    change(counts, keys)
    said = {"base": 3, "small_only": False, "empty_share": 0.2, **words}
    made = prepare(cells(counts, keys), key, previous=MEMORY, **said)  # type: ignore[arg-type]
    return made, counts, keys


def shown(made: Prepared) -> np.ndarray:
    """What all cells start with."""
    out = made.shown.copy()
    out[made.problem.movable] = made.problem.low + 3 * made.problem.up
    return dense(FinestCells(DATASET, made.every.codes, out))


def movable(made: Prepared) -> np.ndarray:
    """Which cells the search may move."""
    codes = made.every.codes[:, made.problem.movable]
    return dense(FinestCells(DATASET, codes, np.ones(codes.shape[1]))) > 0


def one_correction(counts: np.ndarray, keys: np.ndarray) -> None:
    keys[0, 0, 0] += np.uint64(1) if counts[0, 0, 0] else np.uint64(0)
    at = tuple(np.argwhere(counts == 1)[0])
    keys[at] += np.uint64(1)


def test_what_moves_does_not_depend_on_who_changed() -> None:
    """Ones become twos, twos ones, and others are replaced: the same cells move to the same numbers."""

    def exchange(counts: np.ndarray, keys: np.ndarray) -> None:
        chosen = np.random.default_rng(4).random(SIZES) < 0.2
        small = chosen & (counts > 0) & (counts < 3)
        counts[small] = 3 - counts[small]
        keys[chosen & (counts > 0)] += np.uint64(3)

    few, *_ = later(one_correction)
    many, *_ = later(exchange)
    assert many.changed > 50 * few.changed > 0
    assert np.array_equal(shown(few), shown(many))
    assert np.array_equal(movable(few)[LISTED], movable(many)[LISTED])


def test_cells_drawn_again_are_a_share_and_the_others_keep_their_numbers() -> None:
    before = dense(MEMORY)
    for share in (0.05, 0.3, 1.0):
        made, *_ = later(one_correction, refresh=share)
        moves = movable(made)
        two = (made.every.counts % 3 > 0) | (made.every.counts == 0)
        expected, size = share * two.sum(), int(two.sum())
        assert abs(moves.sum() - expected) <= 5 * np.sqrt(size * share * (1 - share)) + 0.5
        assert np.array_equal(shown(made)[~moves], before[~moves])


def test_empty_cells_ones_and_twos_move_alike() -> None:
    """Over 200 keys; a right method fails this less than once in a million runs (5.2 standard errors)."""
    moved, drawn = np.zeros(3), np.zeros(3)
    before = dense(MEMORY)
    for number in range(200):
        made, counts, _ = later(one_correction, KEY + bytes([number % 256, number // 256]))
        after = shown(made)
        for count in range(3):
            # Beside what a cell shows: cells at 0 alone.
            here = LISTED & (counts == count) & (before == 0)
            drawn[count] += here.sum()
            moved[count] += (here & (after > 0)).sum()
    rate = moved.sum() / drawn.sum()
    assert rate > 0.005
    assert (np.abs(moved / drawn - rate) < 5.2 * np.sqrt(rate / drawn)).all()


def test_numbers_that_cannot_be_kept_have_decoys_on_their_side() -> None:
    """Twos that show 0 become threes; ones and fours that show more become empty or threes."""
    before = dense(MEMORY)
    others = np.random.default_rng(6).random(SIZES) < 0.15

    def grow(counts: np.ndarray, keys: np.ndarray) -> None:
        # Many cells have other records and could keep their numbers: these are no decoys.
        keys[others & (counts > 0)] += np.uint64(9)
        at = np.argwhere((counts == 2) & (before == 0))[:30]
        counts[tuple(at.T)] = 3
        keys[tuple(at.T)] += np.uint64(1)
        at = np.argwhere((counts == 4) & (before == 6))[:10]
        counts[tuple(at.T)] = 3
        keys[tuple(at.T)] += np.uint64(1)

    for odds in (0.5, 0.25):
        made, _, keys = later(grow, change_odds=odds)
        fixed = ~movable(made)
        after, changed = shown(made), keys != KEYS
        # The search moves none of these, so that it cannot undo a decoy.
        for one, two in ((0, 3), (6, 3)):
            step = fixed & (before == one) & (after == two)
            real, decoys = int((step & changed).sum()), int((step & ~changed).sum())
            assert real == {0: 30, 6: 10}[one]
            assert (1 - odds) / odds * real <= decoys <= 2 * (1 - odds) / odds * real + 1


def test_a_cell_moves_two_steps_only_where_its_count_left_no_other_number() -> None:
    def jump(counts: np.ndarray, keys: np.ndarray) -> None:
        counts[5] += RNG.integers(0, 6, counts[5].shape)
        keys[5] += np.uint64(1)

    made, counts, _ = later(jump)
    before, after = dense(MEMORY), shown(made)
    low = counts // 3 * 3
    high = np.where((counts % 3 > 0) | (counts == 0), low + 3, low)
    far = np.abs(after - before) > 3
    assert far.any()
    assert ((low - before > 3) | (before - high > 3))[far].all()


def test_the_same_records_are_the_same_release() -> None:
    made, *_ = later(lambda *_: None, refresh=1.0)
    assert not made.problem.movable.any()
    assert np.array_equal(shown(made), dense(MEMORY))


def test_with_base_two_no_cell_above_it_is_a_decoy() -> None:
    """A cell that showed 2 and 4 would hold exactly 3."""
    counts, keys = COUNTS.copy(), KEYS.copy()
    at = np.nonzero(counts)
    low = counts // 2 * 2
    before = FinestCells(DATASET, np.stack(at), low[at], keys[at])
    one_correction(counts, keys)
    made = prepare(
        cells(counts, keys),
        KEY,
        base=2,
        small_only=False,
        empty_share=0.2,
        previous=before,
        refresh=1.0,
    )
    assert made.problem.movable.any()
    assert (made.problem.low == 0).all()


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("base", [3, 5])
def test_what_releases_leave_is_what_enumeration_says(base: int, share: float) -> None:
    support = Support(base, empty_shown=share > 0)

    def numbers(count: int) -> set[int]:
        low = count // base * base
        two = count > low or (count == 0 and share > 0)
        return {low, low + base} if two else {low}

    dataset = town((2,), zeros=False)
    for seen in combinations_with_replacement(range(0, 4 * base, base), 3):
        left = [n for n in range(6 * base) if set(seen) <= numbers(n)]
        bounds = None
        last = None
        changed = 0
        for number in seen:
            own = FinestCells(dataset, [[0]], [number], np.array([7], dtype=np.uint64))
            if last is None:
                bounds = support.finest(own)
            else:
                changed += together(last, own, support, bounds).changed
                bounds = carried_bounds(last, own, support, bounds)
            last = own
        assert bounds is not None
        if left:
            assert (int(bounds[0][0]), int(bounds[1][0])) == (min(left), max(left)), seen
            assert changed == 0
        else:
            assert changed > 0, seen
    said = ProtectedPopulation(base=base, empty_share=share, sweeps=1)
    public = said.protect(cells(COUNTS, KEYS), KEY).public.releases()
    assert public["odds"] == 0.5
    for words, (least, most) in public["left"].items():
        seen_numbers = {int(word) for word in words.split(" and ")}
        left = [n for n in range(6 * base) if seen_numbers <= numbers(n)]
        assert [least, most] == [min(left), max(left)], words


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


def test_over_twelve_releases_cells_that_differ_mostly_kept_their_records() -> None:
    rng = np.random.default_rng(12)
    method = ProtectedPopulation(sweeps=1, extra_tables=0, max_variables=2, empty_share=0.2)
    counts, keys = COUNTS.copy(), KEYS.copy()
    before = method.protect(cells(counts, keys), KEY)
    found = Differences()
    ever, shown_both = np.zeros(SIZES, dtype=bool) | (counts > 0), np.zeros(SIZES, dtype=bool)
    for _ in range(11):
        for place in rng.integers(0, SIZES, (20, 3)):
            at = tuple(place)
            counts[at] = max(counts[at] + rng.choice([-1, 1]), 0)
            keys[at] = (keys[at] + np.uint64(1)) if counts[at] else 0
        ever |= counts > 0
        after = method.protect(cells(counts, keys), KEY, previous=before.memory)
        one, two = dense(before.cells), dense(after.cells)
        low, high = method.support.bounds(two)
        assert ((low <= counts) & (counts <= high)).all()
        apart = after.agency.differences
        found = Differences(found.cells + apart.cells, found.changed + apart.changed)
        shown_both |= one != two
        before = after
    assert found.cells > 100
    assert found.changed <= 0.5 * found.cells
    # Movement proves nobody: of the cells that moved a fair share were empty all the time.
    assert (shown_both & ~ever).sum() >= 0.1 * shown_both.sum()


@given(
    st.lists(
        st.tuples(*[st.sampled_from([0, 0, 3, 6, 9, 12, 18])] * 2, st.booleans()),
        min_size=6,
        max_size=6,
    )
)
def test_differences_are_counted_by_their_steps(
    moves: list[tuple[int, int, bool]],
) -> None:
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


# --- what single lines of later releases decide -----------------------------------------------------


def test_each_class_of_numbers_has_decoys_of_its_own() -> None:
    """Cells of 7 that show 6 become 9; cells between 9 and 12 that move say nothing of these."""
    counts = np.random.default_rng(3).choice([7, 8, 10, 11], SIZES)
    keys = np.arange(1, counts.size + 1, dtype=np.uint64).reshape(SIZES)
    low = counts // 3 * 3
    up = np.random.default_rng(5).random(SIZES) < 0.5
    before = cells(np.where(up, low + 3, low), keys)
    forced = np.argwhere((counts == 7) & ~up)[:40]
    now, new = counts.copy(), keys.copy()
    now[tuple(forced.T)] = 9
    new[tuple(forced.T)] += np.uint64(10**6)
    made = prepare(cells(now, new), KEY, previous=before, base=3, small_only=False, empty_share=0.2)
    fixed, after = ~movable(made), shown(made)
    step = fixed & (dense(before) == 6) & (after == 9)
    assert int((step & (new != keys)).sum()) == 40
    assert 40 <= int((step & (new == keys)).sum()) <= 81
    assert not (fixed & (dense(before) == 9) & (after == 12)).any()


def test_decoys_are_found_where_nearly_all_cells_show_their_upper_number() -> None:
    """Few cells can move up then, however many there are in other classes: more of them are drawn again."""
    counts = np.random.default_rng(3).choice([1, 2, 4, 5], SIZES)
    keys = np.arange(1, counts.size + 1, dtype=np.uint64).reshape(SIZES)
    up = np.random.default_rng(5).random(SIZES) < 0.9
    before = cells(np.where(up, counts // 3 * 3 + 3, counts // 3 * 3), keys)
    empty = (counts < 3) & ~up  # these show 0, and are in the memory nevertheless
    everything = np.nonzero(counts)
    before = FinestCells(DATASET, np.stack(everything), dense(before)[everything], keys[everything])
    forced = np.argwhere((counts == 2) & empty)[:12]
    now, new = counts.copy(), keys.copy()
    now[tuple(forced.T)] = 3
    new[tuple(forced.T)] += np.uint64(10**6)
    made = prepare(cells(now, new), KEY, previous=before, base=3, small_only=False, empty_share=0.2)
    step = ~movable(made) & (dense(before) == 0) & (shown(made) == 3)
    assert int((step & (new != keys)).sum()) == 12
    assert int((step & (new == keys)).sum()) >= 12


def test_cells_that_are_held_show_their_upper_number_and_are_not_drawn_again() -> None:
    places = np.argwhere((COUNTS == 1) | (COUNTS == 4))[::3]
    held = cell_numbers(DATASET, places.T)
    for change in (one_correction, lambda *_: None):
        made, counts, _ = later(change, refresh=1.0, held=held)
        at = tuple(places.T)
        assert not movable(made)[at].any()
        assert (shown(made)[at] == counts[at] // 3 * 3 + 3).all()
        # Others go on as before: those that the same records leave alone, and most that are drawn.
        others = np.ones(SIZES, dtype=bool)
        others[at] = False
        plain, *_ = later(change, refresh=1.0)
        assert (movable(made) == movable(plain))[others].mean() > 0.75
        assert movable(made)[others].any() == (change is one_correction)
    # Nor are they decoys of others that cannot keep their numbers.
    before = dense(MEMORY)
    places = np.argwhere((COUNTS > 3) & (COUNTS < 6) & (before == 6))

    def shrink(counts: np.ndarray, keys: np.ndarray) -> None:
        at = tuple(places[::4].T)
        counts[at] = 3
        keys[at] += np.uint64(1)

    stays = np.delete(places, np.s_[::4], axis=0)
    made, *_ = later(shrink, held=cell_numbers(DATASET, stays[::2].T))
    assert (shown(made)[tuple(stays[::2].T)] == 6).all()
    assert not movable(made)[tuple(stays[::2].T)].any()
    moved = ~movable(made) & (before == 6) & (shown(made) == 3)
    assert moved[tuple(stays[1::2].T)].any()
    # A cell with a single number has no upper one, held or not.
    exact = np.argwhere(COUNTS == 3)
    made, *_ = later(one_correction, held=cell_numbers(DATASET, exact.T))
    assert (shown(made)[tuple(exact.T)] == 3).all()


def test_as_many_empty_cells_may_show_somebody_as_in_a_first_release() -> None:
    said = {"base": 3, "small_only": False, "empty_share": 0.1}
    first = prepare(cells(COUNTS, KEYS), KEY, **said)  # type: ignore[arg-type]
    wanted = int((first.every.counts == 0).sum())
    empty = np.argwhere(COUNTS == 0).T
    chosen = np.isin(cell_numbers(DATASET, empty), cell_numbers(DATASET, first.every.codes))
    few = empty[:, ~chosen][:, :5]  # which this release would not have chosen
    waiting = FinestCells(
        DATASET,
        np.concatenate([MEMORY.codes[:, MEMORY.keys > 0], few], axis=1),
        np.concatenate([MEMORY.counts[MEMORY.keys > 0], np.zeros(5, dtype=int)]),
        np.concatenate([MEMORY.keys[MEMORY.keys > 0], np.zeros(5, dtype=np.uint64)]),
    )
    for memory_of in (MEMORY, cells(COUNTS, KEYS), waiting):
        made = prepare(cells(COUNTS, KEYS), KEY, previous=memory_of, **said)  # type: ignore[arg-type]
        numbers = cell_numbers(DATASET, made.every.codes)
        assert len(set(numbers.tolist())) == len(made.every)
        showing = int(((dense(memory_of) > 0) & (COUNTS == 0)).sum())
        assert int((made.every.counts == 0).sum()) == max(wanted, showing)
        assert made.changed == 0
        assert made.unchanged == int((COUNTS > 0).sum())


def test_without_a_share_of_empty_cells_none_is_listed_when_people_leave() -> None:
    def leave(counts: np.ndarray, keys: np.ndarray) -> None:
        at = tuple(np.argwhere(counts == 1)[:5].T)
        counts[at], keys[at] = 0, 0

    made, counts, _ = later(leave, empty_share=0.0)
    assert (made.every.counts > 0).all()
    assert len(made.every) == int((counts > 0).sum())


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


def test_cells_above_the_base_are_decoys_only_where_enough_counts_are_left() -> None:
    made, *_ = later(one_correction, refresh=1.0)
    assert (made.problem.low > 0).any(), "two counts are left where both numbers were shown"
    made, *_ = later(one_correction, refresh=1.0, min_left=3)
    assert made.problem.movable.any()
    assert (made.problem.low == 0).all()


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
    # Sums are kept also where parts were to be held at their upper numbers.
    held = cell_numbers(DATASET, np.argwhere(COUNTS > 0).T)
    made = refined(COUNTS, KEYS, before, held=held)
    assert np.array_equal(shown(made).sum(axis=2), dense(before))


def test_with_more_variables_a_share_is_drawn_again_as_soon_as_one_record_changed() -> None:
    _, before = parts(COUNTS, KEYS)
    sums = COUNTS.sum(axis=2)
    at = tuple(np.argwhere(COUNTS == 1)[0])
    replaced = KEYS.copy()
    replaced[at] += np.uint64(1)
    gone_counts, gone_keys = COUNTS.copy(), KEYS.copy()
    lone = tuple(np.argwhere(sums == sums[sums > 0].min())[0])
    gone_counts[lone], gone_keys[lone] = 0, 0
    for counts, keys in ((COUNTS, replaced), (gone_counts, gone_keys)):
        for share in (0.1, 0.5):
            made = refined(counts, keys, before, refresh=share)
            size = int((counts.sum(axis=2) > 0).sum())
            drawn = len(free_parents(made) & {tuple(p) for p in np.argwhere(counts.sum(axis=2))})
            assert abs(drawn - share * size) <= 5 * np.sqrt(size * share * (1 - share))
            kept = np.ones(SIZES[:2], dtype=bool)
            for parent in free_parents(made):
                kept[parent] = False
            kept &= counts.sum(axis=2) > 0
            assert np.array_equal(shown(made).sum(axis=2)[kept], dense(before)[kept])


def test_a_number_that_parts_cannot_add_up_to_is_free() -> None:
    """All parts become 3, so that their sum has one number, above or below the one that was shown."""
    _, before = parts(COUNTS, KEYS)
    for wanted, inside in ((6, 1), (9, 1), (3, 3)):
        counts, keys = COUNTS.copy(), KEYS.copy()
        own = dense(before)
        target = tuple(np.argwhere(own == wanted)[0])
        counts[target], keys[target] = 0, 0
        counts[target][:inside] = 3
        keys[target][:inside] = 5
        made = refined(counts, keys, before)
        assert (shown(made)[target][:inside] == 3).all()
        inner = np.all(target == made.every.codes[:2].T, axis=1)
        inside_problem = inner[made.problem.movable]
        assert (made.problem.group[inside_problem] < 0).all()
        assert (made.every.counts[inner & made.problem.movable] == 0).all()


def test_more_is_drawn_again_beside_sums_that_cannot_be_kept() -> None:
    """About a quarter of what is drawn again moves, and twice as many as the decoys have to."""
    counts, keys = COUNTS.copy(), KEYS.copy()
    _, before = parts(COUNTS, KEYS)
    places = [tuple(p) for p in np.argwhere(dense(before) == 6)[:6]]
    for place in places:
        counts[place], keys[place] = 3, 5
    made = refined(counts, keys, before, refresh=0.01, change_odds=0.5)
    # Six of 200 sums need 6 to 12 decoys, 12 to 24 movers, 48 to 96 sums; shares are doubled from a hundredth.
    free = len(free_parents(made) - {*places})
    assert 40 <= free <= 140
    replaced = KEYS.copy()
    replaced[tuple(np.argwhere(COUNTS == 1)[0])] += np.uint64(1)
    unchanged = refined(COUNTS, replaced, before, refresh=0.01, change_odds=0.5)
    assert len(free_parents(unchanged)) < 10


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
    assert start(0.1, needed) == (total - 3 * needed, total)
    assert total - 3 * needed < total // 2


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


@pytest.mark.parametrize("small_only", [False, True])
@pytest.mark.parametrize("base", [2, 3, 5])
def test_a_report_names_every_pair_of_numbers_that_one_count_can_show(
    base: int, small_only: bool
) -> None:
    support = Support(base, small_only=small_only)
    method = {"method": "protected-population", "change_odds": 0.25}
    rates = nearest_rates(base, base)
    public = PublicReport(method, support, 1.0, {1: 1.0}, {1: 1.0}, rates, rates)

    def shows(count: int) -> set[int]:
        low = count // base * base
        if small_only and count >= base:
            return {count}
        return {low, low + base} if count > low or count == 0 else {low}

    stated = public.releases()
    assert stated["odds"] == 0.25
    counts = range(5 * base)
    for number in (0, base, 2 * base):
        left = [n for n in counts if number in shows(n)]
        assert stated["left"][str(number)] == [min(left), max(left)]
    pairs = {}
    for number in (0, base):
        left = [n for n in counts if {number, number + base} <= shows(n)]
        # One count alone would be given away, so that no such cell shows both.
        if len(left) > 1:
            pairs[f"{number} and {number + base}"] = [min(left), max(left)]
    assert {words: ends for words, ends in stated["left"].items() if "and" in words} == pairs
