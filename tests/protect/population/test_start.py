"""Where a search begins and what it may move: plain second versions, kept numbers, draws at their limits."""

from __future__ import annotations

import hashlib
import hmac
from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import Dataset, InputError
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.model.keys import scramble
from lustrum.protect.population import start
from lustrum.protect.population.prepare import CANDIDATES, Prepared, prepare
from lustrum.protect.population.public import SEARCH
from lustrum.protect.population.start import (
    Options,
    cell_numbers,
    derived,
    empty_candidates,
    empty_start,
    options,
    start_up,
)
from protect.population.worlds import (
    AGAIN,
    EARLIER,
    KEY,
    PARTS,
    REFINED,
    SAME,
    cells_of,
    counted,
    town,
    up_to_three,
)

HALF = 2**32


def test_keys_of_purposes_are_codes_of_the_key() -> None:
    code = hmac.new(KEY, b"lustrum population 1 start", hashlib.sha256).digest()
    assert derived(KEY, "start") == code[:16]


@given(st.integers(0, 10**9), st.integers(2, 100))
def test_two_adjacent_multiples_are_open_to_every_count(count: int, base: int) -> None:
    every, small = (options(np.array([count]), base, small_only) for small_only in (False, True))
    assert (every.low[0], every.residue[0]) == (count // base * base, count % base)
    assert (small.low[0], small.residue[0]) == ((0, count) if count < base else (count, 0))
    for choice in (every, small):
        assert choice.movable[0] == (choice.residue[0] > 0)
        assert choice.step == base


def test_numbers_of_cells_count_all_combinations() -> None:
    codes = np.array(list(product(range(4), range(3), range(2)))).T
    assert cell_numbers(town((4, 3, 2)), codes).tolist() == list(range(24))


@pytest.mark.parametrize("shrink", [(1, 1), (2, 3), (7, 9)])
def test_cells_start_up_exactly_as_often_as_unbiased_totals_ask_for(
    monkeypatch: pytest.MonkeyPatch, shrink: tuple[int, int]
) -> None:
    """Of 2**32 words those below the probability lead up, and no other; draws are given to hit the limit."""
    dataset, codes = town((4,), zeros=False), np.arange(4)[None]

    def drawing(limit: int) -> None:
        words = [max(limit - 1, 0), min(limit, HALF - 1), 0, HALF - 1]
        given = np.array(words, dtype=np.uint64) << np.uint64(32)
        monkeypatch.setattr(start, "scramble", lambda key, own: given[: own.size])

    for base in (2, 3, 8):
        for residue in range(base):
            drawing(ceil(Fraction(residue * shrink[0] * HALF, base * shrink[1])))
            cells = FinestCells(dataset, codes, np.full(4, base + residue))
            found = start_up(cells, options(cells.counts, base, False), KEY, shrink)
            assert found.tolist() == [residue > 0, False, residue > 0, False]
    for one_in in (1, 2, 3, 4, 5):
        drawing(ceil(Fraction(HALF, one_in)))
        found = empty_start(dataset, codes, KEY, one_in)
        assert found.tolist() == [True, one_in == 1, True, one_in == 1]


@pytest.mark.parametrize("keyed", [False, True])
def test_the_keys_of_records_decide_where_a_cell_starts_or_its_number(keyed: bool) -> None:
    cells = cells_of(town((4, 3, 2)), np.arange(24).reshape(4, 3, 2))
    if not keyed:
        cells = FinestCells(cells.dataset, cells.codes, cells.counts)
    choice = options(cells.counts, 5, False)
    numbers = cell_numbers(cells.dataset, cells.codes)
    words = numbers if cells.keys is None else cells.keys
    upper = (scramble(derived(KEY, "start"), words) >> np.uint64(32)).tolist()
    expected = [5 * u < r * HALF for u, r in zip(upper, choice.residue.tolist(), strict=True)]
    assert start_up(cells, choice, KEY).tolist() == expected
    upper = (scramble(derived(KEY, "empty start"), numbers) >> np.uint64(32)).tolist()
    found = empty_start(cells.dataset, cells.codes, KEY, 3)
    assert found.tolist() == [3 * u < HALF for u in upper]


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


@settings(max_examples=examples(25, 200), deadline=None)
@given(
    st.sampled_from([(6, 5, 1, 4), (4, 3, 2), (3, 1)]),
    st.sampled_from([0.0, 0.1, 0.3, 2.0]),
    st.integers(0, 99),
    st.sampled_from([0, 1, 5, 12, 100]),
    st.booleans(),
    st.booleans(),
)
def test_candidates_among_the_empty_cells_are_drawn_as_the_manual_says(
    sizes: tuple[int, ...], mean: float, seed: int, wanted: int, keyed: bool, listed: bool
) -> None:
    """Cells that are listed and hold nobody are neither lenders nor taken."""
    cells = counted(sizes, mean, seed, zeros=sizes[0] == 4)
    counts = cells.counts * (np.arange(len(cells)) % 3 > 0) if listed else cells.counts
    cells = FinestCells(cells.dataset, cells.codes, counts, cells.keys if keyed else None)
    found = empty_candidates(cells, wanted, KEY)
    assert [tuple(c) for c in found.T.tolist()] == plain_candidates(cells, wanted, KEY)


def test_the_share_of_empty_cells_is_kept_in_thousandths_and_never_fewer() -> None:
    exact = ((k / 1000, k) for k in (0, 1, 7, 29, 57, 70, 111, 123, 145, 201, 290, 419, 499, 500))
    for share, expected in (*exact, (0.0004, 1), (0.1231, 124), (0.4999, 500)):
        made = prepare(PLAIN, KEY, base=3, small_only=False, empty_share=share)
        assert made.problem.empty_share == (expected, 1000)


PLAIN = cells_of(town((5, 4, 3)), np.random.default_rng(1).poisson(1.4, (5, 4, 3)))
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
    "again": (AGAIN[0], {"previous": AGAIN[1], "empty_share": 0.3}, "c014538e89492460"),
    "all gone": (GONE, {"previous": AGAIN[1]}, "1641f892fe6f37d9"),
    "all new": (AGAIN[0], {"previous": FORGOTTEN}, "6f743d598a74fd41"),
    "refined": (REFINED[0], {"previous": REFINED[1], "empty_share": 0.3}, "5150d1472a13df6f"),
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
        assert (made.kept.unchanged, made.kept.changed) == (0, 0)


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
    digest.update(f"{made.kept.unchanged} {made.kept.changed}".encode())
    assert (SEARCH, digest.hexdigest()[:16]) == (10, SCENES[name][2])


@pytest.mark.parametrize("name", ["again", "refined"])
def test_numbers_are_kept_wherever_they_are_next_to_the_count(name: str) -> None:
    """In a memory without offsets. Rows 0 and 2 kept their records, row 1 has others, row 3 lost all."""
    made = prepared(name)
    shown, codes = made.shown.copy(), made.every.codes.astype(int)
    shown[made.problem.movable] = made.problem.low + 3 * made.problem.up
    before, after = up_to_three(EARLIER), np.zeros(EARLIER.shape, dtype=int)
    np.add.at(after, (codes[0], codes[1]), shown)
    moves = np.zeros(EARLIER.shape, dtype=bool)
    free = made.problem.movable.copy()
    free[free] = made.problem.group < 0
    moves[codes[0][free], codes[1][free]] = True
    refined = name == "refined"
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
        assert after[place] == (before[place] if before[place] in two else nearest), place
    occupied = {p for p in np.ndindex(*EARLIER.shape) if later[p]}
    same = {p for p in occupied if p[0] in (0, 2)}
    lost = {p for p in np.ndindex(*EARLIER.shape) if EARLIER[p] and not later[p]}
    assert made.kept.unchanged == len(same)
    assert made.kept.changed == len(occupied - same) + len(lost)
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
