"""A question survives the way into a query string and back, whatever its names and codes are."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Axis, Filter, Group, QueryError, TableQuery
from lustrum.server.urls.code_lists import list_of, listed
from lustrum.server.urls.forms import read, tidied, write

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
# Codes that count, that look like ranges or lists, and those that hold the marks of the notation.
odd = st.text(st.sampled_from("0129.,-%=:"), min_size=1, max_size=4)
counted = st.tuples(st.integers(0, 120), st.integers(1, 6), st.sampled_from(["", "A", "2-0"])).map(
    lambda t: tuple(f"{t[2]}{i:02d}" for i in range(t[0], t[0] + t[1]))
)
codes = st.lists(texts | odd, min_size=1, max_size=3).map(tuple) | counted
plain = st.builds(Axis, names, st.none() | texts, total=st.booleans())
chosen = st.builds(Axis, names, st.none() | texts, codes=codes, total=st.booleans())
grouped = st.builds(
    Axis,
    names,
    groups=st.lists(
        st.builds(Group, texts | odd, codes, st.just("") | names), min_size=1, max_size=3
    ).map(tuple),
)
filters = st.builds(Filter, names, codes)
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


@given(codes)
def test_a_list_of_codes_reads_back_unchanged(listing: tuple[str, ...]) -> None:
    assert list_of(listed(listing), "It") == list(listing)


def test_chosen_codes_stay_short_and_readable() -> None:
    query = TableQuery("demo", (Axis("age", codes=tuple(str(i) for i in range(5, 13))),))
    assert write(query) == "by=age&codes=age:5..12"
    many = tuple(f"E{i:05d}" for i in range(1, 2001) if i % 100)
    assert len(write(TableQuery("demo", (Axis("oa", codes=many),)))) < 400
    wide = TableQuery("demo", (Axis("sex"),), (Filter("age", ("1", "2", "3", "4", "9")),))
    assert write(wide) == "by=sex&among=age:1..4,9"
    group = Axis("age", groups=(Group("Young", ("1", "2", "3")), Group("a=b", ("9",))))
    assert write(TableQuery("demo", (group,))) == (
        "by=age&group=age:Young=1..3&group=age:a%253Db=9"
    )


def test_a_range_counts_on_in_the_last_digits() -> None:
    query = read([("by", "area"), ("codes", "area:2-08..2-11,x"), ("codes", "area:1%2C2")], "demo")
    assert query.by[0].codes == ("2-08", "2-09", "2-10", "2-11", "x", "1,2")


def test_old_links_keep_their_meaning() -> None:
    query = read([("by", "sex"), ("where", "region:a,b"), ("where", "region:1..9")], "demo")
    assert query.where == (Filter("region", ("a,b", "1..9")),)


@pytest.mark.parametrize(
    ("places", "order"),
    [
        (["a:columns", "b:columns", "c:layers"], "bac"),
        (["a:layers", "b:columns", "c:layers"], "bca"),
        (["a:rows", "b:columns", "c:rows"], "cab"),
        (["a:rows", "b:rows", "c:layers"], "bac"),
        (["c:1"], "cab"),
        (["gone:rows"], "abc"),
    ],
)
def test_a_variable_moves_to_its_place_and_the_others_make_room(
    places: list[str], order: str
) -> None:
    pairs = [("by", name) for name in "abc"] + [("place", place) for place in places]
    assert "".join(axis.variable for axis in read(pairs, "demo").by) == order


def test_choices_of_variables_that_left_the_table_can_be_tidied_away() -> None:
    pairs = [("by", "sex"), ("codes", "age:1"), ("group", "age:x=1"), ("place", "age:rows")]
    assert read(tidied(pairs), "demo") == TableQuery("demo", (Axis("sex"),))
    with pytest.raises(QueryError, match="not in the table"):
        read(pairs, "demo")


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
        ([("by", "age"), ("codes", "age")], "such as age:1,2,7..12"),
        ([("by", "age"), ("codes", "age:1,,2")], "must list codes"),
        ([("by", "age"), ("codes", "age:9..1")], "is not a range"),
        ([("by", "age"), ("codes", "age:a..b")], "is not a range"),
        ([("by", "age"), ("codes", "age:1..99999999")], "more than 20000 codes"),
        ([("by", "age"), ("codes", "age:" + "1..15000," * 2 + "7")], "more than 20000 codes"),
        ([("by", "age"), ("group", "age:Young")], "such as age:Young=1,2,3"),
        ([("by", "age"), ("codes", "age:1"), ("group", "age:a=1")], "cannot be mixed"),
        ([("by", "age"), ("place", "age:middle")], "no place 'middle'"),
        ([("by", "age"), ("place", "age:0")], "no place '0'"),
        ([("among", "age")], "such as age:1,2,7..12"),
        ([("query", "{}"), ("codes", "age:1")], "leave out the others"),
        ([("measure", "a"), ("measure", "b")], "is given twice"),
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
