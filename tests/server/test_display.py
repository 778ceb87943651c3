"""Views are read from an address and written back; they never mix with the question."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import QueryError
from lustrum.server.urls import forms
from lustrum.server.urls.display import PARAMETERS, TableView, column_key, column_of, read

WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=6
)
NAMES = WORDS.filter(lambda text: ":" not in text)
PAIRS = st.dictionaries(NAMES, WORDS, max_size=3).map(lambda d: tuple(d.items()))
VIEWS = st.builds(
    TableView,
    form=st.sampled_from(["table", "chart"]),
    show=st.sampled_from(["counts", "row-percent", "column-percent", "whole-percent"]),
    pivot=st.dictionaries(NAMES, st.sampled_from(["rows", "columns", "layers"]), max_size=3).map(
        lambda d: tuple(d.items())
    ),
    layer=PAIRS,
    sort=st.sampled_from(["", "label", "-label", "value", "-sex:2", "sex:1,age:3"]),
    empty=st.sampled_from(["show", "hide"]),
    names=st.sampled_from(["labels", "codes", "both"]),
    margins=st.sampled_from(["on", "off"]),
    bounds=st.sampled_from(["on", "off"]),
    decimals=st.integers(0, 3),
    chart=st.sampled_from(["fitting", "bars", "stacked", "lines", "pyramid", "heat"]),
    page=st.none() | st.integers(1, 999),
)


@given(VIEWS)
def test_a_view_is_read_back_from_its_address(view: TableView) -> None:
    address = view.address("/datasets/demo/table?by=sex&totals=on")
    found, rest = read(parse_qsl(address.partition("?")[2]))
    assert found == view
    assert rest == [("by", "sex"), ("totals", "on")]


def test_a_plain_view_adds_nothing_to_an_address() -> None:
    assert TableView().address("/t?by=sex") == "/t?by=sex"


def test_no_parameter_of_a_view_is_one_of_a_question() -> None:
    others = {*forms.PARAMETERS, *forms.CHOICES, "dataset", "format", "include"}
    assert not others & set(PARAMETERS)


@given(st.dictionaries(NAMES.filter(lambda n: "," not in n), WORDS, min_size=1, max_size=3))
def test_the_name_of_a_column_is_read_back(codes: dict[str, str]) -> None:
    assert column_of(column_key(codes.items())) == codes


def test_a_change_goes_back_to_the_first_page() -> None:
    assert TableView(page=7).but(show="row-percent").page == 1


def test_what_is_empty_counts_as_absent() -> None:
    assert read([("show", ""), ("layer", ""), ("sort", ""), ("by", "sex")]) == (
        TableView(),
        [("by", "sex")],
    )


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([("shw", "counts")], "did you mean 'show'"),
        ([("show", "row-percents")], "did you mean 'row-percent'"),
        ([("show", "counts"), ("show", "counts")], "'show' is given twice"),
        ([("decimals", "9")], "'decimals' cannot be '9'"),
        ([("decimals", "one")], "'decimals' cannot be 'one'"),
        ([("pivot", "sex")], "'pivot' must be such as age:rows"),
        ([("pivot", "sex:row")], "did you mean 'rows'"),
        ([("pivot", "sex:rows"), ("pivot", "sex:columns")], "'pivot' names 'sex' twice"),
        ([("layer", "sex:")], "'layer' must be such as region:1"),
        ([("page", "0")], "'page' must be a number from 1 on"),
        ([("page", "-1")], "'page' must be a number from 1 on"),
        ([("page", "99999999999")], "'page' must be a number from 1 on"),
        ([("page", "\u0663")], "'page' must be a number from 1 on"),
    ],
)
def test_a_mistake_is_one_clear_sentence(pairs: list[tuple[str, str]], sentence: str) -> None:
    with pytest.raises(QueryError, match=sentence):
        read(pairs)


@pytest.mark.parametrize("key", ["sex", "sex:", ":2", "sex:2,", ""])
def test_the_name_of_a_column_needs_a_variable_and_a_code(key: str) -> None:
    with pytest.raises(QueryError, match="'sort' must be label, value or a column such as sex:2"):
        column_of(key)
