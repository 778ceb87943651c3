"""Prepared tables are served read-only from their public folder, on a machine without records."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from lustrum.answer import TableService
from lustrum.cli import main
from lustrum.model import DatasetError
from lustrum.server import create_app

NAME = "biz-2025"


@pytest.fixture(scope="module")
def public(turnover: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public folder of a programme, away from the records."""
    return Path(
        shutil.copytree(turnover / "public", tmp_path_factory.mktemp("elsewhere") / "public")
    )


@pytest.fixture(scope="module")
def client(public: Path) -> Iterator[TestClient]:
    service = TableService(prepared=[public])
    with TestClient(create_app(service), base_url="http://localhost") as client:
        yield client
    service.close()


def test_the_catalogue_lists_programmes_where_there_is_no_dataset(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert f'href="/prepared/{NAME}"' in page.text
    assert "There is no dataset to ask about yet." not in page.text


def test_a_programme_lists_its_tables_proofs_and_digest(client: TestClient) -> None:
    page = client.get(f"/prepared/{NAME}").text
    assert "Businesses &lt;2025&gt;" in page
    assert f'href="/prepared/{NAME}/activity-region.turnover"' in page
    assert "certificates/turnover.json" in page
    body = client.get(f"/api/v1/prepared/{NAME}").json()
    assert body["digest"] in page
    assert [t["id"] for t in body["tables"]] == [
        "activity-region.turnover",
        "activity-region.domestic",
        "activity-size.turnover",
        "not-large.turnover",
    ]


def test_a_table_shows_suppressed_cells_by_their_letter(client: TestClient, public: Path) -> None:
    words = json.loads((public / "tables/activity-region/turnover.table.json").read_text())
    hidden = sum(value is None for value in words["value"])
    assert hidden
    page = client.get(f"/prepared/{NAME}/activity-region.turnover").text
    assert page.count("<abbr title=") == hidden
    assert "not zero" in page


@pytest.mark.parametrize("look", ["as=chart", "show=row-percent", "sort=label", "names=codes"])
def test_a_table_can_be_looked_at_in_the_usual_ways(client: TestClient, look: str) -> None:
    page = client.get(f"/prepared/{NAME}/activity-size.turnover?{look}")
    assert page.status_code == 200
    assert f"/prepared/{NAME}/activity-size.turnover" in page.text


def test_sums_are_not_called_counts(client: TestClient) -> None:
    page = client.get(f"/prepared/{NAME}/activity-size.turnover").text
    assert ">Figures</option>" in page
    assert ">Counts</option>" not in page


def test_files_are_the_bytes_that_were_published(client: TestClient, public: Path) -> None:
    manifest = json.loads((public / "manifest.json").read_text())
    for path, mark in manifest["files"].items():
        got = client.get(f"/api/v1/prepared/{NAME}/files/{path}")
        assert got.status_code == 200, path
        assert hashlib.sha256(got.content).hexdigest() == mark["sha256"]
        assert got.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "path",
    [
        "/prepared/nothing",
        f"/prepared/{NAME}/nothing",
        f"/api/v1/prepared/{NAME}/files/trace.json",
        f"/api/v1/prepared/{NAME}/files/../trace.json",
        f"/api/v1/prepared/{NAME}/files/%2e%2e/trace.json",
        "/api/v1/prepared/nothing",
    ],
)
def test_what_is_not_public_is_not_there(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_prepared_tables_only_read(client: TestClient) -> None:
    assert client.post(f"/api/v1/prepared/{NAME}").status_code == 405
    assert client.get(f"/prepared/{NAME}/activity-size.turnover?by=act").status_code == 400


def test_a_damaged_folder_is_left_out_of_the_catalogue(public: Path, tmp_path: Path) -> None:
    place = tmp_path / "public"
    shutil.copytree(public, place)
    report = place / "report.html"
    report.write_bytes(report.read_bytes() + b" ")
    with TestClient(
        create_app(TableService(prepared=[place])), base_url="http://localhost"
    ) as client:
        assert client.get("/api/v1/prepared").json() == {"programmes": []}
        assert client.get(f"/prepared/{NAME}").status_code == 503


def test_a_folder_that_is_replaced_is_taken_up(public: Path, tmp_path: Path) -> None:
    place = tmp_path / "prepared" / NAME
    shutil.copytree(public, place)
    service = TableService(tmp_path)
    first = service.prepared(NAME)
    assert service.prepared(NAME) is first
    shutil.rmtree(place)
    shutil.copytree(public, place)
    os.utime(place / "manifest.json", ns=(1, 1))
    assert service.prepared(NAME) is not first
    service.close()


def test_two_folders_of_one_programme_are_refused(public: Path) -> None:
    with pytest.raises(DatasetError, match="Two folders hold the prepared tables"):
        TableService(prepared=[public, public])


def test_the_command_refuses_a_folder_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["lustrum", "serve", "--prepared", str(tmp_path), "--port", "0"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 1
    assert "is not a folder of prepared tables" in capsys.readouterr().err
