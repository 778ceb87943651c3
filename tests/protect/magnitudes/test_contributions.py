"""Protected contributions: units, audit and method against their definitions, one record at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import ceil
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.audit.contribution import candidates, certain_within
from lustrum.model import InputError, Measure
from lustrum.model.finest import FinestCells
from lustrum.model.keys import scramble
from lustrum.model.records import Records
from lustrum.protect.magnitudes.carriers import CarriedRecords
from lustrum.protect.magnitudes.check import ContributorAudit, audit_contributors, with_classes
from lustrum.protect.magnitudes.factors import SHARES, Factors, needed_factors
from lustrum.protect.magnitudes.hidden import certain_below
from lustrum.protect.magnitudes.method import ProtectedMagnitudes
from lustrum.protect.magnitudes.units import (
    families_of,
    identities,
    other_amounts,
    owner_shares,
    record_shares,
    units_of,
)
from lustrum.protect.population.start import derived
from lustrum.sensitivity import Background
from magnitude_registers import register

KEY = b"sixteen bytes ok"
TENTH = Fraction(1, 10)
FACTORS = needed_factors(TENTH, "known")
NARROW = Factors(SHARES // 100, SHARES // 50)


def least_and_most(size: int, factors: Factors) -> tuple[int, int]:
    low, high = ceil(factors.least * size), ceil(factors.most * size)
    return low, 2 if size >= 3 and high < 2 else high


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


@given(st.integers(0, SHARES - 1), st.integers(0, 2**64 - 1))
def test_shares_of_records_are_folded_around_that_of_their_owner(owner: int, word: int) -> None:
    words = np.array([word, ((SHARES // 2 - owner - 1) % SHARES) << 8], dtype=np.uint64)
    found = record_shares(np.full(2, owner), words)
    for share, one in zip(found.tolist(), words.tolist(), strict=True):
        moved = owner + (one >> 8) % SHARES - SHARES // 2
        moved = -moved - 1 if moved < 0 else moved
        assert share == (2 * SHARES - 1 - moved if moved >= SHARES else moved)
        assert 0 <= share < SHARES


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
            share = FACTORS.low + int(share[0]) * (FACTORS.high - FACTORS.low) // SHARES
            size = abs(values[record])
            wanted = FACTORS.chosen(np.array([size]), np.array([share]), np.array([room]))
            numbers = [int(a[0]) for a in wanted] if owner != 1 else [0, 0, 0]
            got = [int(a[place, column]) for a in (units.amount, units.low, units.high)]
            assert got == numbers
            assert units.side[place, column] == 1  # a loss moves as the profits of its owner do


def test_a_register_without_records_has_no_units() -> None:
    records = register([])
    (family,) = families_of(records.dataset.measures)
    units, order, secret = units_of(
        records, ("region",), family, FACTORS, KEY, room=0, background=Background()
    )
    assert order.size == secret.size == units.owner.size == 0
    assert units.first.tolist() == [0]


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


def is_certain(found: Sequence[Any], p: Fraction) -> bool:
    least, most = (min(found), max(found)) if found else (0, 0)
    if most < 0:
        least, most = -most, -least
    return bool(found) and (1 - p) * most <= (1 + p) * least


def openly(shown: int, true: int, way: int, factors: Factors) -> list[int]:
    """All values that can show one if noise adds, or takes away; itself where nothing has moved."""
    if shown == true:
        return [true]
    up, down = (one.get(abs(shown), []) for one in published_by(factors))
    if shown == 0:
        return [0, *(-way * x for x in down)]
    side = 1 if shown > 0 else -1
    return [side * x for x in (up if side == way else down)]


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
        "cells", "sensitive", "unprotected", "certain", "certain_with_direction", "outside",
        "close_by_chance",
    ]  # fmt: skip
    out = dict.fromkeys([*names, "from_units"], 0)
    places = [(a, r) for a in (None, 0, 1) for r in (None, 0, 1)]
    for place in places:
        inside = [
            k
            for k, cell in enumerate(cells)
            if all(want is None or want == got for want, got in zip(place, cell, strict=True))
        ]
        held: list[tuple[int, int, int, bool, int, list[int]]] = []
        for owner in sorted({owners[k] for k in inside}):
            mine = [k for k in inside if owners[k] == owner]
            value = sum(true[k] for k in mine)
            noise = sum(shown[k] - true[k] for k in mine)
            whole = cut is None or not any(cut[k] for k in mine)
            held.append((abs(value), noise, len(mine), whole, value, mine))
        held.sort(key=lambda one: -one[0])
        if not held or held[0][0] == 0:
            continue
        held += [(0, 0, 0, True, 0, [])] * (2 - len(held))
        (one, noise, pieces, whole, value, mine), (second, second_noise, _, _, runner, _) = held[:2]
        total_noise = sum(owned[1] for owned in held)
        rest = sum(owned[0] for owned in held) - one - second
        net = sum(owned[4] for owned in held) - value - runner
        gross = sum(abs(true[k]) for k in mine)
        # A piece that stays as it is tells nothing: its record has moved, and nobody knows where it did not.
        still, moved = noise == 0 and whole, noise != 0
        sensitive = p * one > rest
        out["cells"] += 1
        out["sensitive"] += sensitive
        near = abs(total_noise - second_noise) < p * one - rest
        out["unprotected"] += sensitive and (near or still)
        out["close_by_chance"] += sensitive and abs(total_noise + net) <= p * one
        size = abs(noise)
        far = size > factors.most * gross + 2 * parts * pieces or size < factors.least * gross
        out["outside"] += moved and far
        side = -1 if value < 0 else 1
        y = one + noise * side
        up, down = (way.get(y, []) for way in published_by(factors))
        either = up + down + ([0] if y == 0 else [])
        known = up if noise * side > 0 else down
        if gross != one:
            # Gains and losses: all that they leave if noise adds, and if it takes away, where both can be.
            ways = []
            for way in (1, -1):
                left = {k: openly(shown[k], true[k], way, factors) for k in range(len(true))}
                if all(left[k] for k, owner in enumerate(owners) if owner == owners[mine[0]]):
                    ways.append([sum(end(left[k]) for k in mine) for end in (min, max)])
            assume(ways)
            either, known = ways[0] + ways[-1], ways[0] if noise > 0 else ways[-1]
        out["certain"] += still or (moved and is_certain(either, p))
        known = still or (moved and is_certain(known, p))
        out["certain_with_direction"] += known
        if known and not still:
            out["from_units"] = max(out["from_units"], one)
    out["from_units"] += 1
    return out


@st.composite
def registers(draw: st.DrawFn) -> tuple[Records, np.ndarray, Factors, Fraction, bool]:
    """Distinct sums of owners, so that no two are equally large; noise of all kinds, often at a limit."""
    p = draw(st.sampled_from([TENTH, Fraction(1, 5), Fraction(1, 3)]))
    factors = FACTORS if p > Fraction(1, 5) else needed_factors(p, "known")
    number = draw(st.integers(1, 7))
    sizes = draw(st.permutations([1, 2, 4, 8, 17, 33, 70, 143, 290]))[:number]
    codes = st.integers(0, 1)
    elsewhere, losses = draw(st.booleans()), draw(st.booleans())
    if losses and not elsewhere:
        sizes = [draw(st.sampled_from([1, -1])) * size for size in sizes]
    rows = [(draw(st.integers(3, 6)), draw(codes), draw(codes), n) for n in sizes]
    noise = []
    for size in sizes:
        low, high = least_and_most(abs(size), factors)
        near = ceil(p * abs(size))
        ends = [low - 1, low, high, high + 2, high + 3, near - 1, near, 0]
        noise.append(draw(st.sampled_from([1, -1])) * draw(st.sampled_from(ends)))
    return register(rows), np.array(sizes) + np.array(noise), factors, p, elsewhere


@settings(max_examples=examples(60, 500), deadline=None)
@given(registers())
def test_the_audit_finds_what_loops_over_all_cells_find(
    world: tuple[Records, np.ndarray, Factors, Fraction, bool],
) -> None:
    """Also where other cells carry records, or pieces of them: a cell holds what it carries."""
    records, shown, factors, p, elsewhere = world
    owners, true = records.ids["owner"].tolist(), records.numbers["turnover"].tolist()
    codes = np.stack([records.codes["activity"], records.codes["region"]])
    carried, cut = None, None
    whole, values = true, shown.tolist()
    if elsewhere:
        record = np.repeat(np.arange(len(records)), 1 + np.arange(len(records)) % 3)
        codes = np.stack([(record + len(records)) % 2, record % 2]).astype(np.uint8)
        pieces = np.bincount(record)
        piece = np.concatenate([np.arange(n) for n in pieces])
        whole = [
            true[r] // pieces[r] + (piece[k] >= pieces[r] - true[r] % pieces[r])
            for k, r in enumerate(record)
        ]
        values = [w + k % 5 - 2 for k, w in enumerate(whole)]
        carried = CarriedRecords(record, codes, {"turnover": np.array(values)})
        owners, cut = [owners[r] for r in record], (pieces[record] > 1).tolist()
    found = audit_contributors(
        records, shown, "turnover", factors, p, max_variables=2, carried=carried
    )
    cells = list(zip(*codes.tolist(), strict=True))
    wanted = audited_by_hand(owners, cells, whole, values, factors, p, cut=cut)
    assert {name: getattr(found, name) for name in wanted} == wanted
    assert found.measure == "turnover"


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


def test_an_audit_is_safe_only_where_no_part_of_it_found_anything() -> None:
    clean = ContributorAudit("pay", 9, 5, 0, 0, 3, 2, 0, 1)
    assert clean.safe
    parts = ("unprotected", "certain", "outside", "certain_with_class", "known_large", "growth")
    for found in product((0, 1), repeat=6):
        audit = replace(clean, **dict(zip(parts, found, strict=True)))
        assert audit.safe == (not any(found))


PERIODS = (
    Measure("turnover", "turnover", holding="owner", earlier="before"),
    Measure("before", "before", holding="owner", parts=("home", "abroad")),
    Measure("home", "home", holding="owner"),
    Measure("abroad", "abroad", holding="owner"),
)


@settings(max_examples=examples(60, 500), deadline=None)
@given(st.data())
def test_readers_who_know_another_value_are_counted_as_lists_of_all_values_say(
    data: st.DataObject,
) -> None:
    """Gains and losses of a few owners in two periods, the earlier one in parts; some gave a waiver."""
    p = data.draw(st.sampled_from([Fraction(1, 20), TENTH, Fraction(1, 5)]))
    factors = needed_factors(p, data.draw(st.sampled_from(["known", "secret"])))
    count = data.draw(st.integers(1, 5))
    owners = [data.draw(st.integers(1, 3)) for _ in range(count)]
    ways = {o: data.draw(st.sampled_from([1, -1, 0])) for o in (1, 2, 3)}
    true: dict[str, list[int]] = {}
    shown: dict[str, list[int]] = {}
    for name in ("turnover", "home", "abroad"):
        true[name] = [
            data.draw(st.sampled_from([0, 1, -2, 5, -30, 60, -61, 90, 200])) for _ in owners
        ]
        shown[name] = []
        for x, owner in zip(true[name], owners, strict=True):
            low, high = least_and_most(abs(x), factors)
            shown[name].append(x + ways[owner] * data.draw(st.integers(low, high)))
    for column in (true, shown):
        column["before"] = [a + b for a, b in zip(column["home"], column["abroad"], strict=True)]
    rows = [(o, 0, 0, x) for o, x in zip(owners, true["turnover"], strict=True)]
    more = {n: true[n] for n in ("before", "home", "abroad")}
    records = register(rows, measures=PERIODS, **more)
    arrays = {name: np.array(column) for name, column in shown.items()}
    small = certain_below(needed_factors(p, "known"), p)
    parts = {"turnover": ["turnover"], "before": ["home", "abroad"]}
    for name, others in (("turnover", "before"), ("before", None)):
        wanted = dict.fromkeys(
            ["several", "one_known", "earlier_known", "record_known", "known_large", "growth"], 0
        )
        for k, owner in enumerate(owners):
            value, mine = true[name][k], parts[name]
            if value == 0 or shown[name][k] == value:
                continue
            held = [n for n in ("turnover", "home", "abroad") for j in range(count)
                    if owners[j] == owner and true[n][j] and (j != k or n not in mine)]  # fmt: skip
            left = {s: [openly(shown[n][k], true[n][k], s, factors) for n in mine] for s in (1, -1)}
            ends = {s: [sum(end(x) for x in left[s]) for end in (min, max)]
                    for s in (1, -1) if all(left[s])}  # fmt: skip
            known = ends[1 if shown[name][k] > value else -1]
            sure = bool(held) and is_certain(known, p)
            wanted["several"] += bool(held)
            wanted["one_known"] += sure
            earlier = others is not None and true["before"][k] != 0
            wanted["earlier_known"] += sure and earlier
            same = [j for j in range(count) if owners[j] == owner and true[name][j]]
            wanted["record_known"] += sure and len(same) > 1
            wanted["known_large"] += (
                sure and min(abs(true[n][k]) for n in mine if true[n][k]) >= small
            )
            if not earlier:
                continue
            ratios = []
            for s in ends:
                before = [openly(shown[n][k], true[n][k], s, factors) for n in parts["before"]]
                possible = all(
                    openly(shown[n][j], true[n][j], s, factors)
                    for n in ("turnover", "home", "abroad") for j in range(count) if owners[j] == owner
                )  # fmt: skip
                if possible:
                    low, high = (sum(end(x) for x in before) for end in (min, max))
                    open_sign = low <= 0 <= high
                    ratios += [
                        None if open_sign else Fraction(a, b) for a in ends[s] for b in (low, high)
                    ]
            wanted["growth"] += None not in ratios and is_certain(ratios, p)
        found = audit_contributors(
            records, arrays[name], name, factors, p, max_variables=1, others=arrays
        )
        assert {one: getattr(found, one) for one in wanted} == wanted
        assert found.small_units == small


def test_own_tables_are_looked_at_beside_those_of_fewer_variables() -> None:
    """Both by the audit and by the search, which otherwise does not look at crossed cells."""
    records = register([(k, k % 2, k // 2 % 2, 1000 + 7 * k) for k in range(40)])
    crossed = (("activity", "region"),)
    words: list[Any] = [
        {"max_variables": 1},
        {"max_variables": 1, "tables": crossed},
        {"max_variables": 2},
    ]
    true = records.numbers["turnover"]
    one, named, two = (
        audit_contributors(records, true, "turnover", FACTORS, TENTH, **w).cells for w in words
    )
    assert one < named == two
    spec = replace(SPEC, sweeps=4, search_range=0.8)
    made = [replace(spec, **w).protect(records, KEY).records["turnover"].tolist() for w in words]
    assert made[1] == made[2] != made[0]


# --- the method

SPEC = ProtectedMagnitudes(p=10, sweeps=1, max_variables=2)


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


def test_further_draws_stay_within_the_factors_and_reach_every_part_of_their_range() -> None:
    """Owner 5, who gave a waiver, keeps what it has; 4, with gains and losses, is as free as others."""
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
        if owner == 5:
            assert (draws[:, place] == units.amount[place]).all()
        else:
            assert ((draws[:, place] >= least[place]) & (draws[:, place] <= most[place])).all()
    moves = [place for place, owner in enumerate(owners) if owner != 5]
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
