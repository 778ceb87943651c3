"""Numbers of a bundle that is written by hand, against sets of finest cells: counts, sums and bounds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lustrum.answer.snapshot import protection_of
from lustrum.model import Axis, Dataset, Filter, Group, Release, TableQuery
from lustrum.model.finest import FinestCells, FinestSums
from lustrum.numeric.structure import UNBOUNDED
from lustrum.policy import Policy
from lustrum.protect.magnitudes.factors import needed_factors
from lustrum.protect.magnitudes.report import PublicFactors
from lustrum.protect.population.channel import nearest_rates
from lustrum.protect.population.public import PublicReport
from lustrum.protect.population.readers import KnownTotals
from lustrum.protect.population.support import Support
from lustrum.public.bundle import BundleNumbers
from lustrum.public.bundle.files import Bundle, ProtectedSums
from lustrum.public.bundle.numbers import most_by_totals
from lustrum.public.bundle.sums import SumTables, sum_bounds
from lustrum.public.noise import FactorNoise
from lustrum.public.numbers import CannotProtectError
from small import described

Cell = tuple[int, int, int]
SIZES = (4, 2, 3)
NAMES = ("area", "sex", "job")
HALVES = [{"code": "N", "members": ["n1", "n2"]}, {"code": "S", "members": ["s1", "s2"]}]
DATASET = described(
    "town",
    {
        "area": {
            "codes": ["n1", "n2", "s1", "s2"],
            "label": "Area",
            "hierarchies": [{"name": "place", "levels": [{"name": "half", "groups": HALVES}]}],
        },
        "sex": {"codes": "fm", "label": "Sex"},
        "job": {"codes": "abc", "label": "Job"},
    },
    head={"units": "people"},
    measures=[{"name": "pay", "unit": "euro", "decimals": 2}, {"name": "gain", "unit": "euro"}],
    structural_zeros=[{"reason": "No job c in n1.", "where": {"area": ["n1"], "job": ["c"]}}],
)
EVERY: list[Cell] = list(product(*(range(n) for n in SIZES)))  # type: ignore[arg-type]
POSSIBLE = {cell for cell in EVERY if not (cell[0] == 0 and cell[2] == 2)}
SHOWN = {cell: 3 * (1 + k % 4) for k, cell in enumerate(sorted(POSSIBLE)) if k % 3}
PAY = {cell: 700 * (k - 1) for k, cell in enumerate(sorted(POSSIBLE)) if k % 4}
FACTORS = needed_factors(Fraction(1, 20), "known")
POLICY = Policy.model_validate(
    {"before": [{"method": "protected-population"}], "protect": {"method": "none"}}
)


def bundle(
    existence: str | None = None, known: tuple[KnownTotals, ...] = (), **more: Any
) -> Bundle:
    """The bundle of the cells above; with sums where it is said whether existence is public."""
    rates = nearest_rates(3, 3)
    report = PublicReport(
        {"method": "protected-population", "base": 3, "max_variables": 2},
        Support(3),
        0.9,
        {1: 1.5, 2: 2.5, 3: 4.0},
        {1: 2.0, 2: 6.0},
        rates,
        rates[::-1],
        known,
        margins={1: (1, 3, 5, 7, 9), 2: (2, 6, 10, 14, 18)},
        group_margins={1: (3, 9, 15, 21, 27)},
    )
    sums = None
    if existence is not None:
        method = {"method": "protected-magnitudes", "p": 5.0, "existence": existence, "secret": 1}
        gain = np.where(np.arange(len(PAY)) == 2, -400, 900)
        sums = ProtectedSums(
            FinestSums(
                DATASET, np.array(list(PAY)).T, {"pay": np.array(list(PAY.values())), "gain": gain}
            ),
            PublicFactors(method, FACTORS, {"pay": {1: 1.0, 2: 2.5}, "gain": {1: 3.0}}),
        )
    cells = FinestCells(DATASET, np.array(list(SHOWN)).T, np.array(list(SHOWN.values())))
    return Bundle(cells, POLICY, report, "d" * 32, sums=sums, **more)


AXES = (
    Axis("area"),
    Axis("area", "half", total=True),
    Axis("area", groups=(Group("N and s1", ("n1", "n2", "s1")),)),
    Axis("sex", total=True),
    Axis("job", total=True),
)
FILTERS: tuple[tuple[Filter, ...], ...] = (
    (),
    (Filter("sex", ("f",)),),
    (Filter("sex", ("f", "m")),),
    (Filter("area", ("n1", "s1")),),
    (Filter("job", ("a", "c")), Filter("area", ("N",))),
    (Filter("job", ("a", "b", "c")),),
)
QUESTIONS = [
    TableQuery("town", by, where)
    for by in [*((a,) for a in AXES), (AXES[0], AXES[4]), (AXES[3], AXES[1])]
    for where in FILTERS
    if not {a.variable for a in by} & {f.variable for f in where}
]


def sets(release: Release, query: TableQuery) -> Any:
    """The finest cells behind every cell of a table, by the members of its categories and filters."""
    passing = {f.variable: _codes(f.variable, f.codes) for f in query.where}
    out = np.empty(release.shape, dtype=object)
    for place in np.ndindex(*release.shape):
        kept = dict(passing)
        for axis, k in zip(release.axes, place, strict=True):
            kept[axis.name] = set(axis.categories[k].members)
        out[place] = {
            cell
            for cell in EVERY
            if all(cell[NAMES.index(name)] in codes for name, codes in kept.items())
        }
    return out


def _codes(name: str, words: tuple[str, ...]) -> set[int]:
    codes = DATASET.variable(name).codes
    groups = {"N": {0, 1}, "S": {2, 3}}
    return set().union(*(groups[w] if w in groups else {codes.index(w)} for w in words))


def ends(cells: set[Cell], known: dict[frozenset[Cell], int], occupied: set[Cell] | None) -> Any:
    """The least and the most that a count of these finest cells can be."""
    low = high = 0
    for cell in cells & POSSIBLE:
        number = SHOWN.get(cell, 0)
        least, most = {0: (0, 2), 3: (0, 5)}.get(number, (number - 2, number + 2))
        if occupied is not None:
            least, most = (max(least, 1), most) if cell in occupied else (0, 0)
        low, high = low + least, high + most
    touched = {group: total for group, total in known.items() if group & cells}
    if known:
        high = min(high, sum(touched.values()))
        if all(group <= cells for group in touched):
            low = sum(touched.values())
    return low, high


TOTALS = KnownTotals(("area:half", "sex"), (41, 37, 43, 40))
GROUPS = {
    frozenset(c for c in EVERY if c[0] // 2 == half and c[1] == sex): TOTALS.values[2 * half + sex]
    for half in range(2)
    for sex in range(2)
}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("existence", [None, "secret", "public"])
def test_counts_and_their_bounds_are_those_of_the_finest_cells(
    known: bool, existence: str | None
) -> None:
    numbers = BundleNumbers(bundle(existence, (TOTALS,) if known else ()), workers=1)
    occupied = set(PAY) if existence == "public" else None
    for query in QUESTIONS:
        views = numbers.views(query)
        shown = views.shown
        behind = sets(shown, query)
        assert shown.least is not None
        assert shown.most is not None
        exact = False
        for place in np.ndindex(*shown.shape):
            cells: set[Cell] = behind[place]
            assert shown.published[place] == sum(SHOWN.get(cell, 0) for cell in cells)
            found = (int(shown.least[place]), int(shown.most[place]))
            assert found == ends(cells, GROUPS if known else {}, occupied), query
            exact |= known and all(g <= cells or not g & cells for g in GROUPS)
            never = shown.structural is not None and bool(shown.structural[place])
            assert never == (not cells & POSSIBLE)
        assert any("public elsewhere" in str(note) for note in shown.notes) == exact
        assert any("Area, Sex" in str(note) for note in shown.notes) == exact
        everybody = sum(SHOWN.values())
        plain = [axis for axis in query.by if not axis.groups]
        if len(plain) == len(query.by) and all(not a.total for a in query.by):
            assert views.everybody.published.sum() == everybody
        assert (views.selected is None) == (not query.where)
        assert views.everybody.least is None
        assert shown.unit == views.everybody.unit == "people"
        assert views.everybody.method == {"method": "protected-population", "base": 3}


def test_categories_that_nobody_passes_into_are_known_to_be_empty() -> None:
    categories = Axis("area").categories(DATASET.variable("area"))
    most, exact = most_by_totals(DATASET, TOTALS, [("area", categories)], {"area": frozenset({1})})
    assert most.tolist() == [0, 41 + 37, 0, 0]
    assert exact.tolist() == [True, False, True, True]


def test_where_only_small_counts_change_larger_ones_are_exact() -> None:
    made = bundle()
    report = replace(made.report, support=Support(3, small_only=True))
    numbers = BundleNumbers(replace(made, report=report), workers=1)
    query = TableQuery("town", (Axis("area"), Axis("job")))
    shown = numbers.views(query).shown
    assert shown.least is not None
    assert shown.most is not None
    behind = sets(shown, query)
    for place in np.ndindex(*shown.shape):
        known = [SHOWN.get(cell, 0) for cell in behind[place] & POSSIBLE]
        # A 0 stands for 0 to 2, a 3 for 0 to 3, and all else for itself.
        assert shown.least[place] == sum(n for n in known if n > 3)
        assert shown.most[place] == sum(n or 2 for n in known)


def test_an_upper_end_far_beyond_the_number_is_left_open() -> None:
    """Each cell that shows 0 may hold 2: six hundred of them say nothing beside a small number."""
    many = described("wide", {"a": "12", "b": [str(i) for i in range(501)]})

    def high(number: int) -> int:
        codes = np.array([[0], [0]])
        cells = FinestCells(many, codes, np.array([number]))
        made = BundleNumbers(replace(bundle(), cells=cells), workers=1)
        shown = made.views(TableQuery("wide", (Axis("a"),))).shown
        return int(shown.most[0])

    # 500 empty cells and the one listed leave 1000 and 2 above it.
    assert high(3) == UNBOUNDED
    assert high(999) == UNBOUNDED
    assert high(1002) == 1002 + 1002


def test_errors_and_channels_are_those_of_the_variables_that_a_question_names() -> None:
    made = bundle()
    numbers = BundleNumbers(made, workers=1)
    for by, where, kind, own in (
        ((AXES[0],), (), 1, False),
        ((AXES[0],), FILTERS[1], 2, False),
        ((AXES[0], AXES[3]), (), 2, False),
        ((AXES[2],), (), 1, True),
        ((AXES[3], AXES[2]), (), 2, True),
        ((AXES[3],), FILTERS[3], 2, True),
        # Codes of the filter are shown one by one, and together as a total of the reader's own.
        ((replace(AXES[1], total=False),), FILTERS[3], 1, False),
        ((AXES[1],), FILTERS[3], 1, True),
        ((AXES[0], AXES[3], AXES[4]), (), 3, False),
    ):
        shown = numbers.views(TableQuery("town", by, where)).shown
        assert shown.channel == made.report.channel(kind, own_groups=own)
        margin = made.report.margin(kind, own_groups=own, shown=int(shown.published.max()))
        assert shown.margin == margin
        assert f"{kind} variable" in str(shown.notes[1])
        assert f"more than {margin} away" in str(shown.notes[1])


@pytest.mark.parametrize("existence", ["secret", "public"])
@pytest.mark.parametrize("measure", ["pay", "gain"])
def test_sums_and_their_bounds_follow_from_the_finest_cells(existence: str, measure: str) -> None:
    made = bundle(existence)
    numbers = BundleNumbers(made, workers=1)
    assert numbers.measures == ("pay", "gain")
    values = dict(zip(PAY, made.sums.sums.sums[measure].tolist(), strict=True))
    occupied = set(PAY) if existence == "public" else None
    for query in QUESTIONS:
        views = numbers.views(replace(query, measure=measure))
        shown = views.shown
        behind = sets(shown, query)
        assert shown.least is not None
        assert shown.most is not None
        for place in np.ndindex(*shown.shape):
            cells: set[Cell] = behind[place]
            value = sum(values.get(cell, 0) for cell in cells)
            assert shown.published[place] == value
            most = ends(cells, {}, occupied)[1]
            low, high = sum_bounds(np.array([value]), np.array([most]), FACTORS.most)
            expected = (int(low[0]), int(high[0]))
            if measure == "gain":
                expected = (-UNBOUNDED, UNBOUNDED)
            elif existence == "secret" and not cells >= POSSIBLE:
                expected = (0, UNBOUNDED)
            assert (int(shown.least[place]), int(shown.most[place])) == expected, query
        assert (views.everybody, views.selected) == (shown, None)  # rules judge counts
        assert (shown.decimals, shown.unit) == (2 if measure == "pay" else 0, "euro")
        never = [not cells & POSSIBLE for cells in behind.ravel()]
        structural = shown.structural
        assert (structural is not None and structural.any()) == any(never)
        assert any("tied to the protected" in str(n) for n in shown.notes) == (
            existence == "secret"
        )
        variables = {a.variable for a in query.by} | {f.variable for f in query.where}
        error = made.sums.public.error(measure, len(variables))
        assert any(f"typically {error:.3g} percent" in str(n) for n in shown.notes)
        assert shown.method == {
            "method": "protected-magnitudes", "p": 5.0, "existence": existence,
        }  # fmt: skip
    assert numbers.sum_noise("pay") is not None


def test_a_measure_with_parts_changes_part_by_part() -> None:
    """Each record has two contributions, so that twice as many changes are possible."""
    source = dict(DATASET.source)
    source["measures"] = [
        {"name": "pay", "unit": "euro", "parts": ["gain", "loss"]},
        {"name": "gain", "unit": "euro"},
        {"name": "loss", "unit": "euro"},
    ]
    parted = Dataset.from_mapping(source)
    made = bundle("public")
    cells = FinestCells(parted, made.cells.codes, made.cells.counts)
    sums = FinestSums(parted, made.sums.sums.codes, {"pay": made.sums.sums.sums["pay"]})
    whole = replace(made, cells=cells, sums=replace(made.sums, sums=sums))
    query = TableQuery("town", (Axis("sex"),), measure="pay")
    shown = BundleNumbers(whole, workers=1).views(query).shown
    most = BundleNumbers(made, workers=1).views(TableQuery("town", (Axis("sex"),))).shown.most
    low, high = sum_bounds(shown.published, 2 * most, FACTORS.most)
    assert (shown.least.tolist(), shown.most.tolist()) == (low.tolist(), high.tolist())


def test_what_a_bundle_does_not_hold_is_not_made_up() -> None:
    plain = BundleNumbers(bundle(), workers=1)
    assert plain.measures == ()
    assert plain.weights == ()
    assert plain.weighted_measures == ()
    assert plain.sum_noise("pay") is None
    assert plain.mark == "d" * 32
    by = TableQuery("town", (Axis("sex"),))
    assert plain.quotients(by, by, None) is None
    for asked in (replace(by, measure="pay"), replace(by, weight="w")):
        with pytest.raises(CannotProtectError):
            plain.views(asked)
        with pytest.raises(CannotProtectError):
            BundleNumbers(bundle("secret"), workers=1).views(replace(asked, weight="w"))


@pytest.mark.parametrize("existence", [None, "secret", "public"])
def test_the_report_for_readers_says_what_numbers_leave_open(existence: str | None) -> None:
    made = bundle(existence, (KnownTotals(("area:half",), (78, 83)),))
    said = protection_of(made)
    least = 1 if existence == "public" else 0
    assert [(o.shown, o.low, o.high) for o in said.open] == [
        (0, least, 2), (3, least, 5), (6, 4, 8), (9, 7, 11),
    ]  # fmt: skip
    assert said.existence_public == (existence == "public")
    assert [(k.variables, k.labels, k.total) for k in said.known] == [
        (("Area",), ("N",), 78),
        (("Area",), ("S",), 83),
    ]
    assert [(e.variables, e.error, e.with_own_groups) for e in said.errors] == [
        (1, 1.5, 2.0),
        (2, 2.5, 6.0),
        (3, 4.0, 6.0),
    ]
    assert [(m.variables, m.own_groups, m.margins) for m in said.margins[:3]] == [
        (1, False, (1, 3, 5, 7, 9)),
        (1, True, (3, 9, 15, 21, 27)),
        (2, False, (2, 6, 10, 14, 18)),
    ]
    assert (said.margin_ends, said.largest) == ((10, 100, 1000, 10_000), None)
    assert (said.changed, said.digest, said.method) == (0.9, "d" * 32, made.report.method)


def test_sums_lie_within_their_bounds_whatever_happened_to_their_records() -> None:
    """All pairs of small records and all their changes, for a factor of a fifth."""
    b = Fraction(1, 5)

    def reach(x: int) -> int:
        return max(-((-b * x) // 1), 2) if x else 0

    widest: dict[int, list[int]] = {}
    for x, y in product(range(0, 31, 3), repeat=2):
        for change in (-1, 1):
            shown = x + y + change * (reach(x) + reach(y))
            widest.setdefault(shown, []).append(x + y)
    for shown, sums in widest.items():
        low, high = sum_bounds(np.array([shown]), np.array([2]), b)
        assert low[0] <= min(sums)
        assert max(sums) <= high[0]
    low, high = sum_bounds(np.array([1200, 1200, 2**61]), np.array([5, UNBOUNDED, 5]), b)
    # 1190 is 1.2 times 991.7, and 1210 is 0.8 times 1512.5.
    assert (low.tolist()[:2], high.tolist()[:2]) == ([992, 0], [1512, UNBOUNDED])
    assert high[2] == 5 * (2**61 + 10) // 4
    assert sum_bounds(np.array([2**62 - 1]), np.array([1]), b)[1][0] == UNBOUNDED
    assert sum_bounds(np.array([1]), np.array([5]), b)[0][0] == 0


def test_the_typical_error_is_that_of_the_sums_shown() -> None:
    """By size: below 100 ten percent, then two; without any sum shown, by the number of variables."""
    public = PublicFactors(
        {"existence": "public"}, FACTORS, {"pay": {1: 1.0, 2: 2.5}}, {"pay": {1: 10.0, 100: 2.0}}
    )
    tables: Any = SimpleNamespace(public=public, measure=SimpleNamespace(name="pay"))
    noise = FactorNoise(public, "pay")
    inner = np.array([True, True, True, True, False])
    made: Any = SimpleNamespace(numbers=np.array([0, 1, 50, 400, 451]), inner=inner)
    sums = np.array([1.0, 50.0, 400.0])
    found = SumTables._typical(tables, made, 2)
    assert found == pytest.approx(float(noise.error(sums, 2).mean()))
    assert found != pytest.approx(float(noise.error(sums[1:], 2).mean()))
    empty: Any = SimpleNamespace(numbers=np.array([0, -3, 0, 0, 8]), inner=inner)
    assert SumTables._typical(tables, empty, 1) == 1.0
    assert SumTables._typical(tables, empty, 2) == 2.5
