"""The pages of maps: what is sent to them, what they write, and their mistakes as one sentence."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from agency.towns import let_in
from lustrum.agency import create_agency_app


@pytest.fixture
def local(tmp_path: Path) -> Starlette:
    return create_agency_app(policy=tmp_path / "policy.toml")


def asked(table_file: Path, **more: Any) -> dict[str, Any]:
    content = base64.b64encode(table_file.read_bytes()).decode()
    files = [{"name": "faith.csv", "content": content}]
    return {"files": files, "methods": {"conventional-rounding": "3"}, "replications": 2, **more}


def test_a_policy_is_written_when_it_is_asked_for(
    local: Starlette, table_file: Path, tmp_path: Path
) -> None:
    client = let_in(local)
    client.post("/maps", json=asked(table_file, limit=0.5))
    local.state.jobs.get(1).wait(300)
    address = "/maps/1/points/0/policy"
    assert client.get(address).status_code == 405
    assert not (tmp_path / "policy.toml").exists()
    assert client.post(address).status_code == 200
    assert (tmp_path / "policy.toml").read_text().endswith("end = true\n")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"files": []}, "Drop in"),
        ({"methods": {}}, "No method"),
        ({"methods": {"rm": ""}}, "no method 'rm'"),
        ({"methods": {"random-rounding": "three"}}, "commas"),
        ({"replications": 0}, "whole number"),
        ({"limit": "much"}, "limit"),
        ({"files": [{"name": "x.csv", "content": "%%"}]}, "did not arrive"),
        ({"risk": "uniques"}, "unprotected tables only"),
    ],
)
def test_mistakes_are_one_sentence(
    local: Starlette, table_file: Path, change: dict[str, Any], words: str
) -> None:
    answer = let_in(local, Accept="*/*").post("/maps", json={**asked(table_file), **change})
    assert answer.status_code == 422
    assert words in answer.text


def test_a_method_without_a_place_on_the_map_is_named_beside_it(
    local: Starlette, table_file: Path
) -> None:
    """The table-level risk needs all cells, so suppression has no point; the page says so."""
    client = let_in(local)
    methods = {"conventional-rounding": "3", "suppression": ""}
    client.post("/maps", json=asked(table_file, methods=methods))
    local.state.jobs.get(1).wait(300)
    page = client.get("/maps/1").text
    assert "<strong>suppression</strong> is not on the map." in page
    assert "the entropy risk is for methods that show all" in page
    assert "<strong>conventional-rounding" not in page
