"""Names that the server answers to, and requests that pages of other sites make a browser send."""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from lustrum.answer import TableService
from lustrum.demo.draws import SHIPPED
from lustrum.model import InputError
from lustrum.server import Settings, create_app
from lustrum.server.http.middleware import asker_of


@cache
def client(service: TableService, hosts: str = "") -> TestClient:
    app = create_app(service, Settings(rate="", allowed_host=hosts))
    return TestClient(app, base_url="http://127.0.0.1:8000", follow_redirects=False)


@pytest.mark.parametrize(
    ("hosts", "good", "bad"),
    [
        (
            "",
            [
                "127.0.0.1:8000", "localhost", "[::1]:80", "10.1.2.3", "stats", "a.test",
                "x.localhost:9",
            ],
            [
                "evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
                "a.test.example", "2130706433", "2130706433:8000", "0x7f000001", "127.1",
                "017700000001", "evil@localhost",
            ],
        ),
        (
            "tables.example.org,.stat.example",
            [
                "tables.example.org", "TABLES.example.org:443", "tables.example.org.",
                "a.stat.example",
            ],
            ["evil.example", "stat.example", "xstat.example", "10.1.2.3", "stats", "a.test"],
        ),
        ("*", ["evil.example"], ["evil.example/x", "a b", "a@b", "[::1", "x:y", ""]),
    ],
)  # fmt: skip
def test_only_names_of_its_own_are_answered(
    service: TableService, hosts: str, good: list[str], bad: list[str]
) -> None:
    asked = client(service, hosts)
    for name in good:
        assert asked.get("/api/v1/datasets", headers={"Host": name}).status_code == 200, name
    for name in bad:
        for path in ("/api/v1/datasets", "/", "/api/v1/tables?dataset=demo&by=sex"):
            response = asked.get(path, headers={"Host": name})
            assert response.status_code == 421, (name, path)
            assert "does not answer to that name" in response.text
            assert "evil" not in response.text
            assert "location" not in response.headers
        assert asked.get("/health", headers={"Host": name}).status_code == 200


def test_loopback_is_answered_beside_a_list(service: TableService) -> None:
    asked = client(service, "tables.example.org")
    for name in ("127.0.0.1:8000", "localhost:8000", "[::1]:8000"):
        assert asked.get("/api/v1/datasets", headers={"Host": name}).status_code == 200


@pytest.mark.parametrize("name", ["http://a.example", "a.example:80", "a_b/", "a..b", "-"])
def test_a_name_that_is_none_is_one_sentence(name: str) -> None:
    with pytest.raises(InputError, match="An allowed host is a name such as"):
        Settings(allowed_host=name)


QUESTION = {"dataset": "demo", "by": ["sex"]}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8000"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://127.0.0.1:8000"},
        {"Origin": "http://tables.test", "Host": "tables.test:80"},
        {"Origin": "https://tables.test:443", "Host": "tables.test"},
    ],
)
def test_programs_and_its_own_pages_may_post(
    service: TableService, headers: dict[str, str]
) -> None:
    response = client(service).post("/api/v1/tables", json=QUESTION, headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:8000"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:8001"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://[evil"},
        {"Origin": "file://127.0.0.1:8000"},
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/tables"),
        ("POST", "/api/v1/jobs"),
        ("DELETE", "/api/v1/jobs/x"),
        ("POST", "/jobs/x/cancel"),
        ("POST", "/fr/jobs/x/cancel"),
    ],
)
def test_pages_of_other_sites_may_not(
    service: TableService, method: str, path: str, headers: dict[str, str]
) -> None:
    response = client(service).request(method, path, json=QUESTION, headers=headers)
    assert response.status_code == 403
    assert "set-cookie" not in response.headers
    assert "access-control-allow-origin" not in response.headers


def test_links_from_other_sites_may_lead_here(service: TableService) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client(service).get("/datasets/demo/table?by=sex", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("address", "asker"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::"),
        ("2001:db8:0:1::1", "2001:db8:0:1::"),
        ("::1", "::1"),
        ("testclient", "testclient"),
    ],
)
def test_one_customer_is_one_asker(address: str, asker: str) -> None:
    assert asker_of({"client": (address, 1)}) == asker
    assert asker_of({}) == "unknown"


API = "/api/v1/tables?dataset=demo&by=sex&format=csv"


@cache
def of_bundle(bundle: Path) -> TableService:
    return TableService(bundles=[bundle], workers=1)


@cache
def open_client(bundle: Path, other_sites: str = "bundles") -> TestClient:
    return TestClient(
        create_app(of_bundle(bundle), Settings(rate="", other_sites=other_sites)),
        base_url="http://127.0.0.1:8000",
    )


@pytest.mark.parametrize("path", [API, "/api/v1/datasets", "/api/v1/datasets/none", "/"])
def test_pages_of_other_sites_read_nothing_where_the_agency_says_so(
    bundle: Path, path: str
) -> None:
    asked = open_client(bundle, "none")
    headers = asked.get(path, headers={"Origin": "https://a.example"}).headers
    assert not [name for name in headers if name.startswith("access-control")]
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_pages_of_other_sites_read_the_api_alone_and_without_credentials(bundle: Path) -> None:
    client = open_client(bundle)
    elsewhere = {"Origin": "https://a.example", "Sec-Fetch-Site": "cross-site"}
    # Twice: the second answer is a remembered one. Refusals and mistakes can be read as well.
    paths = (API, API, "/api/v1/datasets", "/api/v1/datasets/none", "/api/v1/tables?by=agge")
    for path in (*paths, f"/fr{API}", "/de/pxapi/v2/config"):
        answer = client.get(path, headers=elsewhere)
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in answer.headers
        assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    pages = ("/", "/datasets/demo", "/datasets/demo/table?by=sex", "/static/base.css")
    for path in (*pages, "/fr/datasets/demo", "/fr/fr/api/v1/datasets"):
        headers = client.get(path, headers=elsewhere).headers
        assert "access-control-allow-origin" not in headers
        assert headers["cross-origin-resource-policy"] == "same-origin"
    query = {"dataset": "demo", "by": ["sex"]}
    asked = client.post("/api/v1/tables", json=query, headers=elsewhere)
    assert asked.status_code == 403
    assert "access-control-allow-origin" not in asked.headers
    wanted = {**elsewhere, "Access-Control-Request-Method": "POST"}
    preflight = client.options("/api/v1/tables", headers=wanted)
    assert preflight.status_code >= 400
    assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_records_are_read_by_pages_of_other_sites_only_where_the_agency_says_all(
    service: TableService,
) -> None:
    for other_sites in ("bundles", "all"):
        app = create_app(service, Settings(rate="", other_sites=other_sites))
        answer = TestClient(app, base_url="http://127.0.0.1:8000").get(
            "/api/v1/datasets", headers={"Origin": "https://a.example"}
        )
        read = answer.headers.get("access-control-allow-origin")
        assert read == (None if other_sites == "bundles" else "*")


DEMO = SHIPPED / "demo"
TABLE = "http://127.0.0.1:8000/datasets/demo/table?by=age&by=sex&as=chart"
MANY = [
    "http://evil.example/datasets/demo",
    "https://127.0.0.1:8000/datasets/demo",
    "",
    "//127.0.0.1:8000/",
]


def test_a_table_is_shown_elsewhere_by_its_address_alone() -> None:
    asked = open_client(DEMO)
    page = asked.get(TABLE).text
    found = re.search(r'type="application/json\+oembed" href="([^"]+)"', page)
    assert found is not None
    told = asked.get(html.unescape(found[1]) + "&maxheight=300").json()
    assert (told["version"], told["type"], told["height"]) == ("1.0", "rich", 300)
    assert told["title"] == "Age by sex, all people"
    inside = re.search(r'<iframe src="([^"]+)"', told["html"])
    assert inside is not None
    card = asked.get(html.unescape(inside[1]))
    assert card.status_code == 200
    assert "frame-ancestors *;" in card.headers["content-security-policy"]
    assert "set-cookie" not in card.headers
    assert "<form" not in card.text
    for said in ("<svg", "Age by sex, all people", "version", "asked for on", "Protected. "):
        assert said in card.text
    german = asked.get("/oembed", params={"url": TABLE.replace("/datasets", "/de/datasets")}).json()
    assert "/de/datasets/demo/embed?" in german["html"]


@pytest.mark.parametrize(
    "url", [*MANY, TABLE.replace("demo", "none"), TABLE.replace("/table", "/about")]
)
def test_addresses_of_other_servers_and_pages_are_shown_nowhere(url: str) -> None:
    answer = open_client(DEMO).get("/oembed", params={"url": url})
    assert answer.status_code == 404
    assert "<iframe" not in answer.text


def test_no_label_of_a_question_gets_out_of_the_frame() -> None:
    label = quote('"><script>alert(1)</script>=1,2', safe="")
    told = open_client(DEMO).get("/oembed", params={"url": f"{TABLE}&group=age:{label}"}).json()
    assert told["html"].count("<") == 2
    assert "script" in html.unescape(told["html"])


def test_no_frame_is_shown_where_the_agency_says_none() -> None:
    asked = open_client(DEMO, "none")
    page = asked.get(TABLE)
    assert "oembed" not in page.text
    assert "iframe" not in page.text
    assert asked.get("/datasets/demo/embed?by=sex").status_code == 404
    assert asked.get("/oembed", params={"url": TABLE}).status_code == 404
