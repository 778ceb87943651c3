"""Other protocols get what our own API gives, and nothing that the policy refuses."""

from __future__ import annotations

import base64
import csv
import io
import json
import shutil
import urllib.parse
import zlib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from clients.test_clients import BUNDLES, with_rules
from lustrum.answer import TableService
from lustrum.model import QueryError
from lustrum.server import Settings, create_app
from lustrum.server.protocols.selections import listed_values, selected
from publish.programme.conftest import TURNOVER, make_workplace

DATA = "/pxapi/v2/tables/demo/data"
FORMATS = ("json-stat2", "csv", "xlsx", "html", "px", "parquet")
CODES = [f"{i:02d}" for i in range(30)]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("bundles")
    for name in ("demo", "survey"):
        shutil.copytree(BUNDLES / name, folder / name)
    with_rules(folder / "demo", 'updated = "2026-11-18"\n')
    made = tmp_path_factory.mktemp("made")
    make_workplace(made).run(TURNOVER, head='formats = ["csv"]')
    service = TableService(
        bundles=[folder / "demo", folder / "survey"], prepared=[made / "public"], workers=1
    )
    yield TestClient(create_app(service, Settings(rate="")), base_url="http://lustrum.test")
    service.close()


def select(**values: list[str]) -> dict[str, Any]:
    return {"selection": [{"variableCode": k, "valueCodes": v} for k, v in values.items()]}


REFUSED = (
    # Three variables where the policy lets two; each of the others with one code is a variable too.
    {"sex": ["*"], "age": ["*"], "education": ["*"]},
    {"sex": ["1"], "age": ["1"], "education": ["1"]},
)
KEPT_BACK: tuple[dict[str, list[str]], ...] = (
    {"occupation": ["*"]},
    {"sex": ["*"], "occupation": ["1"]},
)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("values", REFUSED)
def test_pxweb_refuses_in_every_format_what_the_rules_refuse(
    client: TestClient, form: str, values: dict[str, list[str]]
) -> None:
    answer = client.post(f"{DATA}?outputFormat={form}", json=select(**values))
    assert answer.status_code == 403
    assert answer.headers["content-type"] == "application/problem+json"
    ours = client.get("/api/v1/tables", params={"dataset": "demo", "by": list(values)}).json()
    assert ours["decision"] == "refusal"
    reasons = {reason["rule"] for reason in ours["reasons"]}
    assert {reason["rule"] for reason in answer.json()["reasons"]} == reasons


@pytest.mark.parametrize("values", KEPT_BACK)
def test_a_variable_that_is_kept_back_is_not_there(
    client: TestClient, values: dict[str, list[str]]
) -> None:
    there = client.post(DATA, json=select(**values))
    assert there.status_code == 400
    none = client.post(DATA, json=select(**{**values, "nothing": ["1"]}))
    assert none.status_code == 400
    metadata = client.get("/pxapi/v2/tables/demo/metadata").json()
    assert "occupation" not in json.dumps(metadata)
    assert client.get("/pxapi/v2/codelists/vs_demo.occupation").status_code == 404
    assert "occupation" not in client.get("/sdmx/v2/structure/dataflow/LUSTRUM/demo/1.0.0").text
    for address in (
        "/sdmx/v2/data/dataflow/LUSTRUM/demo/1.0.0/*?c[occupation]=*",
        "/api/dissemination/statistics/1.0/data/demo?occupation=1",
    ):
        assert client.get(address).status_code == 400


def test_sdmx_and_statistics_refuse_what_the_rules_refuse(client: TestClient) -> None:
    for address in (
        "/sdmx/v2/data/dataflow/LUSTRUM/demo/1.0.0/*?c[sex]=*&c[age]=*&c[education]=*",
        "/api/dissemination/statistics/1.0/data/demo?sex=*&age=*&education=*",
    ):
        answer = client.get(address)
        assert answer.status_code == 403, address
        assert answer.json()["reasons"]


PREPARED = "/pxapi/v2/tables/biz-2025.activity-region.turnover"


def test_a_prepared_table_is_a_table_of_pxweb_with_its_hidden_cells(client: TestClient) -> None:
    listed = {one["id"]: one for one in client.get("/pxapi/v2/tables").json()["tables"]}
    assert PREPARED.rpartition("/")[2] in listed
    metadata = client.get(f"{PREPARED}/metadata").json()
    assert metadata["id"] == ["act", "region", "ContentsCode"]
    assert metadata["value"] is None
    assert "status" not in metadata
    whole = client.get(f"{PREPARED}/data").json()
    file = client.get("/api/v1/prepared/biz-2025").json()["tables"][0]["files"]["csv"]
    rows = list(
        csv.DictReader(io.StringIO(client.get(file.partition("lustrum.test")[2] or file).text))
    )
    assert whole["value"] == [int(row["value"]) if row["value"] else None for row in rows]
    hidden = {place for place, row in enumerate(rows) if row["status"] != "F"}
    assert hidden == {int(place) for place in whole["status"]}
    assert hidden
    codes = list(metadata["dimension"]["region"]["category"]["index"])
    turned = client.post(f"{PREPARED}/data", json=select(region=["*"], act=["BOTTOM(2)"])).json()
    assert turned["id"] == ["region", "act", "ContentsCode"]
    grid = dict(zip([(r["act"], r["region"]) for r in rows], whole["value"], strict=True))
    acts = list(turned["dimension"]["act"]["category"]["index"])
    assert turned["value"] == [grid[act, region] for region in codes for act in acts]
    # What is left out stands for its total; nothing that is hidden comes back.
    totals = client.get(f"{PREPARED}/data", params={"valuecodes[region]": "*"}).json()
    assert totals["value"] == [grid["_T", region] for region in codes]
    saved = client.post(
        "/pxapi/v2/savedqueries",
        json={"tableId": PREPARED.rpartition("/")[2], "selection": select(region=["*"])},
    ).json()
    assert client.get(f"/pxapi/v2/savedqueries/{saved['id']}/data").json() == totals
    for form in FORMATS:
        answer = client.get(f"{PREPARED}/data", params={"outputFormat": form})
        assert answer.status_code == 200, form
    for wrong, status in (
        (f"{PREPARED}x/data", 404),
        ("/pxapi/v2/tables/nothing.a.b/data", 404),
        (f"{PREPARED}/data?valuecodes[region]=q", 400),
        (f"{PREPARED}/data?valuecodes[colour]=*", 400),
        (f"{PREPARED}/data?valuecodes[act]=*&codelist[act]=agg_x", 400),
    ):
        assert client.get(wrong).status_code == status, wrong


def test_a_prepared_table_is_a_dataflow_with_its_hidden_cells(client: TestClient) -> None:
    flow = PREPARED.rpartition("/")[2].replace(".", "_")
    assert f'id="{flow}"' in client.get("/sdmx/v2/structure/dataflow/LUSTRUM/*").text
    structure = client.get(f"/sdmx/v2/structure/dataflow/LUSTRUM/{flow}/1.0.0?references=all").text
    assert all(f'id="{name}"' in structure for name in ("act", "region", "STATISTIC", "turnover"))
    assert client.get(f"/sdmx/v2/structure/codelist/LUSTRUM/CL_{flow}_act").status_code == 200
    data, old = f"/sdmx/v2/data/dataflow/LUSTRUM/{flow}/1.0.0", f"/sdmx/2.1/data/{flow}"

    def cells(address: str) -> dict[tuple[str, str], tuple[str, str]]:
        answer = client.get(address)
        assert answer.status_code == 200, answer.text
        rows = csv.DictReader(io.StringIO(answer.text))
        return {
            (row["act"], row["region"]): (row["OBS_VALUE"].replace("NaN", ""), row["CONF_STATUS"])
            for row in rows
        }

    file = client.get("/api/v1/prepared/biz-2025").json()["tables"][0]["files"]["csv"]
    text = client.get(file.partition("lustrum.test")[2] or file).text
    rows = list(csv.DictReader(io.StringIO(text)))
    whole = cells(f"{data}/*.*.*")
    assert whole == {(r["act"], r["region"]): (r["value"], r["status"]) for r in rows}
    assert "" in {value for value, _ in whole.values()}
    # A dimension that is not named is its total; what is hidden comes back in no selection.
    assert cells(f"{data}/*?c[region]=*") == {k: v for k, v in whole.items() if k[0] == "_T"}
    act = next(act for (act, _), (value, _) in whole.items() if not value)
    for address in (f"{data}/{act}.*.turnover", f"{data}/*?c[act]={act}&c[region]=*"):
        assert cells(address) == {k: v for k, v in whole.items() if k[0] == act}
    assert client.get(f"{old}/{act}.*.turnover").text.count('value="NaN"') == sum(
        not value for key, (value, _) in whole.items() if key[0] == act
    )
    for wrong, status in (
        (f"{data}/*.*", 400),
        (f"{data}/nothing.*.*", 400),
        (f"{data}/*.*.mean", 400),
        (f"{data}/*", 400),
        (f"{old}x/*.*.*", 404),
        (f"/sdmx/v2/data/dataflow/LUSTRUM/{flow}x/*/*.*.*", 404),
    ):
        assert client.get(wrong).status_code == status, wrong


def test_pxweb_speaks_every_language_of_the_pages(client: TestClient) -> None:
    languages = [one["id"] for one in client.get("/pxapi/v2/config").json()["languages"]]
    assert languages == ["en", "de", "fr"]
    english, french = (
        client.get("/pxapi/v2/tables/demo/metadata", params={"lang": code}).json()
        for code in ("en", "fr")
    )
    assert english["dimension"]["sex"]["label"] == "Sex"
    assert french["dimension"]["sex"]["label"] == "Sexe"
    assert french == client.get("/fr/pxapi/v2/tables/demo/metadata").json() | {
        "href": french["href"],
        "dimension": french["dimension"],
    }
    params = {"valuecodes[sex]": "*", "lang": "fr"}
    told, plain = (client.get(DATA, params=params | more).json() for more in ({}, {"lang": "en"}))
    assert told["value"] == plain["value"]
    assert told["dimension"]["sex"]["label"] == "Sexe"
    assert told["note"] != plain["note"]
    px = client.get(DATA, params=params | {"outputFormat": "px"}).text
    assert 'LANGUAGE="fr";' in px
    assert 'STUB="Sexe";' in px
    saved = client.post(
        "/pxapi/v2/savedqueries",
        json={"tableId": "demo", "language": "fr", "selection": select(sex=["*"])},
    ).json()
    address = f"/pxapi/v2/savedqueries/{saved['id']}/data"
    assert client.get(address).json()["dimension"]["sex"]["label"] == "Sexe"
    assert client.get(address, params={"lang": "de"}).json()["dimension"]["sex"]["label"] != "Sexe"
    assert client.get(DATA, params={"lang": "tlh"}).status_code == 400


def test_the_day_of_the_policy_is_said_wherever_a_table_is_described(client: TestClient) -> None:
    day = "2026-11-18T00:00:00Z"
    listed = {one["id"]: one for one in client.get("/pxapi/v2/tables").json()["tables"]}
    assert listed["demo"]["updated"] == day
    assert listed["survey"]["updated"] is None
    metadata = client.get("/pxapi/v2/tables/demo/metadata").json()
    assert metadata["updated"] == day
    table = client.get(
        "/api/v1/tables", params={"dataset": "demo", "by": "sex", "format": "json-stat"}
    ).json()
    assert table["updated"] == day
    px = client.get(DATA, params={"valuecodes[sex]": "*", "outputFormat": "px"}).text
    assert 'LAST-UPDATED="20261118 00:00";' in px
    assert client.get("/api/v1/datasets/demo/citation").json()[0]["issued"] == {
        "date-parts": [[2026, 11, 18]]
    }
    described = client.get("/api/v1/catalogue.jsonld").json()["dcat:dataset"]
    assert {one["dct:identifier"]: one.get("dct:modified") for one in described} == {
        "demo": "2026-11-18",
        "survey": None,
    }
    for days, there in (("1", False), ("99999999", True)):
        found = client.get("/pxapi/v2/tables", params={"pastDays": days}).json()["tables"]
        recent = (date.today() - date(2026, 11, 18)).days <= 1
        assert ("demo" in [one["id"] for one in found]) == (there or recent)
        assert "survey" in [one["id"] for one in found]


def test_older_clients_of_sdmx_get_the_same_cells_and_refusals(client: TestClient) -> None:
    key = "_T._T._T.*._T._T._T._T.count"
    newer = client.get(f"/sdmx/v2/data/dataflow/LUSTRUM/demo/1.0.0/{key}").text
    rows = list(csv.DictReader(io.StringIO(newer)))
    for flow in ("demo", "LUSTRUM,demo", "LUSTRUM,demo,1.0.0"):
        answer = client.get(f"/sdmx/2.1/data/{flow}/{key}")
        assert answer.headers["content-type"] == "application/vnd.sdmx.genericdata+xml; version=2.1"
        root = ElementTree.fromstring(answer.content)
        space = {"gen": "http://www.sdmx.org/resources/sdmxml/schemas/v2_1/data/generic"}
        told = []
        for one in root.iterfind(".//gen:Obs", space):
            cell = {v.attrib["id"]: v.attrib["value"] for v in one.iterfind(".//gen:Value", space)}
            value = one.find("gen:ObsValue", space)
            assert value is not None
            told.append(cell | {"OBS_VALUE": value.attrib["value"]})
        wanted = [
            {k: v for k, v in row.items() if v and not k.startswith(("STRUCT", "ACT"))}
            for row in rows
        ]
        assert told == wanted
    refused = client.get("/sdmx/2.1/data/demo/all?c[sex]=*&c[age]=*&c[education]=*")
    assert refused.status_code == 403
    message = client.get("/sdmx/2.1/dataflow/LUSTRUM/demo/latest?references=all").text
    ElementTree.fromstring(message)
    assert "occupation" not in message
    for gone in ("urn:", "v3_0", "<str:Measure ", "str:Observation/", "ConceptSchemes"):
        assert gone not in message
    for wrong in (
        "/sdmx/2.1/data/ESTAT,demo/all",
        "/sdmx/2.1/data/none/all",
        "/sdmx/2.1/dataflow/ESTAT/demo",
    ):
        assert client.get(wrong).status_code == 404


def test_the_default_selection_is_released_and_has_its_own_numbers(client: TestClient) -> None:
    said = client.get("/pxapi/v2/tables/demo/defaultselection").json()
    chosen = client.post(DATA, json={"selection": said["selection"]})
    unasked = client.get(DATA)
    assert unasked.status_code == 200
    assert unasked.json() == chosen.json()
    assert client.post(DATA, json={"selection": []}).json() == unasked.json()


def test_pxweb_tells_the_numbers_of_our_own_answer(client: TestClient) -> None:
    params = {"valuecodes[sex]": "*", "valuecodes[age]": "RANGE(3,6),TOP(1),?4"}
    found = client.get(DATA, params=params).json()
    ours = client.get(
        "/api/v1/tables",
        params={"dataset": "demo", "by": ["sex", "age"], "codes": "age:3,4,5,6,1,14"},
    ).json()["table"]
    assert found["value"] == ours["value"]
    assert list(found["dimension"]["age"]["category"]["index"]) == ["3", "4", "5", "6", "1", "14"]
    assert found["id"] == ["sex", "age", "ContentsCode"]
    assert found["role"]["metric"] == ["ContentsCode"]
    text = client.get(
        DATA,
        params=params
        | {"outputFormat": "csv", "outputFormatParams": "UseCodes,SeparatorSemicolon"},
    ).text
    rows = list(csv.DictReader(io.StringIO(text), delimiter=";"))
    assert [float(row["value"]) for row in rows] == [float(v) for v in ours["value"]]
    assert "age_label" not in rows[0]


def test_a_level_is_a_code_list(client: TestClient) -> None:
    metadata = client.get("/pxapi/v2/tables/demo/metadata").json()
    lists = {one["id"]: one for one in metadata["dimension"]["age"]["extension"]["codelists"]}
    listed = client.get("/pxapi/v2/codelists/agg_demo.age.ten-year").json()
    assert "agg_demo.age.ten-year" in lists
    body = {"selection": [{"variableCode": "age", "codelist": listed["id"], "valueCodes": ["*"]}]}
    found = client.post(DATA, json=body).json()
    assert list(found["dimension"]["age"]["category"]["index"]) == [
        v["code"] for v in listed["values"]
    ]


def test_a_saved_query_runs_the_policy_of_today(client: TestClient, tmp_path: Path) -> None:
    def saved(**values: list[str]) -> Any:
        return client.post(
            "/pxapi/v2/savedqueries",
            json={
                "tableId": "demo",
                "language": "en",
                "selection": select(**values),
                "outputFormat": "px",
            },
        )

    good, refused = saved(sex=["*"], age=["*"]), saved(**REFUSED[0])
    assert good.status_code == 201
    name = good.json()["id"]
    assert client.get(f"/pxapi/v2/savedqueries/{name}/data").text.startswith('CHARSET="ANSI"')
    assert client.get(f"/pxapi/v2/savedqueries/{name}").json()["savedQuery"]["tableId"] == "demo"
    assert client.get(f"/pxapi/v2/savedqueries/{refused.json()['id']}/data").status_code == 403
    # The same name on a server whose policy has become stricter.
    folder = tmp_path / "demo"
    shutil.copytree(BUNDLES / "demo", folder)
    open_service = TableService(bundles=[folder], workers=1)
    with TestClient(
        create_app(open_service, Settings(rate="")), base_url="http://lustrum.test"
    ) as other:
        address = f"/pxapi/v2/savedqueries/{refused.json()['id']}/data"
        assert other.get(address).status_code == 200
    open_service.close()


@pytest.mark.parametrize(
    "name",
    [
        "x",
        "..%2F..",
        "=" * 40,
        base64.urlsafe_b64encode(zlib.compress(b"[" * 60_000)).decode(),
        base64.urlsafe_b64encode(zlib.compress(b"0" * 10**7)).decode()[:1900],
        base64.urlsafe_b64encode(zlib.compress(b'{"tableId": 1}')).decode(),
    ],
)
def test_a_name_of_no_saved_query_is_not_found(client: TestClient, name: str) -> None:
    for end in ("", "/data", "/selection"):
        assert client.get(f"/pxapi/v2/savedqueries/{name}{end}").status_code == 404


WORDS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["sex", "*", "1", "age", "TOP(1)", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "selection", "variableCode", "valueCodes", "codelist", "placement", "stub",
                    "heading", "tableId",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip


@given(WORDS, st.sampled_from([DATA, "/pxapi/v2/savedqueries"]))
def test_nonsense_is_one_sentence(client: TestClient, body: Any, address: str) -> None:
    answer = client.post(address, json=body)
    assert answer.status_code < 500
    if answer.status_code >= 400:
        assert answer.json()["detail"].endswith(".")
        assert answer.headers["content-type"] == "application/problem+json"


PIECES = st.lists(
    st.sampled_from(
        [
            "sex", "age", "*", "_T", "1", "TOP(", "TOP(1)", "RANGE(1,2)", "[", "]", "(", ")", ",",
            "+", ".", "$", "$2E$", "$D800$", "$FFFFFFFF$", "\x00", "é", "-", "eq:",
            "agg_demo.age.ten-year", "mean:hours", "/", "%", "occupation", "?",
        ]
    ),
    max_size=6,
).map("".join)  # fmt: skip
PLACES = st.sampled_from(
    [
        "/pxapi/v2/tables/{0}",
        "/pxapi/v2/tables/demo/data?valuecodes[{0}]={1}",
        f"{DATA}?valuecodes[sex]={{0}}",
        f"{DATA}?valuecodes[sex]=*&heading={{0}}&stub={{1}}",
        f"{DATA}?codelist[age]={{0}}&valuecodes[age]={{1}}",
        "/pxapi/v2/tables/demo/metadata?codelist[{0}]={1}",
        "/pxapi/v2/codelists/{0}",
        "/pxapi/v2/tables?pageSize={0}",
        "/sdmx/v2/data/dataflow/LUSTRUM/demo/+/{0}",
        "/sdmx/v2/data/dataflow/LUSTRUM/demo/+/*?c[{0}]={1}",
        "/sdmx/v2/data/dataflow/LUSTRUM/survey/+/{0}.{1}.{0}.{1}.{0}.count",
        "/sdmx/v2/structure/codelist/LUSTRUM/{0}",
        "/api/dissemination/statistics/1.0/data/demo?{0}={1}",
        "/api/v1/datasets/{0}/citation",
    ]
)


@given(PLACES, PIECES, PIECES)
def test_nonsense_in_an_address_is_one_sentence(
    client: TestClient, place: str, first: str, second: str
) -> None:
    answer = client.get(place.format(urllib.parse.quote(first), urllib.parse.quote(second)))
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.json()["detail"].endswith(".")


@pytest.mark.parametrize(
    "query",
    [
        "valuecodes[sex]=TOP(x)",
        "valuecodes[sex]=RANGE(1)",
        "valuecodes[sex]=9",
        "valuecodes[nothing]=*",
        "valuecodes[sex]=*&valuecodes[sex]=1",
        "valuecodes[sex]=*&valueCodes[sex]=1",
        "valuecodes[sex]=*&outputFormat=csv&outputformat=px",
        "lang=sv",
        "outputFormat=doc",
        "outputFormat=px&outputFormatParams=UseCodes",
        "outputFormat=csv&outputFormatParams=UseCodes,UseTexts",
        "codelist[sex]=agg_demo.age.ten-year",
        "valuecodes[sex]=*&heading=age",
        "valuecodes[sex]=" + "*1" * 30,
        "size=3",
    ],
)
def test_a_mistake_is_one_sentence(client: TestClient, query: str) -> None:
    answer = client.get(f"{DATA}?{query}")
    assert answer.status_code == 400
    assert answer.json()["detail"].endswith(".")


@pytest.mark.parametrize(
    "address",
    [
        "/sdmx/v2/data/dataflow/LUSTRUM/demo/1.0.0/*?c[sex]=*&c[sex]=1",
        "/sdmx/v2/data/dataflow/LUSTRUM/demo/1.0.0/*?c[sex]=1&c[sex]=*",
        "/api/dissemination/statistics/1.0/data/demo?sex=1&lang=EN&lang=FR",
    ],
)
def test_of_two_things_that_are_said_none_is_passed_over(client: TestClient, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 400
    assert answer.json()["detail"].endswith(".")


def test_a_name_that_stands_twice_in_a_body_is_a_mistake_on_every_route(client: TestClient) -> None:
    for address in ("/api/v1/tables", "/api/v1/jobs"):
        answer = client.post(
            address,
            content=b'{"dataset": "demo", "by": ["sex"], "by": ["age"]}',
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code == 400, address
        assert "'by' is given twice" in answer.json()["detail"]


def test_too_many_requests_say_when_to_come_again(client: TestClient) -> None:
    app = create_app(client.app.state.questions.service, Settings(rate="2/minute"))  # type: ignore[attr-defined]
    limited = TestClient(app, base_url="http://lustrum.test")
    config = limited.get("/pxapi/v2/config").json()
    assert (config["maxCallsPerTimeWindow"], config["timeWindow"]) == (2, 60)
    codes = [limited.get(DATA) for _ in range(3)]
    assert [answer.status_code for answer in codes] == [200, 200, 429]
    assert int(codes[2].headers["Retry-After"]) > 0
    assert limited.get("/sdmx/v2/data/dataflow/LUSTRUM/demo/1.0.0/*?c[sex]=*").status_code == 429
    assert limited.get("/pxapi/v2/tables").status_code == 200


def test_parts_and_tags_as_of_every_answer(client: TestClient) -> None:
    address = f"{DATA}?valuecodes[sex]=*&outputFormat=parquet"
    whole = client.get(address)
    part = client.get(address, headers={"Range": "bytes=-8"})
    assert part.status_code == 206
    assert part.content == whole.content[-8:]
    assert client.get(address, headers={"If-None-Match": whole.headers["ETag"]}).status_code == 304


def test_sdmx_has_a_place_for_every_dimension(client: TestClient) -> None:
    structure = client.get("/sdmx/v2/structure/dataflow/LUSTRUM/survey/1.0.0?references=all").text
    key = "*._T._T._T.1+2+_T.mean$3A$hours"
    text = client.get(f"/sdmx/v2/data/dataflow/LUSTRUM/survey/1.0.0/{urllib.parse.quote(key)}").text
    head, *rows = csv.reader(io.StringIO(text))
    for name in head[3 : head.index("OBS_VALUE")]:
        assert f'<str:Dimension id="{name}"' in structure
    ours = client.get(
        "/api/v1/tables",
        params={
            "dataset": "survey", "by": ["district", "education"], "codes": "education:1,2", "totals": "on",
            "statistic": "mean:hours", "weight": "weight",
        },
    ).json()["table"]  # fmt: skip
    places = ours["size"][0] - 1, ours["size"][1]
    wanted = [v for i, v in enumerate(ours["value"]) if i < places[0] * places[1]]
    told = [row[head.index("OBS_VALUE")] for row in rows]
    assert [None if v == "NaN" else float(v) for v in told] == wanted


@given(
    st.integers(0, 40),
    st.integers(0, 40),
    st.sampled_from(CODES),
    st.sampled_from(CODES),
    st.sampled_from(CODES),
)
def test_expressions_select_what_a_loop_selects(
    count: int, skipped: int, first: str, last: str, one: str
) -> None:
    wanted = {
        f"TOP({count},{skipped})": [
            c for i, c in enumerate(CODES) if skipped <= i < skipped + count
        ],
        f"BOTTOM({count},{skipped})": [
            c for i, c in enumerate(reversed(CODES)) if skipped <= i < skipped + count
        ][::-1],
        f"range({first},{last})": [c for c in CODES if first <= c <= last],
        f"FROM({first})": [c for c in CODES if c >= first],
        f"TO({first})": [c for c in CODES if c <= first],
        f"*{one[1]}": [c for c in CODES if c.endswith(one[1])],
        f"{one[0]}?": [c for c in CODES if c[0] == one[0]],
        one: [one],
    }
    for text, codes in wanted.items():
        if codes:
            assert selected([text], CODES, "x") == codes
        else:
            with pytest.raises(QueryError, match="no category"):
                selected([text], CODES, "x")
    assert selected(["RANGE(a)", "a*"], ["RANGE(a)", "a*", "ab"], "x") == ["RANGE(a)", "a*"]
    assert listed_values(f"{one},TOP({count},{skipped}),[a,b]") == [
        one,
        f"TOP({count},{skipped})",
        "a,b",
    ]
