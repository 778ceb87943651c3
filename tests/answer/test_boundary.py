"""One dataset never harms another: whatever reading or judging it raises is said of that dataset alone."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from agency.towns import let_in
from faults.world import released
from lustrum.agency import create_agency_app
from lustrum.answer import snapshot, table_service
from lustrum.cli import app, upkeep
from lustrum.local import local_service
from lustrum.local.service import health
from lustrum.publish import doctor
from lustrum.publish.records.local import LocalRecordsService
from lustrum.runtime.durable import contained
from lustrum.server import create_app

SECRET = "4711 records"


class UnforeseenError(Exception):
    """Nothing can know it, so that it stands for every exception."""


Named = Callable[..., str]
FIRST: Named = lambda one, *_, **__: one if isinstance(one, str) else one.stem  # noqa: E731
SECOND: Named = lambda _, one, *__, **___: getattr(one, "dataset", one)  # noqa: E731
BREAKS: dict[str, list[tuple[Any, str, Named]]] = {
    "reading the policy": [(m, "read_policy", FIRST) for m in (table_service, doctor, upkeep)],
    "reading the bundle": [(m, "read_bundle", FIRST) for m in (table_service, doctor)],
    "reading the records": [(LocalRecordsService, "describe", SECOND)],
    "judging names": [
        (m, "check_names", lambda _, of, *__: str(of.name)) for m in (table_service, doctor)
    ],
    "judging the bundle": [(table_service, "_require_agreement", FIRST)],
    "judging rules": [(snapshot, "precheck", lambda query, *_, **__: query.dataset)],
    "answering": [(snapshot, "answer", lambda query, *_, **__: query.dataset)],
}
"""For each step the functions that begin it, and how their arguments name the dataset."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shops are answered from their records; the town has a bundle as well."""
    return released(tmp_path_factory.mktemp("two") / "data")


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "data"))


def broken(
    monkeypatch: pytest.MonkeyPatch, step: str, name: str, kind: type[Exception]
) -> list[str]:
    """Let a step fail for one dataset, whoever begins it; gives a list of when it did."""
    failed: list[str] = []
    for owner, attribute, named in BREAKS[step]:
        real = getattr(owner, attribute)

        def instead(*args: Any, real: Any = real, named: Named = named, **words: Any) -> Any:
            if named(*args, **words) == name:
                failed.append(step)
                raise kind(SECRET)
            return real(*args, **words)

        monkeypatch.setattr(owner, attribute, instead)
    return failed


def seen(root: Path, broken_one: str, other: str) -> tuple[dict[str, Any], str]:
    """All that readers, operators and the agency see of the other dataset, and every text that went out."""
    service = local_service(root, workers=1)
    shown: dict[str, Any] = {}
    texts: list[str] = []
    query = f"dataset={other}&by=area"
    with TestClient(create_app(service), raise_server_exceptions=False) as client:
        for path in (
            f"/datasets/{other}", f"/datasets/{other}/table?by=area", f"/api/v1/datasets/{other}",
            f"/api/v1/tables?{query}", f"/api/v1/tables?{query}&format=csv", f"/datasets/{other}/hint?by=area",
        ):  # fmt: skip
            answer = client.get(path)
            shown[path] = (
                answer.status_code,
                re.sub(r'(nonce=|request_id":)"[^"]*"', "", answer.text),
            )
        for path in ("/", "/api/v1/datasets", "/health/ready", "/metrics"):
            answer = client.get(path)
            shown[path] = answer.status_code, f"{other}" in answer.text
            texts.append(answer.text)
        listed = client.get("/api/v1/datasets").json()["datasets"]
        shown["catalogue"] = [one for one in listed if one["name"] == other]
        texts += [client.get(f"/api/v1/tables?dataset={broken_one}&by=area").text]
        texts += [client.get(f"/datasets/{broken_one}/table?by=area").text]
        texts += [client.get(f"/api/v1/hints?dataset={broken_one}&by=area").text]
    shown["state"] = service.states()[other]
    shown["failures"] = service.not_served().get(other)
    agency = let_in(create_agency_app(data=root))
    for path in ("/", "/check", "/usage", f"/datasets/{other}", f"/datasets/{other}/policy"):
        answer = agency.get(path)
        shown[f"agency {path}"] = answer.status_code, other in answer.text
    shown["doctor"] = [
        (one.grade, one.about, one.sentence.replace(str(root), ""))
        for one in health(root)
        if one.about.split("/")[-1].split(".")[0] == other
    ]
    for words in (["upgrade"], ["datasets"], ["doctor"]):
        done = CliRunner().invoke(app, [*words, "--data", str(root)], env={"COLUMNS": "500"})
        said = done.stdout.replace(str(root), "")
        lines = [line for line in said.splitlines() if other in line]
        shown[f"lustrum {words[0]}"] = isinstance(done.exception, Exception), lines
        texts.append(done.stdout)
    return shown, "".join(texts)


@pytest.fixture(scope="module")
def undisturbed(made: Path) -> dict[str, dict[str, Any]]:
    """What is seen of each dataset while nothing fails."""
    return {
        other: seen(made, name, other)[0] for name, other in (("town", "shops"), ("shops", "town"))
    }


CASES = [
    # The town is answered from its bundle, and the shops have none.
    *(("town", step, UnforeseenError) for step in BREAKS if step != "reading the records"),
    *(("shops", step, UnforeseenError) for step in BREAKS if "bundle" not in step),
    *(("town", "reading the policy", kind) for kind in (OSError, RecursionError, MemoryError)),
]


@pytest.mark.parametrize(("name", "step", "kind"), CASES)
def test_whatever_one_dataset_raises_the_other_is_as_before(
    root: Path,
    undisturbed: dict[str, dict[str, Any]],
    name: str,
    step: str,
    kind: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    other = "shops" if name == "town" else "town"
    failed = broken(monkeypatch, step, name, kind)
    during, texts = seen(root, name, other)
    failures = local_service(root, workers=1).not_served()
    assert failed
    assert during == undisturbed[other]
    assert (during["state"], bool(during["doctor"])) == ("ready", True)
    assert SECRET not in texts + caplog.text + "".join(map(str, failures.values()))
    served = step in ("judging rules", "answering")
    assert set(failures) == (set() if served else {name})
    if not served:
        assert f"{name} cannot be served" in texts
        assert '"status":"degraded"' in texts
        assert kind is OSError or f"{kind.__name__} at " in caplog.text


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
