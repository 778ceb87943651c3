"""A bundle, a policy or the whole folder that changes or goes away while it is served is never unnoticed."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from answer.test_service_by_hand import STRICT as TOWN
from answer.test_service_by_hand import folder, packed
from lustrum.answer import TableService
from lustrum.policy.read import sealed
from lustrum.publish.bundles.write import write_bundle
from lustrum.server import Settings, create_app
from lustrum.server.operation.lifecycle import read_policies_again
from server.conftest import STRICT

ASKED = "/api/v1/tables?dataset=demo&by=sex&by=region"
LOOSER = STRICT.replace("max_dimensions = 6", "max_dimensions = 9")


@pytest.fixture
def public(tmp_path: Path, bundle: Path) -> Path:
    """A folder with a bundle and its sealed policy, and no records."""
    folder = tmp_path / "public"
    (folder / "policies").mkdir(parents=True)
    (folder / "policies" / "demo.toml").write_bytes(sealed(STRICT.encode(), "demo.toml"))
    shutil.copytree(bundle, folder / "bundles" / "demo")
    return folder


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_a_dataset_that_is_still_being_made_has_a_page_that_looks_again(
    tmp_path: Path, language: str
) -> None:
    client = client_of(folder(tmp_path, town=TOWN))
    home, page = client.get(f"/{language}/"), client.get(f"/{language}/datasets/town?by=sex")
    assert (home.status_code, page.status_code) == (200, 202)
    for waiting in (home, page):
        assert waiting.headers["refresh"] == "5"
        assert 'role="status"' in waiting.text
        assert "503" not in waiting.text
    if language == "en":
        assert "<h1>This dataset is being prepared</h1>" in page.text
        assert "it is shown here once it is ready" in home.text
    asked = client.get("/api/v1/tables?dataset=town&by=sex")
    assert (asked.status_code, asked.headers["retry-after"]) == (503, "5")
    assert client.get("/api/v1/datasets").json()["opening"] == ["town"]
    write_bundle(tmp_path / "bundles" / "town", packed())
    for path in ("", "datasets/town?by=sex"):
        there = client.get(f"/{language}/{path}")
        assert there.status_code == 200
        assert "refresh" not in there.headers
        assert 'href="/datasets/town' in there.text.replace(f"/{language}/", "/")


def client_of(service: TableService) -> TestClient:
    app = create_app(service, Settings(rate=""))
    app.state.ready = True
    return TestClient(app, base_url="http://lustrum.test", raise_server_exceptions=False)


@pytest.mark.parametrize("gone", ["bundles/demo", "bundles", "bundles/demo/manifest.json"])
def test_a_bundle_that_was_served_and_is_gone_is_missed(
    gone: str, public: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its reader asked nothing wrong, and monitoring must hear of it."""
    client = client_of(TableService(public, workers=1))
    assert client.get("/health/ready").json()["status"] == "ready"
    right = client.get(ASKED)
    assert right.status_code == 200
    (public / gone).rename(public / "away")
    for path in (ASKED, "/datasets/demo", "/api/v1/datasets/demo"):
        assert client.get(path).status_code == 503, path
    assert "is gone; put it back" in caplog.text
    assert "not available at the moment" in client.get("/en/").text
    said = client.get("/health/ready")
    assert said.status_code == 503
    assert said.json() == {"status": "not ready", "datasets": {"demo": "unavailable"}}
    # What was taken back with its policy is not missed; a server without anything is not ready.
    policy = public / "policies" / "demo.toml"
    policy.rename(public / "policy")
    assert client.get("/datasets/demo").status_code == 404
    assert client.get("/health/ready").json() == {"status": "not ready", "datasets": {}}
    assert client.get("/health/ready").status_code == 503
    (public / "policy").rename(policy)
    (public / "away").rename(public / gone)
    assert client.get(ASKED).content == right.content
    assert client.get("/health/ready").json()["status"] == "ready"


def test_a_hangup_lets_go_of_a_bundle_that_was_taken_back(public: Path) -> None:
    service = TableService(public, workers=1)
    client = client_of(service)
    assert client.get(ASKED).status_code == 200
    (public / "bundles" / "demo").rename(public / "away")
    assert client.get("/datasets/demo").status_code == 503
    read_policies_again(service)
    assert client.get("/datasets/demo").status_code == 404


def test_a_folder_that_is_gone_makes_the_server_unready(public: Path) -> None:
    client = client_of(TableService(public, workers=1))
    assert client.get(ASKED).status_code == 200
    public.rename(public.with_name("away"))
    assert client.get("/health/ready").status_code == 503
    assert client.get("/").status_code == 200
    public.with_name("away").rename(public)
    assert client.get("/health/ready").status_code == 200


def test_a_policy_that_is_loosened_while_it_is_served_is_named_in_the_log(
    public: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert LOOSER != STRICT
    path = public / "policies" / "demo.toml"
    service = TableService(public, workers=1)
    client = client_of(service)
    assert client.get(ASKED).status_code == 200
    # One edit of a sealed file: nothing is answered.
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"max_dimensions = 6", b"max_dimensions = 9"))
    assert client.get(ASKED).status_code == 503
    # Without its seal it is followed, and the log names it; once, not at every question.
    caplog.clear()
    path.write_text(LOOSER)
    for _ in range(3):
        assert client.get(ASKED).status_code == 200
    said = f"the policy {path} was changed, and is in force without a seal"
    assert [r.getMessage() for r in caplog.records if "seal" in r.getMessage()] == [said]
    # A hangup names it again.
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        read_policies_again(service)
    assert f"the policy {path} is in force without a seal" in caplog.text
    # Sealed again, there is nothing to say.
    path.write_bytes(sealed(LOOSER.encode(), "demo.toml"))
    caplog.clear()
    assert client.get(ASKED).status_code == 200
    read_policies_again(service)
    assert "seal" not in caplog.text


def test_in_production_a_policy_that_loses_its_seal_answers_nothing(
    public: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = TableService(public, workers=1, sealed_only=True)
    client = client_of(service)
    assert client.get(ASKED).status_code == 200
    (public / "policies" / "demo.toml").write_text(STRICT)
    assert client.get(ASKED).status_code == 503
    caplog.clear()
    read_policies_again(service)
    assert "in force" not in caplog.text
