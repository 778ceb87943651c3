"""Small registers: who is largest, balanced noise, carriers, held cells and second releases, one by one.

What a search finds among many allowed outcomes is held by the digest of all that it returns: the same records
and key give the same bytes in every version.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lustrum.model import Dataset, InputError, Measure
from lustrum.model.finest import FinestCells
from lustrum.model.keys import scramble
from lustrum.model.records import Records
from lustrum.protect.magnitudes import carriers
from lustrum.protect.magnitudes import held as held_module
from lustrum.protect.magnitudes.carriers import (
    KeptPlaces,
    carried_by,
    own_places,
    piece_values,
)
from lustrum.protect.magnitudes.factors import SHARES, Factors
from lustrum.protect.magnitudes.families import check_relations, families_of
from lustrum.protect.magnitudes.held import held_cells
from lustrum.protect.magnitudes.kernels import add_amounts, balance, rank_noise
from lustrum.protect.magnitudes.method import MagnitudeResult, ProtectedMagnitudes
from lustrum.protect.magnitudes.public_errors import (
    by_variables,
    errors_by_size,
    growth_by_variables,
    guesses_by_size,
    relative_errors,
)
from lustrum.protect.magnitudes.remembered import RememberedSums, keep_noise
from lustrum.protect.magnitudes.search import (
    Ranking,
    balance_leaders,
    leading_owners,
    noise_of,
    rank_cells,
    relative_scale,
    search,
)
from lustrum.protect.magnitudes.units import Units, units_of
from lustrum.protect.population.public import coarse_error
from lustrum.protect.population.search.layout import TablePlan, plan_tables
from lustrum.protect.population.search.levels import controlled_levels
from lustrum.protect.population.start import cell_numbers, derived
from lustrum.sensitivity import Background
from lustrum.sensitivity.background import NOTHING

KEY = b"a key of the agency of 32 bytes."
SPEC = ProtectedMagnitudes(p=10, sweeps=3, max_variables=2)
HALVES = [{"name": "half", "groups": [{"code": "h", "members": ["a0", "a1"]}]}]


@pytest.fixture(autouse=True)
def _words_that_overflow() -> Iterator[None]:
    """Without the compiler, words that overflow say so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
        yield


def described(*measures: dict[str, Any]) -> Dataset:
    return Dataset.from_mapping(
        {
            "dataset": {"name": "firms", "record_id": "id", "identifiers": ["owner"]},
            "variables": [
                {
                    "name": "activity",
                    "codes": ["a0", "a1", "a2", "a3"],
                    "hierarchies": [{"name": "broad", "levels": HALVES}],
                },
                {"name": "region", "codes": ["r0", "r1", "r2"]},
                {"name": "form", "codes": ["f0", "f1"]},
            ],
            "measures": list(measures),
        }
    )


PLAIN = described(
    {"name": "turnover", "holding": "owner", "parts": ["home", "abroad"]},
    {"name": "home", "holding": "owner"},
    {"name": "abroad", "holding": "owner"},
    {"name": "wages", "earlier": "wages_before"},
    {"name": "wages_before"},
)


def register(seed: int, count: int = 40, owners: int = 14, keyed: bool = False) -> Records:
    rng = np.random.default_rng(seed)
    home = np.rint(rng.lognormal(5, 2, count)).astype(np.int64)
    abroad = np.where(rng.random(count) < 0.5, 0, rng.integers(-90, 400, count))
    home[rng.random(count) < 0.1] = 0
    before = rng.integers(0, 300, count)
    wages = np.where(rng.random(count) < 0.2, before, rng.integers(0, 300, count))
    return Records(
        PLAIN,
        codes={
            "activity": rng.integers(0, 4, count).astype(np.uint8),
            "region": rng.integers(0, 3, count).astype(np.uint8),
            "form": rng.integers(0, 2, count).astype(np.uint8),
        },
        numbers={
            "turnover": home + abroad,
            "home": home,
            "abroad": abroad,
            "wages": wages,
            "wages_before": before,
        },
        ids={"id": np.arange(count) * 7 + 3, "owner": rng.integers(0, owners, count)},
        keys=rng.integers(1, 2**62, count).astype(np.uint64) if keyed else None,
    )


def codes_of(records: Records) -> np.ndarray:
    return np.stack([records.codes[v.name] for v in records.dataset.variables])


def shown_counts(records: Records, seed: int) -> FinestCells:
    """Counts of a protected population: some cells with units show 0, and some without show 3."""
    rng = np.random.default_rng(seed)
    every = np.stack(np.nonzero(np.ones((4, 3, 2))))
    held = np.isin(cell_numbers(PLAIN, every), cell_numbers(PLAIN, codes_of(records)))
    shows = np.where(held, rng.random(24) < 0.6, rng.random(24) < 0.4)
    return FinestCells(PLAIN, every[:, shows], np.full(int(shows.sum()), 3))


def inside(plan: TablePlan, codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Every controlled cell with the records that lie in it."""
    row = {v.name: place for place, v in enumerate(plan.dataset.variables)}
    for table in plan.tables:
        for place in np.ndindex(*table.shape):
            mask = np.ones(codes.shape[1], dtype=bool)
            for level, group in zip(table.levels, place, strict=True):
                mask &= level.group_of[codes[row[level.variable]]] == group
            yield int(table.places()[place]), np.flatnonzero(mask)


def made_units(records: Records, name: str = "home") -> Any:
    family = next(f for f in families_of(records.dataset.measures) if name in f.shown)
    plan = plan_tables(records.dataset, 2, (("activity", "region", "form"),))
    units, order, secret = units_of(
        records,
        plan.variables,
        family,
        SPEC.factors,
        KEY,
        room=int(0.8 * 2**20),
        background=NOTHING,
    )
    return plan, family, units, order, secret


# --- rankings -------------------------------------------------------------------------------------


def test_totals_and_the_two_largest_owners_of_every_cell_are_those_of_its_records() -> None:
    records = register(1)
    plan, _, units, order, _ = made_units(records)
    values = records.numbers["turnover"][order]
    found = rank_cells(plan, units, values)
    codes = codes_of(records)[:, order]
    for cell, rows in inside(plan, codes):
        owned: dict[int, int] = {}
        for k in rows:
            owned[int(units.owner[k])] = owned.get(int(units.owner[k]), 0) + int(values[k])
        sizes = [*sorted((abs(v) for v in owned.values()), reverse=True), 0, 0]
        assert (found.total[cell], found.first[cell], found.second[cell]) == (
            sum(sizes), sizes[0], sizes[1]
        )  # fmt: skip
        assert found.rest[cell] == sum(sizes) - sizes[0] - sizes[1]
    added = np.zeros((plan.cells, 2))
    amounts = np.stack([values, -3 * values], axis=1).astype(float)
    add_amounts(plan.layout, units.codes, amounts, added)
    for cell, rows in inside(plan, codes):
        assert added[cell].tolist() == [values[rows].sum(), -3 * values[rows].sum()]


def test_noise_is_ranked_with_the_contribution_that_it_belongs_to() -> None:
    records = register(2)
    plan, _, units, order, _ = made_units(records)
    values = records.numbers["turnover"][order]
    rng = np.random.default_rng(5)
    noise, cut = rng.integers(-9, 10, values.size), rng.integers(0, 2, values.size)
    found = np.zeros((plan.cells, 13), dtype=np.int64)
    found[:, 12] = -1
    rank_noise(plan.layout, units.codes, units.owner, values, noise, cut, found)
    for cell, rows in inside(plan, codes_of(records)[:, order]):
        owned: dict[int, list[int]] = {}
        for k in rows:
            mine = owned.setdefault(int(units.owner[k]), [0, 0, 0, 0])
            for place, part in enumerate((values[k], noise[k], 1, cut[k])):
                mine[place] += int(part)
        largest = [
            (abs(v), n if v >= 0 else -n, count, pieces) for v, n, count, pieces in owned.values()
        ]
        # Of two that are alike the one that comes first in the order of owners counts as larger.
        ranked = [*sorted(largest, key=lambda one: -one[0]), *[(0, 0, 0, 0)] * 2]
        total, first, second, one, two, every, count, pieces = found[cell, :8].tolist()
        assert total == sum(size for size, *_ in largest)
        assert every == sum(n for _, n, *_ in largest)
        assert (first, second) == (ranked[0][0], ranked[1][0])
        if ranked[0][0]:
            assert (one, count, pieces) == ranked[0][1:]
        if ranked[1][0]:
            assert two == ranked[1][1]


@pytest.mark.parametrize("scale", [1, 2**54])
def test_a_cell_is_sensitive_where_the_rest_is_below_p_percent_of_the_largest(scale: int) -> None:
    total = np.array([0, 100, 110, 111, 221, 50, 0]) * scale
    first = np.array([0, 100, 100, 100, 200, 50, 0]) * scale
    second = np.array([0, 0, 0, 0, 1, 0, 0]) * scale
    found = Ranking(total, first, second, total).sensitive((1, 10))
    # What is left: 0, 0, 10 of 100, 11 of 100, 20 of 200, 0; only below a tenth is sensitive.
    assert found.tolist() == [False, True, False, False, False, True, False]
    empty = np.zeros(0, dtype=np.int64)
    assert Ranking(empty, empty, empty, empty).sensitive((1, 10)).tolist() == []
    assert repr(Ranking(total, first, second, total)) == "Ranking(hidden)"


def test_relative_errors_are_kept_close_where_that_is_asked_for() -> None:
    totals = np.array([[4, 0], [10, 5]])
    close = np.array([[True, True], [False, True]])
    assert relative_scale(totals, close).tolist() == [[0.25, 0.0], [0.0, 0.2]]


# --- balanced noise -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["home", "wages"])
def test_balanced_noise_stays_within_its_bounds_and_adds_up(name: str) -> None:
    records = register(3)
    plan, family, units, order, secret = made_units(records, name)
    before = units.amount.copy()
    values = np.stack([records.numbers[m][order] for m in family.shown], axis=1)
    ranking = [rank_cells(plan, units, np.ascontiguousarray(v)) for v in values.T]
    totals = np.stack([r.total for r in ranking], axis=1)
    scale = relative_scale(totals, totals > 0)
    locked = np.arange(units.sign.size) % 5 == 0
    signs = units.sign.copy()
    errors = search(plan, units, family, scale, secret, KEY, 3, locked)
    assert ((units.low <= units.amount) & (units.amount <= units.high)).all()
    assert set(units.sign.tolist()) <= {-1, 1}
    assert np.array_equal(units.sign[locked], signs[locked])
    mine = locked[units.owner]
    assert np.array_equal(units.amount[mine], before[mine])
    assert (units.sign != signs).any()
    assert (units.amount != before).any()
    noise = family.added(noise_of(units))
    for cell, rows in inside(plan, codes_of(records)[:, order]):
        assert errors[cell] == pytest.approx(noise[rows].sum(axis=0), abs=1e-6)

    def cost(these: np.ndarray) -> float:
        return float((np.abs(these) * scale).sum())

    start = np.zeros_like(errors)
    plain = signs[units.owner][:, None] * units.side * before
    add_amounts(plan.layout, units.codes, family.added(plain).astype(float), start)
    assert cost(errors) < cost(start)


def plainly_balanced(
    units: Any, rows_of: list[np.ndarray], order: Any, weights: np.ndarray
) -> tuple[list[int], list[list[int]]]:
    """Visit owners one by one and try every direction and amount; measures are shown as they are moved."""
    sign, amount = units.sign.tolist(), units.amount.tolist()
    measures = range(weights.shape[1])

    def cost(k: int) -> float:
        noise = [sign[o] * int(units.side[i, k]) * amount[i][k] for i, o in enumerate(units.owner)]
        sums = np.array([sum(noise[i] for i in rows) for rows in rows_of], dtype=float)
        return float((weights[:, k] * sums * sums).sum())

    def settle(record: int) -> float:
        for k in measures:
            prices = {}
            for one in range(int(units.low[record, k]), int(units.high[record, k]) + 1):
                amount[record][k] = one
                prices[one] = cost(k)
            amount[record][k] = min(prices, key=prices.__getitem__)
        return sum(cost(k) for k in measures)

    for o in order:
        own = range(int(units.first[o]), int(units.first[o + 1]))
        begun = [list(amount[i]) for i in own]
        found = []
        for way in (sign[o], -sign[o]):
            sign[o] = way
            for i, one in zip(own, begun, strict=True):
                amount[i] = list(one)
            # The only record of an owner is settled in both directions, several ones in the cheaper one.
            price = settle(own[0]) if len(own) == 1 else sum(cost(k) for k in measures)
            found.append((price, way, [list(amount[i]) for i in own]))
        _, sign[o], chosen = min(found, key=lambda one: one[0])
        for i, one in zip(own, chosen, strict=True):
            amount[i] = one
        if len(own) > 1:
            for i in own:
                settle(i)
    return sign, amount


@pytest.mark.parametrize("seed", range(4))
def test_an_owner_takes_the_cheaper_direction_and_every_record_its_cheapest_amount(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    pay = described(
        {"name": "pay", "holding": "owner", "earlier": "pay_before"},
        {"name": "pay_before", "holding": "owner"},
    )
    owner = np.array([0, 1, 1, 2, 3, 3, 3, 4, 5, 5])
    count = owner.size
    records = Records(
        pay,
        codes={v.name: rng.integers(0, 2, count).astype(np.uint8) for v in pay.variables},
        numbers={n: rng.integers(-40, 60, count) for n in ("pay", "pay_before")},
        ids={"id": np.arange(count), "owner": owner},
    )
    plan, family, units, order, _ = made_units(records, "pay")
    rows_of = [np.zeros(0, dtype=int)] * plan.cells
    for cell, rows in inside(plan, codes_of(records)[:, order]):
        rows_of[cell] = rows
    weights = rng.random((plan.cells, 2))
    errors = np.zeros_like(weights)
    add_amounts(plan.layout, units.codes, noise_of(units).astype(float), errors)
    before = units.sign.copy()
    turns = rng.permutation(6)
    sign, amount = plainly_balanced(units, rows_of, turns, weights)
    balance(plan.layout, units, turns, family.adds, weights, errors)
    assert units.sign.tolist() == sign
    assert units.amount.tolist() == amount
    assert (units.sign != before).any()
    noise = noise_of(units)
    for cell, rows in enumerate(rows_of):
        assert errors[cell] == pytest.approx(noise[rows].sum(axis=0), abs=1e-6)


@pytest.mark.parametrize("place", [0, 1])
def test_a_direction_is_judged_by_the_best_amounts_that_it_allows(place: int) -> None:
    """With amounts of 10 and 1 the other way is cheaper, 49 + 25 and not 169 + 9; with the best ones, it is 25
    and not 16. The other owner of the cell, with noise of 3 and -4, is not visited."""
    pay = described({"name": "pay", "earlier": "pay_before"}, {"name": "pay_before"})
    plan = plan_tables(pay, 1)
    rows = [0, 1] if place == 0 else [1, 0]
    amount = np.array([[10, 1], [3, 4]])[rows]
    side, low = np.array([[1, 1], [1, -1]])[rows], np.array([[1, 1], [3, 4]])[rows]
    high = np.array([[20, 20], [3, 4]])[rows]
    codes = np.zeros((2, 3), dtype=np.uint32)
    ones = np.ones(2, dtype=np.int64)
    units = Units(codes, np.arange(2), np.arange(3), ones, side, low, high, amount)
    errors = np.zeros((plan.cells, 2))
    add_amounts(plan.layout, codes, noise_of(units).astype(float), errors)
    adds = families_of(pay.measures)[0].adds
    balance(plan.layout, units, np.array([place]), adds, np.ones_like(errors), errors)
    assert units.sign.tolist() == [1, 1]
    assert units.amount[place].tolist() == [1, 4]
    assert units.amount[1 - place].tolist() == [3, 4]


def test_an_owner_with_just_the_stated_part_of_a_cell_does_not_lead_it() -> None:
    """Records of 2, 1, 1 and of another owner 4 and 0 units: a half, a quarter, and two records of it."""
    values = np.array([2, 1, 1, 4, 0])
    pay = described({"name": "pay", "holding": "owner"})
    records = Records(
        pay,
        codes={v.name: np.array([0, 0, 0, 1, 1], dtype=np.uint8) for v in pay.variables},
        numbers={"pay": values},
        ids={"id": np.arange(5), "owner": np.array([0, 1, 2, 3, 3])},
    )
    plan, _, units, order, _ = made_units(records, "pay")
    assert order.tolist() == list(range(5))
    scale = np.zeros((plan.cells, 1))
    for cell, rows in inside(plan, codes_of(records)):
        if rows.tolist() == [0, 1, 2]:
            scale[cell] = 0.25  # one over the total; cells of the last owner cost nothing

    def leaders(part: float) -> list[bool]:
        return leading_owners(plan, units, values[:, None], scale, part).tolist()

    assert leaders(0.25) == [True, False, False, False]
    assert leaders(0.24) == [True, True, True, False]
    assert leaders(0.5) == [False] * 4


def balanced(values: np.ndarray, leading: np.ndarray, secret: np.ndarray) -> np.ndarray:
    count = values.shape[0]
    none = np.zeros((count, 1), dtype=np.int64)
    first, sign = np.arange(count + 1), np.ones(count, dtype=np.int64)
    units = Units(none, np.arange(count), first, sign, none, none, none, none)
    balance_leaders(units, values, leading, secret)
    return units.sign


def test_leaders_are_compared_by_their_parts_of_all_measures() -> None:
    """A large number of one measure says nothing beside a part of another; half of each sixteen go up."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = np.stack([rng.permutation(48) * 1000, rng.permutation(48) * -1], axis=1)
        secret = rng.permutation(10**6)[:48].astype(np.uint64)
        sign = balanced(values, np.ones(48, dtype=bool), secret)
        parts = [
            sum((Fraction(abs(int(v)), int(np.abs(values[:, k]).sum())) for k, v in enumerate(row)),
                Fraction(0))
            for row in values
        ]  # fmt: skip
        ranked = sorted(range(48), key=lambda o: (-parts[o], secret[o]))
        for start in (0, 16, 32):
            assert sign[ranked[start : start + 16]].sum() == 0


def test_the_whole_of_a_measure_of_one_unit_is_more_than_parts_of_others() -> None:
    """Owner 0 has all of one measure, sixteen others 3 of 5 units of one each, and the last one the rest."""
    values = np.zeros((18, 17), dtype=np.int64)
    values[0, 0] = 1
    for k in range(1, 17):
        values[k, k], values[17, k] = 3, 2
    leading = np.arange(18) < 17
    secret = np.arange(100, 118).astype(np.uint64)
    sign = balanced(values, leading, secret)
    # Of the sixteen that are alike, the one with the largest word is left over and stays as it was.
    assert sign[:16].sum() == 0
    assert sign[16] == sign[17] == 1


# --- families -------------------------------------------------------------------------------------


def test_measures_that_add_up_or_follow_each_other_are_one_family() -> None:
    first, second = families_of(PLAIN.measures)
    assert (first.name, first.moved, first.shown) == (
        "abroad", ("home", "abroad"), ("turnover", "home", "abroad")
    )  # fmt: skip
    assert first.adds.tolist() == [[True, True], [True, False], [False, True]]
    assert first.holding == "owner"
    assert first.added(np.array([[5, 7]])).tolist() == [[12, 5, 7]]
    assert (second.name, second.moved, second.shown, second.holding) == (
        "wages", ("wages", "wages_before"), ("wages", "wages_before"), None
    )  # fmt: skip
    assert second.adds.tolist() == [[True, False], [False, True]]
    chain = (
        Measure("a", "a", earlier="b"), Measure("b", "b", earlier="c"), Measure("c", "c"),
        Measure("d", "d"),
    )  # fmt: skip
    assert [f.shown for f in families_of(chain)] == [("a", "b", "c"), ("d",)]
    assert families_of(()) == ()


def test_relations_that_are_wrong_or_not_stated_are_refused() -> None:
    records = register(4)
    families = families_of(PLAIN.measures)
    check_relations(records, families)

    def changed(**columns: Any) -> Records:
        return replace(records, numbers={**records.numbers, **columns})

    one = records.numbers["turnover"].copy()
    one[-1] += 1
    with pytest.raises(InputError, match="'turnover' is not the sum of its parts"):
        check_relations(changed(turnover=one), families)
    home = records.numbers["home"]
    with pytest.raises(InputError, match=r"equals .*'wages' in every record"):
        check_relations(changed(wages=home), families)
    both = home + records.numbers["wages"]
    with pytest.raises(InputError, match="'wages_before' equals 'home' and 'wages' in"):
        check_relations(changed(wages_before=both), families)
    # Nothing at all equals nothing, and a sum of which one part is nothing is that part.
    nothing = np.zeros_like(home)
    check_relations(changed(wages=nothing), families)
    check_relations(changed(**dict.fromkeys(records.numbers, nothing)), families)
    almost = home.copy()
    almost[-1] += 1
    check_relations(changed(wages=almost), families)


def test_a_relation_that_holds_in_a_sample_alone_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    records = register(4)
    almost = records.numbers["home"].copy()
    almost[-1] += 1
    monkeypatch.setattr("lustrum.protect.magnitudes.families._SAMPLED", 5)
    close = replace(records, numbers={**records.numbers, "wages": almost})
    check_relations(close, families_of(PLAIN.measures))
    same = replace(records, numbers={**records.numbers, "wages": records.numbers["home"]})
    with pytest.raises(InputError, match=r"equals .*'wages'"):
        check_relations(same, families_of(PLAIN.measures))


def test_a_relation_of_measures_that_begin_after_the_sample_is_found() -> None:
    """Two copies of one number that are protected apart give it away, wherever its records stand."""
    count = 4700
    rng = np.random.default_rng(8)
    late = np.where(np.arange(count) < 4500, 0, rng.integers(1, 99, count))
    first, second = rng.integers(1, 99, (2, count))
    names = ("pay", "bonus", "rent", "tax")
    dataset = described(*({"name": name} for name in names))
    families = families_of(dataset.measures)

    def check(*columns: np.ndarray) -> None:
        numbers = dict(zip(names, columns, strict=True))
        codes = {v.name: np.zeros(columns[0].size, dtype=np.uint8) for v in dataset.variables}
        check_relations(Records(dataset, codes=codes, numbers=numbers), families)

    check(first, second, late, late // 2)
    with pytest.raises(InputError, match="'rent' equals 'tax' in every record"):
        check(first, second, late, late.copy())
    with pytest.raises(InputError, match="'bonus' equals 'pay' and 'tax' in every record"):
        check(first, first + late, second, late)
    # Fewer records than measures, and one alone.
    check(first[:2], second[:2], np.array([0, 7]), np.array([1, 0]))
    with pytest.raises(InputError, match="'rent' equals 'tax' in every record"):
        check(first[:1], first[:1] + 1, np.array([5000]), np.array([5000]))


def test_sums_of_two_periods_are_stated_with_their_own_parts_alone() -> None:
    parts = {"now": ("a", "b"), "before": ("c", "d")}
    dataset = described(
        {"name": "now", "parts": ["a", "b"], "earlier": "before"},
        {"name": "before", "parts": ["c", "d"]},
        *({"name": name} for name in "abcd"),
    )
    rng = np.random.default_rng(9)
    numbers = {name: rng.integers(1, 999, 30) for name in "abcd"}
    numbers |= {name: numbers[p] + numbers[q] for name, (p, q) in parts.items()}
    codes = {v.name: np.zeros(30, dtype=np.uint8) for v in dataset.variables}
    (family,) = families_of(dataset.measures)
    check_relations(Records(dataset, codes=codes, numbers=numbers), [family])
    numbers["before"] = numbers["now"]
    numbers["c"], numbers["d"] = numbers["a"] + 1, numbers["b"] - 1
    with pytest.raises(InputError, match="'now' equals 'before' in every record"):
        check_relations(Records(dataset, codes=codes, numbers=numbers), [family])


# --- held cells -----------------------------------------------------------------------------------


def plain_held(
    records: Records, measures: tuple[str, ...], cells: FinestCells, base: int, key: bytes
) -> list[int]:
    """Cells in the order of their worth, each taken while all of its categories have a budget left."""
    codes = [tuple(c) for c in cells.codes.T.tolist()]
    worth = [Fraction(0)] * len(codes)
    for name in measures:
        own = [Fraction(0)] * len(codes)
        for k, column in enumerate(codes_of(records).T.tolist()):
            own[codes.index(tuple(column))] += abs(int(records.numbers[name][k]))
        total = sum(own)
        if total:
            worth = [max(w, o / total) for w, o in zip(worth, own, strict=True)]
    numbers = cell_numbers(records.dataset, cells.codes)
    words = scramble(derived(key, "held"), numbers if cells.keys is None else cells.keys)
    row = {v.name: place for place, v in enumerate(records.dataset.variables)}
    levels = [level for many in controlled_levels(records.dataset).values() for level in many]
    left: dict[tuple[int, int], float] = {}
    for c, count in zip(codes, cells.counts.tolist(), strict=True):
        for number, level in enumerate(levels):
            at = (number, int(level.group_of[c[row[level.variable]]]))
            left[at] = left.get(at, 0.0) + 0.4 * (count % base / base)
    chosen = []
    order = sorted(range(len(codes)), key=lambda k: (-worth[k], int(words[k])))
    for k in order:
        count = int(cells.counts[k])
        if not 0 < count < base or int(words[k]) % 10 == 0 or worth[k] <= Fraction(1, len(records)):
            continue
        mine = [(n, int(lv.group_of[codes[k][row[lv.variable]]])) for n, lv in enumerate(levels)]
        if all(left[at] >= 1.0 - 1e-12 for at in mine):
            for at in mine:
                left[at] -= 1.0
            chosen.append(int(numbers[k]))
    return chosen


@pytest.mark.parametrize("keyed", [False, True])
def test_cells_with_the_largest_values_are_held_as_far_as_categories_allow(keyed: bool) -> None:
    chosen = 0
    for seed in range(6):
        records = register(seed, 60 if seed % 2 else 200, keyed=keyed)
        _, counts = np.unique(cell_numbers(PLAIN, codes_of(records)), return_counts=True)
        every, first = np.unique(codes_of(records), axis=1, return_index=True)
        keys = scramble(KEY[:16], first.astype(np.uint64)) if keyed else None
        cells = FinestCells(PLAIN, every, counts, keys)
        for base in (3, 7, 12):
            names = ("home", "abroad", "wages")
            found = held_cells(records, names, cells, base, KEY)
            assert found.tolist() == plain_held(records, names, cells, base, KEY)
            chosen += found.size
    assert chosen > 5
    nothing = replace(records, numbers={n: 0 * v for n, v in records.numbers.items()})
    assert held_cells(nothing, ("home",), cells, 12, KEY).size == 0
    assert held_module._LEFT_TO_CHANCE == 10


def test_only_sums_that_are_tied_to_counts_hold_cells() -> None:
    records = register(1, 200)
    every, counts = np.unique(codes_of(records), axis=1, return_counts=True)
    cells = FinestCells(PLAIN, every, counts)
    found = SPEC.held(records, cells, 12, KEY)
    names = tuple(m.name for m in PLAIN.measures)
    assert found is not None
    expected = held_cells(records, names, cells, 12, derived(KEY, "held cells"))
    assert found.tolist() == expected.tolist()
    assert replace(SPEC, existence="public").held(records, cells, 12, KEY) is None


# --- carriers -------------------------------------------------------------------------------------


def test_pieces_of_a_value_differ_by_one_at_most_and_add_up() -> None:
    for whole in (-7, -1, 0, 1, 5, 32, 2**62):
        for pieces in (1, 2, 3, 32):
            parts = piece_values(
                np.full(pieces, whole), np.arange(pieces), np.full(pieces, pieces)
            ).tolist()
            assert sum(parts) == whole
            assert max(parts) - min(parts) <= 1
            assert parts == sorted(parts)


def test_a_record_has_its_own_cell_where_that_shows_somebody() -> None:
    shown = FinestCells(PLAIN, np.array([[0, 0, 3], [0, 2, 1], [1, 0, 1]]), [3, 3, 6])
    codes = np.array([[0, 3, 0, 3, 0], [0, 1, 2, 2, 0], [1, 1, 0, 1, 0]])
    assert own_places(PLAIN, codes, shown).tolist() == [0, 2, 1, -1, -1]
    none = FinestCells(PLAIN, np.zeros((3, 0), dtype=int), np.zeros(0, dtype=int))
    assert own_places(PLAIN, codes, none).tolist() == [-1] * 5


@pytest.mark.parametrize("seed", range(5))
def test_every_shown_cell_carries_a_whole_record_and_nothing_is_lost(seed: int) -> None:
    records = register(seed, 60)
    shown = shown_counts(records, seed)
    codes = codes_of(records)
    plan = plan_tables(PLAIN, 2)
    values = np.stack([records.numbers["home"], records.numbers["wages"]], axis=1)
    values[:3] = 0
    identity = np.arange(60, dtype=np.uint64) * np.uint64(7) + np.uint64(3)
    found = carried_by(plan, codes, values, identity, shown, KEY, sweeps=2)
    assert ((found.carrier >= 0) & (found.carrier < len(shown))).all()
    own = own_places(PLAIN, codes, shown)
    whole = found.pieces == 1
    valued = (values != 0).any(axis=1)
    for cell in range(len(shown)):
        assert (whole & valued[found.record] & (found.carrier == cell)).any()
    # Records that are cut have all their pieces, in order; those whose cell shows somebody are not cut.
    for record in range(60):
        mine = found.record == record
        count = int(found.pieces[mine][0])
        assert found.pieces[mine].tolist() == [count] * count
        assert found.piece[mine].tolist() == list(range(count))
        assert count == 1 or own[record] < 0
    for column in values.T:
        parts = found.values(column)
        added = np.zeros(60, dtype=np.int64)
        np.add.at(added, found.record, parts)
        assert np.array_equal(added, column)
    # One that leaves a cell that shows somebody leaves others behind.
    moved = own[found.record] != found.carrier
    for cell in np.unique(own[found.record][moved & (own[found.record] >= 0)]):
        assert (whole & valued[found.record] & (found.carrier == cell)).any()
    assert repr(found) == "Carried(hidden)"


def test_sums_that_no_cell_can_carry_are_refused() -> None:
    records = register(1, 20)
    plan, codes = plan_tables(PLAIN, 2), codes_of(register(1, 20))
    values = records.numbers["home"][:, None]
    identity = np.arange(20, dtype=np.uint64)
    none = FinestCells(PLAIN, np.zeros((3, 0), dtype=int), np.zeros(0, dtype=int))
    with pytest.raises(InputError, match="No cell of the protected population shows anybody"):
        carried_by(plan, codes, values, identity, none, KEY, sweeps=1)
    every = FinestCells(PLAIN, np.stack(np.nonzero(np.ones((4, 3, 2)))), np.full(24, 3))
    with pytest.raises(InputError, match="More cells show somebody than there are records"):
        carried_by(plan, codes, values, identity, every, KEY, sweeps=1)
    few = carried_by(plan, codes[:, :0], values[:0], identity[:0], none, KEY, sweeps=1)
    assert few.record.size == 0


def test_records_stay_where_an_earlier_release_put_them_while_those_cells_show_somebody() -> None:
    shown = FinestCells(PLAIN, np.array([[0, 0, 3], [0, 2, 1], [1, 0, 1]]), [3, 3, 6])
    number = cell_numbers(PLAIN, shown.codes)
    gone = np.uint64(23)
    own = np.array([-1, -1, 1, 1, -1, 2])
    kept = KeptPlaces(
        np.array([0, 1, 1, 2, 3, 3, 4, 4, 5]),
        np.array([number[2], number[0], number[1], number[0], number[0], number[2],
                  number[0], gone, number[2]]),
    )  # fmt: skip
    found = kept.places(own, shown)
    # Record 3 was cut and its own cell shows somebody now; a cell of record 4 is gone; 5 is at home.
    assert {k: v.tolist() for k, v in found.items()} == {0: [2], 1: [0, 1], 2: [0]}
    none = FinestCells(PLAIN, np.zeros((3, 0), dtype=int), np.zeros(0, dtype=int))
    assert kept.places(own, none) == {}
    assert KeptPlaces.nothing().places(own, shown) == {}
    assert repr(kept) == "KeptPlaces(hidden)"


# --- what a release remembers ---------------------------------------------------------------------


def test_remembered_noise_is_kept_for_the_same_value_alone() -> None:
    records = register(6, 12, 12)
    family = families_of(PLAIN.measures)[1]
    plan = plan_tables(PLAIN, 2)
    units, order, _ = units_of(
        records,
        plan.variables,
        family,
        SPEC.factors,
        KEY,
        room=int(0.8 * 2**20),
        background=NOTHING,
    )
    true = records.numbers["wages"][order].astype(np.int64)
    identity = records.ids["id"][order].astype(np.uint64)
    old = true.copy()
    old[1] = int(true[1] * 1.05)  # nearly the same
    old[2] = 3 * true[2] + 50  # quite another
    old[3] = -true[3] - 1  # another sign
    amount = SPEC.factors.amounts(np.abs(old))[0]
    up = np.arange(12) % 2 == 0
    shown = old + np.where(up, 1, -1) * np.sign(old) * amount
    back = np.argsort(identity)
    keep = back[np.arange(12) != np.flatnonzero(back == 4)[0]]  # record 4 is new
    zeros = np.zeros((3, keep.size), dtype=np.int64)
    before = RememberedSums(
        {}, 0, identity[keep], {"wages": old[keep]}, {"wages": shown[keep]}, zeros,
        np.arange(keep.size), zeros,
    )  # fmt: skip
    signs, amounts_before = units.sign.copy(), units.amount.copy()
    found = keep_noise(units, family, order, records, SPEC.factors, before)
    locked = found.owners
    k = family.moved.index("wages")
    for i in range(12):
        o = int(units.owner[i])
        known = i != 4 and old[i] * true[i] > 0 and amount[i] > 0
        assert locked[o] == known
        assert units.sign[o] == ((1 if up[i] else -1) if known else signs[o])
        if known and old[i] == true[i]:
            assert units.low[i, k] == units.high[i, k] == units.amount[i, k] == amount[i]
        else:
            assert units.amount[i, k] == amounts_before[i, k]
        assert found.unchanged[i, k] == (known and old[i] == true[i])
        assert found.changed[i, k] == (known and old[i] != true[i])
        assert units.amount[i, 1 - k] == amounts_before[i, 1 - k]
    before.require_same_method({})
    with pytest.raises(InputError, match="earlier sums were made with"):
        replace(before, method={"p": 5.0}).require_same_method({"p": 6.0})


# --- whole results --------------------------------------------------------------------------------


def result(name: str) -> MagnitudeResult:
    if name == "alone":
        return SPEC.protect(register(10), KEY)
    if name == "public":
        return replace(SPEC, existence="public").protect(
            register(11, keyed=True), KEY, background=Background(waived=[3, 5])
        )
    if name == "one measure":
        spec = replace(SPEC, measures=("wages",), directions="secret", search_range=0.3)
        return spec.protect(register(12), KEY)
    records = register(13, 44, keyed=True)
    first = SPEC.protect(records, KEY, shown=shown_counts(records, 13))
    if name == "tied":
        return first
    rng = np.random.default_rng(14)
    numbers = {n: v.copy() for n, v in records.numbers.items()}
    numbers["home"][rng.random(44) < 0.2] += 40
    numbers["wages"][rng.random(44) < 0.2] += 3
    numbers["turnover"] = numbers["home"] + numbers["abroad"]
    codes = {n: v.copy() for n, v in records.codes.items()}
    codes["region"][rng.random(44) < 0.1] = 0
    later = replace(records, numbers=numbers, codes=codes).take(np.arange(4, 44))
    return SPEC.protect(later, KEY, shown=shown_counts(records, 15), previous=first.memory)


DIGESTS = {
    "alone": "eb9464e00e05d4bc",
    "public": "18b1680bf845529d",
    "one measure": "f0331107296b981f",
    "tied": "520693489df70725",
    "second": "f5ac11f9c2115823",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_the_same_records_and_key_give_the_same_bytes_in_every_version(name: str) -> None:
    made = result(name)
    digest = hashlib.sha256()

    def add(*arrays: Any) -> None:
        for array in arrays:
            digest.update(np.ascontiguousarray(array).astype(np.int64).tobytes())

    add(made.sums.codes, *made.sums.sums.values(), *made.records.values())
    add(made.carried.record, made.carried.codes, *made.carried.values.values())
    memory = made.memory
    add(memory.record, memory.home, memory.carried, memory.cell)
    add(*memory.true.values(), *memory.shown.values())
    words = json.dumps([made.public.to_mapping(), memory.release, dict(memory.method)])
    digest.update(words.encode())
    figures = [
        (m.measure, m.cells, m.sensitive, round(m.mean, 6), round(m.median, 6), round(m.total, 6),
         sorted((k, round(v, 6)) for k, v in m.by_variables.items()))
        for m in made.agency.measures
    ]  # fmt: skip
    digest.update(json.dumps(figures).encode())
    assert digest.hexdigest()[:16] == DIGESTS[name]


def test_sums_of_a_version_with_another_order_keep_their_numbers_by_their_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = register(13, 44, keyed=True)
    shown = shown_counts(records, 13)
    near = carriers._near

    def other_order(places: Any, dataset: Any, codes: Any, word: Any, others: Any, key: Any) -> Any:
        """Records of one cell in the opposite order."""
        found = near(places, dataset, codes, word, others[:, ::-1], key)
        return np.where(found < 0, found, others.shape[1] - 1 - found)

    with monkeypatch.context() as earlier:
        earlier.setattr(carriers, "_near", other_order)
        before = SPEC.protect(records, KEY, shown=shown)
    anew = SPEC.protect(records, KEY, shown=shown)
    again = SPEC.protect(records, KEY, shown=shown, previous=before.memory)
    assert any((anew.sums.sums[m] != before.sums.sums[m]).any() for m in before.sums.sums)
    assert np.array_equal(again.sums.codes, before.sums.codes)
    for measure, sums in before.sums.sums.items():
        assert again.sums.sums[measure].tolist() == sums.tolist()
        assert again.records[measure].tolist() == before.records[measure].tolist()


@pytest.mark.parametrize("name", ["tied", "second"])
def test_a_finest_cell_has_a_sum_exactly_where_it_shows_a_count(name: str) -> None:
    made = result(name)
    records = register(13, 44, keyed=True)
    shown = shown_counts(records, 13 if name == "tied" else 15)
    assert np.array_equal(made.sums.codes, shown.codes)
    for measure, values in made.records.items():
        assert made.sums.sums[measure].sum() == values.sum()
    assert np.array_equal(
        made.sums.sums["turnover"], made.sums.sums["home"] + made.sums.sums["abroad"]
    )


# --- public errors --------------------------------------------------------------------------------


def test_public_errors_are_coarse_means_that_rise_with_the_number_of_variables() -> None:
    total = np.array([0, 10, 200, 50])
    noise = np.array([5.0, 3.0, -10.0, 75.0])
    assert relative_errors(total, noise).tolist() == [100.0, 30.0, 5.0, 100.0]
    rng = np.random.default_rng(3)
    variables = np.repeat([0, 1, 2, 3, 4], [1, 60, 30, 80, 20])
    errors = rng.random(191) * np.repeat([1, 30, 10, 20, 40], [1, 60, 30, 80, 20])
    chosen = rng.random(191) < 0.95
    found = by_variables(errors, chosen, variables, KEY, "pay", 77.0)

    def mean(*kinds: int) -> float:
        return float(errors[chosen & np.isin(variables, kinds)].mean())

    # Two variables have too few cells and join three; four join those before them.
    one = coarse_error(mean(1), KEY, "pay 1")
    assert found == {1: one, 4: max(one, coarse_error(mean(2, 3, 4), KEY, "pay 4"))}
    assert by_variables(errors, chosen & (variables > 3), variables, KEY, "pay", 77.0) == {4: 77.0}
    assert by_variables(errors[:1], chosen[:1], variables[:1], KEY, "pay", 77.0) == {1: 77.0}
    exact = np.repeat([1, 2], [50, 50])
    both = by_variables(np.repeat([9.0, 3.0], 50), np.ones(100, bool), exact, KEY, "x", 1.0)
    assert both == {1: coarse_error(9.0, KEY, "x 1"), 2: coarse_error(9.0, KEY, "x 1")} or (
        both[2] == max(both[1], coarse_error(3.0, KEY, "x 2"))
    )


def test_errors_of_negative_sums_are_shares_of_their_size() -> None:
    assert relative_errors(np.array([-10, -200]), np.array([3.0, -10.0])).tolist() == [30.0, 5.0]
    total, noise = np.repeat([-50, 500], 60), np.repeat([-5.0, 10.0], 60)
    mirrored = errors_by_size(-total, -noise, KEY, "pay")
    assert errors_by_size(total, noise, KEY, "pay") == mirrored
    assert set(mirrored) == {10, 100}


def test_the_net_sum_of_a_cell_is_that_of_its_gains_and_losses() -> None:
    records, made = register(10), result("alone")
    assert any((values < 0).any() for values in records.numbers.values())
    for summary in made.agency.measures:
        true, shown = records.numbers[summary.measure], made.records[summary.measure]
        net, noise = int(true.sum()), int(shown.sum() - true.sum())
        # The table without variables holds everybody.
        assert summary.total == pytest.approx(100 * abs(noise) / max(abs(net), 1))


def test_public_errors_by_size_rise_as_sums_fall() -> None:
    total = np.repeat([0, 5, 10, 99, 100, 5000], [9, 45, 60, 60, 55, 30])
    noise = np.repeat([2.0, 1.0, 0.0, 1.0, -20.0, 50.0], [9, 45, 60, 60, 55, 30])
    found = errors_by_size(total, noise, KEY, "pay")
    relative = relative_errors(total, noise)
    published = total + noise
    # 5050 has too few cells and joins what is from 100 on; 80 counts among those from 10 on.
    classes = {1: published < 10, 10: (published >= 10) & (published < 100), 100: published >= 100}
    expected, most = {}, 0.0
    large = classes[100]
    assert int((published >= 1000).sum()) == 30
    for size, cells in ((100, large), (10, classes[10]), (1, classes[1])):
        power = len(str(size)) - 1
        most = max(most, coarse_error(float(relative[cells].mean()), KEY, f"pay size {power}"))
        expected[size] = most
    assert found == expected
    assert errors_by_size(total[:20], noise[:20], KEY, "pay") == {}
    assert errors_by_size(total, -total.astype(float), KEY, "pay") == {}


QUARTER, HALF = Fraction(1, 4), Factors(SHARES // 2, SHARES * 3 // 4)
# True and shown values with the guesses that hit: of a reader who takes all for increased, of one who takes
# them for reduced. With shares of at least a half, a quarter is asked for: half of what is shown, or 2.5 times.
GUESSES = [
    (100, 150, True, False), (100, 149, False, False), (100, 250, True, False),
    (100, 251, False, False), (-100, -150, True, False), (100, 50, False, True),
    (100, 51, False, False), (100, 30, False, True), (100, 29, False, False),
    (-100, -40, False, True), (1000, 400, False, True), (1000, 2000, True, False),
    (1, 2, True, False), (1, 0, False, False), (0, 0, True, True), (20, 9, False, True),
]  # fmt: skip


def test_guesses_are_counted_by_the_size_of_what_is_shown() -> None:
    def guessed(*numbers: int) -> dict[int, tuple[float, float]]:
        """Each case as often as stated, in the order of the list."""
        rows = [case for case, n in zip(GUESSES, numbers, strict=True) for _ in range(n)]
        true, shown = (np.array([row[k] for row in rows], dtype=np.int64) for k in (0, 1))
        return guesses_by_size(true, shown, HALF, QUARTER)

    def alone(case: int, *others: tuple[int, int]) -> dict[int, tuple[float, float]]:
        number = [0] * len(GUESSES)
        for place, n in ((case, 60), *others):
            number[place] = n
        return guessed(*number)

    for place, (true, shown, up, down) in enumerate(GUESSES):
        size = 10 ** (len(str(abs(shown))) - 1)
        known = up if abs(shown) > abs(true) else down
        expected = {} if true == 0 else {size: (100.0 * max(up, down), 100.0 * known)}
        assert alone(place) == expected, GUESSES[place]
    # Classes of their own from 10, 100 and 1000 on; zeros are no contributions and belong to none.
    several = guessed(60, 40, 0, 0, 0, 50, 50, 0, 0, 0, 0, 60, 0, 0, 70, 0)
    assert list(several.items()) == [
        (1000, (100.0, 100.0)), (100, (60.0, 60.0)), (10, (50.0, 50.0))
    ]  # fmt: skip
    # The better of two directions for all is what a reader takes who knows none.
    assert guessed(30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0) == {100: (60.0, 100.0)}
    assert guessed(20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 30, 0, 0, 0, 0, 0) == {100: (60.0, 100.0)}
    # Few of a size join the next smaller one, and the smallest those before; 49 are too few for any.
    few = guessed(0, 49, 0, 0, 0, 60, 0, 0, 0, 0, 0, 1, 0, 0, 3, 0)
    assert few == {100: (2.0, 2.0), 10: (100.0, 100.0)}
    assert guessed(50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 9, 0) == {
        1: (pytest.approx(100 * 51 / 52), pytest.approx(100 * 51 / 52))
    }
    assert guessed(49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0) == {}
    assert guessed(48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0) == {1: (98.0, 98.0)}


def test_a_sum_of_one_unit_counts_among_public_errors() -> None:
    assert relative_errors(np.array([1, 1]), np.array([0.5, -1.0])).tolist() == [50.0, 100.0]
    # Sums of which 1 is shown are a class of their own, and half of one with others.
    one = errors_by_size(np.full(50, 4), np.full(50, -3.0), KEY, "pay")
    assert one == {1: coarse_error(75.0, KEY, "pay size 0")}
    total, noise = np.repeat([4, 5], 50), np.repeat([-3.0, 0.0], 50)
    assert errors_by_size(total, noise, KEY, "pay") == {1: coarse_error(37.5, KEY, "pay size 0")}
    exact = by_variables(np.zeros(50), np.ones(50, bool), np.ones(50), KEY, "pay", 9.0)
    assert exact == {1: coarse_error(0.0, KEY, "pay 1")} == {1: 0.5}


@pytest.mark.parametrize("true", [(1, 4), (4, 1), (1, 1), (4, 4)])
@pytest.mark.parametrize("shown", [(1, 2), (2, 1), (1, 0), (0, 1), (2, 3)])
def test_growth_of_single_units_is_judged_like_any_other(
    true: tuple[int, int], shown: tuple[int, int]
) -> None:
    """Half of the cells are exact; the others are judged where both periods show something."""
    later, earlier = np.repeat([8, true[0]], 60), np.repeat([4, true[1]], 60)
    now, then = np.repeat([8, shown[0]], 60), np.repeat([4, shown[1]], 60)
    found = growth_by_variables(
        (later, (now - later).astype(float)), (earlier, (then - earlier).astype(float)),
        np.ones(120, dtype=np.int64), KEY, "pay",
    )  # fmt: skip
    mean = 0.0
    if min(shown) > 0:
        mean = min(100 * abs(shown[0] / shown[1] - true[0] / true[1]), 100.0) / 2
    assert found == {1: coarse_error(mean, KEY, "pay growth 1")}


def test_growth_is_judged_where_both_periods_show_something() -> None:
    later = np.array([100, 0, 50, 10, 30] * 20)
    earlier = np.array([50, 10, 0, 20, 60] * 20)
    noise = np.array([10.0, 5.0, 5.0, -10.0, 0.0] * 20)
    old = np.array([5.0, 0.0, 3.0, 0.0, -30.0] * 20)
    variables = np.ones(100, dtype=np.int64)
    found = growth_by_variables((later, noise), (earlier, old), variables, KEY, "pay")
    points = [100 * abs(110 / 55 - 2.0), 100.0, 100.0, None, 100 * abs(30 / 30 - 0.5)]
    kept = [p for p in points if p is not None]
    assert found == {1: coarse_error(sum(kept) / len(kept), KEY, "pay growth 1")}


def test_a_measure_that_gets_parts_later_is_not_shown_with_other_noise() -> None:
    """Its parts have noise of their own: two numbers of a contribution that did not change would narrow it."""
    records = register(10, 60)
    alone = replace(
        records,
        dataset=described({"name": "turnover", "holding": "owner"}),
        numbers={"turnover": records.numbers["turnover"]},
    )
    first = SPEC.protect(alone, KEY)
    with pytest.raises(InputError, match="'turnover' would show other numbers than in an earlier"):
        SPEC.protect(records, KEY, previous=first.memory)
    # The other way round what was shown is kept, and parts that were there before keep theirs.
    whole = SPEC.protect(records, KEY)
    shown = whole.records["turnover"]
    noisy = shown != records.numbers["turnover"]  # noise of two parts can cancel
    for later in (alone, records):
        again = SPEC.protect(later, KEY, previous=whole.memory).records["turnover"]
        assert np.array_equal(again[noisy], shown[noisy])
    assert noisy.sum() > 50
    # A waiver that is new does not change what was shown.
    waived = Background(waived=records.ids["owner"].tolist())
    again = SPEC.protect(records, KEY, previous=whole.memory, background=waived)
    assert np.array_equal(again.records["turnover"][noisy], shown[noisy])
