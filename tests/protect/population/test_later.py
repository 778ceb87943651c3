"""Later releases: movement does not tell who changed, and k releases leave what enumeration says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from lustrum.model import InputError
from lustrum.protect.population.cells import FinestCells
from lustrum.protect.population.later.before import EarlierRelease, Redraw
from lustrum.protect.population.later.continued import FEWEST_SMALL
from lustrum.protect.population.later.differences import Differences, NumberChange, differences
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.prepare import Prepared, prepare
from lustrum.protect.population.support import Support
from lustrum.protect.population.together import carried_bounds, together
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


def test_the_share_drawn_again_is_doubled_until_there_are_decoys() -> None:
    """The steps are few, so that a share says little about the numbers that could not be kept."""
    before = EarlierRelease.of(MEMORY, [0, 1, 2], KEY)
    redraw = Redraw(3, False, True, refresh=0.05, change_odds=0.5)
    assert before.share(redraw, 100.0, 0) == 0.05
    assert before.share(redraw, 100.0, 2) == 0.05
    assert before.share(redraw, 100.0, 3) == 0.1
    assert before.share(redraw, 100.0, 6) == 0.2
    assert before.share(redraw, 100.0, 45) == 1.0
    assert before.share(redraw, 0.0, 1) == 1.0
    assert [before.decoys(redraw, kind, 0) for kind in range(8)] == [0] * 8
    drawn = [before.decoys(redraw, kind, 100) for kind in range(8)]
    assert min(drawn) >= 100
    assert max(drawn) <= 200
    assert len(set(drawn)) > 4


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


def test_differences_are_counted_by_their_steps() -> None:
    dataset = town((2, 2), zeros=False)
    keys = np.array([1, 2, 3, 4], dtype=np.uint64)
    at = np.array(list(product(range(2), range(2)))).T
    one = FinestCells(dataset, at, [0, 3, 12, 3], keys)
    two = FinestCells(dataset, at, [3, 3, 18, 0], keys + np.array([0, 0, 5, 5], dtype=np.uint64))
    found = differences(one, two, 3)
    assert (found.cells, found.changed, found.certain) == (3, 2, 1)
    assert [(s.before, s.after, s.cells, s.changed) for s in found.steps] == [
        (0, 3, 1, 0),
        (3, 0, 1, 1),
        (9, 9, 1, 1),
    ]
    assert differences(None, two, 3) == Differences()


def test_kinds_of_cells_that_changed_too_often_are_named() -> None:
    steps = [NumberChange(0, 3, 10, 5), NumberChange(3, 0, 10, 6), NumberChange(0, 6, 2, 2)]
    apart = Differences(22, 13, 2, tuple(steps))
    # Cells that moved by two steps are counted apart: they have certainly changed.
    assert apart.beyond(0.5, 3) == [steps[1]]
    assert apart.beyond(0.4, 3) == steps[:2]


def test_a_release_reveals_who_changed_if_a_kind_or_all_cells_are_beyond_the_odds() -> None:
    few = NumberChange(3, 0, 19, 19)
    assert Differences(19, 19, 0, (few,)).reveals(0.5, 3) is None, "too few to speak of odds"
    kind = NumberChange(0, 3, 20, 11)
    others = NumberChange(3, 0, 100, 5)
    assert Differences(120, 16, 0, (kind, others)).reveals(0.5, 3) == (20, 11)
    assert Differences(120, 16, 0, (kind, others)).reveals(0.55, 3) is None
    # All cells together count those that moved by two steps, which have certainly changed.
    jumps = NumberChange(0, 6, 20, 20)
    assert Differences(39, 30, 20, (few, jumps)).reveals(0.5, 3) == (39, 30)
    assert Differences(139, 24, 20, (jumps, others)).reveals(0.5, 3) is None
