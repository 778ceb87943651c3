"""Where a search begins and what it may move: draws at their limits, plain second versions, kept numbers."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any

import numpy as np
import pytest

from lustrum.model import Dataset, InputError
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.model.keys import scramble
from lustrum.protect.population import prepare as prepare_module
from lustrum.protect.population import start
from lustrum.protect.population.later.before import Kept
from lustrum.protect.population.prepare import Prepared, _start_groups, prepare
from lustrum.protect.population.public import SEARCH
from lustrum.protect.population.siblings import CANDIDATES
from lustrum.protect.population.start import (
    Options,
    cell_numbers,
    derived,
    empty_candidates,
    empty_start,
    options,
    start_up,
)
from lustrum.protect.population.support import Support
from lustrum.protect.population.together import Together, together
from protect.population.worlds import KEY, cells_of, town

HALF = 2**32


def drawing(monkeypatch: pytest.MonkeyPatch, *words: int) -> None:
    """Let the next draws be the upper halves of these words."""
    given = np.array(words, dtype=np.uint64) << np.uint64(32)
    monkeypatch.setattr(start, "scramble", lambda key, own: given[: own.size])


def test_keys_of_purposes_are_codes_of_the_key() -> None:
    for purpose in ("start", "empty cells"):
        code = hmac.new(KEY, b"lustrum population 1 " + purpose.encode(), hashlib.sha256).digest()
        assert derived(KEY, purpose) == code[:16]


@pytest.mark.parametrize("base", [2, 3, 5])
def test_two_adjacent_multiples_are_open_to_every_count(base: int) -> None:
    counts = np.arange(30)
    every, small = options(counts, base, False), options(counts, base, True)
    for count in range(30):
        low = count // base * base
        assert (every.low[count], every.residue[count]) == (low, count - low)
        assert every.movable[count] == (count % base > 0)
        moved = 0 < count < base
        assert small.movable[count] == moved
        assert small.low[count] == (0 if moved else count)
        assert small.residue[count] == (count if moved else 0)
    assert (every.step, small.step) == (base, base)


def test_numbers_of_cells_count_all_combinations() -> None:
    dataset = town((4, 3, 2))
    codes = np.array(list(product(range(4), range(3), range(2)))).T
    assert cell_numbers(dataset, codes).tolist() == list(range(24))


@pytest.mark.parametrize("shrink", [(1, 1), (2, 3), (7, 9)])
def test_cells_start_at_their_upper_number_exactly_as_often_as_unbiased_totals_ask_for(
    monkeypatch: pytest.MonkeyPatch, shrink: tuple[int, int]
) -> None:
    """Of 2**32 words those below the probability lead up, and no other."""
    dataset = town((4,), zeros=False)
    for base in (2, 3, 8):
        for residue in range(base):
            limit = ceil(Fraction(residue * shrink[0] * HALF, base * shrink[1]))
            words = [max(limit - 1, 0), limit, 0, HALF - 1]
            drawing(monkeypatch, *words)
            cells = FinestCells(dataset, np.arange(4)[None], np.full(4, base + residue))
            choice = options(cells.counts, base, False)
            found = start_up(cells, choice, KEY, shrink)
            assert found.tolist() == [residue > 0, False, residue > 0, False]


def test_the_keys_of_records_decide_where_a_cell_starts_and_its_number_where_there_are_none() -> (
    None
):
    cells = cells_of(town((4, 3, 2)), np.arange(24).reshape(4, 3, 2))
    plain = FinestCells(cells.dataset, cells.codes, cells.counts)
    choice = options(cells.counts, 5, False)
    for own, words in (
        (cells, cells.keys),
        (plain, cell_numbers(cells.dataset, cells.codes)),
    ):
        assert words is not None
        upper = (scramble(derived(KEY, "start"), words) >> np.uint64(32)).tolist()
        expected = [5 * u < r * HALF for u, r in zip(upper, choice.residue.tolist(), strict=True)]
        assert start_up(own, choice, KEY).tolist() == expected
        assert start_up(own, choice, KEY, (1, 1)).tolist() == expected


def test_one_candidate_in_so_many_starts_by_showing_somebody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset, codes = town((4,), zeros=False), np.arange(4)[None]
    for one_in in (1, 2, 3, 4, 5):
        limit = ceil(Fraction(HALF, one_in))
        drawing(monkeypatch, 0, limit - 1, min(limit, HALF - 1), HALF - 1)
        found = empty_start(dataset, codes, KEY, one_in).tolist()
        assert found == [True, True, one_in == 1, one_in == 1]
    monkeypatch.setattr(start, "scramble", scramble)
    words = scramble(derived(KEY, "empty start"), np.arange(4, dtype=np.uint64)) >> np.uint64(32)
    assert empty_start(dataset, codes, KEY, 3).tolist() == [3 * int(w) < HALF for w in words]


def plain_candidates(cells: FinestCells, wanted: int, key: bytes) -> list[tuple[int, ...]]:
    """The candidates among the empty cells, one draw after the other."""
    dataset = cells.dataset
    sizes = [len(v.codes) for v in dataset.variables]
    changeable = [v for v, size in enumerate(sizes) if size > 1]

    def drawn(purpose: str, word: int) -> int:
        return int(scramble(derived(key, purpose), np.array([word], dtype=np.uint64))[0])

    def number(codes: tuple[int, ...]) -> int:
        place = 0
        for size, code in zip(sizes, codes, strict=True):
            place = place * size + code
        return place % 2**64

    own = [
        tuple(int(c) for c in column)
        for column, count in zip(cells.codes.T, cells.counts, strict=True)
        if count > 0
    ]
    keys = [
        number(codes) if cells.keys is None else int(cells.keys[place])
        for codes, place in zip(own, np.flatnonzero(cells.counts > 0), strict=True)
    ]
    if not own or wanted <= 0 or not changeable:
        return []
    streams = [drawn("empty cells", key) for key in keys]
    found: dict[tuple[int, ...], int] = {}
    for attempt in range(8):
        fresh = set()
        for codes, stream in zip(own, streams, strict=True):
            rolled = list(codes)
            for change in range(len(changeable)):
                word = drawn(f"neighbour {attempt} {change}", stream)
                other = drawn(f"lender {attempt} {change}", stream)
                which = changeable[(word % HALF) * len(changeable) // HALF]
                lender = own[(other % HALF) * len(own) // HALF]
                if (word >> 32) % 16 == 0:
                    rolled[which] = (other >> 32) * sizes[which] // HALF
                else:
                    rolled[which] = lender[which]
                if (word >> 36) % 8:
                    break
            at = np.array(rolled)[:, None]
            if possible_cells(dataset, at)[0] and tuple(rolled) not in own:
                fresh.add(tuple(rolled))
        found |= {one: drawn("empty rank", number(one)) for one in fresh - found.keys()}
        if len(found) >= wanted:
            break
    return sorted(found, key=lambda one: found[one])[:wanted]


@pytest.mark.parametrize("wanted", [0, 1, 5, 12, 100])
@pytest.mark.parametrize("keyed", [False, True])
def test_candidates_among_the_empty_cells_are_drawn_as_the_manual_says(
    wanted: int, keyed: bool
) -> None:
    rng = np.random.default_rng(wanted)
    for sizes in ((6, 5, 1, 4), (4, 3, 2)):
        counts = rng.poisson(0.25, sizes)
        counts[0, 0] = 2
        cells = cells_of(town(sizes, zeros=sizes[0] == 4), counts)
        if not keyed:
            cells = FinestCells(cells.dataset, cells.codes, cells.counts)
        found = empty_candidates(cells, wanted, KEY)
        assert [tuple(column) for column in found.T.tolist()] == plain_candidates(
            cells, wanted, KEY
        )


def test_there_are_no_candidates_without_anybody_or_anything_to_change() -> None:
    dataset = town((4, 3))
    nobody = FinestCells(dataset, np.zeros((2, 0), dtype=int), np.zeros(0, dtype=int))
    assert empty_candidates(nobody, 5, KEY).shape == (2, 0)
    empty = FinestCells(dataset, np.array([[0, 1], [1, 1]]), np.array([0, 0]))
    assert empty_candidates(empty, 5, KEY).shape == (2, 0)
    single = Dataset.from_mapping(
        {"dataset": {"name": "one"}, "variables": [{"name": "v", "codes": ["a"]}]}
    )
    assert empty_candidates(FinestCells(single, np.zeros((1, 1), int), [4]), 5, KEY).shape == (1, 0)
    # Cells that are listed and hold nobody are neither lenders nor taken.
    rng = np.random.default_rng(5)
    some = cells_of(town((6, 5, 4), zeros=False), rng.poisson(0.3, (6, 5, 4)))
    listed = FinestCells(
        some.dataset, some.codes, some.counts * (np.arange(len(some)) % 3 > 0), some.keys
    )
    found = [tuple(c) for c in empty_candidates(listed, 40, KEY).T.tolist()]
    assert found == plain_candidates(listed, 40, KEY)


def test_the_share_of_empty_cells_is_kept_in_thousandths_and_never_fewer() -> None:
    exact = ((k / 1000, k) for k in (0, 1, 7, 29, 57, 70, 111, 123, 145, 201, 290, 419, 499, 500))
    for share, expected in (*exact, (0.0004, 1), (0.1231, 124), (0.4999, 500)):
        made = prepare(PLAIN, KEY, base=3, small_only=False, empty_share=share)
        assert made.problem.empty_share == (expected, 1000)


def divided(sizes: tuple[int, ...]) -> Dataset:
    """The town, where the last code of v1 goes with the last one of v2 alone."""
    source = dict(town(sizes, zeros=False).source)
    source["structural_zeros"] = [
        {"reason": "Only the last.", "where": {"v1": ["13"], "v2": ["20", "21"]}}
    ]
    return Dataset.from_mapping(source)


def second(
    first: np.ndarray, later: np.ndarray, shown: Callable[[Any], Any], seed: int
) -> tuple[FinestCells, FinestCells]:
    """A memory of counts by v0 and v1, and later cells by one more variable or the same ones.

    The first row kept its records, the second one has others, and the last one lost all of them.
    """
    rng = np.random.default_rng(seed)
    keys = rng.integers(1, 2**60, later.shape).astype(np.uint64) * (later > 0)
    summed = keys if later.ndim == 2 else keys.sum(axis=2, dtype=np.uint64)
    summed = summed.copy()
    summed[1] += np.uint64(11)
    summed[(first > 0) & (summed == 0)] = 5
    summed[first == 0] = 0
    dataset = town(first.shape, zeros=False)
    # Cells that were empty and showed 0 need not be remembered.
    at = np.nonzero((first > 0) | (shown(first) > 0) | (np.arange(first.shape[1]) == 1))
    memory = FinestCells(dataset, np.stack(at), shown(first)[at], summed[at])
    at = np.nonzero(later)
    own = divided(later.shape) if later.ndim == 3 else town(later.shape, zeros=False)
    cells = FinestCells(own, np.stack(at), later[at], keys[at])
    return cells, memory


def up_to_three(counts: Any) -> Any:
    """Adjacent multiples of 3, sometimes the upper one; some empty cells show 3."""
    low = counts // 3 * 3
    odd = np.arange(counts.size).reshape(counts.shape) % 2
    return np.where(counts == 0, 3 * odd, low + 3 * ((counts > low) & (odd > 0)))


EARLIER = np.array([[4, 2, 9, 0], [7, 1, 0, 3], [5, 0, 0, 8], [1, 2, 0, 6]])
SAME = np.array([[4, 2, 9, 0], [8, 1, 2, 0], [5, 0, 0, 8], [0, 0, 0, 0]])
PARTS = np.array(
    [
        [[2, 2, 0], [1, 0, 1], [3, 2, 4], [0, 0, 0]],
        [[3, 3, 2], [1, 0, 0], [0, 1, 1], [0, 0, 0]],
        [[0, 4, 1], [0, 0, 0], [0, 0, 0], [0, 0, 8]],
        [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]],
    ]
)
PLAIN = cells_of(town((5, 4, 3)), np.random.default_rng(1).poisson(1.4, (5, 4, 3)))
AGAIN = second(EARLIER, SAME, up_to_three, 3)
REFINED = second(EARLIER, PARTS, up_to_three, 4)
NOBODY = (np.zeros((2, 0), dtype=int), np.zeros(0, dtype=int), np.zeros(0, dtype=np.uint64))
GONE = FinestCells(AGAIN[0].dataset, *NOBODY)
FORGOTTEN = FinestCells(AGAIN[1].dataset, *NOBODY)
HELD = np.sort(cell_numbers(PLAIN.dataset, PLAIN.codes)[::4])
SCENES: dict[str, tuple[FinestCells, dict[str, Any], str]] = {
    "plain": (PLAIN, {"empty_share": 0.2}, "58944b41ea2bb518"),
    "no keys": (
        FinestCells(PLAIN.dataset, PLAIN.codes, PLAIN.counts),
        {"base": 4},
        "544c45a8ab1e1298",
    ),
    "small": (PLAIN, {"small_only": True, "base": 5, "empty_share": 0.35}, "09caff454503268e"),
    "no empty": (PLAIN, {"empty_share": 0.0}, "b195ba08f446ba0e"),
    "held": (PLAIN, {"held": HELD}, "159d6961d887b204"),
    "held nothing": (PLAIN, {"held": HELD[:0], "empty_share": 0.5}, "f3cd3d69ad933884"),
    "multiples": (
        FinestCells(PLAIN.dataset, PLAIN.codes, 3 * PLAIN.counts, PLAIN.keys),
        {},
        "38eedf8fe31f442e",
    ),
    "nobody": (
        FinestCells(PLAIN.dataset, PLAIN.codes[:, :0], PLAIN.counts[:0]),
        {},
        "bb2703a114af23e7",
    ),
    "again": (AGAIN[0], {"previous": AGAIN[1], "empty_share": 0.3}, "3371d144f0fd2906"),
    "again held": (
        AGAIN[0],
        {"previous": AGAIN[1], "held": cell_numbers(AGAIN[0].dataset, AGAIN[0].codes)},
        "bf6c8abedde08454",
    ),
    "all gone": (GONE, {"previous": AGAIN[1]}, "331ac9b853f94324"),
    "all new": (AGAIN[0], {"previous": FORGOTTEN}, "6b0270b536b17df9"),
    "refined": (REFINED[0], {"previous": REFINED[1], "empty_share": 0.3}, "80119e88c368c19d"),
    "refined held": (
        REFINED[0],
        {"previous": REFINED[1], "held": cell_numbers(REFINED[0].dataset, REFINED[0].codes)},
        "8606794731955386",
    ),
}


def prepared(name: str) -> Prepared:
    cells, words, _ = SCENES[name]
    return prepare(cells, KEY, **{"base": 3, "small_only": False, "empty_share": 0.1, **words})


@pytest.mark.parametrize("name", SCENES)
def test_every_cell_has_the_two_numbers_next_to_its_count_or_one_of_them(name: str) -> None:
    cells, words, _ = SCENES[name]
    made = prepared(name)
    every, problem, shown = made.every, made.problem, made.shown
    base, small = words.get("base", 3), words.get("small_only", False)
    movable = problem.movable
    assert len({*map(tuple, every.codes.T.tolist())}) == len(every)
    assert every.possible.all()
    # Beside the cells as they were given stand candidates, which hold nobody and have no key.
    people = {
        tuple(c): (n, k)
        for c, n, k in zip(
            cells.codes.T.tolist(),
            cells.counts.tolist(),
            [None] * len(cells) if cells.keys is None else cells.keys.tolist(),
            strict=True,
        )
    }
    held_keys = [None] * len(every) if every.keys is None else every.keys.tolist()
    nobody = (0, None if cells.keys is None else 0)
    for c, n, k in zip(every.codes.T.tolist(), every.counts.tolist(), held_keys, strict=True):
        assert people.pop(tuple(c), nobody) == (n, k)
    assert not people
    residue = np.where(every.counts < base, every.counts, 0) if small else every.counts % base
    low = every.counts - residue
    empty = every.counts == 0
    assert np.array_equal(problem.codes, every.codes[:, movable])
    assert np.array_equal(problem.residue, residue[movable])
    assert np.array_equal(problem.low, low[movable])
    assert np.array_equal(problem.is_empty, empty[movable])
    assert problem.step == base
    # A cell that moves is empty or between two multiples; one that does not shows a number next to its count.
    assert ((residue > 0) | empty)[movable].all()
    fixed = ~movable
    assert np.array_equal(problem.fixed_codes, every.codes[:, fixed])
    assert np.array_equal(problem.fixed_up, (shown - every.counts)[fixed])
    assert ((shown == low) | ((shown == low + base) & ((residue > 0) | empty)))[fixed].all()
    assert problem.fixed_smallest == int((shown == base)[fixed].sum())
    assert problem.fixed_empty == int(((shown == base) & empty)[fixed].sum())
    share = words.get("empty_share", 0.1)
    assert Fraction(*problem.empty_share) == Fraction(share).limit_denominator(1000)
    if "previous" not in words:
        assert (problem.group == -1).all()
        held = words.get("held", np.zeros(0, dtype=np.uint64))
        stays = (residue > 0) & np.isin(cell_numbers(every.dataset, every.codes), held)
        assert np.array_equal(movable, ((residue > 0) | empty) & ~stays)
        assert np.array_equal(shown[fixed], np.where(stays, low + base, low)[fixed])
        # Four candidates for each empty cell that has to show somebody.
        expected = sum(
            Fraction(int(r), base) if lo == 0 else 1 - Fraction(int(r), base)
            for lo, r in zip(low, residue, strict=True)
            if lo in (0, base) and not (lo == 0 and r == 0)
        )
        needed = share / (1 - share) * float(expected)
        assert int(empty.sum()) <= ceil(CANDIDATES * needed)
        total = int(residue.sum())
        rest = (max(total - base * int(needed), total // 2), total) if total else (1, 1)
        choice = Options(low, residue, base)
        up = (start_up(every, choice, KEY, rest) & (residue > 0)) | (
            empty & empty_start(every.dataset, every.codes, KEY, CANDIDATES)
        )
        assert np.array_equal(problem.up, up[movable])
        assert (made.unchanged, made.changed) == (0, 0)


GIVEN = (
    *("movable", "codes", "residue", "step", "up", "is_empty", "low", "group"),
    *("fixed_codes", "fixed_up", "fixed_smallest", "fixed_empty", "empty_share", "start_share"),
)
"""What a search is given."""


@pytest.mark.parametrize("name", SCENES)
def test_the_start_of_a_search_belongs_to_its_version(name: str) -> None:
    made = prepared(name)
    digest = hashlib.sha256()
    for array in (made.every.codes, made.every.counts, made.shown):
        digest.update(np.ascontiguousarray(array).astype(np.int64).tobytes())
    for part in GIVEN:
        held = getattr(made.problem, part)
        if isinstance(held, np.ndarray):
            digest.update(str(held.shape).encode() + held.astype(np.int64).tobytes())
        else:
            digest.update(str(held).encode())
    digest.update(f"{made.unchanged} {made.changed}".encode())
    assert (SEARCH, digest.hexdigest()[:16]) == (8, SCENES[name][2])


@pytest.mark.parametrize("name", ["again", "again held", "refined", "refined held"])
def test_numbers_are_kept_wherever_they_are_next_to_the_count(name: str) -> None:
    """Rows 0 and 2 kept their records, row 1 has others, row 3 lost all; some empty cells showed somebody."""
    made = prepared(name)
    shown, codes = made.shown.copy(), made.every.codes.astype(int)
    shown[made.problem.movable] = made.problem.low + 3 * made.problem.up
    before, after = up_to_three(EARLIER), np.zeros(EARLIER.shape, dtype=int)
    np.add.at(after, (codes[0], codes[1]), shown)
    moves = np.zeros(EARLIER.shape, dtype=bool)
    free = made.problem.movable.copy()
    free[free] = made.problem.group < 0
    moves[codes[0][free], codes[1][free]] = True
    refined = name.startswith("refined")
    later = SAME if not refined else PARTS.sum(axis=2)
    for place in np.ndindex(*EARLIER.shape):
        if moves[place]:
            continue
        low = later[place] // 3 * 3
        two = [low, low + 3] if later[place] > low or not later[place] else [low]
        if refined:
            least = (PARTS[place] // 3 * 3).sum()
            most = least + 3 * (PARTS[place] % 3 > 0).sum()
            two = [*range(least, most + 1, 3)] if later[place] else [0, 3]
        nearest = min(two, key=lambda number: abs(number - before[place]))
        if "held" not in name or not later[place]:
            assert after[place] == (before[place] if before[place] in two else nearest), place
    occupied = {p for p in np.ndindex(*EARLIER.shape) if later[p]}
    same = {p for p in occupied if p[0] in (0, 2)}
    lost = {p for p in np.ndindex(*EARLIER.shape) if EARLIER[p] and not later[p]}
    assert made.unchanged == len(same)
    assert made.changed == len(occupied - same) + len(lost)
    if refined:
        group = made.problem.group
        assert (group >= 0).any()
        for number in np.unique(group[group >= 0]):
            parents = {tuple(c) for c in made.problem.codes[:2, group == number].T.tolist()}
            assert len(parents) == 1
            assert parents <= occupied


def test_a_second_release_that_cannot_keep_numbers_is_refused() -> None:
    words: dict[str, Any] = {"base": 3, "small_only": False, "empty_share": 0.1}
    cells, memory = REFINED
    plain = FinestCells(cells.dataset, cells.codes, cells.counts)
    forgotten = FinestCells(memory.dataset, memory.codes, memory.counts)
    for now, before in ((plain, memory), (cells, forgotten), (plain, forgotten)):
        with pytest.raises(InputError, match="record keys of both"):
            prepare(now, KEY, previous=before, **words)
    with pytest.raises(InputError, match="'v2', which is missing now"):
        prepare(AGAIN[0], KEY, previous=cells, **words)
    other = FinestCells(town((5, 4), zeros=False), memory.codes, memory.counts, memory.keys)
    with pytest.raises(InputError, match="codes of 'v0' differ"):
        prepare(AGAIN[0], KEY, previous=other, **words)
    # Counts that stay exact can be kept, and cannot be divided.
    with pytest.raises(InputError, match="cannot be refined by a new variable"):
        prepare(cells, KEY, previous=memory, **{**words, "small_only": True})
    prepare(AGAIN[0], KEY, previous=AGAIN[1], **{**words, "small_only": True})
    # An empty cell that showed somebody has no part that could exist.
    source = dict(cells.dataset.source)
    source["structural_zeros"] = [
        {"reason": "None.", "where": {"v0": ["00"], "v1": ["13"], "v2": ["20", "21", "22"]}}
    ]
    never = FinestCells(Dataset.from_mapping(source), cells.codes, cells.counts, cells.keys)
    with pytest.raises(InputError, match="no possible part"):
        prepare(never, KEY, previous=memory, **words)


def test_kept_parts_start_up_as_their_sum_asks_for_larger_residues_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset = town((3, 4), zeros=False)
    every = FinestCells(
        dataset, np.array(list(product(range(3), range(4)))).T, [1, 2, 0, 5, 1, 0, 4, 0, 2, 2, 0, 0]
    )
    choice = options(every.counts, 3, False)
    group = np.array([7, 7, 7, 7, 2, 2, 2, 2, -1, -1, -1, -1])
    halves = [0.45, 0.5, 0.0, 0.3, 0.6, 0.4, 0.5, 0.1]

    def started(target: dict[int, int], frozen: tuple[int, ...] = ()) -> list[int]:
        up = np.ones(12, dtype=bool)
        movable = choice.movable | (every.counts == 0)
        movable[list(frozen)] = False
        places = np.flatnonzero((group >= 0) & movable)
        words = np.array([int(halves[p] * 2**53) << 11 for p in places], dtype=np.uint64)
        monkeypatch.setattr(prepare_module, "scramble", lambda key, own: words)
        zeros = np.zeros(12, dtype=np.int64)
        kept = Kept(zeros > 0, zeros, group, target, zeros > 0, zeros > 0)
        _start_groups(every, choice, kept, up, movable, KEY)
        return [int(place) for place in np.flatnonzero(up)]

    free = [8, 9, 10, 11]
    # Ranks: 0.45, 0.5 / 2, an empty one, 0.3 / 2 above 3; and 0.6, two empty ones beside 0.5 above 3.
    assert started({7: 3, 2: 3}) == free
    assert started({7: 6, 2: 6}) == [3, 6, *free]
    assert started({7: 9, 2: 9}) == [1, 3, 4, 6, *free]
    assert started({7: 12, 2: 12}) == [0, 1, 3, 4, 6, 7, *free]
    assert started({7: 15, 2: 15}) == [0, 1, 2, 3, 4, 5, 6, 7, *free]
    assert started({7: 6, 2: 3}, frozen=(3,)) == [1, 3, *free]
    for wrong in ({7: 18, 2: 3}, {7: 0, 2: 3}, {7: 3, 2: 18}):
        with pytest.raises(InputError, match="does not belong to these records"):
            started(wrong)


def plain_together(
    earlier: FinestCells, later: FinestCells, support: Support
) -> tuple[list[int], list[int], int, int]:
    """Bounds of every listed cell from all cells of its parent, one by one."""
    names = [v.name for v in later.dataset.variables]
    rows = [names.index(v.name) for v in earlier.dataset.variables]
    before = {
        tuple(c): int(n) for c, n in zip(earlier.codes.T.tolist(), earlier.counts, strict=True)
    }
    listed = [tuple(c) for c in later.codes.T.tolist()]
    own_low, own_high = support.finest(later)
    parts: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for cell in product(*(range(len(v.codes)) for v in later.dataset.variables)):
        if possible_cells(later.dataset, np.array(cell)[:, None])[0]:
            parts.setdefault(tuple(cell[r] for r in rows), []).append(cell)
    low, high, changed, differing = [], [], set(), 0
    shown = dict(zip(listed, later.counts.tolist(), strict=True))
    for parent in {*before, *(tuple(c[r] for r in rows) for c in listed)}:
        inside = [c for c in parts.get(parent, ()) if c in shown]
        differing += sum(shown[c] for c in inside) != before.get(parent, 0)
        down = sum(int(own_low[listed.index(c)]) for c in inside)
        up = sum(int(own_high[listed.index(c)]) for c in inside)
        up += support.most_unlisted * (len(parts.get(parent, ())) - len(inside))
        p_low, p_high = (int(x[0]) for x in support.bounds(np.array([before.get(parent, 0)])))
        # No true count lies within the bounds of both.
        if not set(range(down, up + 1)) & set(range(p_low, p_high + 1)):
            changed.add(parent)
    for place, cell in enumerate(listed):
        parent = tuple(cell[r] for r in rows)
        least, most = int(own_low[place]), int(own_high[place])
        if parent not in changed:
            p_low, p_high = (int(x[0]) for x in support.bounds(np.array([before.get(parent, 0)])))
            others = [c for c in parts[parent] if c != cell]
            up = sum(
                int(own_high[listed.index(c)]) if c in shown else support.most_unlisted
                for c in others
            )
            down = sum(int(own_low[listed.index(c)]) for c in others if c in shown)
            least, most = max(least, p_low - up), min(most, p_high - down)
        low.append(least)
        high.append(most)
    return low, high, len(changed), differing


@pytest.mark.parametrize(
    "support", [Support(3), Support(4, small_only=True), Support(3, empty_shown=False)]
)
@pytest.mark.parametrize("turned", [False, True])
def test_what_two_releases_tell_together_is_what_their_parts_leave(
    support: Support, turned: bool
) -> None:
    rng = np.random.default_rng(11)
    base = support.base
    for _ in range(12):
        dataset = town((4, 3, 2)) if turned else town((3, 2, 3))
        first = Dataset.from_mapping(
            {
                "dataset": {"name": "first"},
                "variables": [dict(v) for v in dataset.source["variables"]][1 if turned else 0 :][
                    :2
                ],
            }
        )
        sizes = [len(v.codes) for v in dataset.variables]
        shown = base * rng.choice(3, sizes, p=[0.5, 0.3, 0.2])
        axis = 0 if turned else 2
        at = np.nonzero(shown)
        possible = possible_cells(dataset, np.stack(at))
        codes = np.stack(at)[:, possible]
        later = FinestCells(dataset, codes, shown[at][possible])
        kept = np.zeros(sizes, dtype=int)
        kept[tuple(codes)] = later.counts
        before = kept.sum(axis=axis)
        before += base * (rng.random(before.shape) < 0.2)
        where = np.nonzero(before)
        earlier = FinestCells(first, np.stack(where), before[where])
        found = together(earlier, later, support)
        low, high, changed, differing = plain_together(earlier, later, support)
        assert found.low.tolist() == low
        assert found.high.tolist() == high
        assert (found.changed, found.differing) == (changed, differing)


def test_what_is_left_is_counted() -> None:
    found = Together(np.array([0, 3, 3, 2, 6]), np.array([2, 3, 3, 4, 6]), 5)
    assert found.pinned == 3
    assert found.left() == {1: 3, 3: 2}
    left = {"changed": 5, "differing": 0, "pinned": 3, "left": {1: 3, 3: 2}}
    assert found.to_mapping() == left
