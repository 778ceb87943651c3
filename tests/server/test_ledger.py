"""A server under `[ledger]`: nothing leaves that is not in the book, on no way out of the house."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from tests.server.conftest import KEYED
from typer.testing import CliRunner

from lustrum.answer import TableService, ledger_audit
from lustrum.cli import app as command_line
from lustrum.demo import description_path, people
from lustrum.ledger.acts import account, record_act
from lustrum.ledger.releases import Recorded, ReleaseBook
from lustrum.local import local_service
from lustrum.model import Axis, DatasetError, TableQuery
from lustrum.public.numbers import KeyedNumbers
from lustrum.server import create_app
from lustrum.server.settings import Settings
from lustrum.tabulate import FrameSource, Store, ingest, read_description
from waiting import until

POLICY = KEYED.replace("min_population = 1000", "min_population = 0").replace(
    "end = true", "[ledger]\nlimit = {limit}\n\nend = true"
)
SEX, AGE = {"dataset": "demo", "by": ["sex"]}, {"dataset": "demo", "by": ["age"]}


@pytest.fixture
def root(small_root: Path, tmp_path: Path) -> Path:
    own = Path(shutil.copytree(small_root, tmp_path / "data"))
    (own / "policies" / "demo.toml").write_text(POLICY.format(limit=0.1))
    return own


@pytest.fixture
def service(root: Path) -> Iterator[TableService]:
    service = local_service(root, workers=1)
    yield service
    service.close()


@pytest.fixture
def client(service: TableService) -> Iterator[TestClient]:
    with TestClient(
        create_app(service, Settings(rate="", background_cells=100)), base_url="http://lustrum.test"
    ) as client:
        yield client


def lines(root: Path) -> list[Recorded]:
    return list(ReleaseBook(root).entries()) if ReleaseBook.exists(root) else []


def answered(client: TestClient, query: dict[str, Any]) -> httpx.Response:
    return client.post("/api/v1/tables", json=query)


def test_each_way_out_is_recorded_once(client: TestClient, root: Path) -> None:
    first = answered(client, SEX)
    assert first.json()["decision"] == "answer"
    assert [entry.said["question"] for entry in lines(root)] == [
        json.dumps({"by": ["sex"], "dataset": "demo"})
    ]
    # The same table in other forms is one release.
    for address in (
        "/api/v1/tables?dataset=demo&by=sex&format=csv",
        "/datasets/demo/table?by=sex",
        "/datasets/demo/table?by=sex&chart=bars",
        "/pxapi/v2/tables/demo/data?valueCodes[sex]=*",
        "/sdmx/v2/data/dataflow/LUSTRUM/demo/1.0/*",
    ):
        assert client.get(address).status_code < 500
    assert len({entry.said["question"] for entry in lines(root)}) <= 3
    again = answered(client, SEX)
    assert again.content == first.content


def test_hints_and_suggestions_look_at_no_number(
    client: TestClient, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(client, SEX)

    def looked(*_: object) -> Any:
        raise AssertionError("a number was looked at")

    monkeypatch.setattr(KeyedNumbers, "views", looked)
    for by in ("sex", "area", "area&by=age&by=education"):
        assert client.get(f"/api/v1/hints?dataset=demo&by={by}").status_code == 200
        assert client.get(f"/datasets/demo?by={by}").status_code == 200
    assert len(lines(root)) == 1


def test_a_refused_table_offers_others_without_looking_at_their_numbers(
    client: TestClient, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether another table passes the rules about numbers would be an answer that stands in no book."""
    text = POLICY.format(limit=10).replace(
        "min_mean_cell_size = 5.0", "min_mean_cell_size = 2000.0"
    )
    (root / "policies" / "demo.toml").write_text(text)
    looked: list[TableQuery] = []
    views = KeyedNumbers.views

    def seen(numbers: KeyedNumbers, query: TableQuery) -> Any:
        looked.append(query)
        return views(numbers, query)

    monkeypatch.setattr(KeyedNumbers, "views", seen)
    page = client.get("/datasets/demo/table?by=household_size&by=sex")
    assert "would hold fewer than" in page.text
    asked = {query.by for query in looked if not query.by[0].total}  # the others warm up
    assert asked == {(Axis("household_size"), Axis("sex"))}


def test_a_refusal_shows_no_number_and_says_why(client: TestClient, root: Path) -> None:
    (root / "policies" / "demo.toml").write_text(POLICY.format(limit=1e-6))
    answered(client, SEX)
    refused = answered(client, {"dataset": "demo", "by": ["sex", "household_size"]}).json()
    assert refused["decision"] == "refusal"
    assert refused["table"] is None
    assert [reason["rule"] for reason in refused["reasons"]] == ["ledger"]
    assert [step["outcome"] for step in refused["trace"]][-1] == "refused"
    assert len(lines(root)) == 1
    page = client.get("/datasets/demo/table?by=sex&by=household_size")
    assert "already answered" in page.text


def test_a_job_looks_at_no_number_until_it_is_fetched_and_recorded(
    client: TestClient, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How far it came, and how long that took, would tell whether unrecorded numbers keep the rules."""
    looked: list[TableQuery] = []
    views = KeyedNumbers.views

    def seen(numbers: KeyedNumbers, query: TableQuery) -> Any:
        looked.append(query)
        return views(numbers, query)

    monkeypatch.setattr(KeyedNumbers, "views", seen)
    job = client.post("/api/v1/jobs", json=AGE).json()
    until(lambda: client.get(f"/api/v1/jobs/{job['id']}").json()["state"] == "done")
    assert not lines(root)
    assert (Axis("age"),) not in {query.by for query in looked}
    assert client.get(f"/api/v1/jobs/{job['id']}").json()["step"] == ""
    result = client.get(f"/api/v1/jobs/{job['id']}/result").json()
    assert result["decision"] == "answer"
    [entry] = lines(root)
    assert json.loads(str(entry.said["question"])) == {"by": ["age"], "dataset": "demo"}


def test_nothing_leaves_while_the_book_does_not_answer(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise DatasetError("The book does not answer.")

    monkeypatch.setattr(ReleaseBook, "enter", broken)
    response = answered(client, SEX)
    assert response.status_code == 503
    assert "table" not in response.json()


def test_the_commands_read_check_and_replay_the_book(
    client: TestClient, root: Path, tmp_path: Path
) -> None:
    run = CliRunner()

    def said(*words: str, code: int = 0) -> str:
        result = run.invoke(command_line, ["ledger", *words, "--data", str(root)])
        assert result.exit_code == code, result.output
        return result.output

    answered(client, SEX)
    answered(client, AGE)
    head = said("verify").splitlines()[-1]
    assert head.startswith("2:")
    assert '"by": ["age"]' in said("list", "--dataset", "demo")
    assert said("list", "--reader", "nobody") == ""
    shown = json.loads(said("show", "2"))
    assert json.loads(shown["decision_content"]["decision"])["verdict"] == "answer"
    assert said("replay") == "     1 the same bytes\n     2 the same bytes\n"
    target = tmp_path / "book.jsonl"
    said("export", str(target))
    assert [json.loads(line)["number"] for line in target.read_text().splitlines()] == [1, 2]
    said("verify", "--head", head)
    policy = root / "policies" / "demo.toml"
    policy.write_text(policy.read_text().replace("base = 3", "base = 5"))
    assert "the same bytes" in said("replay", "1")
    # Other records: replay says which version is missing.
    version = (root / "demo" / "current").read_text().strip()
    description = read_description(description_path("demo"))
    ingest(FrameSource(people(1000, 5)), description, Store(root))
    assert version in said("replay", "1", code=3)


def test_what_the_agency_looks_at_is_entered_and_counts_for_nobody(
    client: TestClient, root: Path
) -> None:
    run = CliRunner()
    looked = ["table", "--dataset", "demo", "--by", "sex", "--data", str(root)]
    result = run.invoke(command_line, looked)
    assert result.exit_code == 0, result.output
    # Readers do not hold it: the same question of theirs is a line of its own.
    answered(client, SEX)
    assert [(e.said["kind"], e.audience) for e in lines(root)] == [
        ("look", "staff"),
        ("answer", "public"),
    ]
    assert len({e.said["decision"] for e in lines(root)}) == 1
    again = run.invoke(command_line, ["ledger", "replay", "--data", str(root)])
    assert again.output.count("the same bytes") == 2
    # Under a policy without a ledger, or from a bundle, nothing is entered.
    policy = root / "policies" / "demo.toml"
    policy.write_text(KEYED)
    assert run.invoke(command_line, looked).exit_code == 0
    assert len(lines(root)) == 2


def test_staff_hear_of_what_follows_from_all_that_was_answered(
    client: TestClient,
    root: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit that is far too high lets small counts become certain; the audit says so, and decides nothing."""
    monkeypatch.setattr(ledger_audit, "_EVERY", 1)
    text = POLICY.format(limit=10).replace("min_mean_cell_size = 5.0", "min_mean_cell_size = 0.0")
    text = text.replace("max_small_share = 0.2", "max_small_share = 1.0").replace(
        "limit = 0.3", "limit = 1.0"
    )
    (root / "policies" / "demo.toml").write_text(text)
    for by in (
        ["sex"],
        ["citizenship"],
        ["household_size"],
        ["citizenship", "sex"],
        ["citizenship", "household_size"],
    ):
        answered(client, {"dataset": "demo", "by": by, "totals": True})
    result = CliRunner().invoke(command_line, ["ledger", "audit", "--data", str(root)])
    assert result.exit_code in (0, 3), result.output
    assert "demo, everybody: 5 answers" in result.output
    certain = int(result.output.split(" found.")[0].rsplit(" ", 1)[-1])
    assert (certain > 0) is (result.exit_code == 3)
    assert "Citizenship" in result.output
    told = "follow with certainty"
    if certain:
        until(lambda: any(told in record.getMessage() for record in caplog.records))


def test_what_is_protected_and_released_stands_in_the_book_without_a_name(tmp_path: Path) -> None:
    record_act(tmp_path, "import", "demo")
    assert not ReleaseBook.exists(tmp_path)
    record_act(tmp_path, "protect", "demo", "0" * 64)
    [entry] = ReleaseBook(tmp_path).entries()
    assert entry.said["act"] == "protect"
    assert entry.said["decision"] == "0" * 64
    assert account() not in entry.said.values()


def test_a_backup_holds_the_book_while_it_is_written(
    client: TestClient, root: Path, tmp_path: Path
) -> None:
    answered(client, SEX)
    head = ReleaseBook(root).verify()
    result = CliRunner().invoke(
        command_line, ["backup", str(tmp_path / "copy"), "--data", str(root)]
    )
    assert result.exit_code == 0, result.output
    answered(client, AGE)
    assert ReleaseBook(tmp_path / "copy").verify() == head
    assert ReleaseBook(root).verify(head).number == 2
