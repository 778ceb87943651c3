"""What a release remembers, what the next one keeps and what both leave open, against slow versions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from lustrum.audit.contribution import candidates, certain_within
from lustrum.model.records import Records
from lustrum.protect.magnitudes.carriers import CarriedRecords
from lustrum.protect.magnitudes.factors import SHARES, amounts, needed_factors
from lustrum.protect.magnitudes.families import families_of
from lustrum.protect.magnitudes.remembered import (
    RememberedSums,
    keep_noise,
    remember,
    sums_together,
)
from lustrum.protect.magnitudes.units import units_of
from lustrum.protect.population.start import cell_numbers
from lustrum.sensitivity.background import NOTHING
from protect.magnitudes.test_search_by_hand import KEY, SPEC, described, register

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
    assert before.find(gone)[1].tolist() == [False]
    locked = np.zeros(owners, dtype=bool)
    kept = changed = 0
    for o in range(owners):
        mine = [
            (i, k, *map(int, story[name][order[i]]))
            for i in range(int(units.first[o]), int(units.first[o + 1]))
            for k, name in enumerate(family.moved)
            if name in remembered and known[order[i]]
        ]
        mine = [one for one in mine if one[2] * one[4] > 0]  # something of the same sign
        pull = sum((shown - old) * (1 if new > 0 else -1) for _, _, old, shown, new in mine)
        locked[o] = any(old != shown for _, _, old, shown, _ in mine)
        if pull:
            sign[o] = 1 if pull > 0 else -1
        for i, k, old, shown, new in mine:
            noise = abs(shown - old)
            if noise == 0:
                continue
            if new != old:
                changed += 1
                assert found.changed[i, k]
                continue
            assert found.unchanged[i, k]
            if (abs(shown) - abs(old)) * sign[o] < 0:  # against its owner, as before
                side[i, k] = -side[i, k]
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
    return records, made, carried, remember(records, made, carried, {"p": 10.0}, 4, {})


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
    place, known = memory.find(np.array([0, *number, 200], dtype=np.uint64))
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
    assert [a.tolist() for a in empty.find(np.arange(2, dtype=np.uint64))] == [[0, 0], [False] * 2]
    found = sums_together(empty, second.memory, "wages", SPEC.factors, SPEC.share)
    assert (found.unchanged, found.changed, found.other, found.certain) == (0, 0, 0, 0)
