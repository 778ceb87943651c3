"""One dataset never harms another: whatever reading or judging it raises is said of that dataset alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from faults.world import ASKED, build
from lustrum.answer import table_service
from lustrum.cli import app
from lustrum.cli.terminal import policies as policy_page
from lustrum.local import local_service
from lustrum.local.service import health
from lustrum.model import DatasetError
from lustrum.publish import doctor
from lustrum.publish.records.local import LocalRecordsService
from lustrum.runtime.durable import contained
from lustrum.server import create_app
from lustrum.server.service.catalogue import catalogue

SECRET = "4711 records"
ERRORS = [OverflowError, KeyError, RecursionError, MemoryError, RuntimeError, OSError]
Break = Callable[[pytest.MonkeyPatch, type[Exception]], None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return build(tmp_path / "data")


def _policy(monkeypatch: pytest.MonkeyPatch, kind: type[Exception]) -> None:
    """Judging the policy of the town fails."""
    for module in (table_service, doctor, policy_page):
        real = getattr(module, "read_policy", None)
        if real is None:
            continue

        def broken(path: Path, *more: Any, real: Any = real, **words: Any) -> Any:
            if path.stem == "town":
                raise kind(SECRET)
            return real(path, *more, **words)

        monkeypatch.setattr(module, "read_policy", broken)


def _records(monkeypatch: pytest.MonkeyPatch, kind: type[Exception]) -> None:
    """Opening the records of the town fails."""
    real = LocalRecordsService.describe

    def broken(self: LocalRecordsService, name: str) -> Any:
        if name == "town":
            raise kind(SECRET)
        return real(self, name)

    monkeypatch.setattr(LocalRecordsService, "describe", broken)


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("breaking", [_policy, _records])
def test_the_others_are_served_and_listed(
    root: Path,
    breaking: Break,
    kind: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    breaking(monkeypatch, kind)
    service = local_service(root)
    assert service.states() == {"shops": "ready", "town": "unavailable"}
    assert set(service.not_served()) == {"town"}
    assert [one.name for one in catalogue(service).datasets] == ["shops"]
    assert len(service.unsealed()) == 2
    assert service.answer(ASKED["shops"]).release is not None
    with pytest.raises(DatasetError) as caught:
        service.snapshot("town")
    assert SECRET not in str(caught.value) + caplog.text
    if kind is not OSError:
        assert f"{kind.__name__} at " in caplog.text
    with TestClient(create_app(service)) as client:
        for path in ("/", "/api/v1/datasets", "/health/ready"):
            response = client.get(path)
            assert response.status_code == 200, path
            assert "shops" in response.text
            assert SECRET not in response.text
        assert client.get("/health/ready").json()["status"] == "degraded"
        assert client.get("/api/v1/tables?dataset=town&by=area").status_code == 503
        assert client.get("/api/v1/tables?dataset=shops&by=area").status_code == 200
    found = {one.about: one for one in health(root) if one.grade == "bad"}
    assert set(found) == {"policies/town.toml"}
    upgraded = CliRunner().invoke(app, ["upgrade", "--data", str(root)], env={"COLUMNS": "500"})
    assert upgraded.exit_code == 3
    assert "town cannot be served" in upgraded.stdout
    assert "1 of 2 datasets can be served" in upgraded.stdout
    listed = CliRunner().invoke(app, ["datasets", "--data", str(root)])
    assert "shops:" in listed.stdout


def test_a_number_that_no_code_can_hold_is_one_sentence_with_its_line(root: Path) -> None:
    path = root / "policies" / "town.toml"
    path.write_text(path.read_text().replace("base = 3", "base = 99999999999999999999"))
    states = local_service(root).states()
    assert states == {"shops": "ready", "town": "unavailable"}
    checked = CliRunner().invoke(app, ["policy", "check", str(path), "--data", str(root)])
    assert "line 9: 'base' is 99999999999999999999" in str(checked.exception)
    (bad,) = [one for one in health(root) if one.grade == "bad"]
    assert (bad.about, "line 9: 'base'" in bad.sentence) == ("policies/town.toml", True)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_who_ends_the_process_is_heard(kind: type[BaseException]) -> None:
    with pytest.raises(kind), contained("Dataset 'town'"):
        raise kind
