"""The pages hold what they promise as plain HTML, before any script runs."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient

from lustrum._version import __version__
from lustrum.answer import Snapshot, TableService
from lustrum.local import local_service
from lustrum.model import Dataset
from lustrum.policy import Policy
from lustrum.public.numbers import Described, KeyedNumbers
from lustrum.server import create_app
from lustrum.server.http import templating
from lustrum.server.http.languages import Language, languages
from lustrum.server.http.middleware import HEADERS

PAGES = [
    "/",
    "/datasets/demo",
    "/datasets/businesses",
    "/datasets/demo?by=age:ten-year&by=sex&where=region:1&totals=on",
    "/datasets/demo?by=area&codes=area:1-01-001..1-01-009&by=age&codes=age:1..3&among=age:1..4",
    "/datasets/demo?by=age&group=age:Young=1,2&by=sex",
    "/datasets/demo/about",
    "/datasets/demo/about?q=calder",
    "/datasets/demo/variables/age?level=life-stage",
    "/datasets/demo?by=sex&tree=where:area",
    "/datasets/demo?by=area&codes=area:1-01-001..1-01-009&tree=codes:area&find=calder",
    "/accessibility",
    "/datasets/demo/table?by=sex",
    "/datasets/demo/table?by=sex&totals=on",
    "/datasets/demo/table?by=age:ten-year&by=sex&where=region:1&totals=on",
    "/datasets/demo/table?by=age:life-stage&by=sex&by=employment&totals=on",
    "/datasets/demo/table?by=area&by=age",
    "/datasets/demo/table?by=sex&by=age&by=region&by=education",
    "/datasets/demo/table",
    "/datasets/demo/table?by=sexx",
    "/nothing",
]
ADDRESSES = ("href", "src", "action", "srcset", "poster", "data", "formaction")


class Page(HTMLParser):
    """The tags of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {k: v or "" for k, v in attrs}))

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.mark.parametrize("path", PAGES)
def test_no_page_asks_another_host_for_anything(client: TestClient, path: str) -> None:
    text = client.get(path).text
    for tag, attrs in Page(text).tags:
        for name in ADDRESSES:
            if name in attrs:
                parts = urlsplit(attrs[name])
                assert not parts.netloc, f"{tag} {name}={attrs[name]}"
                assert parts.scheme in ("", "data")
        assert not any(name.startswith("on") for name in attrs), "a script in an attribute"
        assert "style" not in attrs, "the content policy would drop it"
    assert "<script>" not in text


@pytest.mark.parametrize("path", PAGES)
def test_every_page_has_a_language_a_title_a_heading_and_a_way_past_the_head(
    client: TestClient, path: str
) -> None:
    page = Page(client.get(path).text)
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == 1
    assert len(page.all("title")) >= 1
    assert page.all("a")[0]["href"] == "#main"
    assert page.all("main")[0]["id"] == "main"
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in page.tags:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            assert all(target in ids for target in attrs.get(name, "").split())
    labelled = {attrs["for"] for attrs in page.all("label") if "for" in attrs}
    assert all(attrs["id"] in labelled for attrs in page.all("select"))


@pytest.mark.parametrize(
    "path", [*PAGES, "/api/v1/datasets", "/api/v1/tables", "/health", "/api/v1/openapi.json"]
)
def test_the_headers_are_strict_everywhere(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    for name, value in HEADERS.items():
        assert headers[name] == value
    kept = "private, no-cache" if "etag" in headers else "no-store"
    assert headers["cache-control"] == kept
    assert ("etag" in headers) == (path in ("/api/v1/datasets", "/api/v1/openapi.json"))
    for absent in ("server", "set-cookie", "last-modified", "x-powered-by"):
        assert absent not in headers


def test_files_that_do_not_change_may_be_kept(client: TestClient) -> None:
    style = next(a["href"] for a in Page(client.get("/").text).all("link") if "css" in a["href"])
    response = client.get(style)
    assert response.status_code == 200
    assert "max-age" in response.headers["cache-control"]


def test_the_first_page_is_light(client: TestClient) -> None:
    page = Page(client.get("/").text)
    files = [a["href"] for a in page.all("link")] + [a["src"] for a in page.all("script")]
    sizes = [len(client.get(path).content) for path in ("/", *files)]
    assert sum(sizes) < 100_000


def test_head_is_answered_like_get(client: TestClient) -> None:
    assert client.head("/datasets/demo").status_code == 200
    assert client.head("/api/v1/datasets").status_code == 200


def test_the_table_is_a_real_table(client: TestClient) -> None:
    query = "by=age:life-stage&by=sex&by=employment&totals=on"
    text = client.get(f"/datasets/demo/table?{query}").text
    page = Page(text)
    assert len(page.all("caption")) == 1
    scopes = [a["scope"] for a in page.all("th")]
    assert scopes.count("row") == 7
    assert scopes.count("colgroup") == 1 + 6
    assert len(page.all("td")) == 7 * 3 * 6
    region = next(a for a in page.all("div") if a.get("role") == "region")
    assert region["tabindex"] == "0"
    assert region["aria-labelledby"] == "caption"


def test_the_page_shows_what_the_api_says(client: TestClient) -> None:
    query = "by=age:ten-year&by=sex&where=region:1&totals=on"
    body = client.get(f"/api/v1/tables?dataset=demo&{query}").json()
    text = client.get(f"/datasets/demo/table?{query}").text
    shown = [f"{v:,}" for v in body["table"]["value"]]
    positions = []
    at = text.index("<tbody>")
    for value in shown:
        at = text.index(f">{value}</td>", at) + 1
        positions.append(at)
    assert positions == sorted(positions)
    for note in body["notes"]:
        assert note in text
    assert "Age (ten-year bands) by sex" in text
    assert "people whose region is Upper Merrow" in text
    assert "curl &#39;http://lustrum.test/api/v1/tables?dataset=demo&amp;by=age:ten-year" in text


def test_no_share_or_mean_is_shown(client: TestClient) -> None:
    text = client.get("/datasets/demo/table?by=age:ten-year&by=sex&totals=on").text
    assert "%" not in text


def test_a_refusal_offers_questions_that_pass(client: TestClient) -> None:
    text = client.get("/datasets/demo/table?by=area&by=age").text
    assert "This table cannot be shown" in text
    assert "tried under the same rules and can be shown" in text
    page = Page(text)
    links = [a["href"] for a in page.all("a") if "button" in a.get("class", "")]
    assert "/datasets/demo/table?by=area:district&by=age" in links
    assert "/datasets/demo?by=area&by=age" in links
    answers = [client.get(link).text for link in links if "/table" in link]
    assert answers
    assert all("<table" in answer for answer in answers)


def test_overlapping_levels_are_refused_with_the_published_ones_beside(client: TestClient) -> None:
    text = client.get("/datasets/demo/table?by=age:labour-market").text
    links = [a["href"] for a in Page(text).all("a")]
    assert "/datasets/demo/table?by=age:life-stage" in links
    assert "/datasets/demo/table?by=age" in links


def test_a_mistake_leads_back_to_the_form(client: TestClient) -> None:
    page = Page(client.get("/datasets/demo/table?by=sexx").text)
    assert "/datasets/demo" in [a["href"] for a in page.all("a")]


def test_blocks_below_the_first_are_announced(client: TestClient) -> None:
    text = client.get("/datasets/demo/table?by=sex&by=age&by=region&totals=on").text
    assert "3 blocks of rows, one below the other, by region." in text


def test_a_sum_is_refused_with_the_count_beside(client: TestClient) -> None:
    text = client.get("/datasets/businesses/table?by=size&measure=turnover").text
    assert "/datasets/businesses/table?by=size" in [a["href"] for a in Page(text).all("a")]


def test_what_a_visitor_types_is_never_markup(client: TestClient) -> None:
    nasty = "<script>alert(1)</script>"
    for path, params in [
        ("/", {"q": nasty}),
        ("/datasets/demo/table", {"by": nasty}),
        (f"/datasets/{nasty}", {}),
    ]:
        assert "<script>alert" not in client.get(path, params=params).text


class Many(TableService):
    """A service with more datasets than fit at a glance."""

    def names(self) -> list[str]:
        return [f"d{i}" for i in range(9)]

    def snapshot(self, name: str) -> Snapshot:
        raw = {"dataset": {"name": name, "title": f"Survey {name[1:]}"}}
        variable = {"name": "v", "codes": ["1", "2"]}
        dataset = Dataset.from_mapping(raw | {"variables": [variable]})
        policy = Policy()
        return Snapshot(KeyedNumbers(self._records, policy, Described("1", dataset)), policy)


def test_a_long_catalogue_can_be_searched(tmp_path: Path) -> None:
    many = TestClient(create_app(Many(tmp_path)))
    assert 'type="search"' in many.get("/").text
    found = many.get("/?q=survey 7").text
    assert "Survey 7" in found
    assert "Survey 3" not in found
    assert "No dataset matches" in many.get("/?q=nothing").text


def test_the_catalogue_is_searched_by_its_variables_too(client: TestClient) -> None:
    assert 'type="search"' in client.get("/").text
    found = client.get("/?q=household SIZE").text
    assert "1 dataset matches" in found
    assert "Demo census" in found
    assert "Demo business register" not in found
    for word, title in {"foreign": "Demo census", "turnover": "Demo business register"}.items():
        assert title in client.get(f"/?q={word}").text, word
    assert "Demo census" in client.get("/?q=merrow").text


def test_a_dataset_explains_its_variables_and_its_rules(client: TestClient) -> None:
    text = client.get("/datasets/demo/about").text
    assert "Age in completed years on census day" in text
    assert "At least 5 people in a cell, on average." in text
    assert "Labour market ages" in text
    assert "compared to single people out" in text
    found = client.get("/datasets/demo/about?q=calder docks").text
    assert "1 variable matches" in found
    assert "Household size" not in found


def test_a_variable_explains_its_levels_and_categories(client: TestClient) -> None:
    text = client.get("/datasets/demo/variables/age?level=life-stage").text
    assert "Life stage" in text
    assert "0 to 4, 5 to 9" in text
    assert "not offered" in text
    found = client.get("/datasets/demo/variables/area?q=calder").text
    assert "Calder Docks" in found
    assert "Merrow Old Town" not in found
    assert client.get("/datasets/demo/variables/nothing").status_code == 404
    assert client.get("/datasets/demo/variables/age?level=nothing").status_code == 400
    assert client.get("/datasets/demo/variables/age?wrong=1").status_code == 400


def test_the_foot_tells_the_version_and_leads_to_the_accessibility_statement(
    client: TestClient,
) -> None:
    text = client.get("/").text
    assert f"Lustrum {__version__}" in text
    assert "/accessibility" in [a["href"] for a in Page(text).all("a")]
    assert "WCAG 2.2" in client.get("/accessibility").text


def test_every_page_leads_to_itself_in_the_other_languages(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = {"en": languages()["en"], "fr": Language("fr")}
    monkeypatch.setattr(templating, "languages", lambda: both)
    page = Page(client.get("/datasets/demo?by=age:ten-year&by=sex").text)
    there = "/fr/datasets/demo?by=age:ten-year&by=sex"
    assert there in [a["href"] for a in page.all("a") if a.get("hreflang") == "fr"]
    assert there in [a["href"] for a in page.all("link") if a.get("rel") == "alternate"]
    assert next(a for a in page.all("a") if a.get("hreflang") == "en")["aria-current"] == "true"
    refused = Page(client.get("/datasets/demo/table?by=area&by=age").text)
    assert "/fr/datasets/demo/table?by=area&by=age" in [a["href"] for a in refused.all("a")]


def test_an_empty_house_says_so(tmp_path: Path) -> None:
    empty = TestClient(create_app(local_service(tmp_path)))
    assert "There is no dataset to ask about yet." in empty.get("/").text
    assert empty.get("/datasets/demo").status_code == 404
