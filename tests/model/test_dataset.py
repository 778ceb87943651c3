"""A description is checked once, in full, and every mistake is one sentence that helps."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from lustrum.model import Dataset, DescriptionError, Measure, QueryError, Variable, Weight


def message(description: dict[str, Any]) -> str:
    with pytest.raises(DescriptionError) as caught:
        Dataset.from_mapping(description)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_good_description_is_read_as_it_stands(dataset: Dataset) -> None:
    assert (dataset.name, dataset.title) == ("town", "The town")
    assert (dataset.unit, dataset.units) == ("record", "records")
    assert dataset.id_columns == ("id", "firm")
    assert dataset.variable("age").codes == ("0", "1", "2", "3", "4", "5")
    assert dataset.variable("sex").labels == ("f", "m")
    assert dataset.variable("sex").label == "sex"
    assert dataset.measure("income") == Measure("income", "income", decimals=2, holding="firm")
    assert dataset.weight("weight") == Weight("weight", "weight", 1)
    assert dataset.structural_zeros[0].where == {"age": {5}, "sex": {1}}


def test_a_description_is_frozen_and_keeps_its_source(dataset: Dataset) -> None:
    assert Dataset.from_mapping(dataset.source) == dataset
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.name = "city"  # type: ignore[misc]


def test_a_structural_zero_may_name_groups(description: dict[str, Any]) -> None:
    description["structural_zeros"][0]["where"]["age"] = ["0-3", "5"]
    zero = Dataset.from_mapping(description).structural_zeros[0]
    assert zero.where["age"] == {0, 1, 2, 3, 5}


def test_a_measure_names_its_parts_and_its_earlier_one(description: dict[str, Any]) -> None:
    first = description["measures"][0]
    same = {"decimals": 2, "holding": "firm"}
    description["measures"] += [{"name": "wage", **same}, {"name": "rent", **same}]
    description["measures"] += [{"name": "income_before", **same}]
    first |= {"parts": ["wage", "rent"], "earlier": "income_before"}
    read = Dataset.from_mapping(description).measure("income")
    assert (read.parts, read.earlier) == (("wage", "rent"), "income_before")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"parts": ["wages"]}, "Measure 'income': it names 'wages', which is not another measure"),
        ({"earlier": "income"}, "Measure 'income': it names 'income', which is not another"),
        ({"parts": ["rent"]}, "'rent' needs the same decimals and the same holding"),
        ({"parts": ["wage"]}, "a part of it has parts itself"),
        ({"parts": "wage"}, "Measure 'income', parts must be a list of texts"),
    ],
)
def test_a_related_measure_that_does_not_fit_is_one_sentence(
    words: dict[str, Any], said: str, description: dict[str, Any]
) -> None:
    same = {"decimals": 2, "holding": "firm"}
    description["measures"] += [
        {"name": "wage", **same, "parts": ["pay"]},
        {"name": "pay", **same},
        {"name": "rent"},
    ]
    description["measures"][0] |= words
    assert said in message(description)


@pytest.mark.parametrize(
    ("path", "key", "place", "near"),
    [
        ((), "variabels", "Unknown table 'variabels'", "variables"),
        (("dataset",), "tilte", "[dataset]: unknown key 'tilte'", "title"),
        (("variables", 0), "lable", "Variable 'age': unknown key 'lable'", "label"),
        (("variables", 0, "hierarchies", 0), "levles", "hierarchy 'stages'", "levels"),
        (("variables", 0, "hierarchies", 0, "levels", 0), "group", "level 'pairs'", "groups"),
        (("measures", 0), "decimal", "Measure 'income': unknown key 'decimal'", "decimals"),
        (("weights", 0), "unit", "Weight 'weight': unknown key 'unit'", ""),
        (("structural_zeros", 0), "wher", "Structural zero 'no boys of 5'", "where"),
    ],
)
def test_an_unknown_key_is_answered_with_the_near_one(
    path: tuple[Any, ...], key: str, place: str, near: str, description: dict[str, Any]
) -> None:
    target: Any = description
    for step in path:
        target = target[step]
    target[key] = "something"
    text = message(description)
    assert place in text
    assert f"did you mean {near!r}" in text if near else "there are: name, label, decimals" in text


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("dataset",), "town", "[dataset] is missing or is not a table"),
        (("dataset", "name"), None, "[dataset]: 'name' is missing"),
        (("dataset", "name"), 5, "[dataset]: 'name' must be a text in quotes"),
        (("dataset", "name"), "The Town", "'The Town' must be lower-case letters"),
        (("dataset", "name"), "../town", "'../town' must be lower-case letters"),
        (("dataset", "name"), "town\n", "must be lower-case letters"),
        (("dataset", "title"), 5, "[dataset]: 'title' must be a text in quotes"),
        (("dataset", "record_id"), 5, "[dataset]: 'record_id' must be a text in quotes"),
        (("dataset", "identifiers"), "firm", "[dataset], identifiers must be a list of texts"),
        (("dataset", "identifiers"), [1], "[dataset], identifiers must hold texts in quotes only"),
        (("dataset", "identifiers"), [], "holding 'firm' is not an identifier; list it"),
        (("variables",), {}, "'variables' must be a list of tables, written [[variables]]"),
        (("variables",), [], "There is no [[variables]] table"),
        (("variables", 0), "age", "'variables' must be a list of tables"),
        (("variables", 0, "name"), None, "[[variables]]: 'name' is missing"),
        (("variables", 0, "name"), "1age", "Variable '1age': a name is letters, digits and '_'"),
        (("variables", 0, "name"), "a ge", "Variable 'a ge': a name is letters, digits and '_'"),
        (("dataset", "record_id"), "sex", "The column 'sex' is described twice"),
        (("dataset", "identifiers"), ["firm", "age"], "The column 'age' is described twice"),
        (("variables", 0, "label"), 5, "Variable 'age': 'label' must be a text in quotes"),
        (
            ("variables", 0, "codes"),
            None,
            "'codes' must be a non-empty list of [code, label] pairs",
        ),
        (("variables", 0, "codes"), [], "'codes' must be a non-empty list of [code, label] pairs"),
        (("variables", 0, "codes"), "abc", "'codes' must be a non-empty list"),
        (("variables", 1, "codes"), [["f"]], "must be a pair of texts [code, label], not ['f']"),
        (("variables", 1, "codes"), [1, 2], "must be a pair of texts [code, label], not 1"),
        (("variables", 1, "codes"), [["f", 1]], "must be a pair of texts"),
        (("variables", 1, "codes"), ["f", "m", "f"], "Variable 'sex' uses the code 'f' twice"),
        (("variables", 1, "missing"), "x", "code for missing values, 'x', is not in its code list"),
        (("variables", 1, "hierarchies"), "x", "'hierarchies' must be a list of tables"),
        (("variables", 0, "hierarchies", 0, "name"), None, "a hierarchy: 'name' is missing"),
        (("variables", 0, "hierarchies", 0, "levels"), [], "hierarchy 'stages' has no levels"),
        (
            ("variables", 0, "hierarchies", 1, "levels", 0, "name"),
            "pairs",
            "two levels of the same",
        ),
        (("measures", 0, "name"), None, "[[measures]]: 'name' is missing"),
        (("measures", 0, "name"), "age", "The column 'age' is described twice"),
        (("measures", 0, "decimals"), 10, "'income': decimals is 10, but must be a whole number"),
        (("measures", 0, "decimals"), -1, "'income': decimals is -1, but must be a whole number"),
        (("measures", 0, "decimals"), "2", "Measure 'income': 'decimals' must be a whole number"),
        (("measures", 0, "decimals"), True, "Measure 'income': 'decimals' must be a whole number"),
        (("measures", 0, "holding"), "id2", "its holding 'id2' is not an identifier; list it"),
        (("measures", 0, "missing"), 0, "Measure 'income': 'missing' must be a text in quotes"),
        (("weights", 0, "decimals"), 1.5, "Weight 'weight': 'decimals' must be a whole number"),
        (("structural_zeros", 0, "reason"), None, "[[structural_zeros]]: 'reason' is missing"),
        (("structural_zeros", 0, "where"), None, "where is missing or is not a table"),
        (("structural_zeros", 0, "where"), {}, "'where' names no variable"),
        (
            ("structural_zeros", 0, "where"),
            {"agee": ["5"]},
            "no variable 'agee'; did you mean 'age'",
        ),
        (("structural_zeros", 0, "where"), {"age": "5"}, "must be a list of texts"),
        (("structural_zeros", 0, "where"), {"age": ["9"]}, "no category '9'; there are: 0, 1, 2"),
    ],
)
def test_a_wrong_value_is_told_where_it_stands(
    path: tuple[Any, ...], value: Any, problem: str, description: dict[str, Any]
) -> None:
    target: Any = description
    for step in path[:-1]:
        target = target[step]
    if value is None:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    assert problem in message(description)


def test_a_wrong_name_is_answered_with_what_there_is(dataset: Dataset) -> None:
    with pytest.raises(QueryError, match=r"'town' has no variable 'agge'; did you mean 'age'\?"):
        dataset.variable("agge")
    with pytest.raises(QueryError, match="no measure 'x'; there are: income"):
        dataset.measure("x")
    with pytest.raises(QueryError, match=r"no weight 'weigth'; did you mean 'weight'\?"):
        dataset.weight("weigth")
    age = dataset.variable("age")
    with pytest.raises(QueryError, match=r"no category '9'; there are: 0, 1, 2, .* and 3 more"):
        age.category("9")
    with pytest.raises(QueryError, match=r"no level 'pair'; did you mean 'pairs'\?"):
        age.level("pair")
    with pytest.raises(QueryError, match="no level 'pairs'; there are none"):
        dataset.variable("sex").level("pairs")


def test_two_variables_have_two_names(description: dict[str, Any]) -> None:
    description["variables"].append({"name": "sex", "codes": ["f", "m"]})
    assert "The column 'sex' is described twice; describe it once." in message(description)


def test_a_variable_by_hand_is_checked_too() -> None:
    with pytest.raises(DescriptionError, match="has no codes"):
        Variable("v", "V", (), ())
    with pytest.raises(DescriptionError, match="2 codes but 1 labels"):
        Variable("v", "V", ("a", "b"), ("A",))
