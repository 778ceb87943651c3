"""What a release remembers, what the next one keeps and what both leave open, against slow versions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil, floor
from typing import Literal

import numpy as np
import pytest

from lustrum.audit.contribution import candidates, certain_within
from lustrum.model import InputError
from lustrum.model.records import Records
from lustrum.protect.magnitudes.carriers import CarriedRecords
from lustrum.protect.magnitudes.factors import SHARES, Factors, amounts, needed_factors
from lustrum.protect.magnitudes.hidden import OPEN, KnownClasses
from lustrum.protect.magnitudes.remembered import (
    RememberedSums,
    keep_noise,
    known_before,
    left_out,
    remember,
    sums_together,
)
from lustrum.protect.magnitudes.units import families_of, units_of
from lustrum.protect.population.start import cell_numbers, find
from lustrum.publish.bundles.sum_memory import remembered_sums, sums_bytes
from lustrum.sensitivity.rule import NOTHING
from protect.magnitudes.registers import KEY, SPEC, described, register
from protect.magnitudes.test_classes import register as classed

P = Fraction(1, 10)
FACTORS = needed_factors(P, "known")


def release(true: np.ndarray, shown: np.ndarray) -> RememberedSums:
    count = true.size
    return RememberedSums(
        {},
        0,
        np.arange(count, dtype=np.uint64),
        {"turnover": true},
        {"turnover": shown},
        np.zeros((1, count), dtype=np.int64),
        np.arange(count),
        np.zeros((1, count), dtype=np.int64),
    )


def drawn(true: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    share = rng.integers(FACTORS.low, FACTORS.high, true.size)
    sign = rng.choice([-1, 1], true.size)
    return true + sign * np.sign(true) * amounts(np.abs(true), share)


def slowly_certain(old: int, new: int, was: int, now: int) -> bool:
    """Candidates of both releases one by one, each pair of directions joined in fractions."""
    sides = ("up", "down")
    factor = Fraction(abs(new), abs(old))
    parts = []
    for s in sides:
        low, high = (e[0] for e in candidates(np.array([abs(now)]), FACTORS.least, FACTORS.most, s))
        for t in sides:
            before = candidates(np.array([abs(was)]), FACTORS.least, FACTORS.most, t)
            first, last = max(low, before[0][0] * factor), min(high, before[1][0] * factor)
            if first <= last:
                parts.append((first, last))
    if not parts:
        return False
    least, most = min(a for a, _ in parts), max(b for _, b in parts)
    return bool(certain_within(np.array([least]), np.array([most]), P)[0])


@pytest.mark.parametrize("size", [9, 300, 10**6, 2**61])
def test_two_releases_together_agree_with_a_slow_version(size: int) -> None:
    rng = np.random.default_rng(size % 1000)
    old = rng.integers(1, size, 150) * rng.choice([-1, 1], 150)
    stretch = rng.uniform(0.5, 2.0, 150)
    new = np.maximum(np.abs(old) * stretch, 1).astype(np.int64) * np.sign(old)
    new[:20] = old[:20]
    new[20:25] = 0
    was, now = drawn(old, rng), drawn(new, rng)
    now[:10] = was[:10]
    found = sums_together(release(old, was), release(new, now), "turnover", FACTORS, P)
    judged = [i for i in range(150) if new[i] != 0 and not (old[i] == new[i] and was[i] == now[i])]
    slow = sum(slowly_certain(int(old[i]), int(new[i]), int(was[i]), int(now[i])) for i in judged)
    assert found.certain == slow
    assert slow > 0
    assert found.unchanged + found.changed + found.other == int((new != 0).sum())


# --- noise that is kept ---------------------------------------------------------------------------

PAY = described(
    {"name": "pay", "holding": "owner", "earlier": "pay_before"},
    {"name": "pay_before", "holding": "owner"},
)
# Values of one record: before, shown before, and now. Limits of nearness are 9, 11, 90 and 110.
STORIES = [
    (old, old + change, new)
    for old, changes, others in (
        (0, (0, 2), (0, 5, -5)),
        (1, (-1, 0, 1, 2), (0, 1, -1, 2)),
        (-1, (-1, 0, 1), (0, -1, 1, -2)),
        (10, (-3, -1, 0, 1, 2, 4), (10, 11, 9, 12, 8, -10, 0)),
        (-10, (-4, -1, 0, 2), (-10, -11, -9, -12, 10)),
        (100, (-37, -20, 0, 11, 37), (100, 99, 110, 111, 90, 89, -100)),
    )
    for change, new in product(changes, others)
]


def small_register(now: dict[str, np.ndarray], owner: np.ndarray, number: np.ndarray) -> Records:
    count = owner.size
    codes = {v.name: np.zeros(count, dtype=np.uint8) for v in PAY.variables}
    return Records(PAY, codes=codes, numbers=now, ids={"id": number, "owner": owner})


@pytest.mark.parametrize("remembered", [("pay", "pay_before"), ("pay_before",), ()])
def test_noise_is_kept_as_a_plain_version_keeps_it_in_all_small_scenes(
    remembered: tuple[str, ...],
) -> None:
    """Owners of two records: the same, changed, new and gone ones, of both signs, with and without noise."""
    rng = np.random.default_rng(11)
    owners = 1500
    count = 2 * owners
    names = ("pay", "pay_before")
    story = {n: np.array(STORIES)[rng.integers(0, len(STORIES), count)] for n in names}
    # Every story is that of an owner whose other record was worth nothing.
    alone = np.arange(len(STORIES)) * 2
    story["pay"][alone] = STORIES
    story["pay"][alone + 1] = story["pay_before"][alone] = story["pay_before"][alone + 1] = 0
    number = rng.permutation(10 * count)[:count]
    owner = np.repeat(rng.permutation(owners), 2)
    known = rng.random(count) < 0.8
    known[alone] = True
    known[number == number.max()] = False
    records = small_register({n: story[n][:, 2] for n in names}, owner, number)
    place = np.argsort(number)
    place = place[known[place]]
    gone = np.array([10 * count + 5], dtype=np.uint64)
    identity = number[place].astype(np.uint64)

    def earlier(name: str, column: int) -> np.ndarray:
        return story[name][place, column]

    before = RememberedSums(
        {}, 0, identity, {n: earlier(n, 0) for n in remembered},
        {n: earlier(n, 1) for n in remembered}, np.zeros((3, place.size), dtype=np.int64),
        np.zeros(0, dtype=np.int64), np.zeros((3, 0), dtype=np.int64),
    )  # fmt: skip
    family = families_of(PAY.measures)[0]
    rows = tuple(v.name for v in PAY.variables)
    units, order, _ = units_of(
        records, rows, family, FACTORS, KEY, room=SHARES // 2, background=NOTHING
    )
    sign, low, high, amount = (a.copy() for a in (units.sign, units.low, units.high, units.amount))
    side = units.side.copy()
    found = keep_noise(units, family, order, records, FACTORS, before)
    assert find(before.record, gone)[1].tolist() == [False]
    locked = np.zeros(owners, dtype=bool)
    kept = changed = 0
    for o in range(owners):
        mine = [
            (i, k, *map(int, story[name][order[i]]))
            for i in range(int(units.first[o]), int(units.first[o + 1]))
            for k, name in enumerate(family.moved)
            if name in remembered and known[order[i]]
        ]
        mine = [one for one in mine if one[2] != 0]
        pull = sum(shown - old for _, _, old, shown, _ in mine)
        locked[o] = any(old != shown for _, _, old, shown, _ in mine)
        if pull:
            sign[o] = 1 if pull > 0 else -1
        mine = [one for one in mine if one[2] * one[4] > 0]  # a gain that is a loss now begins anew
        for i, k, old, shown, new in mine:
            noise = abs(shown - old)
            if noise == 0:
                continue
            if (shown - old) * sign[o] < 0:  # against its owner, as before
                side[i, k] = -1
            if new != old:
                changed += 1
                assert found.changed[i, k]
                continue
            assert found.unchanged[i, k]
            low[i, k] = high[i, k] = amount[i, k] = noise
            kept += 1
    assert np.array_equal(found.owners, locked)
    assert (int(found.unchanged.sum()), int(found.changed.sum())) == (kept, changed)
    assert np.array_equal(units.side, side)
    assert np.array_equal(units.sign, sign)
    assert np.array_equal(units.low, low)
    assert np.array_equal(units.high, high)
    assert np.array_equal(units.amount, amount)
    assert kept >= 200 * len(remembered)


def written(seed: int) -> tuple[Records, dict[str, np.ndarray], CarriedRecords, RememberedSums]:
    """A release of thirty records in any order, some of them in pieces that other cells carry."""
    rng = np.random.default_rng(seed)
    records = register(seed, 30)
    records = replace(records, ids={**records.ids, "id": rng.permutation(90)[:30] + 5})
    made = {n: records.numbers[n] + rng.integers(-9, 10, 30) for n in ("home", "wages")}
    record = np.sort(np.r_[np.arange(30), 0, 0, rng.integers(0, 30, 8)])
    cell = np.stack([rng.integers(0, size, record.size) for size in (4, 3, 2)])
    carried = CarriedRecords(record, cell, {})
    return records, made, carried, remember(records, made, carried, {"p": 10.0}, 4, {}, {})


def test_a_release_remembers_every_record_under_its_number() -> None:
    records, made, carried, memory = written(1)
    number = records.ids["id"].tolist()
    assert memory.record.tolist() == sorted(number)
    assert (memory.release, memory.method) == (4, {"p": 10.0})
    assert set(memory.true) == set(memory.shown) == {"home", "wages"}
    for place, one in enumerate(memory.record.tolist()):
        row = number.index(one)
        for name in made:
            assert memory.true[name][place] == records.numbers[name][row]
            assert memory.shown[name][place] == made[name][row]
        home = [int(records.codes[v.name][row]) for v in records.dataset.variables]
        assert memory.home[:, place].tolist() == home
    assert memory.record[memory.carried].tolist() == [number[r] for r in carried.record.tolist()]
    assert np.array_equal(memory.cell, carried.codes)
    place, known = find(memory.record, np.array([0, *number, 200], dtype=np.uint64))
    assert known.tolist() == [False, *[True] * 30, False]
    assert memory.record[place[1:-1]].tolist() == number


@pytest.mark.parametrize("seed", range(6))
def test_records_that_are_the_same_stay_in_the_cells_that_carried_them(seed: int) -> None:
    records, made, carried, memory = written(seed)
    rng = np.random.default_rng(seed + 50)
    # The first record of the second release is the same as before; others moved, changed, are gone or new.
    later = np.r_[0, rng.permutation(np.arange(1, 30))[:22]]
    number = records.ids["id"][later].copy()
    number[-2:] = [1, 300]
    codes = {n: v[later].copy() for n, v in records.codes.items()}
    codes["region"][3:6] = (codes["region"][3:6] + 1) % 3
    shown = {n: v[later].copy() for n, v in made.items()}
    shown["wages"][5:9] += 1
    shown["home"][9:11] -= 1
    second = Records(
        records.dataset,
        codes=codes,
        numbers={n: v[later] for n, v in records.numbers.items()},
        ids={"id": number, "owner": records.ids["owner"][later]},
    )
    first = {int(n): row for row, n in enumerate(records.ids["id"])}

    def same(row: int) -> bool:
        old = first.get(int(number[row]))
        return old is not None and all(
            [codes[n][row] == records.codes[n][old] for n in codes]
            + [shown[n][row] == made[n][old] for n in made]
        )

    now = {first[int(n)]: row for row, n in enumerate(number) if same(row)}
    cells = cell_numbers(records.dataset, carried.codes).tolist()
    expected = [
        (now[r], c) for r, c in zip(carried.record.tolist(), cells, strict=True) if r in now
    ]
    found = memory.kept_places(second, shown)
    assert list(zip(found.record.tolist(), found.cell.tolist(), strict=True)) == expected
    assert sum(row == 0 for row, _ in expected) >= 3
    # A measure that was not published before, or other variables, keep nothing.
    assert memory.kept_places(second, {**shown, "abroad": shown["home"]}).record.size == 0
    assert replace(memory, home=memory.home[:2]).kept_places(second, shown).record.size == 0


def test_a_second_release_after_one_without_records_begins_anew() -> None:
    records = register(4)
    empty = SPEC.protect(records.take(np.arange(0)), KEY).memory
    second = SPEC.protect(records, KEY, previous=empty)
    assert second.memory.release == 1
    assert empty.kept_places(records, second.records).record.size == 0
    assert [a.tolist() for a in find(empty.record, np.arange(2, dtype=np.uint64))] == [
        [0, 0],
        [False] * 2,
    ]
    found = sums_together(empty, second.memory, "wages", SPEC.factors, SPEC.share)
    assert (found.unchanged, found.changed, found.other, found.certain) == (0, 0, 0, 0)


# --- contributions that rest ----------------------------------------------------------------------

RENTED = described({"name": "pay", "holding": "owner"}, {"name": "rent", "holding": "owner"})
Story = dict[str, dict[tuple[int, int], tuple[int, int, tuple[int, ...]]]]
ENDS = (-1, 0, 1, 7, 40, 900, OPEN)


def any_records(rng: np.random.Generator, known: Story | None = None) -> Records:
    """Some of twelve records, in any order, with values of both signs, many of them as they were."""
    number = rng.permutation(12)[: rng.integers(0, 13)]
    values = {n: rng.choice([-40, -7, -1, 0, 0, 1, 7, 40], number.size) for n in ("pay", "rent")}
    for name, before in (known or {}).items():
        for place, one in enumerate(number.tolist()):
            old = before.get((one, int(np.sign(values[name][place]))))
            if old is not None and rng.random() < 0.4:
                values[name][place] = old[0]
    codes = {v.name: np.zeros(number.size, dtype=np.uint8) for v in RENTED.variables}
    ids = {"id": number, "owner": number}
    return Records(RENTED, codes=codes, numbers=values, ids=ids)


def any_memory(rng: np.random.Generator, releases: int) -> tuple[RememberedSums, Story]:
    """The memory after some releases, and a plain list of what was last shown of every contribution."""
    memory: RememberedSums | None = None
    story: Story = {"pay": {}, "rent": {}}
    for release in range(releases):
        records = any_records(rng, story)
        count = len(records)
        names = [("pay",), ("rent",), ("pay", "rent")][rng.integers(0, 3)]
        made = {n: records.numbers[n] + rng.integers(-9, 10, count) for n in names}
        reach = {n: rng.choice(ENDS, (4, count)) for n in names}
        carried = CarriedRecords(np.arange(count), np.zeros((3, count), dtype=np.uint32), {})
        resting = left_out(memory, records, made, FACTORS)
        memory = remember(records, made, carried, {}, release, reach, resting)
        if rng.random() < 0.5:
            memory = remembered_sums(sums_bytes(memory))
        now = set()
        for name in names:
            for place, one in enumerate(records.ids["id"].tolist()):
                true = int(records.numbers[name][place])
                if true:
                    now.add((name, one, int(np.sign(true))))
                    ends = tuple(reach[name][:, place].tolist())
                    story[name][one, int(np.sign(true))] = (true, int(made[name][place]), ends)
        rests = {
            (name, int(one), int(np.sign(true)))
            for name, own in memory.resting.items()
            for one, true in zip(own.record, own.true, strict=True)
        }
        every = {(name, *key) for name, own in story.items() for key in own}
        assert rests == every - now
        assert sum(own.record.size for own in memory.resting.values()) == len(rests)
        assert all(own.record.size for own in memory.resting.values())
    assert memory is not None
    return memory, story


@pytest.mark.parametrize("seed", range(30))
def test_what_was_last_shown_of_a_contribution_is_known_when_it_comes_back(seed: int) -> None:
    """Records that are gone, have no value or one of the other sign, and measures that are left out."""
    rng = np.random.default_rng(seed)
    memory, story = any_memory(rng, int(rng.integers(1, 6)))
    numbers = rng.permutation(14).astype(np.uint64)
    for name, side in product(("pay", "rent", "other"), (-1, 0, 1)):
        sides = np.full(14, side)
        sides[0] = 1
        found = memory.last(name, numbers, sides, FACTORS)
        for place, one in enumerate(numbers.tolist()):
            key = (one, int(sides[place]))
            true, shown, ends = story.get(name, {}).get(key, (0, 0, (0, 0, 0, 0)))
            assert (found.true[place], found.shown[place]) == (true, shown)
            assert tuple(found.reach[:, place].tolist()) == ends
    assert "hidden" in repr(found)


def plainly_known(
    ends: tuple[int, int], way: int, old: tuple[int, int, tuple[int, ...]] | None, now: int, by: str
) -> tuple[int, int]:
    """Sizes of a class that are left once the change of what was left before is known."""
    if old is None or now == 0:
        return ends
    was, (low, high) = abs(old[0]), old[2][2 * way : 2 * way + 2]
    if by == "factor":
        first, last = Fraction(low * abs(now), was), Fraction(high * abs(now), was)
    else:
        first, last = Fraction(low + abs(now) - was), Fraction(high + abs(now) - was)
    first, last = max(first, Fraction(-OPEN)), min(last, Fraction(OPEN))
    return max(ends[0], min(ceil(first), OPEN)), min(ends[1], max(floor(last), -OPEN))


@pytest.mark.parametrize("by", ["factor", "difference"])
@pytest.mark.parametrize("seed", range(12))
def test_readers_know_what_all_releases_leave_of_a_contribution_and_how_it_changed(
    seed: int, by: Literal["factor", "difference"]
) -> None:
    rng = np.random.default_rng(seed + 100)
    memory, story = any_memory(rng, int(rng.integers(1, 5)))
    records = any_records(rng, story)
    for name in ("pay", "rent"):
        values = records.numbers[name]
        low = values - rng.integers(0, 60, values.size)
        high = values + rng.integers(0, 60, values.size)
        classes = KnownClasses({}, {"rent": (low, high)})
        least, most = classes.sizes(name, values)
        found = known_before(classes, records, name, memory, FACTORS, by)
        alone = known_before(classes, records, name, None, FACTORS, by)
        grown = memory.grown(records, name, FACTORS)
        for place, one in enumerate(records.ids["id"].tolist()):
            now = int(values[place])
            old = story[name].get((one, int(np.sign(now))))
            ends = (int(least[place]), int(most[place]))
            for way in (0, 1):
                expected = plainly_known(ends, way, old, now, by)
                assert (found[0][way, place], found[1][way, place]) == expected
                assert (alone[0][way, place], alone[1][way, place]) == ends
            assert grown[place] == (0 if old is None else abs(now) - abs(old[0]))


def listed(factors: Factors, shown: int, way: int) -> list[int]:
    """All sizes that can show a size by going up, or by going down; a 0 shows 0."""
    sizes = np.arange(1, 4 * shown + 9)
    least, most = factors.amounts(sizes)
    moved = (shown - sizes) * (1, -1)[way]
    nothing = [0] if shown == 0 and way == 1 else []
    return nothing + sizes[(least <= moved) & (moved <= most)].tolist()


def test_a_memory_of_numbers_alone_leaves_open_every_size_that_can_show_them() -> None:
    shown = np.arange(-30, 200)
    memory = release(np.sign(shown) * 5, shown)
    reach = memory.reach_of("turnover", FACTORS)
    for place, y in enumerate(np.abs(shown).tolist()):
        for way in (0, 1):
            own = listed(FACTORS, y, way)
            least, most = (int(end) for end in reach[2 * way : 2 * way + 2, place])
            assert (least, most) == (min(own), max(own)) if own else least > most
    kept = replace(memory, reach={"turnover": np.arange(4 * shown.size).reshape(4, -1)})
    assert kept.reach_of("turnover", FACTORS) is kept.reach["turnover"]


def test_of_releases_that_continue_each_other_the_memory_says_who_is_certain() -> None:
    """Some firms with what both releases leave open: sizes if they went up, and if they went down."""
    cases = [
        # before, shown before, now, shown now, left open, and whether that is certain within a tenth
        (100, 120, 100, 120, (100, 100, 9, 0), False),  # unchanged: the second release adds nothing
        (100, 120, 100, 115, (95, 115, 9, 0), True),
        (100, 120, 110, 130, (95, 117, 9, 0), False),
        (100, 120, 110, 130, (110, 110, 9, 0), True),
        (100, 80, 110, 90, (9, 0, 110, 110), True),
        (100, 80, 110, 90, (9, 0, 100, 130), False),
        (100, 80, 110, 90, (100, 105, 120, 130), False),
        (-100, -80, -110, -90, (100, 105, 110, 120), True),
        (100, 80, 0, 0, (50, 50, 50, 50), False),  # nothing is left of it
        (100, 80, -110, -90, (50, 50, 50, 50), False),  # another contribution
    ]
    old, was, new, now = (np.array([case[k] for case in cases]) for k in range(4))
    reach = np.array([case[4] for case in cases]).T
    before = release(old, was)
    after = replace(release(new, now), release=1, reach={"turnover": reach})
    found = sums_together(before, after, "turnover", FACTORS, P)
    assert (found.unchanged, found.other, found.changed) == (1, 1, 6)
    assert found.certain == sum(case[5] for case in cases) == 4
    for place, case in enumerate(cases):
        one = np.array([place])
        alone = replace(release(new[one], now[one]), release=1, reach={"turnover": reach[:, one]})
        own = sums_together(release(old[one], was[one]), alone, "turnover", FACTORS, P)
        assert own.certain == case[5], case
    # Two that do not continue each other are judged by their numbers.
    apart = sums_together(before, replace(after, release=0), "turnover", FACTORS, P)
    assert (apart.unchanged, apart.other, apart.changed) == (1, 1, 6)
    assert apart.certain != found.certain


LARGE = replace(SPEC, p=5.0, sweeps=1, max_variables=3, existence="public")


def firms(values: np.ndarray, number: np.ndarray) -> Records:
    """Firms of their own in 24 cells, three of about the same size in each."""
    place = number % 24
    codes = {
        "activity": (place // 6).astype(np.uint8),
        "region": (place // 2 % 3).astype(np.uint8),
        "form": (place % 2).astype(np.uint8),
    }
    numbers = {"pay": values, "rent": np.zeros_like(values)}
    return Records(RENTED, codes=codes, numbers=numbers, ids={"id": number, "owner": number})


def open_to_readers(releases: list[tuple[int, int]]) -> tuple[Fraction, Fraction]:
    """The ends of the last value, to readers of true and shown values who know every factor."""
    last = releases[-1][0]
    left = []
    for way in (0, 1):
        parts = [
            [x * Fraction(last, true) for x in listed(LARGE.factors, shown, way)]
            for true, shown in releases
        ]
        if all(parts):
            ends = max(min(part) for part in parts), min(max(part) for part in parts)
            if ends[0] <= ends[1]:
                left.append(ends)
    return min(low for low, _ in left), max(high for _, high in left)


@pytest.mark.parametrize("pause", ["gone", "nothing", "a loss", "no records", "no measure"])
def test_a_firm_that_comes_back_as_it_was_shows_the_number_that_it_showed(pause: str) -> None:
    """Another number of the same value would narrow it, in another direction to almost nothing."""
    rng = np.random.default_rng(3)
    number = np.arange(72)
    values = rng.integers(500, 700, 72)
    resting = number % 3 == 0
    first = LARGE.protect(firms(values, number), KEY)
    between = firms(values, number)
    spec = LARGE
    if pause == "gone":
        between = between.take(np.flatnonzero(~resting))
    elif pause == "no records":
        between = between.take(np.arange(0))
    elif pause == "no measure":
        between = replace(between, numbers={**between.numbers, "rent": values[::-1].copy()})
        spec = replace(LARGE, measures=("rent",))
    else:
        now = np.where(resting, 0 if pause == "nothing" else -values, values)
        between = firms(now, number)
    second = spec.protect(between, KEY, previous=first.memory)
    memory = remembered_sums(sums_bytes(second.memory))
    third = LARGE.protect(firms(values, number), KEY, previous=memory)
    assert third.records["pay"].tolist() == first.records["pay"].tolist()
    found = sums_together(memory, third.memory, "pay", LARGE.factors, LARGE.share)
    assert (found.unchanged, found.changed, found.other, found.certain) == (72, 0, 0, 0)
    # One that comes back with another value is hidden from readers of all releases.
    other = np.where(resting, values + values // 50, values)
    back = LARGE.protect(firms(other, number), KEY, previous=memory).records["pay"]
    for at in np.flatnonzero(resting).tolist():
        shown = [(int(values[at]), int(first.records["pay"][at])), (int(other[at]), int(back[at]))]
        low, high = open_to_readers(shown)
        assert low <= other[at] <= high
        assert (1 - LARGE.share) * high > (1 + LARGE.share) * low
    same = ~resting
    assert back[same].tolist() == first.records["pay"][same].tolist()
    assert (np.sign(back - other) == np.sign(first.records["pay"] - values)).all()


@pytest.mark.parametrize("share", [-0.25, -0.1, 0.3, 0.9])
def test_readers_who_know_by_how_much_a_firm_changed_are_not_certain_of_it(share: float) -> None:
    """Neither of the value now nor of that before, if the firm keeps 72 % and does not double its value."""
    values = np.random.default_rng(10).integers(2000, 3000, 72)
    grown = (values * share).astype(np.int64)
    first = LARGE.protect(firms(values, np.arange(72)), KEY)
    later = firms(values + grown, np.arange(72))
    shown = LARGE.protect(later, KEY, previous=first.memory).records["pay"]
    for at in range(72):
        change, left = int(grown[at]), []
        for way in (0, 1):
            then = listed(LARGE.factors, int(first.records["pay"][at]), way)
            now = listed(LARGE.factors, int(shown[at]), way)
            low, high = max(then[0] + change, now[0]), min(then[-1] + change, now[-1])
            if low <= high:
                left += [low, high]
        assert min(left) <= values[at] + change <= max(left)
        for known in (0, change):
            low, high = min(left) - known, max(left) - known
            assert (1 - LARGE.share) * high > (1 + LARGE.share) * low


def test_leaders_keep_their_direction_when_others_come_and_go() -> None:
    """Half of those of about the same size go up; a firm that comes anew turns no other one."""
    rng = np.random.default_rng(8)
    number = np.arange(96)
    values = rng.integers(500, 700, 96)
    first = LARGE.protect(firms(values[:72], number[:72]), KEY)
    later = np.flatnonzero(number % 5 > 0)
    second = LARGE.protect(firms(values[later], number[later]), KEY, previous=first.memory)
    before = dict(zip(number[:72].tolist(), first.records["pay"].tolist(), strict=True))
    shown = second.records["pay"].tolist()
    kept = [(y, before[n]) for n, y in zip(number[later].tolist(), shown, strict=True) if n < 72]
    assert len(kept) > 50
    assert all(one == other for one, other in kept)


def test_a_firm_that_went_against_its_owner_does_so_again_whether_it_changed_or_not() -> None:
    """Up once and down later leaves one combination of directions, and a range that is soon certain."""
    values = np.random.default_rng(4).integers(500, 700, 72)
    number = np.arange(72)
    records = firms(values, number)
    records = replace(records, ids={"id": number, "owner": number // 3})
    first = LARGE.protect(records, KEY).memory
    turned = np.where(number % 3 == 0, -1, 1) * (first.shown["pay"] - values)
    ends = np.array([listed(LARGE.factors, int(y), way)[end] for y in values + turned
                     for way in (0, 1) for end in (0, -1)]).reshape(72, 4).T  # fmt: skip
    first = replace(first, shown={**first.shown, "pay": values + turned}, reach={"pay": ends})
    later = values + np.where(number % 2 == 0, values // 40, 0)
    numbers = {**records.numbers, "pay": later}
    shown = LARGE.protect(replace(records, numbers=numbers), KEY, previous=first).records["pay"]
    assert shown[number % 2 == 1].tolist() == (values + turned)[number % 2 == 1].tolist()
    assert (np.sign(shown - later) == np.sign(turned)).all()
    for at in range(72):
        low, high = open_to_readers(
            [(int(values[at]), int(values[at] + turned[at])), (int(later[at]), int(shown[at]))]
        )
        assert (1 - LARGE.share) * high > (1 + LARGE.share) * low


def test_a_class_in_which_nothing_hides_is_refused_in_a_later_release_too() -> None:
    """A firm that was shown before keeps its noise; one of a new class of 1 to 2 units cannot be hidden."""
    values = np.r_[np.arange(3, 60), 1, 2]
    every = classed(values, (1, 3, 20))
    spec = replace(LARGE, measures=(), public_classes=("size",))
    first = spec.protect(every.take(np.arange(57)), KEY).memory
    with pytest.raises(InputError, match="cannot be hidden from readers who know their class"):
        spec.protect(every, KEY, previous=first)
    assert spec.protect(every.take(np.arange(57)), KEY, previous=first).memory.release == 1
    # What was shown, whatever it tells, does not stand in the way of what comes after.
    shown = {"staff": np.r_[first.shown["staff"], 2, 3]}
    true, number = {"staff": values}, np.arange(59, dtype=np.uint64)
    both = replace(first, record=number, true=true, shown=shown, reach={})
    again = spec.protect(every, KEY, previous=both)
    assert again.records["staff"].tolist() == shown["staff"].tolist()
