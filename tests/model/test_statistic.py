"""Statistics as words: one form in and out, and one sentence for every mistake."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import (
    DescriptionError,
    Quantity,
    QueryError,
    Statistic,
    TableQuery,
    describe_statistics,
)
from lustrum.model.statistic import Period
from small import described

FIRMS = described(
    "firms",
    {
        "region": {"codes": "12", "label": "Region"},
        "size": {"codes": "sl", "label": "Size"},
        "year": {"codes": ["2023", "2024"], "label": "Year"},
        "age": {"codes": "yo", "label": "Age", "edges": [0, 10], "unit": "years"},
    },
    head={"unit": "firm", "units": "firms"},
    measures=[
        {"name": "turnover", "label": "Turnover", "unit": "euro", "decimals": 2},
        {"name": "turnover_before", "label": "Turnover a year before", "unit": "euro"},
        {"name": "employees", "label": "Employees", "unit": "people"},
    ],
    weights=[{"name": "w", "label": "Weight", "decimals": 2}],
)


def asked(*statistics: object, **more: object) -> TableQuery:
    words = {"dataset": "firms", "by": ["region", "size"], "statistics": list(statistics)}
    return TableQuery.from_mapping(words | more)


class TestForms:
    def test_a_count_alone_and_a_sum_alone_keep_their_old_form(self) -> None:
        plain = TableQuery.from_mapping({"dataset": "firms", "by": ["region", "size"]})
        assert asked("count") == plain
        assert asked({"statistic": "sum", "measure": "turnover"}).to_mapping() == {
            "dataset": "firms",
            "by": ["region", "size"],
            "measure": "turnover",
        }

    def test_a_measure_beside_statistics_is_that_of_those_without_one(self) -> None:
        query = asked("mean", "count", measure="turnover")
        assert query == asked("mean:turnover", "count")

    def test_row_and_column_are_names_for_variables(self) -> None:
        assert asked("share:turnover:row") == asked("share:turnover:region")
        assert asked("share:count:column") == asked("share:count:size")

    @pytest.mark.parametrize(
        "text",
        [
            "count", "sum:turnover", "mean:turnover", "ratio:turnover:employees",
            "share:count:total", "share:turnover:region", "growth:turnover:turnover_before",
            "growth:count:year=2023", "growth:turnover:year=a:b=c", "median:age",
            "quantile:age:0.125",
        ],
    )  # fmt: skip
    def test_both_forms_say_the_same(self, text: str) -> None:
        statistic = Statistic.parse(text)
        assert statistic.text == text
        assert Statistic.from_mapping(statistic.to_mapping()) == statistic

    def test_the_json_form_is_read_back_unchanged(self) -> None:
        query = asked(
            "count",
            {"statistic": "mean", "measure": "turnover", "decimals": 3},
            "growth:turnover:turnover_before",
            weight="w",
        )
        assert TableQuery.from_mapping(query.to_mapping()) == query

    @given(st.text(max_size=30))
    def test_any_text_is_a_statistic_or_a_mistake(self, text: str) -> None:
        try:
            found = Statistic.parse(text)
        except QueryError:
            return
        assert found == Statistic.from_mapping(found.to_mapping())


class TestQuantities:
    def test_a_mean_is_a_sum_over_a_count(self) -> None:
        assert Statistic.parse("mean:turnover").quantities("w") == (
            Quantity("turnover", "w"),
            Quantity(None, "w"),
        )

    def test_an_earlier_period_changes_the_filter_alone(self) -> None:
        query = asked("growth:turnover:year=2023", where={"year": ["2024"]})
        later, earlier = query.asked[0].quantities()
        assert earlier.period == Period("year", "2023")
        assert query.part(later).where[0].codes == ("2024",)
        assert query.part(earlier).where[0].codes == ("2023",)
        assert query.part(earlier).measure == "turnover"

    def test_a_part_can_have_more_totals(self) -> None:
        part = asked("share:count:region").part(Quantity(), ["size"])
        assert [axis.total for axis in part.by] == [False, True]


class TestWords:
    @pytest.mark.parametrize(
        ("text", "label", "unit", "decimals"),
        [
            ("count", "Number of firms", "firms", 0),
            ("sum:turnover", "Turnover", "euro", 2),
            ("mean:turnover", "Mean turnover per firm", "euro", 3),
            ("ratio:turnover:employees", "Turnover per employees", "euro / people", 2),
            ("ratio:turnover:turnover_before", "Turnover per turnover a year before", "%", 1),
            ("share:count:total", "Share of firms in the total", "%", 1),
            ("share:turnover:size", "Share of turnover within size", "%", 1),
            ("median:age", "Median age", "years", 1),
            ("quantile:age:0.125", "12.5 % quantile of age", "years", 1),
            (
                "growth:turnover:turnover_before",
                "Growth of turnover since turnover a year before",
                "%",
                1,
            ),
        ],
    )
    def test_each_has_a_name_a_unit_and_decimals(
        self, text: str, label: str, unit: str, decimals: int
    ) -> None:
        (found,) = describe_statistics(asked(text), FIRMS)
        assert (found.label, found.unit, found.decimals) == (label, unit, decimals)

    def test_weights_bring_their_decimals(self) -> None:
        found = describe_statistics(asked("count", "sum:turnover", weight="w"), FIRMS)
        assert [f.decimals for f in found] == [2, 4]
        assert found[0].label == "Weighted number of firms"


@pytest.mark.parametrize(
    ("statistics", "more", "sentence"),
    [
        (["middle:turnover"], {}, "There is no statistic 'middle'"),
        (["mean"], {}, "The statistic 'mean' needs a measure"),
        (["count:turnover"], {}, "A count has no measure; ask for the sum of 'turnover'"),
        (["ratio:turnover"], {}, "needs 'per'"),
        (["mean:turnover:x"], {}, "too many parts"),
        (["share:turnover:colour"], {}, "A share is of 'total' or within a variable of the table"),
        (["count", "count"], {}, "asked for twice"),
        ([], {}, "'statistics' must be a list that is not empty"),
        ([7], {}, "must be a text such as 'mean:turnover' or an object"),
        ([{"statistic": "mean", "measure": 3}], {}, "'measure' of a statistic must be a name"),
        ([{"statistic": "mean", "per": "x", "measure": "turnover"}], {}, "has no 'per'"),
        ([{"statistic": "mean", "colour": 1}], {}, "A statistic has no key 'colour'"),
        ([{"statistic": "count", "decimals": 2}], {}, "has the decimals of its measure"),
        ([{"statistic": "mean", "measure": "turnover", "decimals": 7}], {}, "from 0 to 6"),
        (
            [{"statistic": "mean", "measure": "turnover", "decimals": True}],
            {},
            "must be a whole number",
        ),
        ([{"statistic": "growth", "measure": "turnover", "since": 3}], {}, "'since' must be"),
        ([f"mean:m{i}" for i in range(13)], {}, "at most 12 statistics"),
        (["mean:profit"], {}, "has no measure 'profit'"),
        (["mean:w"], {}, "'w' is a weight, not a measure"),
        (["count", "mean:turnover"], {"weight": "turnover"}, "has no weight 'turnover'"),
        (["ratio:turnover:turnover"], {}, "The ratio of 'turnover' to itself is 1"),
        (["growth:turnover:employees"], {}, "has no meaning"),
        (["growth:turnover:turnover"], {}, "has no meaning"),
        (["growth:count:turnover"], {}, "A count cannot have grown since the measure"),
        (["growth:turnover:year=2023"], {}, "select the later period by a filter on 'year'"),
        (
            ["growth:turnover:year=2023"],
            {"where": {"year": ["2023", "2024"]}},
            "is part of the selected one",
        ),
        (["median:size"], {}, "'size' has no classes of a number ('edges')"),
        (["median:age"], {"by": ["age"]}, "'age' is in the table already"),
        (["median:age"], {"weight": "w"}, "leave the weight out"),
        (["median:age:0.5"], {}, "too many parts"),
        (["median"], {}, "needs 'variable'"),
        (["quantile:age"], {}, "'at' belongs to a quantile"),
        (["quantile:age:1.5"], {}, "between 0 and 1 in thousandths"),
        (["quantile:age:0.12345"], {}, "between 0 and 1 in thousandths"),
        (["quantile:age:half"], {}, "between 0 and 1 in thousandths"),
        (["quantile:age:nan"], {}, "between 0 and 1 in thousandths"),
        (
            [{"statistic": "median", "variable": "age", "measure": "turnover"}],
            {},
            "is of a variable, not of a measure",
        ),
        (["growth:turnover:year=1999"], {"where": {"year": ["2024"]}}, "has no category '1999'"),
    ],
)
def test_every_mistake_is_one_sentence(
    statistics: list[object], more: dict[str, object], sentence: str
) -> None:
    with pytest.raises(QueryError) as caught:
        describe_statistics(asked(*statistics, **more), FIRMS)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "edges", [[0, 0], [10, 0], [0], [0, 5, 9, 12], ["a", "b"], [0, float("inf")], 7]
)
def test_edges_that_are_no_classes_are_one_sentence(edges: object) -> None:
    with pytest.raises(DescriptionError) as caught:
        described("firms", {"age": {"codes": "yo", "edges": edges}})
    assert "edge" in str(caught.value)
