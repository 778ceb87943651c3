"""The page of an answer: every view is a plain address, says what it shows, and shows published values only."""

from __future__ import annotations

import json
import re
from datetime import date
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from fastapi.testclient import TestClient

from lustrum.answer import Snapshot, TableService
from lustrum.client import Client
from lustrum.model import (
    Axis,
    Category,
    Decision,
    Filter,
    Group,
    Reason,
    Release,
    TableAxis,
    TableQuery,
    Verdict,
)
from lustrum.server import create_app
from lustrum.server.pages.answer import calls, citation
from lustrum.server.table_view import layout

QUERY = "by=age:ten-year&by=sex&totals=on"
TABLE = f"/datasets/demo/table?{QUERY}"
API = f"/api/v1/tables?dataset=demo&{QUERY}"


class Read(HTMLParser):
    """The table of a page as texts, and the tags around it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self._open: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {k: v or "" for k, v in attrs}))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self._open = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._open:
            self._open = None

    def handle_data(self, data: str) -> None:
        if self._open:
            self.rows[-1][-1] += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.tags if name == tag]

    def body(self) -> dict[str, list[str]]:
        rows = [[text.strip() for text in row] for row in self.rows]
        return {row[0]: row[1:] for row in rows if len(row) > 1}


def page(client: TestClient, address: str) -> Read:
    response = client.get(address)
    assert response.status_code == 200, response.text
    return Read(response.text)


@pytest.fixture(scope="module")
def values(client: TestClient) -> dict[tuple[str, str], int]:
    """The published values by the labels of age and sex."""
    table = client.get(API).json()["table"]
    labels = [list(table["dimension"][name]["category"]["label"].values()) for name in table["id"]]
    found = iter(table["value"])
    return {(age, sex): next(found) for age in labels[0] for sex in labels[1]}


def test_percentages_are_worked_out_from_published_values(
    client: TestClient, values: dict[tuple[str, str], int]
) -> None:
    rows = page(client, f"{TABLE}&show=row-percent&decimals=2").body()
    for age in ("0 to 9", "30 to 39", "Total"):
        share = 100 * values[age, "Male"] / values[age, "Total"]
        assert float(rows[age][0]) == pytest.approx(share, abs=0.0051)
    columns = page(client, f"{TABLE}&show=column-percent").body()
    share = 100 * values["30 to 39", "Female"] / values["Total", "Female"]
    assert float(columns["30 to 39"][1]) == pytest.approx(share, abs=0.051)
    text = client.get(f"{TABLE}&show=row-percent").text
    assert "Percentages of each row" in text
    assert "Percentages are of the published totals." in text
    bare = client.get("/datasets/demo/table?by=age:ten-year&by=sex&show=row-percent").text
    assert "of the sum of the published figures" in bare


def test_a_turned_table_shows_the_same_values(
    client: TestClient, values: dict[tuple[str, str], int]
) -> None:
    turned = page(client, f"{TABLE}&pivot=sex:rows&pivot=age:columns").body()
    ages = [age for age, sex in values if sex == "Male"]
    for sex in ("Male", "Female", "Total"):
        assert [t.replace(",", "") for t in turned[sex]] == [str(values[age, sex]) for age in ages]


def test_the_link_that_swaps_rows_and_columns_works_both_ways(client: TestClient) -> None:
    def turn(read: Read) -> str:
        return next(a["href"] for a in read.all("a") if a.get("id") == "turn")

    plain = page(client, TABLE)
    turned = page(client, turn(plain))
    assert turned.body().keys() >= {"Male", "Female", "Total"}
    assert page(client, turn(turned)).body() == plain.body()


def test_rows_are_sorted_and_headers_say_so(client: TestClient) -> None:
    read = page(client, f"{TABLE}&sort=-sex:2")
    female = [int(row[1].replace(",", "")) for age, row in read.body().items() if age[0].isdigit()]
    assert female == sorted(female, reverse=True)
    assert list(read.body())[-1] == "Total"
    assert [a["aria-sort"] for a in read.all("th") if "aria-sort" in a] == ["descending"]
    links = [a["href"] for a in read.all("a") if a.get("id") == "sort-sex:2"]
    assert "sort=sex:2" in links[0]


def test_bounds_are_shown_on_demand(client: TestClient) -> None:
    api = client.get(f"{API}&include=bounds").json()
    assert "<small>" not in client.get(TABLE).text
    read = page(client, f"{TABLE}&bounds=on")
    first = read.body()["0 to 9"][0]
    low, high = (f"{int(api['bounds'][end][0]):,}" for end in ("low", "high"))
    assert first.endswith(f"{low}–{high}")


def test_codes_and_totals_are_shown_as_asked(client: TestClient) -> None:
    read = page(client, f"{TABLE}&names=codes&margins=off")
    assert "Total" not in read.body()
    assert "_T" not in read.body()
    assert "T1" in read.body()


def test_empty_rows_are_hidden_and_counted(client: TestClient) -> None:
    address = "/datasets/demo/table?by=age:ten-year&by=education&where=sex:1"
    whole = page(client, address).body()
    empty = {age for age, row in whole.items() if row and set(row) == {"0"}}
    text = client.get(f"{address}&empty=hide").text
    kept = Read(text).body()
    assert set(whole) - set(kept) == empty
    said = re.search(r"(\d+) rows? (?:is|are) hidden", text)
    assert (int(said.group(1)) if said else 0) == len(empty)
    if not empty:
        assert "No row is empty, so none is hidden." in text


def test_one_part_is_shown_alone_with_its_neighbours_beside(client: TestClient) -> None:
    address = "/datasets/demo/table?by=age:ten-year&by=sex&by=region&pivot=region:layers"
    assert client.get(address).text.count('class="block"') == 2
    read = page(client, f"{address}&layer=region:1")
    assert sum(a.get("class") == "block" for a in read.all("tr")) == 1
    assert [a["id"] for a in read.all("a") if a.get("id", "").startswith("beside")] == [
        "beside-next"
    ]


def test_the_form_of_a_view_sends_the_question_and_the_view(client: TestClient) -> None:
    read = page(client, f"{TABLE}&show=row-percent&empty=hide")
    form = read.all("form")[0]
    assert form["method"] == "get"
    hidden = [(a["name"], a["value"]) for a in read.all("input") if a["type"] == "hidden"]
    assert hidden == parse_qsl(QUERY)
    ticked = [(a["name"], a["value"]) for a in read.all("input") if "checked" in a]
    assert ticked == [("empty", "hide")]
    names = [a["name"] for a in read.all("select")]
    assert names == ["show", "pivot", "pivot", "sort", "names", "heat", "decimals"]
    pairs = [*hidden, *ticked, ("pivot", "age:rows"), ("pivot", "sex:layers"), ("sort", "")]
    assert client.get(form["action"], params=pairs).status_code == 200


def test_the_permanent_link_keeps_the_view_and_the_call_of_a_program_does_not(
    client: TestClient,
) -> None:
    text = client.get(f"{TABLE}&show=row-percent&as=chart").text
    read = Read(text)
    here = next(a["href"] for a in read.all("a") if a.get("id") == "here")
    assert here == f"{TABLE}&as=chart&show=row-percent"
    there = [line for line in text.splitlines() if "/api/v1/tables" in line]
    files = [line for line in there if 'id="get-' in line]
    assert files
    assert all("show=row-percent" in line for line in files)  # what is shown is what is downloaded
    calls_there = [line for line in there if line not in files]
    assert calls_there
    assert not any("row-percent" in line for line in calls_there)


def test_a_file_holds_the_percentages_that_the_page_shows(client: TestClient) -> None:
    asked = "dataset=demo&by=sex&by=region&totals=on"
    counts = client.get(f"/api/v1/tables?{asked}&format=json-stat").json()
    shares = client.get(f"/api/v1/tables?{asked}&format=json-stat&show=row-percent").json()
    width = counts["size"][1]
    rows = [counts["value"][i : i + width] for i in range(0, len(counts["value"]), width)]
    expected = [round(100 * value / row[-1], 1) for row in rows for value in row]
    assert shares["value"] == pytest.approx(expected, abs=0.051)
    assert shares["extension"]["unit"] == "%"
    text = client.get(f"/api/v1/tables?{asked}&format=csv&show=row-percent").text
    assert text.splitlines()[0].endswith(",value,unit,status")
    assert client.get(f"/api/v1/tables?{asked}&show=row-percent").status_code == 400


def test_a_chart_is_drawn_with_words_and_a_table_beside(client: TestClient) -> None:
    read = page(client, f"{TABLE}&as=chart")
    pictures = [a for a in read.all("svg") if a.get("role") == "img"]
    assert "chart-title-1 chart-words-1" in [a["aria-labelledby"] for a in pictures]
    assert len(read.all("table")) == 1
    assert "Total" in read.body()
    assert not [a for _, a in read.tags if "style" in a]


def test_a_long_table_is_shown_page_by_page(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "CELLS", 30)
    monkeypatch.setattr(layout, "FEWEST_ROWS", 5)
    address = "/datasets/demo/table?by=age&by=sex"
    text = client.get(address).text
    assert "Rows 1 to 15 of 21 are shown." in text
    second = page(client, f"{address}&page=2").body()
    everything = page(client, f"{address}&page=all").body()
    assert list(everything.items())[-6:] == list(second.items())[-6:]
    assert "are shown." not in client.get(f"{address}&page=all").text


@pytest.mark.parametrize(
    "wrong",
    ["shw=counts", "show=percent", "pivot=region:rows", "layer=sex:9", "sort=-sex:9", "page=0"],
)
def test_a_mistake_in_a_view_is_said(client: TestClient, wrong: str) -> None:
    assert client.get(f"{TABLE}&{wrong}").status_code == 400


def test_what_a_visitor_types_into_a_view_is_never_markup(client: TestClient) -> None:
    nasty = '"><script>alert(1)</script>'
    for name in ("show", "pivot", "layer", "sort", "page", nasty):
        assert "<script>alert" not in client.get(TABLE, params={name: nasty}).text


def test_a_refusal_takes_a_view_along_without_complaint(client: TestClient) -> None:
    text = client.get("/datasets/demo/table?by=area&by=age&show=row-percent").text
    assert "This table cannot be shown" in text


class Partial(Snapshot):
    """A snapshot whose answer lacks some areas, hides a cell and has totals that do not add up."""

    def answer(self, query: TableQuery) -> Decision:
        area = TableAxis(
            "area",
            "Area",
            (
                Category("1", "North", (0,)),
                Category("2", "=South", (1,)),
                Category("_T", "Total", (0, 1)),
            ),
        )
        sex = TableAxis("sex", "Sex", (Category("1", "Male", (0,)), Category("2", "Female", (1,))))
        published = np.array([[3, 6], [9, 12], [15, 18]])
        status = np.array([["F", "F"], ["F", "A"], ["F", "F"]])
        release = Release((area, sex), published, status, {"method": "none"}, unit="people")
        reason = Reason("areas", "2 of 14 categories of Area can be shown.", "Ask for less.")
        return Decision(query, Verdict.PARTIAL, (reason,), release)


class Partly(TableService):
    """A service that answers so."""

    def snapshot(self, name: str) -> Snapshot:
        found = super().snapshot(name)
        return Partial(found.numbers, found.policy)


@pytest.fixture(scope="module")
def partly(service: TableService) -> TestClient:
    return TestClient(create_app(Partly(service.root, workers=1)), base_url="http://lustrum.test")


def test_what_is_left_out_is_said_before_the_table(partly: TestClient) -> None:
    text = partly.get("/datasets/demo/table?by=area:district&by=sex").text
    assert text.index("2 of 14 categories of Area can be shown.") < text.index("<table")
    assert "suppressed: few contributors; not zero" in text
    assert "1 total differs from the sum of its parts" in text
    assert Read(text).body()["=South"] == ["9", "A"]
    assert ">12<" not in text


def test_bounds_that_the_method_does_not_state_are_not_offered(partly: TestClient) -> None:
    text = partly.get("/datasets/demo/table?by=area:district&by=sex&bounds=on").text
    assert "What the true values can be is not known for these figures." in text
    assert 'name="bounds"' not in text


def test_a_citation_names_the_table_the_policy_the_day_and_the_address() -> None:
    made = citation(
        "A & B", "Census_1", "demo-1", date(2026, 4, 1), "https://x.example/t?by=a&b=1%2C"
    )
    assert made.text == (
        "Census_1: A & B. Table asked for on 2026-04-01, https://x.example/t?by=a&b=1%2C"
    )
    assert made.bibtex.splitlines() == [
        "@misc{demo-1,",
        r"  author = {{Census\_1}},",
        r"  title = {A \& B},",
        "  year = {2026},",
        "  url = {https://x.example/t?by=a&b=1%2C},",
        "  urldate = {2026-04-01},",
        "}",
    ]


@pytest.mark.parametrize(
    "query",
    [
        TableQuery("demo", (Axis("age", "ten-year"), Axis("sex"))),
        TableQuery("demo", (Axis("age", "ten-year"), Axis("sex"))).with_totals,
        TableQuery("demo", (Axis("sex", total=True), Axis("age", codes=("1", "2", "3")))),
        TableQuery("demo", (Axis("sex"),), (Filter("region", ("1", "2")),)),
        TableQuery(
            "demo", (Axis("age", groups=(Group('"Young"', ("1", "2")), Group("Old", ("3",)))),)
        ),
    ],
)
def test_the_call_in_python_asks_the_very_question(
    query: TableQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []

    def send(self: Client, path: str, body: bytes | None = None, tag: str = "") -> Any:
        sent.append(body)
        raise KeyboardInterrupt

    monkeypatch.setattr(Client, "_send", send)
    code = calls(query, "http://lustrum.test", "/api/v1/tables?x").python
    with pytest.raises(KeyboardInterrupt):
        exec(code, {})
    assert TableQuery.from_mapping(json.loads(sent[0])) == query


def test_the_calls_quote_the_address() -> None:
    query = TableQuery("demo", (Axis("sex"),), measure="income")
    made = calls(query, "http://lustrum.test", "/api/v1/tables?by=sex&measure=income")
    address = "http://lustrum.test/api/v1/tables?by=sex&measure=income"
    assert made.curl == f"curl '{address}'"
    assert f'request("{address}")' in made.r
    assert 'measure="income"' in made.python
    compile(made.python, "call", "exec")


def test_the_call_in_python_works(address: str) -> None:
    query = TableQuery("demo", (Axis("sex"),)).with_totals
    names: dict[str, Any] = {"print": lambda *a: None}
    exec(calls(query, address, "").python, names)
    assert names["answer"].value(sex="1") > 0


def test_every_link_of_a_page_leads_somewhere(client: TestClient) -> None:
    read = page(client, f"{TABLE}&show=row-percent")
    links = {a["href"] for a in read.all("a") if a["href"].startswith("/")}
    for link in sorted(links):
        if urlsplit(link).path in ("/datasets/demo/table", "/api/v1/tables"):
            assert client.get(link).status_code == 200, link
