"""A question is a value with one JSON form, and every mistake in it is one sentence that helps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustrum.model import Axis, Category, Dataset, Filter, Group, QueryError, TableQuery

names = st.text(min_size=1, max_size=5)
codes = st.lists(names, min_size=1, max_size=4).map(tuple)
groups = st.builds(Group, names, codes, st.sampled_from(["", "own", "G7"]))
axes = st.builds(
    Axis, names, st.none() | names, st.none() | codes, total=st.booleans()
) | st.builds(
    Axis, names, groups=st.lists(groups, min_size=1, max_size=3).map(tuple), total=st.booleans()
)
queries = st.builds(
    TableQuery,
    names,
    st.lists(axes, max_size=3, unique_by=lambda a: a.variable).map(tuple),
    st.lists(st.builds(Filter, names, codes), max_size=3, unique_by=lambda f: f.variable).map(
        tuple
    ),
    st.none() | names,
    st.none() | names,
)


@given(query=queries)
@settings(derandomize=True, database=None, deadline=None)
def test_a_question_survives_its_json_form(query: TableQuery) -> None:
    text = json.dumps(query.to_mapping())
    assert TableQuery.from_mapping(json.loads(text)) == query


@given(query=queries)
@settings(derandomize=True, database=None, deadline=None)
def test_totals_are_short_for_a_total_on_every_axis(query: TableQuery) -> None:
    asked = TableQuery.from_mapping(query.to_mapping() | {"totals": True})
    assert asked == query.with_totals
    assert all(axis.total for axis in asked.by)
    assert [axis.variable for axis in asked.by] == [axis.variable for axis in query.by]


def test_the_shortest_form_is_written() -> None:
    query = TableQuery("town", (Axis("age"), Axis("sex", total=True)), (Filter("age", ("1",)),))
    assert query.to_mapping() == {
        "dataset": "town",
        "by": ["age", {"variable": "sex", "total": True}],
        "where": {"age": ["1"]},
    }
    assert TableQuery.from_mapping({"dataset": "town", "where": {"age": "1"}}).where[0].codes == (
        "1",
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"wher": {}}, "no key 'wher'; did you mean 'where'?"),
        ({"dataset": None}, "needs 'dataset', the name of a dataset in quotes"),
        ({"by": "age"}, "'by' must be a list of variables"),
        ({"by": 5}, "'by' must be a list of variables"),
        ({"by": [5]}, "Each entry of 'by' must be a variable's name or an object"),
        ({"by": [{"level": "x"}]}, "Each entry of 'by' must be a variable's name or an object"),
        (
            {"by": [{"variable": "age", "levle": "x"}]},
            "'age': unknown key 'levle'; did you mean 'level'?",
        ),
        ({"by": [{"variable": "age", "level": 5}]}, "'level' must be a name in quotes"),
        ({"by": [{"variable": "age", "codes": 5}]}, "'age', 'codes' must be a code or a list"),
        ({"by": [{"variable": "age", "codes": [5]}]}, "'age', 'codes' must be a code or a list"),
        ({"by": [{"variable": "age", "codes": []}]}, "'age': the choice of codes is empty; name"),
        ({"by": [{"variable": "age", "groups": "x"}]}, "'age': 'groups' must be a list of groups"),
        ({"by": [{"variable": "age", "groups": ["x"]}]}, "each group needs a 'label' and its 'mem"),
        ({"by": [{"variable": "age", "groups": [{"label": "x"}]}]}, "a group must be a code or a"),
        (
            {"by": [{"variable": "age", "groups": [{"label": "x", "members": "1", "code": "_T"}]}]},
            "the code of a group must be a text of its own",
        ),
        (
            {"by": [{"variable": "age", "level": "l", "groups": [{"label": "x", "members": "1"}]}]},
            "own groups cannot be mixed with a level or a choice",
        ),
        ({"by": [{"variable": "age", "total": "yes"}]}, "'age': 'total' must be true or false"),
        ({"by": ["age", "age"]}, "The variable 'age' is in the table twice"),
        ({"where": ["age"]}, "'where' must map variables to codes"),
        ({"where": {"age": []}}, "The filter on 'age' names no code"),
        ({"where": {"age": [5]}}, "The filter on 'age' must be a code or a list of codes"),
        ({"totals": "yes"}, "'totals' must be true or false"),
        ({"measure": 5}, "'measure' must be a name in quotes"),
        ({"weight": 5}, "'weight' must be a name in quotes"),
    ],
)
def test_a_wrong_question_is_told_in_one_sentence(change: dict[str, Any], problem: str) -> None:
    raw = {"dataset": "town", "by": ["sex"]} | change
    with pytest.raises(QueryError) as caught:
        TableQuery.from_mapping(raw)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_filters_on_one_variable_are_refused() -> None:
    with pytest.raises(QueryError, match="two filters on 'age'; write one filter"):
        TableQuery("town", (), (Filter("age", ("1",)), Filter("age", ("2",))))


def shown(axis: Axis, dataset: Dataset) -> list[tuple[str, tuple[int, ...]]]:
    return [(c.code, c.members) for c in axis.categories(dataset.variable(axis.variable))]


def widened(axis: Axis, dataset: Dataset) -> list[tuple[str, tuple[int, ...]]]:
    return [(c.code, c.members) for c in axis.widened(dataset.variable(axis.variable))]


@pytest.mark.parametrize(
    "axis",
    [
        Axis("age", total=True),
        Axis("age", level="pairs", total=True),
        Axis("age", codes=("1",), total=True),
        Axis("age", groups=(Group("some", ("2", "0-1")),), total=True),
    ],
)
def test_a_total_is_always_that_of_the_whole_variable(axis: Axis, dataset: Dataset) -> None:
    assert shown(axis, dataset)[-1] == ("_T", (0, 1, 2, 3, 4, 5))
    assert "_T" not in [code for code, _ in widened(axis, dataset)]


def test_chosen_codes_and_groups_stand_in_the_order_they_were_asked_for(dataset: Dataset) -> None:
    assert shown(Axis("age", codes=("pre", "0-3", "5")), dataset) == [
        ("pre", (0, 1, 2)),
        ("0-3", (0, 1, 2, 3)),
        ("5", (5,)),
    ]
    own = (Group("A", ("5", "pre")), Group("B", ("0-1",), "young"))
    assert shown(Axis("age", groups=own), dataset) == [("G1", (0, 1, 2, 5)), ("young", (0, 1))]


def test_widening_undoes_a_choice_within_a_level(dataset: Dataset) -> None:
    finest = [(str(i), (i,)) for i in range(6)]
    assert widened(Axis("age"), dataset) == finest
    assert widened(Axis("age", codes=("1", "4")), dataset) == finest
    pairs = shown(Axis("age", level="pairs"), dataset)
    assert widened(Axis("age", level="pairs"), dataset) == pairs
    assert widened(Axis("age", level="pairs", codes=("2-3", "5")), dataset) == pairs


def test_widening_adds_the_others_to_a_choice_across_levels_and_to_own_groups(
    dataset: Dataset,
) -> None:
    assert widened(Axis("age", codes=("0-1", "2")), dataset) == [
        ("0-1", (0, 1)),
        ("2", (2,)),
        ("_REST", (3, 4, 5)),
    ]
    own = Axis("age", groups=(Group("A", ("0-1",)), Group("B", ("1", "2"))))
    assert widened(own, dataset) == [("G1", (0, 1)), ("G2", (1, 2)), ("_REST", (3, 4, 5))]
    all_of_them = Axis("age", groups=(Group("A", ("pre",)), Group("B", ("in",))))
    assert widened(all_of_them, dataset) == [("G1", (0, 1, 2)), ("G2", (3, 4, 5))]


@given(
    picked=st.lists(
        st.sampled_from(["0", "3", "5", "0-1", "2-3", "0-3", "pre", "in"]), min_size=1, unique=True
    ),
    level=st.sampled_from([None, "pairs", "halves", "schooling"]),
)
@settings(derandomize=True, database=None, deadline=None)
def test_nobody_is_left_out_of_a_widened_axis(picked: list[str], level: str | None) -> None:
    from model.conftest import DESCRIPTION

    variable = Dataset.from_mapping(DESCRIPTION).variable("age")
    axis = Axis("age", level=level, codes=tuple(picked))
    wide = axis.widened(variable)
    assert set().union(*(c.members for c in wide)) == set(range(6))
    held = {c.members for c in wide}
    together = {c.code for c in axis.categories(variable)}
    assert len({c.code for c in wide}) == len(wide)
    if any(c.code == "_REST" for c in wide):
        assert together < {c.code for c in wide}
        rest = next(c for c in wide if c.code == "_REST")
        assert all(rest.member_set.isdisjoint(c.members) for c in wide if c is not rest)
    else:
        assert {variable.category(c).members for c in together} <= held


def test_a_category_is_asked_for_once(dataset: Dataset) -> None:
    with pytest.raises(QueryError, match="'age': the category '1' is asked for twice"):
        shown(Axis("age", codes=("1", "2", "1")), dataset)
    clash = (Group("A", ("1",), "G2"), Group("B", ("2",)))
    with pytest.raises(QueryError, match="the category 'G2' is asked for twice"):
        shown(Axis("age", groups=clash), dataset)


def test_an_unknown_code_is_answered_with_the_near_one(dataset: Dataset) -> None:
    with pytest.raises(QueryError, match=r"no category 'pree'; did you mean 'pre'\?"):
        shown(Axis("age", codes=("pree",)), dataset)
    with pytest.raises(QueryError, match=r"no category 'pree'; did you mean 'pre'\?"):
        Filter("age", ("pree",)).members(dataset.variable("age"))
    with pytest.raises(QueryError, match=r"no category 'pree'; did you mean 'pre'\?"):
        shown(Axis("age", groups=(Group("A", ("pree",)),)), dataset)
    with pytest.raises(QueryError, match="the group 'A' is empty; name its members"):
        shown(Axis("age", groups=(Group("A", ()),)), dataset)


def test_a_filter_joins_its_codes(dataset: Dataset) -> None:
    assert Filter("age", ("0-1", "1", "5")).members(dataset.variable("age")) == {0, 1, 5}


def test_an_axis_is_complete_when_nothing_was_chosen() -> None:
    assert Axis("age", level="pairs", total=True).complete
    assert not Axis("age", codes=("1",)).complete
    assert not Axis("age", groups=(Group("A", ("1",)),)).complete


def test_a_category_knows_its_members_as_a_set() -> None:
    assert Category("a", "A", (2, 5)).member_set == {2, 5}
