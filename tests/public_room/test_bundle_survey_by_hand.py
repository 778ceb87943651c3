"""Weighted numbers of a small survey, cell by cell and formula by formula."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Dataset, Measure, TableQuery, Weight
from lustrum.model.finest import FinestCells
from lustrum.numeric.structure import TableLayout
from lustrum.protect.weighted import ProtectedRespondents, RespondentSums
from lustrum.protect.weighted.replicates import ReplicateFactors
from lustrum.public.bundle import weighted as weighted_module
from lustrum.public.bundle.respondents import respondents_bytes, respondents_of
from lustrum.public.bundle.weighted import WeightedNumbers
from lustrum.survey import Design, Reliability, Sums, estimate_quotients, estimate_totals


def described() -> Dataset:
    return Dataset.from_mapping(
        {
            "dataset": {"name": "panel", "units": "people"},
            "variables": [
                {"name": "sex", "codes": ["f", "m"]},
                {
                    "name": "area",
                    "codes": ["a", "b", "c", "d"],
                    "hierarchies": [
                        {
                            "name": "wide",
                            "levels": [
                                {"name": "half", "groups": [{"code": "ab", "members": ["a", "b"]}]}
                            ],
                        }
                    ],
                },
            ],
            "measures": [{"name": "income", "label": "Income", "decimals": 1, "unit": "crowns"}],
            "weights": [{"name": "weight", "label": "Weight", "decimals": 1}],
            "structural_zeros": [{"reason": "none", "where": {"sex": ["m"], "area": ["d"]}}],
        }
    )


DATASET = described()
assert isinstance(DATASET.measures[0], Measure)
assert isinstance(DATASET.weights[0], Weight)
CODES = np.array([[0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 1, 1, 2, 3, 3, 0, 1, 1, 2, 2]])
WEIGHTS = np.array([105, 210, 90, 40, 75, 33, 61, 500, 120, 77, 18, 204])
INCOMES = np.array([300, 120, 0, 55, 410, 90, 15, 205, 77, 300, 64, 128])
MADE = ProtectedRespondents(
    dataset=DATASET,
    codes=CODES,
    weights=WEIGHTS,
    strata=np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1]),
    clusters=np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
    count_errors={1: 0.5, 2: 1.5, 4: 3.0},
    weight_spread=0.2,
    weight_noise=0.03,
    decimals=1,
    values={"income": INCOMES},
    value_spreads={"income": 0.3},
    value_noise=0.05,
)
NUMBERS = WeightedNumbers(MADE, Reliability(respondents=2, unreliable=0.9, caution=0.4), workers=1)


def query(**words: Any) -> TableQuery:
    return TableQuery.from_mapping({"dataset": "panel", "weight": "weight", **words})


def part(rows: list[int], measure: str | None = None) -> RespondentSums:
    """One cell that holds these respondents."""
    cells = np.full(12, -1)
    cells[rows] = 0
    return RespondentSums(cells, 1, measure)


SEX: list[list[int]] = [[0], [1]]
SEX_TOTAL = [*SEX, [0, 1]]
AREA: list[list[int]] = [[0], [1], [2], [3]]
HALF: list[list[int]] = [[0, 1], [2], [3]]
AREA_TOTAL = [*AREA, [0, 1, 2, 3]]


def rows_of(sexes: list[int], areas: list[int]) -> list[int]:
    return [k for k in range(12) if CODES[0, k] in sexes and CODES[1, k] in areas]


TABLES: list[tuple[dict[str, Any], list[list[int]], list[list[int]], int]] = [
    ({"by": ["sex", "area"]}, SEX, AREA, 2),
    ({"by": ["sex", "area"], "totals": True}, SEX_TOTAL, AREA_TOTAL, 2),
    ({"by": ["sex"], "where": {"area": ["a", "c"]}}, SEX, [[0, 2]], 2),
    ({"by": [{"variable": "area", "level": "half"}]}, [[0, 1]], HALF, 1),
    ({"by": []}, [[0, 1]], [[0, 1, 2, 3]], 1),
]


@pytest.mark.parametrize("measure", [None, "income"])
@pytest.mark.parametrize(("words", "sexes", "areas", "variables"), TABLES)
def test_every_number_is_the_sum_over_its_own_respondents(
    words: dict[str, Any],
    sexes: list[list[int]],
    areas: list[list[int]],
    variables: int,
    measure: str | None,
) -> None:
    more = {} if measure is None else {"measure": measure}
    release = NUMBERS.release(query(**words, **more))
    decimals = 1 if measure is None else 2
    assert release.decimals == decimals
    amounts = WEIGHTS if measure is None else WEIGHTS * INCOMES
    shown = release.published.ravel().tolist()
    assert release.errors is not None
    assert release.grades is not None
    place = 0
    for sex in sexes:
        for area in areas:
            rows = rows_of(sex, area)
            assert shown[place] == amounts[rows].sum()
            made = MADE.totals(part(rows, measure), variables)
            error = float(made.standard_errors[0]) * 10**decimals
            assert release.errors.ravel()[place] == int(np.ceil(error - 1e-9))
            grade = made.grades(NUMBERS.reliability)[0]
            if sex == [1] and area == [3]:
                grade = "reliable"  # nobody can be there, which is no estimate
            assert release.grades.ravel()[place] == grade
            place += 1
    assert place == len(shown)
    assert release.unit == ("people" if measure is None else "crowns")
    assert (release.status == "F").all()
    assert release.method == {"method": "protected-survey"}
    notes = " ".join(str(note) for note in release.notes)
    assert ("Values of Income" in notes) is (measure == "income")


def test_a_table_without_structural_zeros_is_graded_as_it_is() -> None:
    bare = replace(MADE, dataset=replace(DATASET, structural_zeros=()))
    release = WeightedNumbers(bare, NUMBERS.reliability, 1).release(query(by=["sex", "area"]))
    assert release.structural is None or not release.structural.any()
    assert release.grades[1, 3] == "unreliable"
    known = NUMBERS.release(query(by=["sex", "area"])).structural
    assert known.tolist() == [[False] * 4, [False, False, False, True]]


QUOTIENTS: list[tuple[str | None, str | None, str | None]] = [
    ("income", None, None),
    (None, None, "sex"),
    (None, None, "area"),
    (None, None, "nothing"),
    ("income", "income", "sex"),
]


@pytest.mark.parametrize(("over", "under", "within"), QUOTIENTS)
def test_a_quotient_compares_a_cell_with_its_own_base(
    over: str | None, under: str | None, within: str | None
) -> None:
    words = {"by": ["sex", "area"], "totals": True}
    one = query(**words, **({} if over is None else {"measure": over}))
    two = query(**words, **({} if under is None else {"measure": under}))
    found = NUMBERS.quotients(one, two, within)
    place = 0
    for sex in SEX_TOTAL:
        for area in AREA_TOTAL:
            rows = rows_of(sex, area)
            beside = rows
            if within is not None:
                beside = rows_of(
                    sex if within == "sex" else [0, 1], area if within == "area" else [0, 1, 2, 3]
                )
            above, below = part(rows, over), part(beside, under)
            totals = {"sex": [area == AREA_TOTAL[-1]], "area": [sex == SEX_TOTAL[-1]]}
            full = totals.get(within or "", [sex == SEX_TOTAL[-1], area == AREA_TOTAL[-1]])
            if within is not None and rows == beside and not all(full):
                # The other sex cannot be there; the table treats the cell as a share all the same.
                above, below = (
                    RespondentSums(above.cells, 2, over),
                    RespondentSums(below.cells.copy(), 2, under),
                )
                below.cells[next(k for k in range(12) if k not in beside)] = 1
            base = np.arange(above.count)
            made = MADE.quotients(above, below, base, 2)
            for name in ("values", "variances"):
                got, wanted = getattr(found, name)[place], getattr(made, name)[0]
                assert got == pytest.approx(wanted, rel=1e-9, nan_ok=True)
            assert found.respondents[place] == made.respondents[0]
            place += 1
    assert NUMBERS.graded(found).tolist() == found.grades(NUMBERS.reliability).tolist()


def test_people_are_counted_in_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(weighted_module, "sample_risk", lambda _, people: asked.append(people))
    fine = replace(DATASET, weights=(replace(DATASET.weights[0], decimals=2),))
    numbers = WeightedNumbers(replace(MADE, dataset=fine, decimals=2), Reliability(), 1)
    numbers.release(query(by=["sex"]))
    assert asked == [int(WEIGHTS.sum()) // 100]


def test_chosen_codes_and_codes_of_nobody_have_their_place() -> None:
    some = NUMBERS.release(query(by=[{"variable": "area", "codes": ["b", "a"]}]))
    sums = {code: int(WEIGHTS[CODES[1] == code].sum()) for code in range(4)}
    assert sorted(some.published.tolist()) == sorted([sums[0], sums[1]])
    assert (some.errors > 0).all()
    kept = CODES[1] < 2
    few = replace(
        MADE, codes=CODES[:, kept], weights=WEIGHTS[kept], strata=MADE.strata[kept],
        clusters=MADE.clusters[kept], values={"income": INCOMES[kept]},
    )  # fmt: skip
    release = WeightedNumbers(few, Reliability(), 1).release(query(by=["area"]))
    assert release.published.tolist() == [sums[0], sums[1], 0, 0]
    assert release.errors[2:].tolist() == [0, 0]
    group = {"variable": "area", "groups": [{"label": "one", "members": ["b", "d"]}]}
    own = WeightedNumbers(few, Reliability(), 1).release(query(by=[group]))
    assert own.published.tolist() == [sums[1]]
    nobody = replace(
        MADE, codes=CODES[:, :0], weights=WEIGHTS[:0], strata=MADE.strata[:0],
        clusters=MADE.clusters[:0], values={"income": INCOMES[:0]},
    )  # fmt: skip
    cells = FinestCells(DATASET, CODES[:, :0], np.zeros(0, dtype=np.int64))
    for words in (
        {"replicates": ReplicateFactors(np.full((3, 2), 9), 1.0)},
        {"joined": np.array([1, 2])},
        {"name": "second"},
    ):
        made = replace(nobody, **words)  # type: ignore[arg-type]
        back = respondents_of(respondents_bytes(made), cells)
        assert len(back) == 0
        assert back.name == made.name


def test_a_share_of_one_variable_has_the_error_of_one() -> None:
    words = {"by": ["sex"], "totals": True}
    found = NUMBERS.quotients(query(**words), query(**words), "nothing")
    rows = rows_of([0], [0, 1, 2, 3])
    made = MADE.quotients(part(rows), part(list(range(12))), np.array([0]), 1)
    assert found.variances[0] == pytest.approx(made.variances[0])


def test_a_growth_of_one_variable_is_told_from_one_of_two() -> None:
    one = NUMBERS.quotients(query(by=["sex"], measure="income"), query(by=["sex"]))
    rows = rows_of([0], [0, 1, 2, 3])
    made = MADE.quotients(part(rows, "income"), part(rows), np.array([0]), 1)
    assert one.variances[0] == pytest.approx(made.variances[0])
    crossed = query(by=["sex"], where={"area": ["a"]})
    share = NUMBERS.quotients(crossed, query(by=["sex"]))
    mine = MADE.quotients(part(rows_of([0], [0])), part(rows), np.array([0]), 2)
    assert share.values[0] == pytest.approx(mine.values[0])
    assert share.variances[0] == pytest.approx(mine.variances[0])


# --- errors that protection adds


def added_by_hand(rows: list[int], measure: str | None, error: float) -> float:
    """The count of respondents errs, weights are those of a class with noise, and so are values."""
    weights = WEIGHTS[rows] / 10
    incomes = INCOMES / 10
    amounts = weights if measure is None else weights * incomes[rows]
    total = float(amounts.sum())
    mean = total / len(rows) if rows else 0.0
    out = (error * mean) ** 2 + 0.2**2 * float((amounts**2).sum()) + (0.03 * total) ** 2 / 3
    return out if measure is None else out + values_by_hand(rows)


def values_by_hand(rows: list[int]) -> float:
    weights, incomes = WEIGHTS[rows] / 10, INCOMES / 10
    apart = 0.3 * float(np.abs(incomes).mean())
    whole = float((weights * np.abs(incomes[rows])).sum())
    return apart**2 * float((weights**2).sum()) + (0.05 * whole) ** 2 / 3


DESIGN = Design(WEIGHTS / 10, MADE.strata, MADE.clusters, lonely="centre")


@pytest.mark.parametrize("measure", [None, "income"])
@pytest.mark.parametrize(("variables", "error"), [(0, 0.5), (1, 0.5), (2, 1.5), (3, 3.0), (9, 3.0)])
def test_protection_adds_the_errors_that_the_file_states(
    measure: str | None, variables: int, error: float
) -> None:
    amounts = None if measure is None else INCOMES / 10
    for rows in ([0, 3, 5, 6, 11], [7], []):
        own = part(rows, measure)
        plain = estimate_totals(DESIGN, own.cells, 1, amounts)
        found = MADE.totals(own, variables)
        assert found.values[0] == pytest.approx(plain.values[0])
        added = found.variances[0] - plain.variances[0]
        assert added == pytest.approx(added_by_hand(rows, measure, error), rel=1e-9, abs=1e-9)
        assert found.respondents[0] == len(rows)


def quotient_by_hand(
    rows: list[int], below: list[int], over: str | None, under: str | None, kind: str
) -> tuple[float, float]:
    def amounts(measure: str | None) -> Any:
        return None if measure is None else INCOMES / 10

    found = estimate_quotients(
        DESIGN,
        Sums(part(rows).cells, 1, amounts(over)),
        Sums(part(below).cells, 1, amounts(under)),
        np.array([0]),
    )
    rate = float(found.values[0])
    whole = float((WEIGHTS[below] / 10 * (1 if under is None else INCOMES[below] / 10)).sum())
    if kind == "same":
        noise = values_by_hand(rows) if over else 0.0
        noise += rate**2 * (values_by_hand(below) if under else 0.0)
    elif kind == "share":
        noise = (1 - rate) ** 2 * added_by_hand(rows, over, 1.5)
        noise += rate**2 * added_by_hand(below, under, 1.5)
    else:
        noise = added_by_hand(rows, over, 1.5) + rate**2 * added_by_hand(below, under, 1.5)
    return rate, float(found.variances[0]) + noise / whole**2


@pytest.mark.parametrize(
    ("rows", "below", "over", "under", "kind"),
    [
        ([0, 3, 5, 8], [0, 3, 5, 8], "income", None, "same"),
        ([0, 3, 5, 8], [0, 3, 5, 8], "income", "income", "same"),
        ([0, 3, 5, 8], [0, 3, 5, 8], None, "income", "same"),
        ([0, 3], [0, 3, 5, 8], None, None, "share"),
        ([0, 3], [0, 3, 5, 8], "income", "income", "share"),
        ([0, 3], [0, 3, 5, 8], "income", None, "apart"),
        ([0, 3, 9], [0, 3, 5, 8], None, None, "apart"),
        ([1, 2], [5, 8, 11], None, None, "apart"),
    ],
)
def test_a_quotient_has_the_errors_of_what_differs(
    rows: list[int], below: list[int], over: str | None, under: str | None, kind: str
) -> None:
    found = MADE.quotients(part(rows, over), part(below, under), np.array([0]), 2)
    rate, variance = quotient_by_hand(rows, below, over, under, kind)
    assert found.values[0] == pytest.approx(rate)
    assert found.variances[0] == pytest.approx(variance)


def test_more_decimals_are_finer_units_of_the_same_numbers() -> None:
    measure = replace(DATASET.measures[0], decimals=2)
    finer = replace(
        MADE,
        dataset=replace(DATASET, measures=(measure,)),
        weights=10 * WEIGHTS,
        decimals=2,
        values={"income": 10 * INCOMES},
    )
    for name in (None, "income"):
        own = part([0, 3, 5, 6, 11], name)
        for one, two in (
            (MADE.totals(own, 2), finer.totals(own, 2)),
            (
                MADE.quotients(own, part([1, 2, 3]), np.array([0]), 2),
                finer.quotients(own, part([1, 2, 3]), np.array([0]), 2),
            ),
        ):
            assert one.values[0] == pytest.approx(two.values[0])
            assert one.variances[0] == pytest.approx(two.variances[0])


def test_nothing_is_in_proportion_to_nobody() -> None:
    found = MADE.quotients(part([0, 3]), part([]), np.array([0]), 1)
    assert not np.isfinite(found.values[0])
    assert np.isnan(found.variances[0])
    assert found.grades(NUMBERS.reliability)[0] == "unreliable"


def test_replicates_and_joined_clusters_decide_how_samples_vary() -> None:
    assert isinstance(MADE.sample, Design)
    factors = np.array([[100, 50], [120, 100], [100, 90], [80, 100], [100, 100], [130, 70]])
    copied = replace(MADE, replicates=ReplicateFactors(factors, 0.25))
    own = part([0, 3, 5, 6, 11])
    rows = [0, 3, 5, 6, 11]
    full = WEIGHTS[rows].sum() / 10
    replicated = [
        sum(WEIGHTS[k] / 10 * factors[MADE.clusters[k], r] / 100 for k in rows) for r in (0, 1)
    ]
    spread = 0.25 * sum((x - full) ** 2 for x in replicated)
    added = added_by_hand(rows, None, 0.5)
    assert copied.totals(own).variances[0] == pytest.approx(spread + added)
    joined = replace(MADE, joined=np.array([1, 2, 1, 3, 1, 2]))
    design = Design(
        WEIGHTS / 10, MADE.strata, MADE.clusters, lonely="centre",
        joined=np.array([1, 2, 1, 3, 1, 2])[MADE.clusters],
    )  # fmt: skip
    plain = estimate_totals(design, own.cells, 1, None)
    assert joined.totals(own).variances[0] == pytest.approx(plain.variances[0] + added)
    assert len(MADE) == 12
    assert repr(MADE) == "ProtectedRespondents('panel')"


WAYS: tuple[list[Any], ...] = (
    [], ["sex"], ["area"], ["area", "sex"], [{"variable": "area", "level": "half"}, "sex"],
)  # fmt: skip


@given(
    by=st.sampled_from(WAYS),
    chosen=st.one_of(st.none(), st.sets(st.sampled_from("abcd"), min_size=1)),
    measures=st.tuples(*[st.sampled_from([None, "income"])] * 2),
    factors=st.lists(st.lists(st.integers(0, 200), min_size=3, max_size=3), min_size=6, max_size=6),
    within=st.sampled_from([None, "sex", "area"]),
)
def test_every_cell_with_replicates_is_that_of_its_own_respondents(
    by: list[Any],
    chosen: set[str] | None,
    measures: tuple[str | None, str | None],
    factors: list[list[int]],
    within: str | None,
) -> None:
    """All cells of a table are counted at once, each respondent in one atom; here each alone."""
    made = replace(MADE, replicates=ReplicateFactors(np.array(factors), 0.25))
    numbers = WeightedNumbers(made, NUMBERS.reliability, workers=1)
    where = {} if chosen is None else {"where": {"area": sorted(chosen)}}
    over, under = (query(by=by, totals=True, measure=m, **where) for m in measures)
    layout = TableLayout.of_query(over, DATASET)
    variables, scale = len(layout.parts), 10 if measures[0] is None else 100
    shown = numbers.release(over)
    found = numbers.quotients(over, under, within)
    assert shown.errors is not None
    passing = range(4) if chosen is None else ["abcd".index(code) for code in chosen]
    for flat, place in enumerate(np.ndindex(layout.shape)):
        rows, base_rows = (
            [
                k
                for k in rows_of([0, 1], list(passing))
                if all(
                    CODES[["sex", "area"].index(axis.name), k] in axis.categories[i].members
                    for axis, i in zip(layout.axes, at, strict=True)
                )
            ]
            for at in (place, _base(layout, place, within))
        )
        alone = made.totals(part(rows, measures[0]), max(variables, 1))
        assert shown.published[place] == pytest.approx(scale * alone.values[0])
        assert abs(shown.errors[place] - scale * alone.standard_errors[0]) <= 1 + 1e-6
        quotient = made.quotients(
            part(rows, measures[0]), part(base_rows, measures[1]), np.array([0]), max(variables, 1)
        )
        assert found.respondents[flat] == len(rows)
        assert found.values[flat] == pytest.approx(quotient.values[0], nan_ok=True)
        if rows != base_rows or within is None:
            assert found.variances[flat] == pytest.approx(
                quotient.variances[0], nan_ok=True, rel=1e-9, abs=1e-12
            )


def _base(layout: TableLayout, place: tuple[int, ...], within: str | None) -> tuple[int, ...]:
    """The cell that a cell is compared with: the totals stand last along their axes."""
    if within is None:
        return place
    return tuple(
        i if axis.name == within else axis.codes.index("_T")
        for axis, i in zip(layout.axes, place, strict=True)
    )


# --- the file

CELLS = FinestCells(DATASET, *(np.unique(CODES, axis=1, return_counts=True)[k] for k in (0, 1)))


def filed(**words: Any) -> ProtectedRespondents:
    return replace(MADE, **words)


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"replicates": ReplicateFactors(np.full((6, 2), 90), 0.5)},
        {"joined": np.array([1, 2, 1, 3, 1, 2])},
        {"values": {}, "value_spreads": {}},
        {
            "values": {"wealth": INCOMES + 1, "income": INCOMES},
            "value_spreads": {"wealth": 0.1, "income": 0.3},
        },
    ],
)
def test_respondents_come_back_from_their_file(words: dict[str, Any]) -> None:
    made = filed(**words)
    data = respondents_bytes(made)
    back = respondents_of(data, CELLS)
    assert respondents_bytes(back) == data
    assert back.codes.tolist() == CODES.tolist()
    for name in ("weights", "strata", "clusters"):
        assert getattr(back, name).tolist() == getattr(made, name).tolist()
    for name in ("count_errors", "weight_spread", "weight_noise", "decimals", "name"):
        assert getattr(back, name) == getattr(made, name)
    assert back.value_spreads == made.value_spreads
    assert back.value_noise == made.value_noise
    assert {n: v.tolist() for n, v in back.values.items()} == {
        n: v.tolist() for n, v in made.values.items()
    }
    if made.replicates is None:
        assert back.replicates is None
    else:
        assert back.replicates.factors.tolist() == made.replicates.factors.tolist()
        assert back.replicates.scale == made.replicates.scale
    assert (back.joined is None) is (made.joined is None)
    if made.joined is not None:
        assert back.joined.tolist() == made.joined.tolist()


def test_the_file_says_no_more_than_its_columns() -> None:
    table = pa.ipc.open_file(pa.BufferReader(respondents_bytes(MADE))).read_all()
    assert table.schema.names == ["weight", "stratum", "cluster", "value:income"]
    words = json.loads(table.schema.metadata[b"lustrum"])
    assert sorted(words) == [
        "count_errors", "decimals", "name", "value_noise", "value_spreads", "weight_noise",
        "weight_spread",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"weights": np.where(np.arange(12) == 3, 0, WEIGHTS)}, "do not fit the cells"),
        ({"value_spreads": {}}, "other columns"),
        ({"value_spreads": {"income": 0.3, "wealth": 0.1}}, "other columns"),
        ({"replicates": ReplicateFactors(np.full((5, 2), 90), 0.5)}, "do not fit the clusters"),
        ({"replicates": ReplicateFactors(np.full((6, 1), 90), 0.5)}, "do not fit the clusters"),
        ({"replicates": ReplicateFactors(np.full(6, 90), 0.5)}, "do not fit the clusters"),
        ({"replicates": ReplicateFactors(np.full((6, 2), -1), 0.5)}, "0 or more"),
        ({"joined": np.array([1, 2, 1, 3, 1])}, "do not fit the units"),
        ({"joined": np.array([1, 2, 1, 0, 1, 2])}, "do not fit the units"),
        ({"joined": np.full((6, 1), 1)}, "do not fit the units"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        respondents_of(respondents_bytes(filed(**words)), CELLS)


def test_a_file_of_other_respondents_is_refused() -> None:
    fewer = FinestCells(DATASET, CELLS.codes, CELLS.counts - np.eye(1, len(CELLS), 0, int)[0])
    with pytest.raises(ValueError, match="do not fit the cells"):
        respondents_of(respondents_bytes(MADE), fewer)
    # A weight of one unit and factors of 0 are fine.
    least = filed(
        weights=np.where(np.arange(12) == 3, 1, WEIGHTS),
        replicates=ReplicateFactors(np.zeros((6, 2), dtype=int), 0.5),
        joined=np.ones(6, dtype=int),
    )
    assert respondents_of(respondents_bytes(least), CELLS).weights[3] == 1
    negative = filed(clusters=MADE.clusters - 1, replicates=ReplicateFactors(np.full((6, 2), 9), 1))
    with pytest.raises(ValueError, match="0 or more"):
        respondents_of(respondents_bytes(negative), CELLS)
