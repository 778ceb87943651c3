"""What a reader infers from the totals beside perturbed cells, worked out by listing all true tables.

The reader here is a plain loop. It takes the bounds that come with a table, lists every true table within them
and, where record keys decide, rules out those in which one part holds all records of a total and yet
shows another number. Every inner cell that is open by itself must keep two values or more.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from lustrum.model import Category, Release, Table, TableAxis
from lustrum.model.arrays import Ints
from lustrum.model.channel import MatrixChannel
from lustrum.protect import CellKey, RandomRounding, RoundingChannel
from lustrum.protect.cell_key import Additive
from lustrum.protect.cell_key.additive import additive_release
from lustrum.protect.noise.additive import AdditiveNoise
from lustrum.protect.perturbation.design import PerturbationDesign
from lustrum.protect.totals.safe import safe_totals

Members = tuple[tuple[int, ...], ...]

LINE: Members = ((0,), (1,), (2,), (0, 1, 2))
PAIR: Members = ((0,), (1,), (0, 1))
# Two subtotals and a total: relations that are written down, not lines along an axis.
NESTED: Members = ((0,), (1,), (0, 1), (2,), (3,), (2, 3), (0, 1, 2, 3))
# Zeros become 1 or 2 for certain; counts above move by at most one.
RESTLESS = MatrixChannel([[0, 0.5, 0.5], [0.5, 0, 0.5], [0, 0.5, 0.5]], residue_base=1)


def axis(members: Members) -> TableAxis:
    codes = ["_T" if len(m) == max(map(len, members)) else str(m) for m in members]
    return TableAxis(
        "v", "v", tuple(Category(c, c, m) for c, m in zip(codes, members, strict=True))
    )


def keyed_table(members: Members, inner: tuple[int, ...], rng: np.random.Generator) -> Table:
    """A table with totals whose cells have the sums of their records' keys; an empty cell has the key 0."""
    keys = np.where(np.array(inner) > 0, rng.integers(1, 2**64, len(inner), dtype=np.uint64), 0)
    return Table(
        axes=(axis(members),),
        values=np.array([sum(inner[i] for i in m) for m in members]),
        keys=np.array([np.sum(keys[list(m)], dtype=np.uint64) for m in members], dtype=np.uint64),
    )


def candidates(
    members: Members, low: Ints, high: Ints, numbers: dict[int, int] | None = None
) -> Ints:
    """All inner tables within the bounds; ``numbers`` are the shown ones where record keys decide."""
    inner = {m[0]: place for place, m in enumerate(members) if len(m) == 1}
    ranges = [range(int(low[inner[i]]), int(high[inner[i]]) + 1) for i in sorted(inner)]
    kept = []
    for x in itertools.product(*ranges):
        sums = [sum(x[i] for i in m) for m in members]
        if any(s < a or s > b for s, a, b in zip(sums, low, high, strict=True)):
            continue
        if numbers is not None and _contradicts(members, x, numbers):
            continue
        kept.append(x)
    return np.array(kept)


def _contradicts(members: Members, x: tuple[int, ...], numbers: dict[int, int]) -> bool:
    """Whether two cells with the same records, at least one, show different numbers."""
    records = {place: frozenset(i for i in members[place] if x[i]) for place in numbers}
    return any(
        records[a] == records[b] and numbers[a] != numbers[b]
        for a, b in itertools.combinations(numbers, 2)
        if records[a]
    )


def assert_nothing_is_pinned(members: Members, low: Ints, high: Ints, left: Ints) -> None:
    assert len(left), "the bounds leave no table at all"
    for place, m in enumerate(members):
        if len(m) == 1 and low[place] < high[place]:
            assert np.unique(left[:, m[0]]).size > 1, "a reader works an inner cell out"


def own_numbers(values: Ints, low: Ints, high: Ints, channel: Any) -> dict[int, int]:
    """The cells whose number is plainly their own: their bounds are those of the channel, no wider."""
    least, most = channel.support(values)
    plain = (least == low) & (most == high)
    return {int(place): int(values[place]) for place in np.flatnonzero(plain)}


def shown_tables(members: Members, base: int, top: int) -> Iterator[Ints]:
    """Every table that rounding can show: inner cells up to ``top`` multiples, totals near their sums."""
    inner = [place for place, m in enumerate(members) if len(m) == 1]
    totals = [place for place, m in enumerate(members) if len(m) > 1]
    where = {members[place][0]: place for place in inner}
    for multiples in itertools.product(range(top + 1), repeat=len(inner)):
        values = np.zeros(len(members), dtype=np.int64)
        values[inner] = np.array(multiples) * base
        ends = []
        for place in totals:
            own = [int(values[where[i]]) for i in members[place]]
            least = sum(max(0, v - base + 1) for v in own)
            most = sum(v + base - 1 for v in own)
            ends.append(range(least // base * base, most + base, base))
        for numbers in itertools.product(*ends):
            values[totals] = numbers
            yield values.copy()


@pytest.mark.parametrize(
    ("base", "members", "top", "keyed"),
    [
        (2, LINE, 1, False), (2, LINE, 1, True), (3, LINE, 1, False), (3, PAIR, 2, True),
        (2, NESTED, 1, False), (2, NESTED, 1, True),
    ],
)  # fmt: skip
def test_no_shown_table_lets_a_reader_work_an_inner_cell_out(
    base: int, members: Members, top: int, keyed: bool
) -> None:
    """Base 2 with 0, 0, 0 beside 4 can only be 1, 1, 1; keyed base 3 with 0, 3 beside 0 only 1 and 1."""
    channel = RoundingChannel(base)
    looked_at = 0
    for values in shown_tables(members, base, top):
        if not len(candidates(members, *channel.support(values))):
            continue  # no true table shows these numbers
        out = safe_totals([axis(members)], values, channel, keyed=keyed)
        numbers = own_numbers(out.values, out.low, out.high, channel) if keyed else None
        if numbers is not None and out.hidden is not None:
            numbers = {place: n for place, n in numbers.items() if not out.hidden[place]}
        left = candidates(members, out.low, out.high, numbers)
        if keyed and not len(left):
            continue  # no true table shows these numbers with keys
        assert_nothing_is_pinned(members, out.low, out.high, left)
        looked_at += 1
    assert looked_at > 5


def test_a_cell_known_to_be_empty_does_not_let_a_reader_work_its_neighbours_out() -> None:
    """Base 3 with 0, 0, 0 beside 6 leaves room, but not if the first is known to be 0: then 2 and 2."""
    channel = RoundingChannel(3)
    empty = np.array([True, False, False, False])
    for values in shown_tables(LINE, 3, 1):
        if values[0]:
            continue
        low, high = channel.support(values)
        if not len(candidates(LINE, np.where(empty, 0, low), np.where(empty, 0, high))):
            continue
        out = safe_totals([axis(LINE)], values, channel, empty)
        assert (out.low[0], out.high[0]) == (0, 0)
        assert_nothing_is_pinned(LINE, out.low, out.high, candidates(LINE, out.low, out.high))


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("members", [PAIR, LINE, NESTED])
def test_tables_that_look_the_same_come_with_the_same_bounds(members: Members, keyed: bool) -> None:
    """Otherwise narrow bounds tell that a total was left alone, and wide ones why it was not."""
    channel, seen = RoundingChannel(3), {}
    several = 0
    for values in shown_tables(members, 3, 1):
        out = safe_totals([axis(members)], values, channel, keyed=keyed)
        looks = tuple(
            np.asarray(getattr(out, f.name)).tobytes()
            for f in fields(out)
            if f.name not in ("low", "high")
        )
        bounds = (out.low.tolist(), out.high.tolist())
        several += looks in seen
        assert seen.setdefault(looks, bounds) == bounds
    assert several, "no two tables looked the same, so that nothing was compared"


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("members", [PAIR, LINE])
def test_bounds_hold_for_every_table_that_can_lie_behind_what_is_shown(
    members: Members, keyed: bool
) -> None:
    """The bounds of one table hold the truth of every other table that shows the same."""
    channel = RoundingChannel(3)
    truths: dict[Any, list[Ints]] = {}
    bounds: dict[Any, Any] = {}
    for values in shown_tables(members, 3, 1):
        out = safe_totals([axis(members)], values, channel, keyed=keyed)
        looks = out.values.tobytes(), np.asarray(out.hidden).tobytes()
        bounds[looks] = (out.low, out.high)
        truths.setdefault(looks, []).append(candidates(members, *channel.support(values)))
    for looks, (low, high) in bounds.items():
        for tables in truths[looks]:
            sums = np.array([[sum(x[i] for i in m) for m in members] for x in tables])
            if len(sums):
                assert (sums >= low).all()
                assert (sums <= high).all()


# The methods pass on what they know: keys, structural zeros, empty cells


def releases(
    method: Any, members: Members, top: int, draws: int
) -> Iterator[tuple[Table, Release]]:
    """Every small table with several draws of its record keys."""
    rng = np.random.default_rng(7)
    parts = sum(len(m) == 1 for m in members)
    for inner in itertools.product(range(top + 1), repeat=parts):
        for _ in range(draws):
            table = keyed_table(members, inner, rng)
            yield table, method.apply(table)


@pytest.mark.parametrize(
    "method",
    [
        RandomRounding(base=3),
        CellKey(),
        CellKey(ptable=PerturbationDesign(2, 1.0)),
        CellKey(ptable=PerturbationDesign(3, 2.0, blocked=(1, 2))),
        AdditiveNoise(sd=0.4, distribution="uniform", relative=True),
    ],
    ids=["random-rounding", "preset", "designed", "blocked", "relative-noise"],
)
def test_the_same_records_show_the_same_number_and_that_pins_no_cell(method: Any) -> None:
    """A keyed total that differs from a part tells of another part; no table may tell its size."""
    looked_at = 0
    for table, release in releases(method, PAIR, 4, 25):
        low, high = release.least, release.most
        assert low is not None
        assert high is not None
        channel = release.channel
        assert channel is not None
        numbers = own_numbers(release.numbers, low, high, channel)
        numbers = {place: n for place, n in numbers.items() if release.shown[place]}
        left = candidates(PAIR, low, high, numbers)
        assert table.values[:2].tolist() in left.tolist()
        assert_nothing_is_pinned(PAIR, low, high, left)
        looked_at += 1
    assert looked_at == 625


def test_an_empty_cell_without_keys_of_its_own_stays_0() -> None:
    """All empty cells have the key 0, so that a number made from it would mark every one of them."""
    rng = np.random.default_rng(3)
    for method in (CellKey(ptable=RESTLESS, totals="own"), CellKey(ptable=RESTLESS)):
        for inner in ((0, 5, 3), (0, 0, 4), (2, 0, 0), (0, 0, 0)):
            table = keyed_table(LINE, inner, rng)
            release = method.apply(table)
            empty = table.values == 0
            assert not release.numbers[empty].any()
            # A shown 0 is one that stayed or a count that went to 0; the bounds allow for both.
            assert not release.least[empty].any()
            assert any("Empty cells stay 0" in note for note in release.notes)


def test_a_cell_that_cannot_exist_stays_0_when_a_table_is_made_additive() -> None:
    """A unit moved into a cell known to be empty would tell that and by how much the table was shifted."""
    empty = np.array([True, False, False, False])
    # Within 2 of these numbers a table adds up only with somebody in the first cell.
    perturbed = np.array([0, 2, 2, 11])
    found, out = additive_release(
        [axis(LINE)], perturbed, RESTLESS, max_shift=2, structural=empty, steps=500
    )
    assert found.values[0] == 0
    assert found.values[3] == found.values[:3].sum()
    assert (out.low[0], out.high[0]) == (0, 0)
    method = CellKey(ptable=RESTLESS, totals=Additive(max_shift=4))
    rng, moved = np.random.default_rng(1), 0
    for _ in range(40):
        table = keyed_table(LINE, (0, 3, 1), rng)
        table = Table(axes=table.axes, values=table.values, keys=table.keys, structural=empty)
        release = method.apply(table, rng)
        assert (release.published[0], release.least[0], release.most[0]) == (0, 0, 0)
        assert np.all((release.least <= table.values) & (table.values <= release.most))
        moved += int(release.published[3] != table.values[3])
    assert moved


@pytest.mark.parametrize(
    "method",
    [RandomRounding(base=3), CellKey(), CellKey(ptable=PerturbationDesign(2, 1.0))],
    ids=["random-rounding", "preset", "designed"],
)
def test_a_method_tells_the_guard_of_totals_which_cells_cannot_exist(method: Any) -> None:
    """The reader knows them to be empty, so the guard must; otherwise their neighbours are pinned."""
    empty = np.array([True, False, False, False])
    rng = np.random.default_rng(5)
    for inner in itertools.product((0,), range(4), range(4)):
        for _ in range(6):
            plain = keyed_table(LINE, inner, rng)
            table = Table(axes=plain.axes, values=plain.values, keys=plain.keys, structural=empty)
            release = method.apply(table, rng)
            low, high = release.least, release.most
            assert (release.published[0], low[0], high[0]) == (0, 0, 0)
            left = candidates(LINE, low, high)
            assert inner in [tuple(x) for x in left.tolist()]
            assert_nothing_is_pinned(LINE, low, high, left)
