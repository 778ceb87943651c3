"""Protected sums of small registers: rankings, balanced noise, relations, held cells and public errors, each
beside a plain version.

What a search finds among many allowed outcomes is held by ``tests/same_bytes``: the same records and key give
the same bytes in every version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import InputError, Measure
from lustrum.model.finest import FinestCells
from lustrum.model.keys import scramble
from lustrum.model.records import Records
from lustrum.protect.magnitudes.carriers import held_cells
from lustrum.protect.magnitudes.kernels import add_amounts, balance, rank_noise
from lustrum.protect.magnitudes.report import by_variables, errors_by_size, growth_by_variables
from lustrum.protect.magnitudes.search import (
    Ranking,
    balance_leaders,
    leading_owners,
    noise_of,
    rank_cells,
    relative_scale,
    search,
)
from lustrum.protect.magnitudes.units import Units, check_relations, families_of
from lustrum.protect.population.public import coarse_error
from lustrum.protect.population.search.levels import controlled_levels
from lustrum.protect.population.start import cell_numbers, derived
from lustrum.runtime.stop import Stopped, reporting_progress, stopping
from lustrum.sensitivity import Background
from protect.magnitudes.registers import (
    KEY,
    PLAIN,
    SPEC,
    codes_of,
    described,
    inside,
    made_units,
    register,
    result,
    shown_counts,
)


@pytest.fixture(autouse=True)
def _words_that_overflow() -> Iterator[None]:
    """Without the compiler, words that overflow say so."""
    with np.errstate(over="ignore"):
        yield


@settings(max_examples=examples(6, 60), deadline=None)
@given(st.integers(0, 99), st.sampled_from([1, 3, 200]))
def test_rankings_of_every_cell_are_those_of_its_records(seed: int, most: int) -> None:
    """Of two owners that are alike the first one counts as larger; small values make many alike."""
    records = register(seed, 25)
    plan, _, units, order, _ = made_units(records)
    rng = np.random.default_rng(seed)
    values = rng.integers(-most, most + 1, order.size)
    noise, cut = rng.integers(-9, 10, values.size), rng.integers(0, 2, values.size)
    ranking = rank_cells(plan, units, values)
    found = np.zeros((plan.cells, 26), dtype=np.int64)
    found[:, 25] = -1
    ends = rng.integers(-most, most + 1, (order.size, 4))
    owns = np.c_[values, noise, np.abs(values), np.ones_like(cut), cut, ends]
    rank_noise(plan.layout, units.codes, units.owner, owns, found)
    added = np.zeros((plan.cells, 2))
    amounts = np.stack([values, -3 * values], axis=1).astype(float)
    add_amounts(plan.layout, units.codes, amounts, added)
    for cell, rows in inside(plan, codes_of(records)[:, order]):
        owned: dict[int, np.ndarray] = {}
        for k in rows:
            owned[int(units.owner[k])] = owned.get(int(units.owner[k]), 0) + owns[k]
        every = [(abs(int(own[0])), *own.tolist()) for own in owned.values()]
        ranked = [
            *sorted((one for one in every if one[0]), key=lambda one: -one[0]),
            *[(0,) * 10] * 2,
        ]
        total = sum(size for size, *_ in every)
        sums = [int(column[rows].sum()) for column in (values, noise)]
        assert found[cell, :5].tolist() == [total, ranked[0][0], ranked[1][0], *sums]
        assert found[cell, 5:16].tolist() == [*ranked[0][1:], *ranked[1][1:3]]
        wanted = (total, ranked[0][0], ranked[1][0], int(values[rows].sum()))
        got = (ranking.total, ranking.first, ranking.second, ranking.net)
        assert tuple(int(array[cell]) for array in got) == wanted
        assert ranking.rest[cell] == total - ranked[0][0] - ranked[1][0]
        assert added[cell].tolist() == [values[rows].sum(), -3 * values[rows].sum()]


@given(
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 5),
    st.sampled_from([1, 2**40, 2**56]),
    st.integers(-1, 1),
    st.sampled_from([(1, 10), (7, 100), (1, 2)]),
)
def test_a_cell_is_sensitive_where_the_rest_is_below_p_percent_of_the_largest(
    first: int, second: int, rest: int, scale: int, off: int, share: tuple[int, int]
) -> None:
    """Exactly, also where products exceed 64 bits."""
    first, second = scale * max(first, second), scale * min(first, second)
    others = max(rest * scale + off, 0) if first else 0
    columns = (np.array([0, x]) for x in (first + second + others, first, second, 0))
    expected = first > 0 and others < Fraction(*share) * first
    assert Ranking(*columns).sensitive(share).tolist() == [False, expected]
    assert "hidden" in repr(Ranking(*(np.zeros(0, dtype=np.int64),) * 4))


# --- balanced noise


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


def test_balancing_tells_how_far_it_is_stops_when_asked_and_leaves_what_costs_nothing() -> None:
    records = register(3)
    plan, family, units, _, secret = made_units(records, "home")
    before = units.sign.copy(), units.amount.copy()
    nothing = np.zeros((plan.cells, len(family.shown)))
    told: list[tuple[str, float]] = []
    with reporting_progress(lambda step, share: told.append((step, share))):
        search(plan, units, family, nothing, secret, KEY, 2)
    assert told == [("balancing abroad", share) for share in (0.0, 0.5, 1.0)]
    assert np.array_equal(units.sign, before[0])
    assert np.array_equal(units.amount, before[1])
    with stopping(lambda: True), pytest.raises(Stopped):
        search(plan, units, family, nothing, secret, KEY, 2)


# --- families


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


NAMES = ("pay", "bonus", "rent", "tax")


@settings(
    max_examples=examples(40, 400),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(st.tuples(*[st.integers(-1, 2)] * 4), min_size=1, max_size=7),
    st.sampled_from([1, 2, 4096]),
    st.booleans(),
)
def test_relations_that_are_not_stated_are_refused_wherever_they_stand(
    monkeypatch: pytest.MonkeyPatch, rows: list[tuple[int, ...]], sampled: int, stated: bool
) -> None:
    """Two copies of one number that are protected apart give it away; a sample never decides alone."""
    monkeypatch.setattr("lustrum.protect.magnitudes.units._SAMPLED", sampled)
    columns = dict(zip(NAMES, np.array(rows, dtype=np.int64).T, strict=True))
    parts = {"pay": ["bonus", "rent"]} if stated else {}
    if stated:
        columns["pay"] = columns["bonus"] + columns["rent"]
    dataset = described(
        *({"name": n, **({"parts": parts[n]} if n in parts else {})} for n in NAMES)
    )
    codes = {v.name: np.zeros(len(rows), dtype=np.uint8) for v in dataset.variables}
    records = Records(dataset, codes=codes, numbers=columns)
    filled = [n for n in NAMES if columns[n].any()]
    related = False
    for name in filled:
        others = [n for n in filled if n != name]
        for some in (*((n,) for n in others), *combinations(others, 2)):
            if not (stated and name == "pay" and set(some) == {"bonus", "rent"}):
                total = sum(columns[n] for n in some)
                related |= any(np.array_equal(sign * total, columns[name]) for sign in (1, -1))
    families = families_of(dataset.measures)
    if related:
        with pytest.raises(InputError, match=r"(equals|is the negative of) .* in every record"):
            check_relations(records, families)
    else:
        check_relations(records, families)
    if stated:
        wrong = replace(records, numbers={**columns, "pay": columns["pay"] + (columns["pay"] == 0)})
        if not np.array_equal(wrong.numbers["pay"], columns["pay"]):
            with pytest.raises(InputError, match="'pay' is not the sum of its parts"):
                check_relations(wrong, families)


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


# --- held cells


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


@settings(max_examples=examples(15, 100), deadline=None)
@given(
    st.integers(0, 99),
    st.sampled_from([24, 60, 200]),
    st.sampled_from([2, 3, 7, 12]),
    st.booleans(),
    st.booleans(),
)
def test_cells_with_the_largest_values_are_held_as_far_as_categories_allow(
    seed: int, count: int, base: int, keyed: bool, alike: bool
) -> None:
    """Where all values are alike, those that hold an average one are not held."""
    records = register(seed, count, keyed=keyed)
    if alike:
        records = replace(records, numbers={n: 0 * v + 10 for n, v in records.numbers.items()})
    every, first, counts = np.unique(
        codes_of(records), axis=1, return_index=True, return_counts=True
    )
    keys = scramble(KEY[:16], first.astype(np.uint64)) if keyed else None
    cells = FinestCells(PLAIN, every, counts, keys)
    names = ("home", "abroad", "wages")
    found = held_cells(records, names, cells, base, KEY)
    assert found.tolist() == plain_held(records, names, cells, base, KEY)
    nothing = replace(records, numbers={n: 0 * v for n, v in records.numbers.items()})
    assert held_cells(nothing, names, cells, base, KEY).size == 0


def test_only_sums_that_are_tied_to_counts_hold_cells() -> None:
    records = register(1, 200)
    every, counts = np.unique(codes_of(records), axis=1, return_counts=True)
    cells = FinestCells(PLAIN, every, counts)
    found = SPEC.held(records, cells, 12, KEY)
    names = tuple(m.name for m in PLAIN.measures)
    expected = held_cells(records, names, cells, 12, derived(KEY, "held cells"))
    assert found.tolist() == expected.tolist()
    assert replace(SPEC, existence="public").held(records, cells, 12, KEY) is None


# --- whole results


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


# --- public errors


def joined(kinds: list[tuple[int, list[int]]]) -> list[tuple[int, list[int]]]:
    """Kinds with their cells, joined with the next until each has fifty; the last joins those before it."""
    out: list[tuple[int, list[int]]] = []
    for kind, cells in kinds:
        if out and len(out[-1][1]) < 50:
            out[-1] = (kind, out[-1][1] + cells)
        else:
            out.append((kind, cells))
    if len(out) > 1 and len(out[-1][1]) < 50:
        kind, cells = out.pop()
        out[-1] = (kind, out[-1][1] + cells)
    return [one for one in out if len(one[1]) >= 50]


def rising(errors: list[float], kinds: list[tuple[int, list[int]]], name: str) -> dict[int, float]:
    stated, most = {}, 0.0
    for kind, cells in kinds:
        mean = sum(errors[c] for c in sorted(cells)) / len(cells)
        stated[kind] = most = max(most, coarse_error(mean, KEY, f"{name} {kind}"))
    return stated


@st.composite
def cells_of_tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of variables, and true and published sums now and before: groups of cells that are alike."""
    variables, columns = [], []
    small = st.sampled_from([-200, -4, 0, 1, 4, 5, 99, 100, 5000])
    for _ in range(draw(st.integers(1, 5))):
        number = draw(st.sampled_from([9, 49, 50, 60]))
        variables += [draw(st.integers(0, 4))] * number
        columns += [tuple(draw(small) for _ in range(4))] * number
    true, shown, before, shown_before = np.array(columns).T
    return np.array(variables), np.stack([true, before]), shown, shown_before


@settings(max_examples=examples(40, 400), deadline=None)
@given(cells_of_tables())
def test_public_errors_are_coarse_means_over_many_cells_that_only_rise(
    world: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """By variables, by the size of what is shown, and of growth where both periods show something."""
    variables, (true, before), shown, shown_before = world
    noise = (shown - true).astype(float)
    cells = range(len(variables))
    relative = [
        min(100 * abs(n) / abs(t), 100.0) if t else 100.0
        for t, n in zip(true.tolist(), noise.tolist(), strict=True)
    ]
    kinds = sorted({v for v in variables.tolist() if v})
    chosen = joined([(k, [c for c in cells if variables[c] == k and shown[c]]) for k in kinds])
    found = by_variables(np.array(relative), shown != 0, variables, KEY, "pay", 77.0)
    assert found == (rising(relative, chosen, "pay") or {max(kinds, default=1): 77.0})
    digits = [len(str(abs(int(s)))) - 1 for s in shown]
    sizes = sorted({d for d, s in zip(digits, shown, strict=True) if s}, reverse=True)
    by_size = joined([(d, [c for c in cells if shown[c] and digits[c] == d]) for d in sizes])
    wanted = {10**d: error for d, error in rising(relative, by_size, "pay size").items()}
    assert errors_by_size(true, noise, KEY, "pay") == wanted
    points = [
        min(100 * abs(s / o - t / b), 100.0) if min(s, o, t, b) > 0 else 100.0
        for s, o, t, b in zip(shown, shown_before, true, before, strict=True)
    ]
    grown = [
        (k, [c for c in cells if variables[c] == k and min(shown[c], shown_before[c]) > 0])
        for k in kinds
    ]
    old = (shown_before - before).astype(float)
    found = growth_by_variables((true, noise), (before, old), variables, KEY, "pay")
    stated = rising(points, joined(grown), "pay growth")
    assert found == (stated or {max(kinds, default=1): 100.0})


def test_the_total_of_gains_and_losses_has_the_error_that_is_reported() -> None:
    records, made = register(10), result("alone")
    assert any((values < 0).any() for values in records.numbers.values())
    for summary in made.agency.measures:
        true, shown = records.numbers[summary.measure], made.records[summary.measure]
        net, noise = int(true.sum()), int(shown.sum() - true.sum())
        assert summary.total == pytest.approx(100 * abs(noise) / max(abs(net), 1))
