"""The API answers, refuses and describes, in the words of the model."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pyjstat import pyjstat

AGE_BY_SEX = {
    "dataset": "demo",
    "by": [{"variable": "age", "level": "ten-year"}, "sex"],
    "where": {"region": ["1"]},
    "totals": True,
}
LINK = "dataset=demo&by=age:ten-year&by=sex&where=region:1&totals=on"
REFUSED = "dataset=demo&by=area&by=age"


def ask(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    response = client.post("/api/v1/tables", json=body)
    assert response.status_code == 200, response.text
    out: dict[str, Any] = response.json()
    return out


def test_the_catalogue_names_every_dataset(client: TestClient) -> None:
    found = client.get("/api/v1/datasets").json()["datasets"]
    assert [d["name"] for d in found] == ["businesses", "demo"]
    assert set(found[0]) == {"name", "title", "description", "unit", "units"}


def test_a_dataset_is_described_with_its_levels_and_what_is_offered(client: TestClient) -> None:
    body = client.get("/api/v1/datasets/demo").json()
    age = next(v for v in body["variables"] if v["name"] == "age")
    levels = {lv["name"]: lv for h in age["hierarchies"] for lv in h["levels"]}
    assert levels["ten-year"]["offered"]
    assert not levels["labour-market"]["offered"]
    assert levels["ten-year"]["categories"][0]["members"] == ["1", "2"]
    assert body["policy"]["rules"]["max_dimensions"] == 3
    assert body["policy"]["protection"] == {"method": "random-rounding", "base": 3}


def test_an_answer_carries_table_risk_utility_trace_and_links(client: TestClient) -> None:
    body = ask(client, AGE_BY_SEX)
    assert body["decision"] == "answer"
    assert body["reasons"] == []
    assert body["table"]["size"] == [12, 3]
    assert body["risk"]["before"] is not None
    assert body["risk"]["after"] <= 0.3
    assert 0 < body["utility"] <= 1
    steps = [s["step"] for s in body["trace"]]
    assert steps == ["question", "numbers", "rules", "risk", "answer"]
    assert body["query"]["where"] == {"region": ["1"]}
    page = "http://lustrum.test/datasets/demo/table?by=age:ten-year&by=sex&where=region:1&totals=on"
    assert body["links"]["page"] == page
    assert "Synthetic people: any likeness is chance." in body["table"]["note"]


def test_one_variable_with_a_total_is_a_table_too(client: TestClient) -> None:
    body = ask(client, {"dataset": "demo", "by": ["sex"], "totals": True})
    assert body["table"]["size"] == [3]


def test_a_link_and_a_body_ask_the_same(client: TestClient) -> None:
    assert client.get(f"/api/v1/tables?{LINK}").json() == ask(client, AGE_BY_SEX)


def test_the_links_of_an_answer_lead_to_the_same_answer(client: TestClient) -> None:
    body = ask(client, AGE_BY_SEX)
    assert client.get(body["links"]["self"]).json() == body
    assert client.get(body["links"]["page"]).status_code == 200
    assert client.get(body["links"]["csv"]).headers["content-type"].startswith("text/csv")


def test_a_question_that_the_short_form_cannot_say_still_has_a_link(client: TestClient) -> None:
    chosen = {"dataset": "demo", "by": [{"variable": "age", "codes": ["5", "6"]}, "sex"]}
    body = ask(client, chosen)
    assert client.get(body["links"]["self"]).json() == body


def test_a_refusal_is_an_answer_with_reasons_and_a_way_forward(client: TestClient) -> None:
    response = client.get(f"/api/v1/tables?{REFUSED}")
    assert response.status_code == 200
    body = response.json()
    assert body["decision"] == "refusal"
    assert body["table"] is None
    assert body["risk"] == {"before": None, "after": None}
    assert body["utility"] is None
    assert all(r["rule"] and r["text"] and r["way_forward"] for r in body["reasons"])


# pyjstat calls a function that it deprecates itself.
@pytest.mark.filterwarnings("ignore:Shouldn't use this function:DeprecationWarning")
def test_pyjstat_reads_the_table(client: TestClient) -> None:
    body = ask(client, AGE_BY_SEX)
    frame = pyjstat.Dataset.read(json.dumps(body["table"])).write("dataframe")
    assert len(frame) == 36
    assert list(frame["value"]) == body["table"]["value"]
    alone = client.get(f"/api/v1/tables?{LINK}&format=json-stat")
    assert pyjstat.Dataset.read(alone.text)["size"] == [12, 3]


@pytest.mark.parametrize(
    ("query", "accept"),
    [(f"{LINK}&format=csv", "*/*"), (LINK, "text/csv"), (LINK, "text/csv, application/json;q=0.5")],
)
def test_csv_comes_by_parameter_or_by_header(client: TestClient, query: str, accept: str) -> None:
    response = client.get(f"/api/v1/tables?{query}", headers={"Accept": accept})
    assert response.headers["content-type"].startswith("text/csv")
    assert (
        'filename="demo-age-ten-year-sex-region-1-totals.csv"'
        in response.headers["content-disposition"]
    )
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [int(r["value"]) for r in rows] == ask(client, AGE_BY_SEX)["table"]["value"]


@pytest.mark.parametrize("accept", ["", "*/*", "text/html", "application/json", "text/csv;q=0"])
def test_json_is_what_comes_otherwise(client: TestClient, accept: str) -> None:
    response = client.get(f"/api/v1/tables?{LINK}", headers={"Accept": accept})
    assert response.headers["content-type"] == "application/json"


def test_a_refused_csv_is_no_csv(client: TestClient) -> None:
    response = client.get(f"/api/v1/tables?{REFUSED}&format=csv")
    assert response.status_code == 406
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["reasons"][0]["way_forward"]


def test_the_same_cell_has_the_same_value_in_every_table(client: TestClient) -> None:
    selected = {"dataset": "demo", "by": ["sex", "employment"], "where": {"region": ["1"]}}
    crossed = {"dataset": "demo", "by": ["employment", "region", "sex"], "totals": True}
    narrow, wide = ask(client, selected)["table"], ask(client, crossed)["table"]
    _, regions, sexes = wide["size"]
    for i in range(5):
        for j in range(2):
            assert narrow["value"][j * 5 + i] == wide["value"][i * regions * sexes + j]


def test_asking_again_gives_the_same_bytes(client: TestClient) -> None:
    first = client.get(f"/api/v1/tables?{LINK}").content
    assert client.get(f"/api/v1/tables?{LINK}").content == first


def test_the_description_of_the_api_shows_the_question_and_both_ways_to_ask(
    client: TestClient,
) -> None:
    description = client.get("/api/v1/openapi.json").json()
    tables = description["paths"]["/api/v1/tables"]
    schema = tables["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert {"dataset", "by", "where", "totals"} <= set(schema["properties"])
    assert {p["name"] for p in tables["get"]["parameters"]} >= {"by", "where", "totals", "format"}
    text = json.dumps(description)
    assert "HTTPValidationError" not in text
    for path in ("/docs", "/redoc"):
        assert client.get(path).status_code == 404


def test_parts_beside_the_table_come_as_asked_for(client: TestClient) -> None:
    plain = client.get(f"/api/v1/tables?{LINK}").json()
    assert {"risk", "utility", "trace"} <= set(plain)
    assert "bounds" not in plain
    lean = client.get(f"/api/v1/tables?{LINK}&include=").json()
    assert not {"risk", "utility", "trace", "bounds"} & set(lean)
    some = client.post("/api/v1/tables?include=bounds,risk", json=AGE_BY_SEX).json()
    assert {"bounds", "risk"} <= set(some)
    assert not {"utility", "trace"} & set(some)
    assert {plain["id"]} == {lean["id"], some["id"]}


def test_bounds_hold_the_published_value_and_follow_the_method(client: TestClient) -> None:
    body = client.get(f"/api/v1/tables?{LINK}&include=bounds").json()
    values, bounds = body["table"]["value"], body["bounds"]
    for value, low, high in zip(values, bounds["low"], bounds["high"], strict=True):
        assert low <= value <= high
        assert high - low >= 2


def test_an_unknown_part_is_a_mistake(client: TestClient) -> None:
    response = client.get(f"/api/v1/tables?{LINK}&include=risks")
    assert response.status_code == 400
    assert "did you mean 'risk'" in response.json()["detail"]


def test_the_catalogue_comes_in_pages_and_can_be_searched(client: TestClient) -> None:
    first = client.get("/api/v1/datasets?limit=1").json()
    assert [d["name"] for d in first["datasets"]] == ["businesses"]
    assert first["total"] == 2
    second = client.get(first["next"]).json()
    assert [d["name"] for d in second["datasets"]] == ["demo"]
    assert second["next"] is None
    found = client.get("/api/v1/datasets", params={"q": "CENSUS demo"}).json()
    assert [d["name"] for d in found["datasets"]] == ["demo"]


def test_categories_come_in_pages_by_level_and_search(client: TestClient) -> None:
    base = "/api/v1/datasets/demo/variables/age/categories"
    whole = client.get(base).json()
    assert whole["total"] == len(whole["categories"]) == 21
    codes: list[str] = []
    following: str | None = f"{base}?limit=5"
    while following:
        page = client.get(following).json()
        codes += [c["code"] for c in page["categories"]]
        following = page["next"]
    assert codes == [c["code"] for c in whole["categories"]]
    assert client.get(f"{base}?level=ten-year").json()["total"] < 21
    assert client.get(f"{base}?level=nowhere").status_code == 400
    assert client.get("/api/v1/datasets/demo/variables/agee/categories").status_code == 400
    assert client.get(f"{base}?limit=0").status_code == 422
    assert client.get(f"{base}?page=2").status_code == 400
    assert client.get(f"{base}?within=nowhere").status_code == 400


def test_shapes_of_a_level_are_downloaded_with_the_codes_of_tables(client: TestClient) -> None:
    base = "/api/v1/datasets/demo/variables/area/shapes"
    answer = client.get(f"{base}?level=district")
    assert answer.headers["content-type"] == "application/json"
    found = answer.json()
    (shapes,) = found["objects"].values()
    listed = client.get("/api/v1/datasets/demo/variables/area/categories?level=district").json()
    said = [(c["code"], c["label"]) for c in listed["categories"]]
    assert [(s["id"], s["properties"]["label"]) for s in shapes["geometries"]] == said
    # Borders that districts share stand in the file once, so that it has fewer points than the finest one.
    assert sum(map(len, found["arcs"])) < sum(map(len, client.get(base).json()["arcs"]))
    assert client.get(f"{base}?level=nowhere").status_code == 400
    assert client.get(f"{base}?size=5").status_code == 400
    assert client.get("/api/v1/datasets/demo/variables/age/shapes").status_code == 404
    assert client.get("/api/v1/datasets/demo/variables/agee/shapes").status_code == 400


def test_long_lists_stay_out_of_a_description_and_come_in_pages(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def variable() -> dict[str, Any]:
        described = client.get("/api/v1/datasets/demo").json()
        return next(v for v in described["variables"] if v["name"] == "age")

    listed = variable()
    assert listed["size"] == len(listed["categories"]) == 21
    monkeypatch.setattr("lustrum.server.api.datasets.MOST_LISTED", 20)
    short = variable()
    assert (short["size"], short["categories"]) == (21, None)
    base = "/api/v1/datasets/demo/variables/age/categories"
    for before, after in zip(listed["hierarchies"], short["hierarchies"], strict=True):
        for level, now in zip(before["levels"], after["levels"], strict=True):
            assert level["size"] == now["size"] == len(level["categories"])
            for category, unlisted in zip(level["categories"], now["categories"], strict=True):
                assert unlisted == {**category, "members": None}
                page = client.get(base, params={"within": category["code"]}).json()
                assert [c["code"] for c in page["categories"]] == category["members"]
    monkeypatch.setattr("lustrum.server.api.datasets.MOST_LISTED", 2)
    levels = [level for h in variable()["hierarchies"] for level in h["levels"]]
    assert [x["categories"] is None for x in levels] == [x["size"] > 2 for x in levels]


def test_a_hint_says_what_the_rules_would_say(client: TestClient) -> None:
    good = client.get(f"/api/v1/hints?{LINK}").json()
    assert good["passes"]
    assert good["reasons"] == []
    assert good["cells"] == 22
    bad = client.get(f"/api/v1/hints?{REFUSED}").json()
    refused = client.get(f"/api/v1/tables?{REFUSED}").json()
    assert not bad["passes"]
    assert bad["reasons"] == refused["reasons"]
    assert client.get("/api/v1/hints?dataset=nowhere&by=age").status_code == 400


def test_a_conditional_request_is_answered_without_sending_again(client: TestClient) -> None:
    first = client.get(f"/api/v1/tables?{LINK}")
    tag = first.headers["etag"]
    again = client.get(f"/api/v1/tables?{LINK}", headers={"If-None-Match": tag})
    assert again.status_code == 304
    assert again.content == b""
    assert again.headers["etag"] == tag
    other = client.get(f"/api/v1/tables?{LINK}", headers={"If-None-Match": '"other"'})
    assert other.status_code == 200
    listed = client.get(f"/api/v1/tables?{LINK}", headers={"If-None-Match": f'"x", {tag}'})
    assert listed.status_code == 304


def test_a_tag_is_of_the_bytes_that_go_out_and_of_nothing_else(client: TestClient) -> None:
    import hashlib

    response = client.get(f"/api/v1/tables?{LINK}&format=csv")
    digest = hashlib.sha256(response.content).hexdigest()[:32]
    assert response.headers["etag"] == f'"{digest}"'
    assert "etag" not in client.get("/api/v1/tables?dataset=demo&by=nowhere").headers


def test_a_workbook_holds_the_same_numbers_and_what_is_said_of_them(client: TestClient) -> None:
    import openpyxl

    response = client.get(f"/api/v1/tables?{LINK}&format=xlsx")
    assert response.headers["content-type"].startswith("application/vnd.openxmlformats")
    book = openpyxl.load_workbook(io.BytesIO(response.content))
    body = ask(client, AGE_BY_SEX)
    rows = list(book["Cells"].iter_rows(values_only=True))
    value = [str(c).lower() for c in rows[0]].index("value")
    assert [row[value] for row in rows[1:]] == body["table"]["value"]
    notes = " ".join(str(c) for row in book["Notes"].iter_rows(values_only=True) for c in row if c)
    assert "Risk after protection" in notes
    assert body["id"] in notes
    assert client.get(f"/api/v1/tables?{LINK}&format=xlsx").content == response.content


WORKING = [str(code) for code in range(4, 14)]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("by=age&codes=age:15-64", "by=age&codes=age:4..13"),
        ("by=age&codes=age:15-19,20 to 24,10", "by=age&codes=age:4,5,10"),
        ("by=age:ten-year&codes=age:20-39", "by=age:ten-year&codes=age:T3,T4"),
        ("by=age&group=age:Work=15-64", "by=age&group=age:Work=4..13"),
        ("by=sex&where=age:15-64", "by=sex&among=age:4..13"),
        ("by=sex&among=age:85%2B,<10", "by=sex&among=age:18..21,1,2"),
        ("by=sex&where=region:Upper Merrow", "by=sex&where=region:1"),
    ],
)
def test_labels_and_ranges_of_labels_stand_for_codes_everywhere(
    bundled: TestClient, written: str, meant: str
) -> None:
    answers = [bundled.get(f"/api/v1/tables?dataset=demo&{one}") for one in (written, meant)]
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    one, other = (answer.json() for answer in answers)
    assert one["table"] == other["table"]
    assert one["query"] == other["query"]
    assert one["links"] == other["links"]
    hints = [bundled.get(f"/api/v1/hints?dataset=demo&{one}").json() for one in (written, meant)]
    assert hints[0] == hints[1]
    for page in ("", "/table", "/embed"):
        pages = [bundled.get(f"/datasets/demo{page}?{one}") for one in (written, meant)]
        assert [shown.status_code for shown in pages] == [200, 200]
        cells = [re.findall(r"<td.*?</td>", shown.text) for shown in pages]
        assert cells[0] == cells[1] != []
    framed = [f"http://lustrum.test/datasets/demo/table?{one}" for one in (written, meant)]
    cards = [bundled.get("/oembed", params={"url": address}).json() for address in framed]
    assert cards[0] == cards[1]


def test_a_question_in_json_may_name_categories_by_their_labels(bundled: TestClient) -> None:
    body = ask(bundled, {"dataset": "demo", "by": ["sex"], "where": {"age": ["15-64"]}})
    assert body["query"]["where"] == {"age": WORKING}
    for bad, said in (("15-63", "does not begin and end"), ("teens", "no category 'teens'")):
        asked = {"dataset": "demo", "by": ["sex"], "where": {"age": [bad]}}
        answer = bundled.post("/api/v1/tables", json=asked)
        assert answer.status_code == 400
        assert said in answer.json()["detail"]
