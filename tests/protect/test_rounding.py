"""Rounding held against its definition: to the nearest, at random, of small counts and by slices."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from lustrum.model import Category, Release, Table, TableAxis
from lustrum.model.keys import cell_words
from lustrum.protect.rounding.cells import (
    ConventionalRounding,
    NearestChannel,
    RandomRounding,
    RoundingChannel,
    SmallCountChannel,
    SmallCountRounding,
    round_randomly,
    round_small_counts,
    round_to_nearest,
)
from lustrum.protect.rounding.semi_controlled import SemiControlledRounding, round_by_slices
from lustrum.protect.totals.safe import safe_totals
from small import summed

PINNED = [5665188244183254396, 15226727078098784556, 6061892040613258123, 13406522649066241764]
Row = dict[int, Fraction]


def nearest(true: int, base: int) -> Row:
    """The nearest multiple; a half goes up."""
    return {int(Fraction(true, base) + Fraction(1, 2)) * base: Fraction(1)}


def at_random(true: int, base: int) -> Row:
    residue = true % base
    row = {true - residue: 1 - Fraction(residue, base)}
    return row | ({true - residue + base: Fraction(residue, base)} if residue else {})


def small(true: int, base: int, how: str) -> Row:
    if true >= base:
        return {true: Fraction(1)}
    return nearest(true, base) if how == "nearest" else at_random(true, base)


CHANNELS: list[tuple[Any, Any]] = [
    (make, rows)
    for base in (2, 3, 4, 5)
    for make, rows in [
        (NearestChannel(base), lambda true, base=base: nearest(true, base)),
        (RoundingChannel(base), lambda true, base=base: at_random(true, base)),
        (SmallCountChannel(base), lambda true, base=base: small(true, base, "nearest")),
        (SmallCountChannel(base, "random"), lambda true, base=base: small(true, base, "random")),
    ]
]


@pytest.mark.parametrize(("channel", "row"), CHANNELS, ids=[repr(c) for c, _ in CHANNELS])
def test_a_channel_has_the_rows_of_the_definition(channel: Any, row: Any) -> None:
    true = np.arange(30)
    found: list[Row] = [{} for _ in true]
    rows = channel.transitions(true)
    for origin, shown, chance in zip(
        rows.origin.tolist(), rows.published.tolist(), rows.probability.tolist(), strict=True
    ):
        assert shown not in found[origin]
        found[origin][shown] = Fraction(chance).limit_denominator(100)
    assert found == [row(n) for n in true.tolist()]


@pytest.mark.parametrize(("channel", "row"), CHANNELS, ids=[repr(c) for c, _ in CHANNELS])
def test_the_support_of_a_number_is_what_leads_to_it(channel: Any, row: Any) -> None:
    behind: dict[int, list[int]] = {}
    for true in range(40):
        for shown in row(true):
            behind.setdefault(shown, []).append(true)
    numbers = sorted(n for n in behind if n < 24)
    low, high = channel.support(np.array(numbers))
    assert low.tolist() == [behind[n][0] for n in numbers]
    assert high.tolist() == [behind[n][-1] for n in numbers]
    if not isinstance(channel, RoundingChannel):
        rest = [n for n in range(-channel.base, 24) if n not in behind]
        low, high = channel.support(np.array(rest, dtype=np.int64))
        assert (low > high).all()


@pytest.mark.parametrize(("channel", "row"), CHANNELS, ids=[repr(c) for c, _ in CHANNELS])
def test_the_chance_to_stay_is_the_mean_of_the_diagonal(channel: Any, row: Any) -> None:
    if isinstance(channel, SmallCountChannel):
        assert channel.stay(2, None) == 1.0
        for low in range(8):
            for high in range(low, 9):
                kept = [0 if 0 < n < channel.base else 1 for n in range(low, high + 1)]
                assert channel.stay(low, high) == pytest.approx(sum(kept) / len(kept))
        assert channel.stay(5, 4) == 1.0  # nothing moves where there is nothing
    else:
        whole = [row(n).get(n, 0) for n in range(channel.base)]
        assert channel.stay(0, None) == float(sum(whole) / channel.base)


@pytest.mark.parametrize("base", [2, 3, 5, 7])
def test_words_are_cut_at_the_exact_shares(base: int) -> None:
    for value in range(3 * base):
        residue = value % base
        cut = residue * 2**64 // base
        words = [0, max(cut - 1, 0), min(cut, 2**64 - 1), 2**64 - 1]
        found = round_randomly(np.full(4, value), base, np.array(words, dtype=np.uint64))
        wanted = [value - residue + (base if word < cut else 0) for word in words]
        assert found.tolist() == wanted
        kept = round_small_counts(np.full(4, value), base, np.array(words, dtype=np.uint64))
        assert kept.tolist() == (wanted if value < base else [value] * 4)
    values = np.arange(4 * base)
    assert round_to_nearest(values, base).tolist() == [next(iter(nearest(n, base))) for n in values]
    assert round_small_counts(values, base).tolist() == [
        next(iter(small(n, base, "nearest"))) for n in values
    ]


def table(counts: tuple[int, ...], keyed: bool = False, structural: Any = None) -> Table:
    """Parts and their total."""
    members = [(k,) for k in range(len(counts))] + [tuple(range(len(counts)))]
    axis = TableAxis("v", "v", tuple(Category(str(m), str(m), m) for m in members))
    keys = np.array([(2**61 - 1) * (k + 3) if n else 0 for k, n in enumerate(counts)], np.uint64)
    return Table(
        axes=(axis,),
        values=np.array([*counts, sum(counts)]),
        keys=np.append(keys, keys.sum()) if keyed else None,
        structural=structural,
    )


METHODS: list[tuple[Any, Any]] = [
    (ConventionalRounding, nearest),
    (RandomRounding, at_random),
    (SmallCountRounding, lambda true, base: small(true, base, "nearest")),
    (
        lambda base: SmallCountRounding(base, "random"),
        lambda true, base: small(true, base, "random"),
    ),
]


@pytest.mark.parametrize("which", range(4))
@given(
    cells=st.lists(st.integers(0, 30), min_size=6, max_size=6),
    base=st.integers(2, 12),
    seed=st.integers(0, 2**32),
)
def test_every_number_is_one_that_its_count_can_become(
    which: int, cells: list[int], base: int, seed: int
) -> None:
    make, row = METHODS[which]
    inner = np.array(cells).reshape(2, 3)
    given_table = summed(inner)
    release = make(base).apply(given_table, np.random.default_rng(seed))
    for shown, true in zip(release.numbers[:2, :3].ravel(), cells, strict=True):
        assert int(shown) in row(true, base)
    values = given_table.values[release.shown]
    assert (release.least[release.shown] <= values).all()
    assert (values <= release.most[release.shown]).all()
    if which > 1:  # totals are the sums of what is published
        shown = release.numbers[:2, :3]
        assert release.numbers.tolist() == summed(shown).values.tolist()


@pytest.mark.parametrize(
    ("size", "largest", "base"), [(2, 14, 3), (3, 8, 3), (2, 14, 4), (2, 14, 5)]
)
def test_no_inner_cell_of_a_small_table_can_be_worked_out(
    size: int, largest: int, base: int
) -> None:
    """Enumerated: all true tables behind each release leave two values for every cell that had two."""
    behind: dict[bytes, list[tuple[int, ...]]] = {}
    releases = {}
    for cells in itertools.product(range(largest + 1), repeat=size):
        values = np.array([*cells, sum(cells)], dtype=np.int64)
        release = ConventionalRounding(base).apply(
            Table(axes=table((0,) * size).axes, values=values)
        )
        assert np.all((release.least <= values) & (values <= release.most))
        behind.setdefault(release.numbers.tobytes(), []).append(cells)
        releases[release.numbers.tobytes()] = release.numbers[:size]
    checked = 0
    for key, shown in releases.items():
        if shown.max() > largest - base:  # some of what is behind it lies beyond the enumeration
            continue
        low, high = NearestChannel(base).support(shown)
        truths = np.array(behind[key])
        assert not np.any((truths.min(axis=0) == truths.max(axis=0)) & (low < high))
        checked += 1
    assert checked > 5


def test_cells_of_related_keys_are_rounded_independently() -> None:
    """A total's key is the sum of its parts' keys; its rounding must not follow from theirs."""
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 2**64, (2, 40_000), dtype=np.uint64)
    words = [
        cell_words(k, "random-rounding 3") < np.uint64(2**64 // 3)
        for k in (*keys, keys.sum(axis=0))
    ]
    pattern = words[0] * 4 + words[1] * 2 + words[2]
    expected = [np.prod([1 / 3 if (i >> b) & 1 else 2 / 3 for b in range(3)]) for i in range(8)]
    seen = np.bincount(pattern, minlength=8)
    assert stats.chisquare(seen, np.array(expected) * 40_000).pvalue > 1e-6


def test_keyed_words_are_pinned() -> None:
    """Published tables must not change with a new version of the software."""
    keys = np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert cell_words(keys, "random-rounding 3").tolist() == PINNED


def same(release: Release, found: Any, channel: Any) -> None:
    """The release carries what the guard of totals found, and how numbers came about."""
    assert release.numbers.tolist() == found.values.tolist()
    assert release.least.tolist() == found.low.tolist()
    assert release.most.tolist() == found.high.tolist()
    hidden = np.zeros(release.shape, dtype=bool) if found.hidden is None else found.hidden
    assert (~release.shown).tolist() == hidden.tolist()
    assert release.channel == channel


def test_conventional_rounding_hides_a_total_that_tells_its_parts() -> None:
    # To base 2 a shown 2 stands for 1 or 2; a total of 2 over 2 and 2 would say 1 and 1.
    found = ConventionalRounding(2).apply(table((1, 1)))
    assert found.published[:2].tolist() == [2, 2]
    assert found.shown.tolist() == [True, True, False]
    # 3, 3 and 0 stand for 2 to 4, 2 to 4 and 0 or 1: four tables have a total from 8 to 10.
    open_one = ConventionalRounding(3).apply(table((4, 4, 1)))
    assert open_one.published.tolist() == [3, 3, 0, 9]
    assert open_one.shown.all()
    for method, counts in [
        (ConventionalRounding(2), (1, 1)),
        (ConventionalRounding(2), (1, 2)),
        (ConventionalRounding(4), (1, 3)),
        (ConventionalRounding(5), (2, 2)),
    ]:
        for structural in (None, np.array([False, False, False]), np.array([True, False, False])):
            counts = (0, counts[1]) if structural is not None and structural[0] else counts
            given = table(counts, structural=structural)
            channel = NearestChannel(method.base)
            rounded = round_to_nearest(given.values, method.base)
            same(
                method.apply(given),
                safe_totals(given.axes, rounded, channel, structural, hide=True),
                channel,
            )


def test_random_rounding_carries_what_the_guard_of_totals_found() -> None:
    method, channel = RandomRounding(2), RoundingChannel(2)
    for counts in [(1, 1), (0, 3), (1, 2), (3, 3), (1, 1, 1)]:
        for keyed in (True, False):
            for seed in range(4):
                structural = np.array([n == 0 for n in (*counts, 1)])
                given = table(counts, keyed, structural)
                rng = None if keyed else np.random.default_rng(seed)
                words = (
                    cell_words(given.keys, "random-rounding 2")
                    if given.keys is not None
                    else np.random.default_rng(seed).integers(
                        0, 2**64, size=given.shape, dtype=np.uint64
                    )
                )
                rounded = round_randomly(given.values, 2, words)
                found = safe_totals(given.axes, rounded, channel, structural, keyed=keyed)
                release = method.apply(given, rng)
                same(release, found, channel)
                assert ("does not show its totals" in str(release.notes[1])) is keyed


def test_small_counts_have_totals_that_are_sums_or_that_tell_nothing() -> None:
    sums = SmallCountRounding(3).apply(table((1, 2, 7)))
    assert sums.published.tolist() == [0, 3, 7, 10]
    assert sums.low.tolist() == [0, 2, 7, 9]
    assert sums.high.tolist() == [1, 3, 7, 11]
    assert "sums" in str(sums.notes[1])
    # A total on its own is 10, which with 7 leaves 3 for a shown 0 and 3: 0 and 3, or 1 and 2.
    for how in ("nearest", "random"):
        method, channel = SmallCountRounding(3, how, "own"), SmallCountChannel(3, how)  # type: ignore[arg-type]
        for counts in [(1, 2, 7), (1, 1), (2, 2), (1, 7), (0, 2, 9)]:
            for keyed in (True, False):
                given = table(counts, keyed)
                words = None
                if how == "random":
                    words = (
                        cell_words(given.keys, "small-count-rounding 3")
                        if given.keys is not None
                        else np.random.default_rng(5).integers(
                            0, 2**64, size=given.shape, dtype=np.uint64
                        )
                    )
                rounded = round_small_counts(given.values, 3, words)
                found = safe_totals(given.axes, rounded, channel, None, keyed=keyed, hide=True)
                release = method.apply(given, None if keyed else np.random.default_rng(5))
                same(release, found, channel)
                assert "sums" not in str(release.notes[1])
                assert ("random" in str(release.notes[0])) is (how == "random")
    # One part that is 7 and a total of 8 would say that the other is 1.
    alone = SmallCountRounding(3, totals="own").apply(table((1, 7)))
    assert alone.shown.tolist() == [True, True, False]


def test_by_keys_two_empty_looking_parts_of_a_larger_total_are_both_occupied() -> None:
    """To base 2 a shown 0 is 0 or 1; a total that shows 2 has other records than either part."""
    seen = set()
    for seed in range(24):
        keys = np.random.default_rng(seed).integers(1, 2**63, 2, dtype=np.uint64)
        given = replace(table((1, 1)), keys=np.append(keys, keys.sum()))
        words = cell_words(given.keys, "small-count-rounding 2")
        rounded = round_small_counts(given.values, 2, words)
        release = SmallCountRounding(2, "random", "own").apply(given)
        found = safe_totals(
            given.axes, rounded, SmallCountChannel(2, "random"), None, keyed=True, hide=True
        )
        same(release, found, SmallCountChannel(2, "random"))
        if rounded.tolist() == [0, 0, 2]:
            assert not release.shown[2]
        seen.add(tuple(rounded.tolist()))
        # With a generator the total has a word of its own, and 0, 0 beside 2 may be 0 and 1.
        alone = SmallCountRounding(2, "random", "own").apply(table((1, 1)), seed)
        if alone.published.tolist() == [0, 0, 2]:
            assert alone.shown.all()
            seen.add((9, 9, 9))
    assert {(0, 0, 2), (9, 9, 9)} <= seen


def test_a_part_that_cannot_exist_is_known_to_be_empty() -> None:
    release = SmallCountRounding(3, totals="own").apply(
        table((0, 2, 9), structural=np.array([True, False, False, False]))
    )
    assert release.most[0] == 0


def test_only_totals_of_their_own_are_one_number() -> None:
    own = SmallCountRounding(4, "random", "own")
    assert own.abilities.one_number
    assert own.abilities.keyed_per_cell
    assert own.abilities.repeatable
    assert RandomRounding(4).abilities.keyed_per_cell
    sums = SmallCountRounding(4).abilities
    assert sums.repeatable
    assert not sums.one_number
    assert not sums.keyed_per_cell


def marks(sizes: list[int], base: int, start: int) -> list[bool]:
    """Sizes laid end to end from the start on, with a mark at every multiple of the base."""
    ends = [start]
    for size in sizes:
        ends.append(ends[-1] + size)
    return [any(place % base == 0 for place in range(a + 1, b + 1)) for a, b in pairwise(ends)]


@pytest.mark.parametrize("base", [2, 3, 5])
@pytest.mark.parametrize("ordered", [False, True])
def test_cells_of_a_slice_go_up_by_systematic_sampling(base: int, ordered: bool) -> None:
    rng = np.random.default_rng(base)
    values = rng.integers(0, 12, 17)
    slices = rng.integers(0, 4, 17)
    words = rng.integers(0, 2**64, 17, dtype=np.uint64)
    words[3], words[5] = words[4], words[6]  # of equal words the earlier cell comes first
    values[3], slices[3] = values[4], slices[4]
    order = np.array([2, 0, 3, 1]) if ordered else None
    starts = rng.integers(0, base, 4)
    found = round_by_slices(values, base, slices, words, starts, order)
    residues = (values % base).tolist()
    wanted = values - values % base

    def by_word(k: int) -> tuple[int, int, int]:
        return residues[k], int(words[k]), k

    if order is None:
        for number in range(4):
            mine = sorted(np.flatnonzero(slices == number).tolist(), key=by_word)
            up = marks([residues[k] for k in mine], base, int(starts[number]))
            wanted[mine] += base * np.array(up, dtype=int)
    else:
        everybody = sorted(range(17), key=lambda k: (int(order[slices[k]]), *by_word(k)))
        up = marks([residues[k] for k in everybody], base, int(starts[0]))
        wanted[everybody] += base * np.array(up, dtype=int)
    assert found.tolist() == wanted.tolist()
    assert round_by_slices(values[:0], base, slices[:0], words[:0], starts, order).size == 0


def grid(keyed: bool) -> Table:
    """Areas by sexes with both totals; counts of all residues."""
    inner = np.array([[1, 2, 7], [4, 5, 11], [0, 1, 2], [8, 10, 1]])
    keys = np.random.default_rng(3).integers(1, 2**61, inner.shape, dtype=np.uint64)
    return summed(inner, keys if keyed else None, ("area", "sex"))


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("overall", [True, False])
@pytest.mark.parametrize("over", ["table", ("area",), ("sex",), ("sex", "area")])
def test_slices_are_rounded_from_their_own_start(keyed: bool, overall: bool, over: Any) -> None:
    given, base = grid(keyed), 5
    method = SemiControlledRounding(base, over, overall)
    release = method.apply(given, None if keyed else 4)
    kept = () if over == "table" else tuple(("area", "sex").index(name) for name in over)
    counts = given.values[:4, :3]
    places = list(np.ndindex(4, 3))
    names = sorted({tuple(place[k] for k in kept) for place in places})
    slices = np.array([names.index(tuple(place[k] for k in kept)) for place in places])
    if given.keys is None:
        rng = np.random.default_rng(4)
        words = rng.integers(0, 2**64, size=given.shape, dtype=np.uint64)
        if overall:
            starts, order = rng.integers(0, base, size=1), rng.permutation(len(names))
        else:
            starts, order = rng.integers(0, base, size=len(names)), None
    else:
        words = cell_words(given.keys, "semi-controlled-rounding 5")
        inner = given.keys[:4, :3].ravel()
        sums = [int(sum(int(k) for k in inner[slices == n])) % 2**64 for n in range(len(names))]
        purpose = "semi-controlled-rounding 5 start"
        drawn = cell_words(np.array(sums, dtype=np.uint64), purpose).tolist()
        if overall:
            order = np.argsort(np.argsort(np.array(drawn, dtype=np.uint64)))
            whole = np.array([sum(sums) % 2**64], dtype=np.uint64)
            starts = np.array([int(cell_words(whole, purpose)[0]) * base // 2**64])
        else:
            starts, order = np.array([word * base // 2**64 for word in drawn]), None
    found = round_by_slices(
        counts.ravel(), base, slices, words[:4, :3].ravel(), starts, order
    ).reshape(4, 3)
    assert release.numbers[:4, :3].tolist() == found.tolist()
    assert release.numbers[4, :3].tolist() == found.sum(axis=0).tolist()
    assert release.numbers[:, 3].tolist() == [*found.sum(axis=1), found.sum()]
    assert release.channel == RoundingChannel(base)
    # A number is off by less than the base for every kept total, or cell, that it consists of.
    low, high = np.maximum(found - base + 1, 0), found + base - 1
    assert release.least is not None
    assert release.most is not None
    for row in range(5):
        for column in range(4):
            inside = np.ix_(range(4) if row == 4 else [row], range(3) if column == 3 else [column])
            pieces = found[inside].size
            spans = (row == 4, column == 3)
            if all(spans[k] for k in range(2) if k not in kept):
                sizes = (4 if row == 4 else 1, 3 if column == 3 else 1)
                pieces = int(np.prod([sizes[k] for k in kept]))
                if overall and all(spans):
                    pieces = 1
            shown, radius = release.numbers[row, column], (base - 1) * pieces
            assert release.least[row, column] == max(low[inside].sum(), shown - radius)
            assert release.most[row, column] == min(high[inside].sum(), shown + radius)
            assert release.least[row, column] <= given.values[row, column]
            assert given.values[row, column] <= release.most[row, column]
    said = [str(note) for note in release.notes]
    assert ("whole table" in said[2]) is (over == "table")
    assert ("each of" in said[2]) is (over != "table")
    assert len(said) == (4 if overall else 3)
