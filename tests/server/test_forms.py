"""A question survives the way into a query string and back, whatever its names and codes are."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Axis, Filter, Group, QueryError, TableQuery
from lustrum.server.forms import read, write

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
plain = st.builds(Axis, names, st.none() | texts, total=st.booleans())
chosen = st.builds(
    Axis, names, codes=st.lists(texts, min_size=1, max_size=3).map(tuple), total=st.booleans()
)
grouped = st.builds(
    Axis,
    names,
    groups=st.lists(
        st.builds(Group, texts, st.lists(texts, min_size=1, max_size=2).map(tuple)), min_size=1
    ).map(tuple),
)
filters = st.builds(Filter, names, st.lists(texts, min_size=1, max_size=3).map(tuple))
queries = st.builds(
    TableQuery,
    st.just("demo"),
    st.lists(plain | chosen | grouped, max_size=4, unique_by=lambda a: a.variable).map(tuple),
    st.lists(filters, max_size=2, unique_by=lambda f: f.variable).map(tuple),
    st.none() | names,
    st.none() | names,
)


@given(queries)
def test_a_question_reads_back_unchanged(query: TableQuery) -> None:
    pairs = parse_qsl(write(query), keep_blank_values=True, strict_parsing=bool(write(query)))
    assert read(pairs, "demo") == query


def test_lists_of_a_form_that_were_left_alone_count_as_absent() -> None:
    pairs = [("where", ""), ("by", "age"), ("by", ""), ("totals", "")]
    assert read(pairs, "demo") == TableQuery("demo", (Axis("age"),))


def test_several_codes_of_one_variable_make_one_selection() -> None:
    query = read([("by", "sex"), ("where", "region:1"), ("where", "region:2")], "demo")
    assert query.where == (Filter("region", ("1", "2")),)


def test_a_code_may_hold_a_colon() -> None:
    query = read([("by", "sex"), ("where", "time:12:30")], "demo")
    assert query.where == (Filter("time", ("12:30",)),)


def test_totals_on_some_variables_only_survive() -> None:
    query = TableQuery("demo", (Axis("age"), Axis("sex", total=True)))
    assert read(parse_qsl(write(query)), "demo") == query
    assert write(query) != write(replace(query, by=(Axis("age"), Axis("sex"))))


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([("bye", "sex")], "did you mean 'by'"),
        ([("where", "region")], "such as region:1"),
        ([("by", "age:")], "such as age:ten-year"),
        ([("totals", "yes")], "'on' or 'off'"),
        ([("measure", "a"), ("measure", "b")], "stands twice"),
        ([("query", "{}"), ("by", "sex")], "leave out the others"),
        ([("query", "{")], "not valid JSON"),
        ([("query", "[" * 5000)], "not valid JSON"),
        ([("query", "[]")], "must be a JSON object"),
        ([("query", '{"dataset": "other", "by": []}')], "asks about 'other'"),
    ],
)
def test_a_mistake_is_one_clear_sentence(pairs: list[tuple[str, str]], said: str) -> None:
    with pytest.raises(QueryError, match=said) as error:
        read(pairs, "demo")
    assert str(error.value).endswith(".")
