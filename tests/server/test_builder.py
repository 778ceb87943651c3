"""What can be chosen: offered, refused with a reason, and foreseen where a table is made on request."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient

from lustrum.answer import Precheck, Snapshot, TableService
from lustrum.answer.preliminary import inner_count
from lustrum.model import Axis, Dataset, Filter, Reason, TableQuery
from lustrum.policy import Policy
from lustrum.public.numbers import Described, KeyedNumbers
from lustrum.server import create_app
from lustrum.server.http.errors import Problem, ProblemError
from lustrum.server.pages.catalogue import hint
from lustrum.server.pages.tree import MOST_ROWS
from lustrum.server.pages.workspace import Entry, workspace
from lustrum.server.service.served_dataset import ServedDataset
from lustrum.server.urls.display import TableView
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


@pytest.mark.parametrize(
    ("query", "state"),
    [("by=area&by=age", "Likely refused."), ("by=age:ten-year", "Likely answered.")],
)
def test_where_a_table_is_made_on_request_the_page_says_what_would_become_of_it(
    client: TestClient, query: str, state: str
) -> None:
    page = client.get(f"/datasets/demo?{query}").text
    assert state in page
    assert '<table class="data">' not in page


def test_choices_of_a_variable_that_left_the_table_are_dropped_where_people_go_on_choosing(
    client: TestClient,
) -> None:
    stale = "by=sex&codes=age:1,2&place=age:rows"
    assert client.get(f"/datasets/demo?{stale}").status_code == 200
    assert client.get(f"/datasets/demo/table?{stale}").status_code == 400


def test_what_only_json_can_ask_for_stays_in_every_link(client: TestClient) -> None:
    some = '{"by": [{"variable": "sex", "total": true}, "age"]}'
    page = Page(client.get(f"/datasets/demo?{urlencode({'query': some})}").text)
    moves = [a["href"] for a in page.all("a") if a.get("data-to") in ("rows", "columns")]
    assert moves
    assert all("query=" in move for move in moves)


def test_a_hint_brings_a_change_that_passes(client: TestClient) -> None:
    page = Page(client.get("/datasets/demo?by=area&by=age").text)
    at = next(i for i, (_, attrs) in enumerate(page.tags) if attrs.get("id") == "foresight")
    address = next(attrs["href"] for tag, attrs in page.tags[at:] if tag == "a")
    assert address.startswith("/datasets/demo?by=")
    assert "Likely answered." in client.get(address).text


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
    spare = workspace(closed, TableQuery("town", ()), TableView()).variables
    assert all(move.to != "where" for entry in spare for move in entry.moves)
    assert "All people are counted; no selection is possible." in closed.sentences()
    assert "At least 50 people in each category of Block that is shown." in closed.sentences()


def spare(query: TableQuery) -> dict[str, Entry]:
    """The variables that are not in the table yet."""
    return {entry.name: entry for entry in workspace(OFFER, query, TableView()).variables}


def test_what_may_not_be_asked_for_is_not_offered_and_said_to_be_so() -> None:
    assert "secret" not in spare(TableQuery("town", ()))
    assert "Secret is not available under the policy." in OFFER.unavailable()
    assert "Faith and Tribe may not be asked for together." in OFFER.unavailable()
    assert "Only one of Age and Tribe may be in a question." in OFFER.unavailable()
    assert any("judged by itself" in sentence for sentence in OFFER.sentences())


def test_what_cannot_be_combined_has_its_reason_beside_it() -> None:
    beside = spare(TableQuery("town", (Axis("faith"),), (Filter("age", ("1",)),)))
    assert beside["tribe"].why == "not together with Faith"
    assert {move.to for move in beside["tribe"].moves} <= {"where"}
    assert beside["sex"].why == ""
    full = spare(TableQuery("town", (), (Filter("sex", ("1",)), Filter("age", ("1",)))))
    filtering = {name for name, entry in full.items() if any(m.to == "where" for m in entry.moves)}
    assert filtering == {"sex", "age"}


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
    opened = town.get("/datasets/town?by=block&by=sex&tree=codes:block").text
    assert len(opened) < 60_000
    assert opened.count('name="tick"') == MOST_ROWS
    assert "and 1700 more; search to find them" in opened
    found = town.get("/datasets/town/tree?by=block&tree=codes:block&find=Block+77")
    assert found.text.count('name="tick"') == 1
    found = town.get("/datasets/town/tree?by=block&tree=codes:block&find=77+block")
    assert found.text.count('name="tick"') == sum("77" in str(i) for i in range(2000))


def test_old_addresses_of_the_page_of_a_variable_lead_to_its_tree(town: TestClient) -> None:
    old = [("as", "where"), ("by", "sex"), ("where", "block:B0001")]
    answer = town.get("/datasets/town/variables/block", params=old, follow_redirects=False)
    assert answer.status_code == 303
    assert 'data-about="where:block"' in town.get(answer.headers["location"]).text


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ([("as", "rows")], "must be"),
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


def test_a_category_from_the_search_joins_those_selected(bundled: TestClient) -> None:
    found = bundled.get("/datasets/demo/find?by=age&where=region:1&q=lower+merrow")
    links = [a["href"] for a in Page(found.text).all("a")]
    assert "/datasets/demo?by=age&where=region:1&where=region:2" in links
