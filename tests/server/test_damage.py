"""A dataset that is damaged answers nothing; the others answer as before, and monitoring can tell."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from lustrum.answer import TableService
from lustrum.local import local_service
from lustrum.publish.records import LocalRecordsService
from lustrum.publish.records import local as open_datasets
from lustrum.server import create_app
from lustrum.tabulate import Secret
from waiting import LONG

ASKED = "/api/v1/tables?dataset=demo&by=sex&by=region"
OTHER = "/api/v1/tables?dataset=businesses&by=activity:section"


@pytest.fixture
def own(own_root: Path) -> Path:
    """A copy of the data that a test may damage."""
    return own_root


@pytest.fixture
def client(own: Path) -> TestClient:
    app = create_app(local_service(own, workers=1))
    app.state.ready = True
    return TestClient(app, base_url="http://lustrum.test", raise_server_exceptions=False)


def version(root: Path) -> Path:
    return root / "demo" / (root / "demo" / "current").read_text().strip()


def flipped(path: Path, place: int = -1) -> None:
    raw = bytearray(path.read_bytes())
    raw[place % len(raw)] ^= 1
    path.write_bytes(raw)


def flipped_letter(path: Path) -> None:
    """Another letter in a label, so that the file is read and says something else."""
    flipped(path, path.read_bytes().index(b"invented"))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def outside(root: Path) -> None:
    shutil.copytree(version(root), root.parent / version(root).name)
    (root / "demo" / "current").write_text(f"../../{version(root).name}\n")


def linked(root: Path) -> None:
    shutil.move(version(root), root.parent / "elsewhere")
    version(root).symlink_to(root.parent / "elsewhere")


def other_secret(root: Path) -> None:
    (root / "record-keys.secret").unlink()
    Secret(b"another secret of 32 bytes......").write(root / "record-keys.secret")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "manifest emptied": (lambda r: (version(r) / "dataset.json").write_text(""), "cannot be read"),
    "manifest gone": (lambda r: (version(r) / "dataset.json").unlink(), "cannot be read"),
    "manifest of a list": (
        lambda r: (version(r) / "dataset.json").write_text("[]"),
        "cannot be read",
    ),
    "manifest flipped": (lambda r: flipped_letter(version(r) / "dataset.json"), "is not the one"),
    "records flipped": (
        lambda r: flipped(version(r) / "records.arrow", 9000),
        "does not hold what",
    ),
    "keys flipped": (lambda r: flipped(version(r) / "keys.arrow", 9000), "does not hold what"),
    "records cut": (lambda r: cut(version(r) / "records.arrow"), "is shorter than"),
    "keys gone": (lambda r: (version(r) / "keys.arrow").unlink(), "is missing"),
    "current cut": (lambda r: cut(r / "demo" / "current"), "does not name a version"),
    "current emptied": (
        lambda r: (r / "demo" / "current").write_text(""),
        "does not name a version",
    ),
    "current outside": (outside, "does not name a version"),
    "version a link": (linked, "is a link"),
    "policy cut": (lambda r: cut(r / "policies" / "demo.toml"), "does not end with"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("served_before", [False, True])
def test_damage_to_one_dataset_silences_that_one_only(
    damage: str,
    served_before: bool,
    own: Path,
    client: TestClient,
    caplog: pytest.LogCaptureFixture,
) -> None:
    good = shutil.copytree(own, own.parent / "good")
    if served_before:
        assert client.get(ASKED).status_code == 200
        if damage.startswith(("manifest", "keys gone", "version")):
            return  # what is open stays open; the files that were checked are still there
    DAMAGES[damage][0](own)
    for path in (ASKED, "/datasets/demo", "/api/v1/datasets/demo"):
        response = client.get(path)
        assert response.status_code == 503, path
        assert str(own) not in response.text
    assert DAMAGES[damage][1] in caplog.text
    assert client.get(OTHER).status_code == 200
    listed = client.get("/api/v1/datasets").json()["datasets"]
    assert [d["name"] for d in listed] == ["businesses"]
    assert client.get("/").status_code == 200
    ready = client.get("/health/ready")
    assert ready.status_code == 200
    assert ready.json() == {
        "status": "degraded",
        "datasets": {"businesses": "ready", "demo": "unavailable"},
    }
    # Repaired, it answers again without a restart.
    shutil.rmtree(own / "demo")
    shutil.copytree(good / "demo", own / "demo")
    shutil.copy(good / "policies" / "demo.toml", own / "policies" / "demo.toml")
    assert client.get(ASKED).status_code == 200
    assert client.get("/health/ready").json()["status"] == "ready"


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (lambda r: (r / "record-keys.secret").unlink(), "is missing"),
        (other_secret, "not the one that the dataset was made with"),
        (lambda r: (r / "record-keys.secret").chmod(0o644), "open to others"),
    ],
)
@pytest.mark.parametrize("served_before", [False, True])
def test_without_its_secret_nothing_is_answered(
    fault: Callable[[Path], object],
    sentence: str,
    served_before: bool,
    own: Path,
    client: TestClient,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if served_before:
        assert client.get(ASKED).status_code == 200
    fault(own)
    assert client.get(ASKED).status_code == 503
    assert sentence in caplog.text
    assert client.get("/health/ready").status_code == 503
    if "open to others" not in sentence:
        assert (own / "record-keys.secret").exists() == (fault is other_secret)


def test_records_cut_while_they_are_counted_give_no_answer(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is already made when the last look at the files finds them changed."""
    records = LocalRecordsService(own, workers=1)
    service = TableService(own, records=records)
    client = TestClient(create_app(service), base_url="http://lustrum.test")
    first = client.get(ASKED)
    assert first.status_code == 200
    source = records.source

    def touched(*args: object) -> object:
        found = source(*args)  # type: ignore[arg-type]
        os.utime(version(own) / "records.arrow", ns=(1, 1))
        return found

    monkeypatch.setattr(records, "source", touched)
    assert client.get(ASKED).status_code == 503
    monkeypatch.undo()
    # The bytes are what was written: they are checked again, and answer as before.
    again = client.get(ASKED)
    assert again.status_code == 200
    assert again.json()["table"] == first.json()["table"]


def test_a_large_dataset_is_checked_in_the_background_while_others_answer(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ignored = shutil.ignore_patterns("jobs.sqlite*")
    own = Path(shutil.copytree(root, tmp_path / "data", ignore=ignored))
    size = sum(p.stat().st_size for p in version(own).glob("*.arrow"))
    monkeypatch.setattr(open_datasets, "LARGE", size)
    go_on: list[bool] = []
    check = open_datasets.VersionFiles.check

    def slow(files: open_datasets.VersionFiles) -> None:
        end = time.monotonic() + LONG
        while files.size >= size and not go_on and time.monotonic() < end:
            time.sleep(0.01)
        check(files)

    monkeypatch.setattr(open_datasets.VersionFiles, "check", slow)
    app = create_app(local_service(own, workers=1))
    with TestClient(app, base_url="http://lustrum.test") as client:
        early = client.get(ASKED)
        assert early.status_code == 503
        assert early.headers["retry-after"] == "5"
        assert "is being prepared" in early.json()["detail"]
        assert client.get(OTHER).status_code == 200
        assert client.get("/health/ready").json() == {
            "status": "degraded",
            "datasets": {"businesses": "ready", "demo": "checking"},
        }
        go_on.append(True)
        end = time.monotonic() + LONG
        while client.get(ASKED).status_code == 503 and time.monotonic() < end:
            time.sleep(0.02)
        assert client.get(ASKED).status_code == 200


def test_a_damaged_large_dataset_is_read_once_and_not_for_every_question(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flipped(version(own) / "records.arrow", 9000)
    reads: list[str] = []
    check = open_datasets.VersionFiles.check

    def counted(files: open_datasets.VersionFiles) -> None:
        reads.append(files.version)
        check(files)

    monkeypatch.setattr(open_datasets.VersionFiles, "check", counted)
    client = TestClient(create_app(local_service(own, workers=1)), base_url="http://lustrum.test")
    assert [client.get(ASKED).status_code for _ in range(4)] == [503] * 4
    assert len(reads) == 1
