"""Quotients of protected numbers, digit by digit, and their bounds against every pair of true numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lustrum.answer import statistics
from lustrum.answer.statistics import compose, quantities, share_totals
from lustrum.model import (
    Category,
    Dataset,
    Quantity,
    Release,
    Statistic,
    TableAxis,
    TableQuery,
    describe_statistics,
)
from lustrum.model.statistic import Period
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect import RoundingChannel


def release(
    values: Any, ends: Any = None, decimals: int = 0, status: Any = None, codes: Any = None
) -> Release:
    values = np.atleast_1d(np.asarray(values))
    low, high = (None, None) if ends is None else map(np.asarray, zip(*ends, strict=True))
    return Release(
        (TableAxis.plain("a", codes or [str(i) for i in range(values.size)]),),
        values,
        np.full(values.shape, "F") if status is None else np.array(status),
        {"method": "made-up"},
        least=low,
        most=high,
        decimals=decimals,
    )


def quotient(over: Release, under: Release, text: str, decimals: int = 1, unit: str = "") -> Any:
    words: Any = SimpleNamespace(decimals=decimals, unit=unit)
    return statistics._quotient(over, under, Statistic.parse(text), words)


def nearest(value: Fraction) -> int:
    """Halves go away from 0."""
    return int(math.copysign(1, value)) * ((2 * abs(value) + 1) // 2) if value else 0


@pytest.mark.parametrize(("unit", "percent"), [("", 0), ("%", 2)])
@pytest.mark.parametrize(("one", "other"), [(0, 0), (2, 0), (0, 2), (1, 3), (3, 1), (4, 0)])
def test_a_quotient_is_the_nearest_number_with_its_decimals(
    unit: str, percent: int, one: int, other: int
) -> None:
    pairs = [(a, b) for a in (-7, -5, 0, 1, 5, 25, 1003) for b in (-6, -2, 0, 1, 3, 4, 8)]
    over = release([a for a, _ in pairs], decimals=one)
    under = release([b for _, b in pairs], decimals=other)
    for text, positive in (("ratio:t:e", False), ("mean:t", True)):
        found = quotient(over, under, text, 2, unit)
        for k, (a, b) in enumerate(pairs):
            undefined = b <= 0 if positive else b == 0
            assert bool(found.undefined[k]) == undefined
            if not undefined:
                exact = Fraction(a, 10**one) / Fraction(b, 10**other)
                assert int(found.numbers[k]) == nearest(exact * 10 ** (2 + percent))
            else:
                assert found.numbers[k] == 0
        assert found.least is None
        assert found.most is None


def test_growth_is_less_one_hundred_percent_and_needs_a_positive_base() -> None:
    found = quotient(release([110, 50, 7]), release([100, 0, -7]), "growth:t:u", 1, "%")
    assert found.numbers.tolist() == [100, 0, 0]
    assert found.undefined.tolist() == [False, True, True]
    ends = quotient(
        release([110, 110], [(100, 120), (-UNBOUNDED, UNBOUNDED)]),
        release([100, 100], [(80, 100), (80, 100)]),
        "growth:t:u", 1, "%",
    )  # fmt: skip
    assert ends.least.tolist() == [0, -UNBOUNDED]
    assert ends.most.tolist() == [500, UNBOUNDED]
    finer = quotient(
        release([110], [(100, 120)]), release([100], [(80, 100)]), "growth:t:u", 2, "%"
    )
    assert (finer.numbers[0], finer.least[0], finer.most[0]) == (1000, 0, 5000)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_every_pair_of_true_numbers_and_are_reached(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(75):
        al, bl = rng.integers(-6, 7, 2).tolist()
        ah, bh = al + int(rng.integers(0, 5)), bl + int(rng.integers(0, 5))
        a, b = int(rng.integers(al, ah + 1)), int(rng.integers(bl, bh + 1))
        found = quotient(release([a], [(al, ah)]), release([b], [(bl, bh)]), "ratio:t:e", 1)
        low, high = int(found.least[0]), int(found.most[0])
        if b == 0:
            assert (low, high) == (-UNBOUNDED, UNBOUNDED)
            continue
        true = [Fraction(x, y) * 10 for x in range(al, ah + 1) for y in range(bl, bh + 1) if y != 0]
        assert all(low <= value <= high for value in true)
        if bl > 0 or bh < 0:
            assert (low, high) == (math.floor(min(true)), math.ceil(max(true)))
        elif bl == 0 or bh == 0:
            # Next to 0 a quotient grows without end, unless its numerator keeps one sign.
            rises, falls = (al >= 0, ah <= 0) if bl == 0 else (ah <= 0, al >= 0)
            assert low == (math.floor(min(true)) if rises else -UNBOUNDED)
            assert high == (math.ceil(max(true)) if falls else UNBOUNDED)
        else:
            assert (low, high) == (-UNBOUNDED, UNBOUNDED)


@pytest.mark.parametrize("kind", ["growth:t:e", "share:count:total"])
def test_the_margin_of_a_quotient_holds_every_pair_of_true_numbers_and_is_reached(
    kind: str,
) -> None:
    for x, y, m, n in product((0, 3, 9), (4, 9), (0, 1, 2), (0, 2, 4)):
        over, under = (replace(release([v]), margin=k) for v, k in ((x, m), (y, n)))
        found = quotient(over, under, kind, 1, "%")
        one = 1000 if kind.startswith("growth") else 0
        pairs = product(range(x - m, x + m + 1), range(y - n, y + n + 1))
        shares = [Fraction(1000 * a, b) for a, b in pairs if a >= 0 and b > 0]
        if kind.startswith("share"):
            shares = [share for share in shares if share <= 1000]
        far = max((abs(share - one - int(found.numbers[0])) for share in shares), default=0)
        stated = int(found.margins[0])
        if n == y and kind.startswith("growth"):
            assert stated == -1  # the base may be nobody
            continue
        assert far <= stated
        # It is no wider than the interval, but for the last decimal.
        assert kind.startswith("share") or stated <= far + 2


def test_a_numerator_that_may_be_one_leaves_no_upper_end_beside_a_denominator_of_zero() -> None:
    found = quotient(release([1, 0], [(0, 1), (0, 0)]), release([2, 2], [(0, 3), (0, 3)]), "mean:t")
    assert (found.least.tolist(), found.most.tolist()) == ([0, 0], [UNBOUNDED, 0])


def test_what_is_unbounded_stays_so_and_an_endless_denominator_leaves_nothing() -> None:
    over = release([5, 5, -5, 5], [(1, UNBOUNDED), (-UNBOUNDED, 6), (-UNBOUNDED, -1), (4, 6)])
    under = release([2, 2, 2, 2], [(1, 3), (1, 3), (1, 3), (2, UNBOUNDED)])
    found = quotient(over, under, "ratio:t:e", 1)
    assert found.least.tolist() == [3, -UNBOUNDED, -UNBOUNDED, 0]
    assert found.most.tolist() == [UNBOUNDED, 60, -3, 30]
    # However large the numbers beside them are.
    over = release([5, 5, 10**16], [(1, UNBOUNDED), (-UNBOUNDED, 6), (10**16, 10**16)])
    under = release([10**9] * 3, [(10**9, 10**9), (10**9, 10**9), (10**9, UNBOUNDED)])
    found = quotient(over, under, "ratio:t:e", 6)
    assert found.least.tolist() == [0, -UNBOUNDED, 0]
    assert found.most.tolist() == [UNBOUNDED, 1, 10**13]


def test_a_share_of_a_count_lies_between_nothing_and_all() -> None:
    over = release([4, 1], [(3, 9), (0, 2)])
    under = release([5, 5], [(4, 6), (4, 6)])
    share = quotient(over, under, "share:count:total", 1, "%")
    assert share.numbers.tolist() == [800, 200]
    assert share.least.tolist() == [500, 0]
    assert share.most.tolist() == [1000, 500]
    of_sums = quotient(over, under, "share:t:total", 1, "%")
    assert of_sums.most.tolist() == [2250, 500]
    nothing = quotient(release([0], [(0, 2)]), release([0], [(0, 3)]), "share:count:total", 1, "%")
    assert nothing.undefined.tolist() == [True]
    assert (nothing.least.tolist(), nothing.most.tolist()) == ([0], [UNBOUNDED])


def test_what_is_hidden_in_a_part_is_hidden_in_the_quotient() -> None:
    over = release([4, 9, 6], status=["F", "A", "F"])
    under = release([2, 3, 0], status=["D", "F", "F"])
    found = quotient(over, under, "mean:t", 0)
    assert found.status.tolist() == ["D", "A", "F"]
    assert found.numbers.tolist() == [0, 0, 0]
    assert found.undefined.tolist() == [False, False, True]


def test_large_numbers_are_divided_exactly_and_never_wrap_around() -> None:
    for a, b in ((2**61, 3), (-(2**61), 7), (2**53 + 1, 2**40), (10**17, 9)):
        for up, down in ((1, 1), (10**4, 1), (1, 10**4), (10**6, 10**2)):
            exact = Fraction(a * up, b * down)
            for rounding, expected in (
                ("near", nearest(exact)), ("down", math.floor(exact)), ("up", math.ceil(exact)),
            ):  # fmt: skip
                found = statistics._divided(np.array([a]), np.array([b]), up, down, rounding)  # type: ignore[arg-type]
                assert int(found[0]) == max(-UNBOUNDED, min(expected, UNBOUNDED))
    # Products on both sides of what 64 bits hold.
    edges = [1, 3, 2**40, 2**61 - 1, 2**61, 2**62 - 1]
    for a, b, up, down in product(edges, edges, (1, 3, 10**4), (1, 3, 10**4)):
        expected = nearest(Fraction(a * up, b * down))
        found = statistics._divided(np.array([-a, a]), np.array([b, b]), up, down, "near")
        assert found.tolist() == [max(-expected, -UNBOUNDED), min(expected, UNBOUNDED)]
    times = statistics._times(np.array([5, UNBOUNDED, -UNBOUNDED, 2**61, -(2**61)]), 100)
    assert times.tolist() == [500, UNBOUNDED, -UNBOUNDED, UNBOUNDED, -UNBOUNDED]


# The whole answer, field by field

FIRMS = Dataset.from_mapping(
    {
        "dataset": {"name": "firms", "units": "firms"},
        "variables": [
            {"name": "a", "label": "A", "codes": ["0", "1", "2"]},
            {"name": "age", "label": "Age", "codes": ["y", "o"], "edges": [0, 10, 20]},
        ],
        "measures": [
            {"name": "t", "label": "Turnover", "unit": "euro", "decimals": 1},
            {"name": "e", "label": "Employees", "unit": "people"},
        ],
    }
)
TOTALLED = ["0", "1", "2", "_T"]


def part(values: Any, ends: Any, decimals: int = 0, **more: Any) -> Release:
    low, high = map(np.asarray, zip(*ends, strict=True))
    places = {"0": (0,), "1": (1,), "2": (2,), "_T": (0, 1, 2)}
    codes = TOTALLED[: len(values)]
    return Release(
        (TableAxis("a", "A", tuple(Category(c, c, places[c]) for c in codes)),),
        np.array(values),
        np.array(more.pop("status", ["F"] * len(values))),
        more.pop("method", {"method": "m"}),
        more.pop("channel", None),
        least=low,
        most=high,
        decimals=decimals,
        **more,
    )


COUNTS = part([4, 2, 9, 15], [(3, 5), (1, 3), (8, 9), (14, 16)], notes=("counts",))
SUMS = part(
    [100, 50, 70, 220], [(90, 110), (40, 60), (70, 71), (200, 230)], 1,
    status=["F", "A", "F", "F"], method={"method": "n"}, channel=RoundingChannel(3), notes=("sums",),
)  # fmt: skip
PARTS = {Quantity(): COUNTS, Quantity("t"): SUMS}


def asked(*statistics: str, totals: bool = False) -> TableQuery:
    return TableQuery.from_mapping(
        {"dataset": "firms", "by": ["a"], "statistics": list(statistics), "totals": totals}
    )


def composed(query: TableQuery, parts: Any = None) -> Release:
    edges = {"age": (0.0, 10.0, 20.0)}
    return compose(query, parts or PARTS, describe_statistics(query, FIRMS), edges)


def test_one_statistic_carries_its_own_numbers_and_nothing_of_its_parts() -> None:
    mean = composed(asked("mean:t"))
    assert mean.axes[0].codes == ("0", "1", "2")
    assert mean.numbers.tolist() == [250, 0, 78]
    assert mean.status.tolist() == ["F", "A", "F"]
    assert mean.least.tolist() == [180, -UNBOUNDED, 77]
    assert mean.most.tolist() == [367, UNBOUNDED, 89]
    assert not mean.undefined.any()
    assert (mean.decimals, mean.unit, mean.additive, mean.channel) == (2, "euro", False, None)
    assert str(mean.label) == str(describe_statistics(asked("mean:t"), FIRMS)[0].label)
    assert mean.method == {"method": "n", "beside": [{"method": "m"}]}
    assert mean.notes[:2] == ("sums", "counts")
    assert "carry the uncertainty" in str(mean.notes[2])
    with_total = composed(asked("mean:t", totals=True))
    assert with_total.axes[0].codes == tuple(TOTALLED)
    assert with_total.numbers.tolist() == [250, 0, 78, 147]


def test_a_sum_keeps_its_channel_and_a_count_is_the_table_itself() -> None:
    found = composed(asked("sum:t"))
    assert found.numbers.tolist() == [100, 0, 70]
    assert found.status.tolist() == ["F", "A", "F"]
    assert found.least.tolist() == [90, 40, 70]
    assert (found.decimals, found.unit, found.additive) == (1, "euro", True)
    assert found.channel is SUMS.channel
    assert found.method == {"method": "n"}
    assert found.notes == ("sums",)
    assert composed(asked("count")) is COUNTS
    # A margin of error is that of the numbers themselves, and says nothing of what is worked out from them.
    stated = {
        quantity: replace(part, margin=k) for k, (quantity, part) in enumerate(PARTS.items(), 5)
    }
    place = 5 + list(PARTS).index(Quantity("t"))
    assert composed(asked("sum:t"), stated).margin == place
    assert composed(asked("mean:t"), stated).margin is None
    assert composed(asked("sum:t")).margin is None


def test_several_statistics_stand_beside_each_other_in_one_scale() -> None:
    found = composed(asked("count", "sum:t", "mean:t"))
    assert found.shape == (3, 3)
    assert found.axes[1].codes == ("count", "sum:t", "mean:t")
    assert found.decimals == 2
    assert found.numbers.tolist() == [[400, 1000, 250], [200, 0, 0], [900, 700, 78]]
    assert found.status.tolist() == [["F", "F", "F"], ["F", "A", "A"], ["F", "F", "F"]]
    assert found.least.tolist() == [[300, 900, 180], [100, 400, -UNBOUNDED], [800, 700, 77]]
    assert found.most.tolist() == [[500, 1100, 367], [300, 600, UNBOUNDED], [900, 710, 89]]
    assert [s.decimals for s in found.statistics] == [0, 1, 2]
    assert not found.additive
    assert found.channel is None
    assert found.errors is None
    bare = {q: replace(p, least=None, most=None) for q, p in PARTS.items()}
    assert composed(asked("count", "mean:t"), bare).low is None
    half = composed(asked("count", "sum:t"), {Quantity(): bare[Quantity()], Quantity("t"): SUMS})
    assert half.least[0].tolist() == [-UNBOUNDED, 90]
    assert half.most[0].tolist() == [UNBOUNDED, 110]
    known = replace(COUNTS, structural=np.array([False, True, False, False]))
    with_zero = composed(asked("count", "sum:t"), {**PARTS, Quantity(): known})
    assert with_zero.structural.tolist() == [[False, False], [True, True], [False, False]]


def test_shares_are_of_the_total_and_a_median_needs_all_its_classes() -> None:
    share = composed(asked("share:count:total"))
    assert share.numbers.tolist() == [267, 133, 600]
    assert (share.unit, share.decimals) == ("%", 1)
    assert share_totals(asked("share:count:total")) == ("a",)
    assert share_totals(asked("count")) == ()
    classes = Release(
        (*COUNTS.axes, TableAxis.plain("age", ["y", "o"])),
        np.array([[2, 2], [1, 1], [3, 6], [6, 9]]),
        np.array([["F", "F"], ["F", "A"], ["F", "F"], ["F", "F"]]),
        {"method": "m"},
    )
    needed = asked("median:age").asked[0].quantities()[0]
    assert quantities(asked("median:age")) == (Quantity(), needed)
    median = composed(asked("median:age"), {Quantity(): COUNTS, needed: classes})
    assert median.status.tolist() == ["F", "N", "F"]
    assert median.numbers.tolist()[0] == 10 * 10**median.decimals
    assert not median.undefined.any()


def test_the_name_of_the_axis_of_statistics_is_never_taken() -> None:
    query = asked("count", "sum:t")
    taken = replace(query, by=(replace(query.by[0], variable="statistic"),))
    assert statistics._axis(describe_statistics(query, FIRMS), taken).name == "_statistic"
    columns = statistics._axis(describe_statistics(query, FIRMS), query)
    assert columns.name == "statistic"
    assert [str(c.label) for c in columns.categories][1].endswith("(euro)")
    assert "(" not in str(columns.categories[0].label)


def test_the_numbers_that_a_question_takes_begin_with_counts_for_the_rules() -> None:
    words = {"dataset": "firms", "by": ["a"], "where": {"age": ["o"]}}
    growth = TableQuery.from_mapping({**words, "statistics": ["growth:t:age=y"]})
    earlier = Period("age", "y")
    assert quantities(growth) == (
        Quantity(),
        Quantity(period=earlier),
        Quantity("t"),
        Quantity("t", period=earlier),
    )
    assert quantities(asked("mean:t")) == (Quantity(), Quantity("t"))
    assert quantities(asked("sum:t", "sum:e")) == (Quantity(), Quantity("t"), Quantity("e"))
    two = {"dataset": "firms", "by": ["a", "age"], "statistics": ["share:count:a"]}
    assert share_totals(TableQuery.from_mapping(two)) == ("age",)
    of_all = TableQuery.from_mapping({**two, "statistics": ["share:count:total"]})
    assert share_totals(of_all) == ("a", "age")


def test_standard_errors_and_grades_stand_only_where_a_number_exists() -> None:
    query = asked("sum:t", "ratio:t:e")
    people = part([2, 3, 0, 5], [(1, 3), (2, 4), (0, 1), (3, 8)])
    parts = {**PARTS, Quantity("e"): people}
    carried = replace(
        people, errors=np.array([7, 8, 9, 4]), grades=np.array(["good", "fair", "good", "good"])
    )
    edges: dict[str, tuple[float, ...]] = {}
    ratio = query.asked[1]
    found = compose(query, parts, describe_statistics(query, FIRMS), edges, {ratio: carried})
    assert found.decimals == 2
    assert found.errors.tolist() == [[-1, 7], [-1, 8], [-1, -1]]
    assert found.grades.tolist() == [["", "good"], ["", "fair"], ["", ""]]
    assert found.undefined.tolist() == [[False, False], [False, False], [False, True]]
    alone = asked("ratio:t:e")
    one = compose(alone, parts, describe_statistics(alone, FIRMS), edges, {ratio: carried})
    assert one.errors.tolist() == [7, 8, -1]
    bare = compose(query, parts, describe_statistics(query, FIRMS), edges, {ratio: people})
    assert bare.errors is None
    assert bare.grades is None
    assert str(found.label) == "Statistic"
    assert "carry the uncertainty" in str(found.notes[-1])
    assert "carry the uncertainty" not in " ".join(
        map(str, composed(asked("count", "sum:t")).notes)
    )
    assert found.method == {"method": "n", "beside": [{"method": "m"}]}
    three = composed(asked("sum:t", "mean:t", "count")).method
    assert three == {"method": "n", "beside": [{"method": "m"}]}
    free = {q: replace(p, least=None, most=None) for q, p in PARTS.items()}
    plain = composed(asked("sum:t", "mean:t"), free)
    assert plain.least is None
    assert plain.most is None


def test_shares_within_a_category_and_quantiles_other_than_the_median() -> None:
    query = TableQuery.from_mapping(
        {"dataset": "firms", "by": ["a", "age"], "statistics": ["share:count:a"]}
    )
    ages = TableAxis(
        "age",
        "Age",
        tuple(Category(c, c, m) for c, m in (("y", (0,)), ("o", (1,)), ("_T", (0, 1)))),
    )
    places = (("0", (0,)), ("1", (1,)), ("2", (2,)))
    areas = TableAxis("a", "A", tuple(Category(c, c, m) for c, m in places))
    values = np.array([[1, 3, 4], [2, 2, 4], [0, 5, 5]])
    counts = Release((areas, ages), values, np.full((3, 3), "F"), {"method": "m"})
    found = composed(query, {Quantity(): counts})
    assert found.numbers.tolist() == [[250, 750], [500, 500], [0, 1000]]

    lower = asked("quantile:age:0.25")
    needed = lower.asked[0].quantities()[0]
    plain = replace(COUNTS, least=None, most=None)
    classes = Release(
        (*COUNTS.axes, TableAxis.plain("age", ["y", "o"])),
        np.array([[2, 2], [4, 0], [3, 6], [9, 8]]), np.full((4, 2), "F"), {"method": "m"},
    )  # fmt: skip
    quarter = composed(lower, {Quantity(): plain, needed: classes})
    scale = 10**quarter.decimals
    assert quarter.numbers.tolist()[:2] == [5 * scale, round(2.5 * scale)]
