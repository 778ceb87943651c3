"""Whatever goes wrong, on whatever route, the answer has one shape and gives nothing away."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from lustrum.answer import Snapshot, TableService
from lustrum.local import local_service
from lustrum.model import Decision, TableQuery
from lustrum.server import create_app
from lustrum.server.http.languages import MOST_PATH, MOST_QUERY
from lustrum.server.http.middleware import MAX_BODY
from lustrum.server.service.answers import MOST_NAMES


def _json(text: str) -> dict[str, Any]:
    return {"content": text, "headers": {"Content-Type": "application/json"}}


TABLES = "/api/v1/tables"
BAD = [
    ("GET", "/api/v1/nothing", {}, 404),
    ("GET", "/api/nothing", {}, 404),
    ("GET", "/api/v1/datasets/nothing", {}, 404),
    ("GET", "/api/v1/datasets/..%2f..%2fetc", {}, 404),
    ("GET", "/health/more", {}, 404),
    ("PUT", TABLES, {}, 405),
    ("DELETE", "/api/v1/datasets", {}, 405),
    ("POST", "/health", {}, 405),
    ("GET", TABLES, {}, 400),
    ("GET", f"{TABLES}?dataset=nothing&by=sex", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&dataset=demo&by=sex", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&by=sexx", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&by=sex&by=sex", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&by=age:weekly", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&by=:x", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&by=sex&where=region", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&by=sex&where=region:99", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&by=sex&totals=maybe", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&by=sex&totals=on&totals=on", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&by=sex&colour=red", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&by=sex&format=docx", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&by=sex&format=csv&format=csv", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&query=%7B", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&query=7", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&query=%7B%7D&by=sex", {}, 400),
    ("GET", f"{TABLES}?dataset=demo&by=area&by=age&format=csv", {}, 406),
    ("GET", f"{TABLES}?dataset=demo&by={'x' * MOST_QUERY}", {}, 414),
    ("POST", TABLES, {"json": {"dataset": "demo", "by": ["sexx"]}}, 400),
    ("POST", TABLES, {"json": {"dataset": "demo", "by": "sex"}}, 400),
    ("POST", TABLES, {"json": {"dataset": "demo", "by": [7]}}, 400),
    ("POST", TABLES, {"json": {"dataset": "demo", "by": [], "where": 3}}, 400),
    ("POST", TABLES, {"json": {"dataset": "demo", "by": ["sex"], "bye": 1}}, 400),
    ("POST", TABLES, {"json": {"dataset": "demo", "by": [str(i) for i in range(999)]}}, 400),
    ("POST", TABLES, {"json": {"by": ["sex"]}}, 400),
    ("POST", TABLES, {"json": ["sex"]}, 400),
    ("POST", TABLES, {"json": None}, 422),
    ("POST", TABLES, {}, 422),
    ("POST", TABLES, _json('{"dataset": "demo", "by": ["sex"], "by": ["age"]}'), 400),
    (
        "POST",
        TABLES,
        _json('{"dataset": "demo", "by": ["sex"], "where": {"age": 1, "age": 2}}'),
        400,
    ),
    ("GET", f"{TABLES}?dataset=demo&query=%7B%22by%22%3A%5B%5D%2C%22by%22%3A%5B%5D%7D", {}, 400),
    ("GET", f"/api/v1/{'x' * MOST_PATH}", {}, 414),
    ("POST", TABLES, {"content": b"{", "headers": {"Content-Type": "application/json"}}, 422),
    ("POST", TABLES, {"content": b"\xff", "headers": {"Content-Type": "application/json"}}, 400),
    (
        "POST",
        TABLES,
        {"content": b"[" * 60_000, "headers": {"Content-Type": "application/json"}},
        400,
    ),
    ("POST", TABLES, {"content": b"by=sex", "headers": {"Content-Type": "text/plain"}}, 415),
    ("POST", TABLES, {"content": b" " * (MAX_BODY + 1)}, 413),
]
BAD_PAGES = [
    ("/nothing", 404),
    ("/datasets", 404),
    ("/datasets/nothing", 404),
    ("/datasets/nothing/table", 404),
    ("/static/nothing.css", 404),
    ("/?colour=red", 400),
    ("/datasets/demo?colour=red", 400),
    ("/datasets/demo/table?by=sexx", 400),
    ("/datasets/demo/table?by=sex&where=region:99", 400),
    ("/datasets/demo/table?by=sex&format=csv", 400),
    ("/datasets/demo/table?query=%7B%22dataset%22%3A%22businesses%22%7D", 400),
    (f"/?q={'x' * MOST_QUERY}", 414),
    (f"/{'x' * MOST_PATH}", 414),
]


@pytest.mark.parametrize(("method", "path", "send", "status"), BAD)
def test_every_mistake_gets_a_problem_of_the_same_shape(
    client: TestClient, method: str, path: str, send: dict[str, Any], status: int
) -> None:
    response = client.request(method, path, **send)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert list(body)[:5] == ["type", "title", "status", "detail", "instance"]
    assert body["type"].startswith("urn:lustrum:problem:")
    assert body["status"] == status
    assert body["detail"].endswith(".")
    assert body["instance"].startswith("/")


class Words(HTMLParser):
    """The text of the main part of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = False
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = self.inside or tag == "main"

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != "main"

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.text += data


@pytest.mark.parametrize(("path", "status"), BAD_PAGES)
def test_a_person_gets_the_same_as_a_page(client: TestClient, path: str, status: int) -> None:
    response = client.get(path)
    assert response.status_code == status
    assert response.headers["content-type"].startswith("text/html")
    words = Words()
    words.feed(response.text)
    assert str(status) in words.text


def test_a_page_and_the_api_say_the_same_sentence(client: TestClient) -> None:
    words = Words()
    words.feed(client.get("/datasets/demo/table?by=sexx").text)
    detail = client.get(f"{TABLES}?dataset=demo&by=sexx").json()["detail"]
    assert "did you mean 'sex'?" in detail
    assert detail in words.text


def test_what_a_method_not_allowed_allows_is_said(client: TestClient) -> None:
    assert "GET" in client.delete("/api/v1/datasets").headers["allow"]


def test_a_body_that_lies_about_its_length_is_still_measured(client: TestClient) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(80):
            yield b" " * 1024

    response = client.post(TABLES, content=pieces())
    assert response.status_code == 413


def test_many_names_are_turned_away_before_they_are_compared(client: TestClient) -> None:
    names = {f"v{i}": ["1"] for i in range(MOST_NAMES + 1)}
    response = client.post(TABLES, json={"dataset": "demo", "by": ["sex"], "where": names})
    assert response.status_code == 400


SECRET = "the true count is 4711"


class Broken(Snapshot):
    """A snapshot with a bug whose message holds a count."""

    def answer(self, query: TableQuery) -> Decision:
        try:
            raise KeyError(SECRET)
        except KeyError as inner:
            raise RuntimeError(SECRET) from inner


class Failing(TableService):
    """A service with that bug."""

    def snapshot(self, name: str) -> Snapshot:
        found = super().snapshot(name)
        return Broken(found.numbers, found.policy)


@pytest.mark.parametrize("path", [f"{TABLES}?dataset=demo&by=sex", "/datasets/demo/table?by=sex"])
def test_a_bug_shows_no_exception_text_and_logs_only_its_place(
    root: Path, path: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    client = TestClient(create_app(Failing(root)))
    with caplog.at_level(logging.DEBUG):
        response = client.get(path)
    assert response.status_code == 500
    assert "4711" not in response.text
    assert "RuntimeError" not in response.text
    logged = caplog.text + "".join(capfd.readouterr())
    assert "4711" not in logged
    assert "RuntimeError at " in logged
    assert "; after KeyError at " in logged
    assert "test_problems.py:" in logged
    if path.startswith("/api"):
        body = response.json()
        assert body["status"] == 500
        assert body["incident"] in logged


def test_two_incidents_have_different_numbers(root: Path) -> None:
    client = TestClient(create_app(Failing(root)))
    numbers = {client.get(f"{TABLES}?dataset=demo&by=sex").json()["incident"] for _ in range(2)}
    assert len(numbers) == 2


def test_a_failing_warm_up_does_not_keep_the_server_from_starting(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with TestClient(create_app(Failing(root))) as client:
        assert client.get("/health").json() == {"status": "ok"}
    assert "warm-up failed: RuntimeError" in caplog.text
    assert "4711" not in caplog.text


@pytest.fixture
def own_root(root: Path, tmp_path: Path) -> Path:
    """A folder with the same data whose policies a test may change."""
    own = tmp_path / "data"
    own.mkdir()
    for entry in root.iterdir():
        if entry.name != "policies":
            (own / entry.name).symlink_to(entry)
    (own / "policies").mkdir()
    for policy in (root / "policies").iterdir():
        (own / "policies" / policy.name).write_bytes(policy.read_bytes())
    return own


@pytest.mark.parametrize("path", [f"{TABLES}?dataset=demo&by=sex", "/datasets/demo"])
def test_a_broken_policy_is_nothing_the_asker_hears_about(own_root: Path, path: str) -> None:
    (own_root / "policies" / "demo.toml").write_text("colour = 'red'\n")
    client = TestClient(create_app(local_service(own_root)))
    response = client.get(path)
    assert response.status_code == 503
    assert "colour" not in response.text
    assert str(own_root) not in response.text
    assert [d["name"] for d in client.get("/api/v1/datasets").json()["datasets"]] == ["businesses"]


def test_a_dataset_without_a_policy_looks_like_none(own_root: Path) -> None:
    (own_root / "policies" / "demo.toml").unlink()
    client = TestClient(create_app(local_service(own_root)))
    assert client.get("/api/v1/datasets/demo").status_code == 404
    response = client.post(TABLES, json={"dataset": "demo", "by": ["sex"]})
    assert response.status_code == 400
    assert str(own_root) not in response.text


def test_a_saved_link_is_decided_by_the_policy_of_the_day(own_root: Path) -> None:
    client = TestClient(create_app(local_service(own_root)))
    link = f"{TABLES}?dataset=demo&by=age&by=sex"
    assert client.get(link).json()["decision"] == "answer"
    path = own_root / "policies" / "demo.toml"
    path.write_text(path.read_text().replace("max_dimensions = 3", "max_dimensions = 1"))
    assert client.get(link).json()["decision"] == "refusal"


def test_a_name_that_stands_twice_in_a_question_is_named(client: TestClient) -> None:
    """Of two values one would be left out, and a table of other people would be answered."""
    text = '{"dataset": "demo", "by": ["sex"], "where": {"region": ["1"], "region": ["2"]}}'
    for answer in (
        client.post(TABLES, **_json(text)),
        client.get(TABLES, params={"dataset": "demo", "query": text}),
    ):
        assert answer.json()["detail"] == "The name 'region' is given twice; give it once."


@pytest.mark.parametrize("path", ["/", "/fr/", "/api/v1/", "/api/v1/tables/"])
def test_an_address_that_is_too_long_is_not_repeated(client: TestClient, path: str) -> None:
    answer = client.get(path + "x" * 60_000)
    assert answer.status_code == 414
    assert "xxx" not in answer.text
    assert client.get(path + "x" * (MOST_PATH - 40)).status_code == 404
