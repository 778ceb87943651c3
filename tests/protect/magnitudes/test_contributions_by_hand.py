"""Protected contributions held against their definitions, in fractions and one record at a time."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import ceil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lustrum.audit.contribution import candidates, certain_within
from lustrum.model import InputError, Measure
from lustrum.model.keys import scramble
from lustrum.model.records import Records
from lustrum.protect.magnitudes.carriers import CarriedRecords
from lustrum.protect.magnitudes.check import ContributorAudit, audit_contributors, with_classes
from lustrum.protect.magnitudes.factors import SHARES, Factors, amounts, needed_factors
from lustrum.protect.magnitudes.families import families_of
from lustrum.protect.magnitudes.method import ProtectedMagnitudes
from lustrum.protect.magnitudes.units import (
    identities,
    other_amounts,
    owner_shares,
    record_shares,
    units_of,
)
from lustrum.protect.population.cells import FinestCells
from lustrum.protect.population.start import derived
from lustrum.sensitivity import Background
from magnitude_registers import register

KEY = b"sixteen bytes ok"
TENTH = Fraction(1, 10)

# --- factors


@pytest.mark.parametrize("p", [Fraction(1, 100), TENTH, Fraction(1, 7), Fraction(43, 200)])
def test_the_least_share_is_p_and_the_largest_keeps_candidates_apart(p: Fraction) -> None:
    least = Fraction(ceil(p * SHARES), SHARES)
    known, secret = needed_factors(p, "known"), needed_factors(p, "secret")
    assert known.least == secret.least == least
    # Candidates from y / (1 + b) to y / (1 + a) are wider than p on either side by one fiftieth.
    most = (1 + least) * (1 + p) / (1 - p) * Fraction(51, 50) - 1
    assert known.most == Fraction(ceil(most * SHARES), SHARES)
    assert secret.most == Fraction(ceil(least * Fraction(3, 2) * SHARES), SHARES)


@pytest.mark.parametrize(
    ("p", "directions", "sentence"),
    [
        (Fraction(0), "known", "between 0 and 100"),
        (Fraction(1), "secret", "between 0 and 100"),
        (Fraction(-1, 5), "known", "between 0 and 100"),
        (Fraction(24, 100), "known", "at most 22 percent, or use directions = 'secret'"),
        (Fraction(66, 100), "secret", "at most 65 percent"),
    ],
)
def test_a_protection_that_no_factor_can_keep_is_refused(
    p: Fraction, directions: Any, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        needed_factors(p, directions)
    assert needed_factors(Fraction(22, 100), "known").high < SHARES
    assert needed_factors(Fraction(65, 100), "secret").high < SHARES


def test_exactly_99_percent_is_too_much() -> None:
    least = Fraction(ceil(Fraction(66, 100) * SHARES), SHARES)
    assert least * Fraction(3, 2) >= Fraction(99, 100)
    below = Fraction(66, 100) - Fraction(2, SHARES)
    assert needed_factors(below, "secret").most < Fraction(99, 100)


@pytest.mark.parametrize("ends", [(0, 5), (5, 5), (6, 5), (5, SHARES), (-1, 5)])
def test_shares_lie_between_0_and_1_in_order(ends: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="0 < low < high < 1"):
        Factors(*ends)
    Factors(1, 2)
    Factors(SHARES - 2, SHARES - 1)


def least_and_most(size: int, factors: Factors) -> tuple[int, int]:
    low, high = ceil(factors.least * size), ceil(factors.most * size)
    return low, 2 if size >= 3 and high < 2 else high


FACTORS = needed_factors(TENTH, "known")
NARROW = Factors(SHARES // 100, SHARES // 50)
SIZES = [0, 1, 2, 3, 4, 9, 10, 49, 50, 51, 100, 12_345, 2**40 + 7, 2**61 + 1]


@pytest.mark.parametrize("factors", [FACTORS, NARROW])
def test_amounts_are_rounded_up_and_small_ones_reach_two(factors: Factors) -> None:
    low, high = factors.amounts(np.array(SIZES))
    wanted = [least_and_most(n, factors) for n in SIZES]
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == wanted
    shares = np.array([7, SHARES - 1] * 7)
    found = amounts(np.array(SIZES), shares)
    assert found.tolist() == [
        ceil(Fraction(n * int(s), SHARES)) for n, s in zip(SIZES, shares, strict=True)
    ]
    # The smallest part of a unit counts as one.
    assert amounts(np.array([SHARES + 1]), np.array([1])).tolist() == [2]


@pytest.mark.parametrize("factors", [FACTORS, NARROW])
@pytest.mark.parametrize("room", [0, SHARES // 3, SHARES - 1])
def test_a_share_moves_by_a_part_of_its_way_to_either_end(factors: Factors, room: int) -> None:
    middle = (factors.low + factors.high) // 2
    for share in (factors.low, factors.low + 5, middle, middle + 1, factors.high - 5, factors.high):
        got = factors.chosen(np.array(SIZES), np.full(len(SIZES), share), np.full(len(SIZES), room))
        for k, size in enumerate(SIZES):
            least, most = least_and_most(size, factors)
            amount = ceil(Fraction(size * share, SHARES))
            down = share - ((share - factors.low) * room) // SHARES
            up = share + ((factors.high - share) * room) // SHARES
            ends = ceil(Fraction(size * down, SHARES)), ceil(Fraction(size * up, SHARES))
            if most > ceil(
                factors.most * size
            ):  # one unit for every share: the upper half takes two
                amount = 2 if 2 * share > factors.low + factors.high else amount
                ends = (least, most) if room else (amount, amount)
            assert tuple(int(a[k]) for a in got) == (amount, *ends)


# --- units


def test_a_record_is_known_by_its_key_its_id_or_its_place() -> None:
    records = register([(7, 0, 0, 5), (8, 1, 1, 6), (7, 0, 1, 9)])
    records = replace(records, ids={**records.ids, "id": np.array([30, 20, 10])})
    owner, own = identities(records, "owner")
    assert (owner.tolist(), own.tolist()) == ([7, 8, 7], [30, 20, 10])
    owner, own = identities(records, None)
    assert owner.tolist() == own.tolist() == [30, 20, 10]
    keyed = replace(records, keys=np.array([5, 4, 2**63], dtype=np.uint64))
    assert identities(keyed, None)[1].tolist() == [5, 4, 2**63]
    without = replace(records, ids={"owner": records.ids["owner"]})
    assert identities(without, None)[1].tolist() == [0, 1, 2]
    unnamed = replace(records, dataset=replace(records.dataset, record_id=None))
    assert identities(unnamed, None)[1].tolist() == [0, 1, 2]
    assert owner.dtype == own.dtype == np.uint64


def test_shares_of_records_are_folded_around_that_of_their_owner() -> None:
    words = np.array([0, 255, 256, 2**28 - 1, 2**28, 2**63, 2**64 - 1], dtype=np.uint64)
    plain = [(int(w) >> 8) % SHARES for w in words]
    assert owner_shares(words).tolist() == plain
    for owner in (0, 3, SHARES // 2, SHARES - 1):
        wanted = []
        for word in plain:
            moved = owner + word - SHARES // 2
            moved = -moved - 1 if moved < 0 else moved
            wanted.append(2 * SHARES - 1 - moved if moved >= SHARES else moved)
        found = record_shares(np.full(7, owner), words)
        assert found.tolist() == wanted
        assert ((found >= 0) & (found < SHARES)).all()
    # At the very ends: -1 becomes 0, and one beyond the last the last.
    half = np.array([(SHARES // 2 - 1) << 8, (SHARES // 2) << 8], dtype=np.uint64)
    assert record_shares(np.array([0, SHARES - 1]), half).tolist() == [0, SHARES - 1]
    over = np.array([(SHARES // 2 + 1) << 8], dtype=np.uint64)
    assert record_shares(np.array([SHARES - 1]), over).tolist() == [SHARES - 1]


MEASURES = (
    Measure("turnover", "turnover", holding="owner"),
    Measure("profit", "profit", holding="owner", earlier="turnover"),
)
ROWS = [
    (9, 0, 0, 500), (4, 1, 0, 30), (9, 1, 1, 70), (6, 0, 1, 0), (4, 0, 1, 2), (5, 1, 1, 900),
]  # fmt: skip
PROFIT = [50, -7, 3, 0, 8, 100]


@pytest.mark.parametrize("release", [0, 2])
@pytest.mark.parametrize("room", [0, SHARES // 2])
def test_units_follow_from_the_key_and_the_identity_of_their_owner(release: int, room: int) -> None:
    records = register(ROWS, measures=MEASURES, profit=PROFIT)
    (family,) = families_of(MEASURES)
    background = Background(waived=[5])
    units, order, secret = units_of(
        records,
        ("region", "activity"),
        family,
        FACTORS,
        KEY,
        room=room,
        background=background,
        release=release,
    )
    # By owner, and by their own numbers within an owner.
    assert order.tolist() == [1, 4, 5, 3, 0, 2]
    assert units.owner.tolist() == [0, 0, 1, 2, 3, 3]
    assert units.first.tolist() == [0, 2, 3, 4, 6]
    assert units.codes.tolist() == [[ROWS[k][2], ROWS[k][1]] for k in order]
    owners = np.array([4, 5, 6, 9], dtype=np.uint64)
    words = scramble(derived(KEY, f"owner {family.name}"), owners)
    assert secret.tolist() == words.tolist()
    assert units.sign.tolist() == [1 if w >= 2**63 else -1 for w in words.tolist()]
    suffix = "" if release == 0 else " 2"
    for column, name in enumerate(family.moved):
        values = {"turnover": [row[3] for row in ROWS], "profit": PROFIT}[name]
        drawn = scramble(derived(KEY, f"share {name}{suffix}"), order.astype(np.uint64))
        for place, record in enumerate(order.tolist()):
            owner = int(units.owner[place])
            base = owner_shares(words[owner : owner + 1])
            share = record_shares(base, drawn[place : place + 1])
            mixed = owner == 0  # a loss beside profits: one share for all its values
            part = int(base[0] if mixed else share[0])
            share = FACTORS.low + part * (FACTORS.high - FACTORS.low) // SHARES
            size = abs(values[record])
            wanted = FACTORS.chosen(
                np.array([size]), np.array([share]), np.array([0 if mixed else room])
            )
            numbers = [int(a[0]) for a in wanted] if owner != 1 else [0, 0, 0]
            got = [int(a[place, column]) for a in (units.amount, units.low, units.high)]
            assert got == numbers
            assert units.side[place, column] == np.sign(values[record])


def test_a_register_without_records_has_no_units() -> None:
    records = register([])
    (family,) = families_of(records.dataset.measures)
    units, order, secret = units_of(
        records, ("region",), family, FACTORS, KEY, room=0, background=Background()
    )
    assert order.size == secret.size == units.owner.size == 0
    assert units.first.tolist() == [0]


def test_an_owner_with_gains_and_losses_in_different_measures_is_mixed_too() -> None:
    rows = [(1, 0, 0, 400), (1, 0, 1, 300), (2, 0, 0, 400), (2, 1, 1, 300), (3, 1, 0, 80)]
    records = register(rows, measures=MEASURES, profit=[0, -50, 0, 50, 0])
    (family,) = families_of(MEASURES)
    units, *_ = units_of(
        records, ("region",), family, FACTORS, KEY, room=SHARES // 2, background=Background()
    )
    # Only the first owner keeps one share, from which the search does not move.
    assert (units.low[:2] == units.high[:2]).all()
    assert (units.low[2:4, 0] < units.high[2:4, 0]).all()


def test_an_owner_is_mixed_by_values_on_both_sides_of_0_alone() -> None:
    rows = [(1, 0, 0, -5000), (1, 0, 1, 0), (2, 0, 0, -5000), (2, 1, 1, 1)]
    rows += [row for k in range(3, 9) for row in ((k, 0, 0, 30), (k, 1, 1, -3))]
    records = register(rows)
    (family,) = families_of(records.dataset.measures)
    moving = {
        factors: units_of(
            records, ("region",), family, factors, KEY, room=SHARES // 2, background=Background()
        )[0]
        for factors in (FACTORS, NARROW)
    }
    units = moving[FACTORS]
    assert units.low[0, 0] < units.high[0, 0]  # losses and nothing
    assert units.low[2, 0] == units.high[2, 0]  # a loss beside a single unit
    # A small amount of one unit of a mixed owner is not free to become two either.
    narrow = moving[NARROW]
    ones = narrow.amount[4:] == 1
    assert ones.any()
    assert (narrow.high[4:][ones] == 1).all()


# --- the audit


@lru_cache
def published_by(factors: Factors) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Of every published number, all contributions that can become it upwards, and downwards."""
    up: dict[int, list[int]] = {}
    down: dict[int, list[int]] = {}
    for x in range(1, 1500):
        low, high = least_and_most(x, factors)
        for amount in range(low, high + 1):
            up.setdefault(x + amount, []).append(x)
            down.setdefault(x - amount, []).append(x)
    return up, down


def is_certain(found: list[int], p: Fraction) -> bool:
    return bool(found) and (1 - p) * max(found) <= (1 + p) * min(found)


def audited_by_hand(
    owners: list[int],
    cells: list[tuple[int, int]],
    true: list[int],
    shown: list[int],
    factors: Factors,
    p: Fraction,
    parts: int = 1,
    cut: list[bool] | None = None,
) -> dict[str, int]:
    names = [
        "cells",
        "sensitive",
        "unprotected",
        "certain",
        "certain_with_direction",
        "outside",
        "close_by_chance",
    ]
    out = dict.fromkeys([*names, "from_units"], 0)
    places = [(a, r) for a in (None, 0, 1) for r in (None, 0, 1)]
    for place in places:
        inside = [
            k
            for k, cell in enumerate(cells)
            if all(want is None or want == got for want, got in zip(place, cell, strict=True))
        ]
        held: list[tuple[int, int, int, bool]] = []
        for owner in sorted({owners[k] for k in inside}):
            mine = [k for k in inside if owners[k] == owner]
            value = sum(true[k] for k in mine)
            noise = sum(shown[k] - true[k] for k in mine)
            whole = cut is None or not any(cut[k] for k in mine)
            held.append((abs(value), noise if value >= 0 else -noise, len(mine), whole))
        held.sort(key=lambda one: -one[0])
        if not held or held[0][0] == 0:
            continue
        held += [(0, 0, 0, True)] * (2 - len(held))
        (one, noise, pieces, whole), (second, second_noise, _, _) = held[:2]
        total_noise = sum(n for _, n, _, _ in held)
        rest = sum(size for size, _, _, _ in held) - one - second
        # A piece that stays as it is tells nothing: its record has moved, and nobody knows where it did not.
        still, moved = noise == 0 and whole, noise != 0
        sensitive = p * one > rest
        out["cells"] += 1
        out["sensitive"] += sensitive
        near = abs(total_noise - second_noise) < p * one - rest
        out["unprotected"] += sensitive and (near or still)
        out["close_by_chance"] += sensitive and abs(total_noise + rest) <= p * one
        size = abs(noise)
        far = size > factors.most * one + 2 * parts * pieces or size < factors.least * one
        out["outside"] += moved and far
        y = one + noise
        up, down = (way.get(y, []) for way in published_by(factors))
        either = up + down + ([0] if y == 0 else [])
        out["certain"] += still or (moved and is_certain(either, p))
        known = still or (moved and is_certain(up if noise > 0 else down, p))
        out["certain_with_direction"] += known
        if known and not still:
            out["from_units"] = max(out["from_units"], one)
    out["from_units"] += 1
    return out


def random_register(seed: int) -> tuple[Records, np.ndarray]:
    """Distinct sizes, so that no two contributors of a cell are equally large; noise of all kinds."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(4, 9))
    sizes = rng.permutation([1, 2, 4, 8, 17, 33, 70, 143, 290])[:number]
    rows = [(int(rng.integers(3, 7)), *rng.integers(0, 2, 2).tolist(), int(n)) for n in sizes]
    low, high = FACTORS.amounts(sizes)
    noise = rng.integers(low, high + 1) * rng.choice([1, -1], number)
    odd = rng.integers(0, 6, number)
    noise = np.where(
        odd == 0, 0, np.where(odd == 1, noise // 3, np.where(odd == 2, 2 * noise, noise))
    )
    return register(rows), sizes + noise


@pytest.mark.parametrize("seed", range(8))
def test_the_audit_finds_what_loops_over_all_cells_find(seed: int) -> None:
    records, shown = random_register(seed)
    owners = records.ids["owner"].tolist()
    cells = list(
        zip(records.codes["activity"].tolist(), records.codes["region"].tolist(), strict=True)
    )
    true = records.numbers["turnover"].tolist()
    for p in (TENTH, Fraction(1, 3)):
        found = audit_contributors(records, shown, "turnover", FACTORS, p, max_variables=2)
        wanted = audited_by_hand(owners, cells, true, shown.tolist(), FACTORS, p)
        assert {name: getattr(found, name) for name in wanted} == wanted
        assert found.measure == "turnover"
    # Carried elsewhere in pieces: a cell holds what it carries.
    record = np.repeat(np.arange(len(records)), 1 + np.arange(len(records)) % 3)
    codes = np.stack([(record + seed) % 2, record % 2]).astype(np.uint8)
    moved = np.arange(record.size) % 5 - 2
    pieces = np.bincount(record)
    piece = np.concatenate([np.arange(n) for n in pieces])
    whole = [
        true[r] // pieces[r] + (piece[k] >= pieces[r] - true[r] % pieces[r])
        for k, r in enumerate(record)
    ]
    values = np.array(whole) + moved
    carried = CarriedRecords(record, codes, {"turnover": values})
    found = audit_contributors(
        records, shown, "turnover", FACTORS, TENTH, max_variables=2, carried=carried
    )
    wanted = audited_by_hand(
        [owners[r] for r in record], list(zip(*codes.tolist(), strict=True)), whole,
        values.tolist(), FACTORS, TENTH, cut=(pieces[record] > 1).tolist(),
    )  # fmt: skip
    assert {name: getattr(found, name) for name in wanted} == wanted


@pytest.mark.parametrize(("number", "known"), [(1, True), (2, False), (4, False)])
def test_a_piece_that_did_not_move_is_not_known(number: int, known: bool) -> None:
    """A whole record that did not move is known to everybody; a piece may stay where its record moved."""
    records = register([(1, 0, 0, 100), (2, 0, 1, 20)])
    codes = np.array([[0] * number + [1], [*[0, 1, 0, 1][:number], 1]], dtype=np.uint8)
    values = np.array([100 // number] * number + [23])
    carried = CarriedRecords(np.array([0] * number + [1]), codes, {"turnover": values})
    found = audit_contributors(
        records, np.array([100, 23]), "turnover", FACTORS, TENTH, max_variables=1, carried=carried
    )
    assert (found.certain > 0) is known


def test_every_record_of_an_owner_rounds_up_by_itself() -> None:
    records = register([(1, 0, 0, SHARES - 5), (1, 0, 0, 5)])
    for noise, outside in ((FACTORS.high + 4, 0), (FACTORS.high + 5, 3)):
        shown = np.array([SHARES - 5 + noise, 5])
        found = audit_contributors(records, shown, "turnover", FACTORS, TENTH, max_variables=1)
        assert found.outside == outside


def test_parts_of_a_measure_round_up_one_by_one() -> None:
    measures = (
        Measure("turnover", "turnover", holding="owner", parts=("home", "export")),
        Measure("home", "home", holding="owner"),
        Measure("export", "export", holding="owner"),
    )
    records = register([(1, 0, 0, 100)], measures=measures, home=[60], export=[40])
    most = 100 * FACTORS.most
    for extra, outside in ((4, 0), (5, 1)):
        shown = np.array([100 + int(most) + extra])
        found = audit_contributors(records, shown, "turnover", FACTORS, TENTH, max_variables=1)
        assert (found.outside > 0) == bool(outside)


def audit_of_one(size: int, noise: int, p: Fraction, others: tuple[int, ...] = ()) -> Any:
    """The audit of one cell with one large contributor, whose noise is given, and still others."""
    rows = [(1, 0, 0, size), *((k + 2, 0, 0, n) for k, n in enumerate(others))]
    records = register(rows)
    shown = np.array([size + noise, *others])
    return audit_contributors(records, shown, "turnover", FACTORS, p, max_variables=1)


def test_the_audit_is_exact_at_its_limits() -> None:
    fifth = Fraction(1, 5)
    # 5, 20 and 100: the p% rule asks for a rest of 20, and there are 5 beside the two largest.
    assert audit_of_one(100, 30, fifth, (40, 20)).sensitive == 0
    assert audit_of_one(100, 30, fifth, (40, 19)).sensitive == 3
    # What is lacking is 15: an error of 15 is enough, one of 14 is not.
    assert audit_of_one(100, 15, fifth, (20, 5)).unprotected == 0
    assert audit_of_one(100, 14, fifth, (20, 5)).unprotected == 3
    # The sum less the second largest is off by 15 + 5, exactly a fifth of the largest.
    assert audit_of_one(100, 15, fifth, (20, 5)).close_by_chance == 3
    assert audit_of_one(100, 16, fifth, (20, 5)).close_by_chance == 0
    # With a share of two thirds of the largest as numerator 2 counts.
    assert audit_of_one(100, 30, Fraction(2, 3), (40, 66)).sensitive == 3
    assert audit_of_one(100, 30, Fraction(2, 3), (99, 67)).sensitive == 0
    # The sum less the second largest is off by 66 or 67, and two thirds of the largest are between.
    assert audit_of_one(100, 56, Fraction(2, 3), (40, 10)).close_by_chance == 3
    assert audit_of_one(100, 57, Fraction(2, 3), (40, 10)).close_by_chance == 0
    # Amounts from exactly the least share to the largest and two units are what everybody may know.
    for noise, outside in ((FACTORS.low, 0), (FACTORS.low - 1, 3)):
        assert audit_of_one(SHARES, noise, fifth).outside == outside
    for noise, outside in ((FACTORS.high + 2, 0), (FACTORS.high + 3, 3)):
        assert audit_of_one(SHARES, noise, fifth).outside == outside


@pytest.mark.parametrize(("directions", "percent"), [("known", 10), ("secret", 20), ("secret", 30)])
def test_a_contribution_that_shows_one_unit_has_gone_down(directions: Any, percent: int) -> None:
    """Two or three became one: with p = 20, 2.4 is within p percent of both."""
    p = Fraction(percent, 100)
    factors = needed_factors(p, directions)
    for size, noise in ((2, -1), (3, -2), (4, -2), (1, 1), (1, -1)):
        found = audit_contributors(
            register([(1, 0, 0, size)]),
            np.array([size + noise]),
            "turnover",
            factors,
            p,
            max_variables=2,
        )
        wanted = audited_by_hand([1], [(0, 0)], [size], [size + noise], factors, p)
        assert {name: getattr(found, name) for name in wanted} == wanted
        if size + noise == 1 and percent > 10:
            assert not found.safe


def test_small_contributions_are_judged_by_their_own_direction() -> None:
    for size in (1, 2, 3, 4, 7):
        records = register([(1, 0, 0, size)])
        for noise in (1, -1, 2, -2, 0):
            found = audit_contributors(
                records, np.array([size + noise]), "turnover", FACTORS, TENTH, max_variables=2
            )
            wanted = audited_by_hand([1], [(0, 0)], [size], [size + noise], FACTORS, TENTH)
            assert {name: getattr(found, name) for name in wanted} == wanted


def test_a_result_is_safe_if_nothing_was_found() -> None:
    clean = ContributorAudit("m", 9, 5, 0, 0, 3, 2, 0, 4)
    assert clean.safe
    for name in ("unprotected", "certain", "outside"):
        assert not replace(clean, **{name: 1}).safe


def test_a_table_of_one_variable_is_all_that_is_looked_at_where_only_one_is_kept() -> None:
    records, shown = random_register(3)
    one = audit_contributors(records, shown, "turnover", FACTORS, TENTH, max_variables=1)
    two = audit_contributors(records, shown, "turnover", FACTORS, TENTH, max_variables=2)
    named = audit_contributors(
        records,
        shown,
        "turnover",
        FACTORS,
        TENTH,
        max_variables=1,
        tables=(("activity", "region"),),
    )
    assert one.cells < two.cells
    assert named.cells == two.cells


# --- the method

SPEC = ProtectedMagnitudes(p=10, sweeps=1, max_variables=2)


def test_protected_records_move_one_way_for_an_owner_and_add_up() -> None:
    records = register(ROWS)
    result = SPEC.protect(records, KEY, background=Background(waived=[5]))
    shown = result.records["turnover"]
    for k, (owner, _, _, size) in enumerate(ROWS):
        moved = abs(int(shown[k]) - size)
        low, high = (0, 0) if owner == 5 else least_and_most(size, SPEC.factors)
        assert low <= moved <= high
    assert np.sign(shown - [row[3] for row in ROWS])[[0, 2]].tolist() in ([1, 1], [-1, -1])
    sums = {
        tuple(code): int(value)
        for code, value in zip(
            result.sums.codes.T.tolist(), result.sums.sums["turnover"], strict=True
        )
    }
    wanted: dict[tuple[int, int], int] = {}
    for k, (_, activity, region, _) in enumerate(ROWS):
        wanted[activity, region] = wanted.get((activity, region), 0) + int(shown[k])
    assert sums == {cell: value for cell, value in wanted.items() if value}
    assert repr(result) == "MagnitudeResult('firms')"


def test_an_empty_sum_is_listed_only_where_existence_is_public() -> None:
    records = register([(1, 0, 0, 0), (2, 1, 1, 40), (3, 1, 0, 9)])
    secret = SPEC.protect(records, KEY)
    assert secret.sums.codes.T.tolist() == [[1, 0], [1, 1]]
    public = replace(SPEC, existence="public").protect(records, KEY)
    assert public.sums.codes.T.tolist() == [[0, 0], [1, 0], [1, 1]]
    assert public.sums.sums["turnover"][0] == 0


def test_sums_are_tied_to_the_cells_that_show_somebody() -> None:
    records = register([(1, 0, 0, 70), (2, 1, 1, 40), (3, 1, 0, 9), (4, 0, 0, 3)])
    cells = FinestCells(records.dataset, np.array([[0, 1], [0, 1]]), np.array([3, 3]))
    tied = SPEC.protect(records, KEY, shown=cells)
    assert tied.sums.codes.T.tolist() == [[0, 0], [1, 1]]
    assert tied.sums.sums["turnover"].sum() == tied.records["turnover"].sum()
    free = replace(SPEC, existence="public").protect(records, KEY, shown=cells)
    assert free.sums.codes.T.tolist() == [[0, 0], [1, 0], [1, 1]]
    audit = audit_contributors(
        records, tied.records["turnover"], "turnover", SPEC.factors, SPEC.share,
        max_variables=2, carried=tied.carried,
    )  # fmt: skip
    assert audit.cells > 0


def test_held_cells_are_for_secret_existence_only() -> None:
    records = register([(k, k % 2, k // 2 % 2, 10 + k) for k in range(12)])
    cells = FinestCells(records.dataset, np.indices((2, 2)).reshape(2, -1), np.full(4, 3))
    assert replace(SPEC, existence="public").held(records, cells, 5, KEY) is None
    assert SPEC.held(records, cells, 5, KEY) is not None


def test_chosen_measures_bring_their_family() -> None:
    measures = (
        Measure("turnover", "turnover", holding="owner"),
        Measure("wages", "wages", holding="owner"),
        Measure("before", "before", holding="owner", earlier="wages"),
    )
    more = {"wages": [7, 8, 9, 3, 2, 4], "before": [5, 5, 8, 1, 1, 9]}
    records = register(ROWS, measures=measures, **more)
    assert set(SPEC.protect(records, KEY).records) == {"turnover", "wages", "before"}
    chosen = replace(SPEC, measures=("wages",)).protect(records, KEY)
    assert set(chosen.records) == {"wages", "before"}
    bare = replace(records, dataset=replace(records.dataset, measures=()))
    with pytest.raises(InputError, match="no measures"):
        SPEC.protect(bare, KEY)


def test_keys_and_values_that_cannot_be_used_are_refused() -> None:
    records = register(ROWS)
    with pytest.raises(InputError, match="at least 16 bytes"):
        SPEC.protect(records, KEY[:15])
    large = register([(1, 0, 0, 2**62), (2, 0, 1, 5)])
    with pytest.raises(InputError, match="62 bits"):
        SPEC.protect(large, KEY)
    SPEC.protect(register([(1, 0, 0, 2**62 - 1), (2, 0, 1, 5)]), KEY)
    negative = register([(1, 0, 0, -(2**62)), (2, 0, 1, 5)])
    with pytest.raises(InputError, match="62 bits"):
        SPEC.protect(negative, KEY)


def test_own_tables_are_kept_close_beside_those_of_fewer_variables() -> None:
    """With one variable at a time nobody looks at the crossed cells, unless the agency names them."""
    rows = [(k, k % 2, k // 2 % 2, 1000 + 7 * k) for k in range(40)]
    records = register(rows)
    alone = replace(SPEC, max_variables=1, sweeps=4, search_range=0.8)
    named = replace(alone, tables=(("activity", "region"),))
    both = replace(alone, max_variables=2)
    numbers = [
        spec.protect(records, KEY).records["turnover"].tolist() for spec in (alone, named, both)
    ]
    assert numbers[1] == numbers[2] != numbers[0]


def test_owners_of_an_earlier_release_keep_their_directions_and_amounts() -> None:
    """New owners are balanced around those whose numbers are out already."""
    rows = [(k, k % 2, k // 2 % 2, 1000 + 7 * k) for k in range(40)]
    spec = replace(SPEC, sweeps=6)
    first = spec.protect(register(rows[:25]), KEY)
    second = spec.protect(register(rows), KEY, previous=first.memory)
    assert second.records["turnover"][:25].tolist() == first.records["turnover"].tolist()
    noise = second.records["turnover"] - register(rows).numbers["turnover"]
    assert abs(int(noise.sum())) < 0.01 * sum(row[3] for row in rows)


def test_records_that_others_carry_stay_where_they_were() -> None:
    """The cell (1, 1) shows somebody only later, and would be nearer to many than who carries them."""
    records = register(
        [(k, k * 7 % 3, k * 5 // 3 % 3, 100 + 7 * k) for k in range(24)], sizes=(3, 3)
    )

    def showing(*places: int) -> FinestCells:
        return FinestCells(records.dataset, np.array([places, places]), np.full(len(places), 6))

    def carriers(result: Any) -> list[list[int]]:
        assert result.carried.record.tolist() == list(range(24))
        return result.carried.codes.T.tolist()

    first = SPEC.protect(records, KEY, shown=showing(0, 2))
    later = SPEC.protect(records, KEY, shown=showing(0, 1, 2), previous=first.memory)
    fresh = SPEC.protect(records, KEY, shown=showing(0, 1, 2))
    before = carriers(first)
    moved, anew = (
        sum(one != two for one, two in zip(before, carriers(result), strict=True))
        for result in (later, fresh)
    )
    # A cell that shows a count needs a sum, so that one record has to go there.
    assert moved == 1
    assert anew > 3


def test_the_report_measures_errors_where_records_are_carried() -> None:
    records = register([(k, k % 2, k // 2 % 2, 100 + 7 * k) for k in range(12)])
    shown = FinestCells(records.dataset, np.array([[0, 1], [0, 1]]), np.array([6, 6]))
    result = SPEC.protect(records, KEY, shown=shown)
    true = int(records.numbers["turnover"].sum())
    off = abs(int(result.records["turnover"].sum()) - true)
    (errors,) = result.agency.measures
    assert errors.total == pytest.approx(100 * off / true)
    # By one variable, from what each category carries.
    relative = []
    for row in range(2):
        for code in range(2):
            inside = result.carried.codes[row] == code
            own = records.codes["activity" if row == 0 else "region"] == code
            held = int(records.numbers["turnover"][own].sum())
            carried = int(result.carried.values["turnover"][inside].sum())
            relative.append(100 * abs(carried - held) / held)
    assert errors.by_variables[1] == pytest.approx(sum(relative) / 4)


def test_growth_is_stated_of_measures_with_an_earlier_period() -> None:
    measures = (
        Measure("turnover", "turnover", holding="owner"),
        Measure("wages", "wages", holding="owner"),
        Measure("now", "now", holding="owner", earlier="wages"),
    )
    rng = np.random.default_rng(3)
    rows = [(k, k % 2, k // 2 % 2, 1000 + 7 * k) for k in range(40)]
    more = {"wages": rng.integers(300, 900, 40), "now": rng.integers(300, 900, 40)}
    result = SPEC.protect(register(rows, measures=measures, **more), KEY)
    assert set(result.public.growth) == {"now"}
    assert set(result.public.errors) == {"turnover", "wages", "now"}


def test_measures_that_give_each_other_away_are_refused() -> None:
    measures = (
        Measure("turnover", "turnover", holding="owner"),
        Measure("copy", "copy", holding="owner"),
    )
    records = register(ROWS, measures=measures, copy=[row[3] for row in ROWS])
    with pytest.raises(InputError, match="equals 'copy' in every record"):
        SPEC.protect(records, KEY)


def test_a_sum_of_any_measure_lists_the_cell() -> None:
    measures = (
        Measure("turnover", "turnover", holding="owner"),
        Measure("wages", "wages", holding="owner"),
    )
    records = register([(1, 0, 0, 0), (2, 1, 1, 40)], measures=measures, wages=[60, 0])
    result = SPEC.protect(records, KEY)
    assert result.sums.codes.T.tolist() == [[0, 0], [1, 1]]
    assert result.sums.sums["turnover"][0] == 0
    assert result.sums.sums["wages"][0] > 0


def test_a_narrow_search_keeps_shares_as_they_were_drawn() -> None:
    """With no room the amounts are those of the drawn shares; only directions are balanced."""
    records = register(ROWS)
    (family,) = families_of(records.dataset.measures)
    still = replace(SPEC, search_range=0.0)
    units, order, _ = units_of(
        records, ("activity", "region"), family, still.factors,
        derived(KEY, "magnitudes turnover"), room=0, background=Background(),
    )  # fmt: skip
    made = still.protect(records, KEY).records["turnover"]
    moved = np.abs(made - records.numbers["turnover"])[order]
    assert moved.tolist() == units.amount[:, 0].tolist()


def test_the_search_keeps_cells_of_many_contributors_close() -> None:
    """Forty firms of about a thousand: noise alone would leave the total some three percent off."""
    rows = [(k, k % 2, k // 2 % 2, 1000 + 7 * k) for k in range(40)]
    records = register(rows)
    true = records.numbers["turnover"]
    drawn = replace(SPEC, search_range=0.0, sweeps=1).protect(records, KEY).records["turnover"]
    close = replace(SPEC, sweeps=8, search_range=0.8).protect(records, KEY).records["turnover"]
    assert abs(int((close - true).sum())) < 0.005 * true.sum()
    assert np.abs(close - true).tolist() != np.abs(drawn - true).tolist()


def test_a_later_release_draws_other_shares_for_records_that_are_new() -> None:
    still = replace(SPEC, search_range=0.0)
    first = still.protect(register(ROWS[:3]), KEY)
    second = still.protect(register(ROWS), KEY, previous=first.memory)
    fresh = still.protect(register(ROWS), KEY)
    assert second.records["turnover"][:3].tolist() == first.records["turnover"].tolist()
    assert second.records["turnover"][5] != fresh.records["turnover"][5]


def test_a_second_release_counts_on_and_needs_the_same_method() -> None:
    records = register(ROWS)
    first = SPEC.protect(records, KEY)
    second = SPEC.protect(records, KEY, previous=first.memory)
    assert (first.memory.release, second.memory.release) == (0, 1)
    # Nothing has changed, and nothing is drawn anew.
    assert second.records["turnover"].tolist() == first.records["turnover"].tolist()
    with pytest.raises(InputError, match="earlier sums were made with p"):
        replace(SPEC, p=12.0).protect(records, KEY, previous=first.memory)


def test_words_of_a_policy_and_the_exact_share() -> None:
    spec = ProtectedMagnitudes(7.5, "secret", 0.5, 2, (("a", "b"),), ("m",), "public", 3)
    assert spec.to_mapping() == {
        "method": "protected-magnitudes", "p": 7.5, "directions": "secret", "search_range": 0.5,
        "max_variables": 2, "tables": [["a", "b"]], "measures": ["m"], "existence": "public",
        "sweeps": 3, "leader_part": 0.25, "public_classes": [],
    }  # fmt: skip
    assert spec.share == Fraction(3, 40)
    assert spec.factors == needed_factors(Fraction(3, 40), "secret")
    with pytest.raises(InputError, match="at most 22"):
        ProtectedMagnitudes(30.0)


def test_progress_is_said_by_the_search() -> None:
    said: list[str] = []
    SPEC.protect(register(ROWS), KEY, progress=lambda what, _: said.append(what))
    assert any("balancing" in what for what in said)


# --- draws beyond the first, and classes that readers know ------------------------------------------


def test_an_audit_is_safe_only_where_no_part_of_it_found_anything() -> None:
    clean = ContributorAudit("pay", 9, 5, 0, 0, 3, 2, 0, 1)
    assert clean.safe
    parts = ("unprotected", "certain", "outside", "certain_with_class")
    for found in product((0, 1), repeat=4):
        audit = replace(clean, **dict(zip(parts, found, strict=True)))
        assert audit.safe == (not any(found))


def test_further_draws_stay_within_the_factors_and_reach_every_part_of_their_range() -> None:
    """Owners 5, who gave a waiver, and 4, with gains and losses, keep what they have."""
    rows = [(9, 0, 0, 10**9), (4, 1, 0, 10**9), (5, 0, 1, 10**9), (6, 0, 1, 7 * 10**8)]
    records = register(rows, measures=MEASURES, profit=[10**9, -(10**9), 10**9, 10**9])
    (family,) = families_of(MEASURES)
    background = Background(waived=[5])
    units, order, secret = units_of(
        records, ("region",), family, FACTORS, KEY, room=SHARES // 2, background=background
    )
    values = np.stack([records.numbers[name][order] for name in family.moved], axis=1)
    own = identities(records, family.holding)[1][order]
    given = (units, values, own, family, FACTORS, KEY, secret)
    draws = np.stack([*other_amounts(*given, 0)])
    owners = [rows[place][0] for place in order]
    size = np.abs(values)
    least, most = FACTORS.amounts(size)
    for place, owner in enumerate(owners):
        if owner in (4, 5):
            assert (draws[:, place] == units.amount[place]).all()
        else:
            assert ((draws[:, place] >= least[place]) & (draws[:, place] <= most[place])).all()
    moves = [place for place, owner in enumerate(owners) if owner in (9, 6)]
    first, ends, last = draws[:32, moves], draws[32:34, moves], draws[34:, moves]
    assert len(last) == 64
    assert np.array_equal(ends, np.stack([least[moves], most[moves]]))
    # Draws by the key: no two alike, from all of the range, and other ones in the next release.
    assert len({draw.tobytes() for draw in first}) == 32
    assert first.min() < least[moves].max() * 1.2
    shares = (first * SHARES / size[moves] - FACTORS.low) / (FACTORS.high - FACTORS.low)
    assert shares.min() < 0.15
    assert shares.max() > 0.85
    later = np.stack([*other_amounts(*given, 1)])
    assert not (later[:32, moves] == first).any()
    # At last one from each part of the range, beginning anywhere.
    parts = np.floor(
        (last * SHARES / size[moves] - FACTORS.low) * 64 / (FACTORS.high - FACTORS.low) - 1e-6
    )
    for place, measure in np.ndindex(*parts.shape[1:]):
        seen = parts[:, place, measure].astype(int)
        assert sorted(seen.tolist()) == list(range(64))
        assert set(np.diff(seen).tolist()) <= {1, -63}
    assert len({int(part) for part in parts[0].ravel()}) > 1, "each from a part of its own on"


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("width", [3, 10, 40])
def test_classes_and_what_is_shown_give_a_contribution_away_where_nothing_else_fits(
    width: int, start: int
) -> None:
    share = Fraction(1, 10)
    factors = needed_factors(share, "known")
    true = np.arange(0, 120)
    protected = true + np.where(true % 2, 1, -1) * (true // 6) * (true % 5 > 0)
    protected[1:4] = [0, 2, 0]  # small ones that are shown as nothing
    first = (true + width - start) // width * width - width + start
    last = first + width - 1
    alone = (true % 7) == 0
    records: Any = SimpleNamespace(numbers={"pay": true})
    classes: Any = SimpleNamespace(
        ends={"pay": ()},
        sizes=lambda measure, values: (first.astype(object), last.astype(object)),
        given_away=lambda measure, values, by: alone & (by == share),
    )
    certain = 0
    for at, shown in enumerate(np.abs(protected).tolist()):
        left: set[int] = {0} if shown == 0 and first[at] <= 0 else set()
        for side in ("up", "down"):
            low, high = candidates(np.array([shown]), factors.least, factors.most, side)
            left |= {x for x in range(int(low[0]), int(high[0]) + 1) if first[at] <= x <= last[at]}
        if not left or not true[at] or protected[at] == true[at] or alone[at]:
            continue
        ends = np.array([min(left)], dtype=object), np.array([max(left)], dtype=object)
        certain += bool(certain_within(*ends, share)[0])
    found = with_classes(records, classes, "pay", protected, factors, share)
    assert found == (certain, int(alone.sum()))
    assert width > 3 or certain > 5
    assert with_classes(records, classes, "debt", protected, factors, share) == (0, 0)
