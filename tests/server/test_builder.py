"""The builder's form: it shows a question whole, sends it back whole, and says what the rules would say."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lustrum.answer import Precheck, Snapshot, TableService
from lustrum.answer.preliminary import inner_count
from lustrum.model import Axis, Dataset, Filter, Reason, TableQuery
from lustrum.policy import Policy
from lustrum.public.numbers import Described, KeyedNumbers
from lustrum.server import create_app
from lustrum.server.http.errors import Problem, ProblemError
from lustrum.server.pages.builder import form
from lustrum.server.pages.catalogue import hint
from lustrum.server.pages.pickers import LONG
from lustrum.server.service.served_dataset import ServedDataset
from lustrum.server.urls import forms
from server.test_pages import Page

VARIABLES: list[dict[str, Any]] = [
    {"name": "sex", "label": "Sex", "codes": [["1", "Male"], ["2", "Female"]]},
    {
        "name": "age",
        "label": "Age",
        "codes": [[str(i), f"{i * 5} to {i * 5 + 4}"] for i in range(1, 21)],
        "hierarchies": [
            {
                "name": "broad",
                "levels": [
                    {
                        "name": "half",
                        "label": "Halves",
                        "groups": [
                            {
                                "code": "Y",
                                "label": "Young",
                                "members": [str(i) for i in range(1, 11)],
                            },
                            {
                                "code": "O",
                                "label": "Old",
                                "members": [str(i) for i in range(11, 21)],
                            },
                        ],
                    }
                ],
            }
        ],
    },
    {
        "name": "block",
        "label": "Block",
        "codes": [[f"B{i:04d}", f"Block {i}"] for i in range(2000)],
    },
    {"name": "faith", "label": "Faith", "codes": ["a", "b", "c"]},
    {"name": "tribe", "label": "Tribe", "codes": ["a", "b", "c"]},
    {"name": "secret", "label": "Secret", "codes": ["a", "b"]},
]
DATASET = Dataset.from_mapping(
    {"dataset": {"name": "town", "units": "people"}, "variables": VARIABLES}
)
RULES = {
    "max_dimensions": 3,
    "max_filters": 2,
    "disallowed": [["secret"], ["faith", "tribe"]],
    "at_most_one": [["age", "tribe"]],
    "per_area": "block",
    "nested_only": False,
}
OFFER = ServedDataset(DATASET, Policy.model_validate({"rules": RULES}))


def sent(page: Page) -> list[tuple[str, str]]:
    """What a browser without scripts sends for a form as it stands."""
    pairs: list[tuple[str, str]] = []
    name = ""
    picked = first = None
    inside = False
    for tag, attrs in [*page.tags, ("select", {"name": ""})]:
        if tag == "form":
            inside = "data-builder" in attrs or attrs.get("class") == "choose"
        if tag in ("select", "input") and first is not None:
            pairs.append((name, picked if picked is not None else first))
            picked = first = None
        if tag == "select":
            name = attrs.get("name", "")
        elif tag == "option" and inside:
            first = attrs["value"] if first is None else first
            picked = attrs["value"] if "selected" in attrs else picked
        elif tag == "input" and inside and attrs.get("name"):
            if attrs["type"] != "checkbox" or "checked" in attrs:
                pairs.append((attrs["name"], attrs.get("value", "")))
    return [(k, v) for k, v in pairs if v]


@st.composite
def questions(draw: st.DrawFn) -> TableQuery:
    """Questions to the demo census, with levels, choices of codes and selections."""
    ways = {
        "age": ([None, "ten-year", "life-stage"], [str(i) for i in range(1, 22)]),
        "sex": ([None], ["1", "2"]),
        "area": ([None, "district"], [f"1-01-{i:03d}" for i in range(1, 10)]),
        "education": ([None, "broad"], ["Z", "0", "1"]),
    }
    by = []
    for name in draw(st.permutations(sorted(ways)))[: draw(st.integers(1, 4))]:
        levels, codes = ways[name]
        some = draw(st.none() | st.sets(st.sampled_from(codes), min_size=1))
        chosen = None if some is None else tuple(c for c in codes if c in some)
        by.append(Axis(name, draw(st.sampled_from(levels)), chosen))
    where = []
    for name in draw(st.sets(st.sampled_from(["region", "citizenship", "area"]), max_size=2)):
        codes = {"region": ["1", "2"], "area": ["1-01", "1-01-001", "1-01-002"]}.get(
            name, ["1", "3"]
        )
        some = draw(st.sets(st.sampled_from(codes), min_size=1))
        where.append(Filter(name, tuple(c for c in codes if c in some)))
    query = TableQuery("demo", tuple(by), tuple(where))
    return query.with_totals if draw(st.booleans()) else query


def same(query: TableQuery) -> tuple[object, ...]:
    """A question, the order of codes and selections aside, in which a form may differ."""
    where = {item.variable: frozenset(item.codes) for item in query.where}
    by = [(a.variable, a.level, a.codes and frozenset(a.codes), a.total) for a in query.by]
    return by, where


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(questions())
def test_a_form_without_scripts_sends_back_the_question_it_was_filled_with(
    client: TestClient, query: TableQuery
) -> None:
    page = Page(client.get(f"/datasets/demo/parts?{forms.write(query)}").text)
    assert same(forms.read(sent(page), "demo")) == same(query)


def test_the_form_is_one_that_works_without_scripts(client: TestClient) -> None:
    page = Page(client.get("/datasets/demo").text)
    built = next(a for a in page.all("form") if "data-builder" in a)
    assert built["method"] == "get"
    assert [a["name"] for a in page.all("select")] == [*["by"] * 3, *["statistic"] * 2]
    assert {a["name"] for a in page.all("input") if a["type"] == "checkbox"} == {"where", "totals"}
    assert "checked" in next(a for a in page.all("input") if a.get("name") == "totals")
    pairs = [
        ("where", "region:1"),
        ("by", "age:ten-year"),
        ("by", "sex"),
        ("by", ""),
        ("totals", "on"),
    ]
    assert "<table" in client.get(built["action"], params=pairs).text
    check = next(a for a in page.all("button") if "formaction" in a)
    assert check["formaction"] == "/datasets/demo"


def test_levels_are_offered_with_their_sizes_but_not_overlapping_ones(client: TestClient) -> None:
    text = client.get("/datasets/demo").text
    options = [a["value"] for a in Page(text).all("option")]
    assert "age:ten-year" in options
    assert "age:labour-market" not in options
    assert "Age: Ten-year bands (11)" in text
    assert "Labour market ages" in text
    assert "compared to single people out" in text


def test_a_question_that_the_rules_forbid_is_not_lost_in_the_form(client: TestClient) -> None:
    page = Page(
        client.get("/datasets/demo?by=sex&by=age:labour-market&by=region&by=education").text
    )
    chosen = [a["value"] for a in page.all("option") if "selected" in a]
    assert chosen[:4] == ["sex", "age:labour-market", "region", "education"]


def test_the_form_says_what_it_cannot_show(client: TestClient) -> None:
    said = "cannot be shown in this form"
    some = '{"by": [{"variable": "sex", "total": true}, "age"]}'
    assert said in client.get(f"/datasets/demo?{urlencode({'query': some})}").text
    assert said not in client.get("/datasets/demo?by=sex&where=region:1&where=region:2").text


def test_a_sum_stays_in_the_form_until_another_number_is_chosen(client: TestClient) -> None:
    page = Page(client.get("/datasets/businesses?by=size&measure=turnover").text)
    assert ("statistic", "sum:turnover") in sent(page)


def test_choices_of_a_variable_that_was_exchanged_are_dropped_by_the_check(
    client: TestClient,
) -> None:
    stale = "by=sex&codes=age:1,2&place=age:rows"
    assert client.get(f"/datasets/demo?{stale}").status_code == 200
    assert client.get(f"/datasets/demo/table?{stale}").status_code == 400


def test_the_check_renders_the_hint_on_the_server(client: TestClient) -> None:
    assert "Likely refused." in client.get("/datasets/demo?by=area&by=age").text
    assert "Likely answered." in client.get("/datasets/demo?by=age:ten-year&by=sex").text
    assert "Likely" not in client.get("/datasets/demo").text


def test_a_hint_brings_a_change_that_passes(client: TestClient) -> None:
    page = Page(client.get("/datasets/demo/hint?by=area&by=age").text)
    address = next(a["href"] for a in page.all("a") if "data-apply" in a)
    assert address.startswith("/datasets/demo?by=")
    assert "Likely answered." in client.get(address.replace("demo?", "demo/hint?")).text


def test_a_mistake_is_said_in_the_hint(client: TestClient) -> None:
    answer = client.get("/datasets/demo/hint?by=sex&by=sex")
    assert answer.status_code == 200
    assert "is in the table twice" in answer.text
    assert client.get("/datasets/demo/hint?wrong=1").text.count("no parameter") == 1


def test_a_hint_tells_of_parts_of_refusals_without_help_and_keeps_quiet_when_busy() -> None:
    query = TableQuery("town", (Axis("sex"),))
    left_out = Reason("areas", "Some areas are too small.", "")
    part = hint(OFFER, query, lambda _: Precheck(2, True, (left_out,)))
    assert part is not None
    assert (part.state, part.reasons) == ("part", (left_out,))
    refused = hint(OFFER, query, lambda _: Precheck(2, False, (left_out,)))
    assert refused is not None
    assert (refused.state, refused.address) == ("refused", "")

    def busy(_: TableQuery) -> Precheck:
        raise ProblemError(Problem.of_status(503, "Too many."))

    assert hint(OFFER, query, busy) is None
    unknown = TableQuery("town", (Axis("nothing"),))
    said = hint(OFFER, unknown, lambda q: Precheck(inner_count(q, DATASET), True, ()))
    assert said is not None
    assert "no variable 'nothing'" in said.verdict


def test_a_policy_without_selections_says_so() -> None:
    rules = {"max_filters": 0, "per_area": "block", "min_area_population": 50}
    closed = ServedDataset(DATASET, Policy.model_validate({"rules": rules}))
    assert form(closed, None).filters == ()
    assert "All people are counted; no selection is possible." in closed.sentences()
    assert "At least 50 people in each category of Block that is shown." in closed.sentences()


def test_the_count_tells_the_product_and_what_is_allowed() -> None:
    shown = form(OFFER, TableQuery("town", (Axis("age", codes=("1", "2", "3")), Axis("sex"))))
    assert shown.count == "3 × 2 = 6 cells of at most 100,000."
    assert form(OFFER, None).count == "At most 100,000 cells."


def test_variables_that_may_not_be_asked_for_are_not_offered_and_said_to_be_so() -> None:
    shown = form(OFFER, None)
    offered = [label for slot in shown.slots for label, _ in slot.groups]
    assert "Secret" not in offered
    assert "Secret is not available under the policy." in OFFER.unavailable()
    assert "Faith and Tribe may not be asked for together." in OFFER.unavailable()
    assert "Only one of Age and Tribe may be in a question." in OFFER.unavailable()


def why(query: TableQuery, slot: int, variable: str) -> str:
    groups = form(OFFER, query).slots[slot].groups
    return next(options[0].why for label, options in groups if label == variable)


def test_what_cannot_be_combined_has_its_reason_beside_it() -> None:
    query = TableQuery("town", (Axis("faith"),), (Filter("age", ("1",)),))
    assert why(query, 1, "Tribe") == "not together with Faith"
    assert why(query, 0, "Tribe") == "not beside Age"
    assert why(query, 1, "Faith") == "already in the table"
    assert why(query, 1, "Sex") == ""
    filters = {picker.variable.name: picker.why for picker in form(OFFER, query).filters}
    assert filters["tribe"] == "not together with Faith"
    assert filters["sex"] == ""


def test_when_enough_variables_select_the_others_cannot() -> None:
    query = TableQuery("town", (), (Filter("sex", ("1",)), Filter("age", ("1",))))
    filters = {picker.variable.name: picker for picker in form(OFFER, query).filters}
    assert filters["faith"].full
    assert not filters["sex"].why


def test_the_area_has_a_step_of_its_own() -> None:
    shown = form(OFFER, TableQuery("town", (Axis("sex"), Axis("block"))))
    assert shown.area is not None
    assert shown.area.picker is not None
    assert shown.area.picker.long
    assert all(label != "Block" for slot in shown.slots for label, _ in slot.groups)
    assert [entry.variable.name for entry in shown.places] == ["sex", "block"]
    assert any("judged by itself" in sentence for sentence in OFFER.sentences())


class Hopeful(Snapshot):
    """A snapshot whose rules have nothing against any question."""

    def precheck(self, query: TableQuery, *, count: bool = True) -> Precheck:
        return Precheck(1, True, ())


class Town(TableService):
    """A service over a town with a long list; nobody lives there."""

    def names(self) -> list[str]:
        return ["town"]

    def snapshot(self, name: str) -> Snapshot:
        numbers = KeyedNumbers(self._records, OFFER.policy, Described("1", DATASET))
        return Hopeful(numbers, OFFER.policy)


@pytest.fixture
def town(tmp_path: Path) -> Iterator[TestClient]:
    yield TestClient(create_app(Town(tmp_path)))
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_a_list_of_two_thousand_does_not_weigh_the_page_down(town: TestClient) -> None:
    text = town.get("/datasets/town?by=block&by=sex").text
    files = [a["href"] for a in Page(text).all("link")] + [
        a["src"] for a in Page(text).all("script")
    ]
    whole = len(text) + sum(len(town.get(path).content) for path in files)
    assert len(text) < 60_000
    assert whole < 300_000
    assert text.count("Block 1") == 0
    assert LONG < 2000


def test_a_long_list_is_chosen_from_without_scripts(town: TestClient) -> None:
    page = Page(town.get("/datasets/town?by=block&by=sex").text)
    link = next(a["href"] for a in page.all("a") if "as=codes" in a["href"])
    text = town.get(link).text
    assert "2000 categories" in text
    chooser = Page(text)
    pairs = [*sent(chooser), ("codes", "block:B0003"), ("codes", "block:B0001")]
    searched = town.get("/datasets/town/variables/block", params=[*pairs, ("q", "Block 77")])
    kept = sent(Page(searched.text))
    assert ("codes", "block:B0003") in kept
    typed_in = [*[p for p in kept if p[0] != "q"], ("add", "B0010-B0012, B0100"), ("then", "use")]
    answer = town.get("/datasets/town/variables/block", params=typed_in, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == (
        "/datasets/town?by=block&by=sex&codes=block:B0001,B0003,B0010..B0012,B0100"
    )
    back = town.get(answer.headers["location"])
    assert ("codes", "block:B0001,B0003,B0010..B0012,B0100") in sent(Page(back.text))


def test_a_selection_is_chosen_on_the_page_of_a_variable_too(town: TestClient) -> None:
    params = [("as", "where"), ("by", "sex"), ("where", "block:B0001"), ("then", "use")]
    answer = town.get("/datasets/town/variables/block", params=params, follow_redirects=False)
    assert answer.headers["location"] == "/datasets/town?by=sex&where=block:B0001"
    many = [("as", "where"), ("by", "sex"), ("among", "block:B0000..B0099"), ("offset", "200")]
    page = Page(town.get("/datasets/town/variables/block", params=many).text)
    assert ("among", "block:B0000..B0099") in sent(page)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ([("as", "rows")], "must be"),
        ([("as", "codes")], "not in the table"),
        ([("offset", "x")], "whole number"),
        ([("q", "a"), ("q", "b")], "is given twice"),
    ],
)
def test_mistakes_on_the_page_of_a_variable_are_said(
    town: TestClient, params: list[tuple[str, str]], said: str
) -> None:
    answer = town.get("/datasets/town/variables/block", params=params)
    assert answer.status_code == 400
    assert said in answer.text


def test_what_cannot_be_read_is_said_beside_its_field(
    town: TestClient, bundled: TestClient
) -> None:
    params = [("as", "where"), ("add", "nothing"), ("then", "use"), ("where", "block:B0001")]
    answer = town.get("/datasets/town/variables/block", params=params, follow_redirects=False)
    assert answer.status_code == 200
    field = next(a for a in Page(answer.text).all("input") if a.get("name") == "add")
    assert (field["value"], field["aria-describedby"]) == ("nothing", "mistake")
    assert "has no category" in answer.text
    assert ("where", "block:B0001") in sent(Page(answer.text))
    wrong = bundled.get("/api/v1/tables?dataset=demo&by=sex&where=age:15-19")
    assert "by its labels that is 4." in wrong.json()["detail"]


def test_a_category_from_the_search_joins_those_selected(bundled: TestClient) -> None:
    found = bundled.get("/datasets/demo/find?by=age&where=region:1&q=lower+merrow")
    links = [a["href"] for a in Page(found.text).all("a")]
    assert "/datasets/demo?by=age&where=region:1&where=region:2" in links


def test_own_groups_can_be_written_where_the_policy_allows_them(
    town: TestClient, client: TestClient
) -> None:
    fields = sent(Page(town.get("/datasets/town?by=age&group=age:Young=1..9&by=sex").text))
    assert [value for name, value in fields if name == "into"] == [
        f"age:1:{i}" for i in range(1, 10)
    ]
    assert ("name.age.1", "Young") in fields
    page = client.get("/datasets/demo?by=age").text
    assert 'name="group"' not in page
    assert 'name="into"' not in page
