"""The doctor finds every fault that stops answers, and says what to do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from faults.world import build
from lustrum.model import Dataset, DatasetError
from lustrum.policy.presets import preset
from lustrum.publish.doctor import HealthFinding, examine
from lustrum.tabulate import FrameSource, Secret, Store, ingest
from lustrum.tabulate.store.secret_files import NEXT


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("doctor") / "data")


def version(root: Path) -> Path:
    return root / "town" / Store(root).version("town")


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def other_secret(root: Path) -> None:
    (root / "record-keys.secret").unlink()
    Secret(b"another secret of 32 bytes......").write(root / "record-keys.secret")


def notes(root: Path, grade: str = "note") -> list[HealthFinding]:
    return [finding for finding in examine(root) if finding.grade == grade]


def bad(root: Path) -> list[HealthFinding]:
    return notes(root, "bad")


def confidential(root: Path) -> None:
    """Two files of the agency's reports, one of which others may read."""
    folder = root / "reports" / "town"
    folder.mkdir(parents=True, mode=0o700)
    for name, mode in (("a", 0o600), ("b", 0o640)):
        (folder / name).write_text("x")
        (folder / name).chmod(mode)


def test_a_healthy_folder_has_no_complaint(good: Path) -> None:
    found = list(examine(good))
    assert [f for f in found if f.grade == "bad"] == []
    assert {"town", "shops", "record-keys.secret", "disk", "memory"} <= {f.about for f in found}


FAULTS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "records": (lambda r: flip(version(r) / "records.arrow"), "town", "ingest it again"),
    "keys": (lambda r: flip(version(r) / "keys.arrow"), "town", "ingest it again"),
    "manifest": (lambda r: flip(version(r) / "dataset.json"), "town", "ingest it again"),
    "cut": (lambda r: os.truncate(version(r) / "keys.arrow", 9), "town", "shorter than"),
    "current": (lambda r: (r / "town" / "current").write_text("../x\n"), "town", "ingest 'town'"),
    "no current": (lambda r: (r / "town" / "current").unlink(), "town", "'current' is missing"),
    "secret": (lambda r: (r / "record-keys.secret").unlink(), "record-keys.secret", "backup"),
    "other secret": (other_secret, "town", "not the one"),
    "mode": (lambda r: (r / "record-keys.secret").chmod(0o644), "record-keys.secret", "chmod 600"),
    "open folder": (lambda r: r.chmod(0o777), "", "chmod 700"),
    "policy": (
        lambda r: (r / "policies" / "town.toml").write_text("[rules]\n"),
        "policies/town.toml",
        "end = true",
    ),
    "open policy": (
        lambda r: (r / "policies" / "town.toml").chmod(0o666),
        "policies/town.toml",
        "chmod 644",
    ),
    "another policy": (
        lambda r: shutil.copy(r / "policies" / "shops.toml", r / "policies" / "town.toml"),
        "policies/town.toml",
        "'shops'",
    ),
    "a bundle": (lambda r: (r / "bundles" / "town").mkdir(parents=True), "bundles/town", ""),
    "prepared tables": (lambda r: (r / "prepared" / "p").mkdir(parents=True), "prepared/p", ""),
    "lost": (lambda r: (r / "lost" / "v0123456789abcdef").mkdir(parents=True), "lost", "again"),
}

NOTES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "open folder": (lambda r: r.chmod(0o755), "", "chmod 700"),
    "secret of a group": (
        lambda r: (r / "record-keys.secret").chmod(0o640),
        "record-keys.secret",
        "A group may read it",
    ),
    "rotation": (
        lambda r: (r / NEXT).write_text("x"),
        NEXT,
        "finish it with 'lustrum secret rotate'",
    ),
    "records": (
        lambda r: (version(r) / "records.arrow").chmod(0o604),
        "town",
        "Others may read records.arrow; close them with 'chmod 600'.",
    ),
    "draft of a bundle": (
        lambda r: (r / "bundles" / ".town.part").mkdir(parents=True),
        "bundles/.town.part",
        "A stopped 'lustrum protect' left it",
    ),
    "second version": (
        lambda r: (r / "town" / "v0123456789abcdef").mkdir(),
        "town",
        "A stopped ingest left files",
    ),
    "report": (confidential, "reports", "Others may read 1 of its files"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_with_what_to_do(name: str, good: Path, tmp_path: Path) -> None:
    fault, about, sentence = FAULTS[name]
    root = shutil.copytree(good, tmp_path / "data")
    fault(root)
    found = bad(root)
    assert any(about in f.about and sentence in f.sentence for f in found), found


@pytest.mark.parametrize("name", NOTES)
def test_what_is_odd_but_stops_no_answer_is_a_note(name: str, good: Path, tmp_path: Path) -> None:
    fault, about, sentence = NOTES[name]
    root = shutil.copytree(good, tmp_path / "data")
    root.chmod(0o700)
    before = notes(root)
    fault(root)
    (found,) = [f for f in notes(root) if f not in before]
    assert about in found.about
    assert sentence in found.sentence
    assert bad(root) == []


def test_a_server_that_would_refuse_a_dataset_is_believed(good: Path) -> None:
    def judge(name: str, role: str) -> None:
        if (name, role) == ("town", "public"):
            raise DatasetError("the server refuses it")

    found = [f for f in examine(good, judge) if f.grade == "bad"]
    assert found == [HealthFinding("bad", "policies/town.toml", "the server refuses it")]


@pytest.mark.parametrize(("free", "about"), [(0, "disk"), (1 << 40, "memory")])
def test_room_for_a_second_version_and_for_all_in_memory(
    free: int, about: str, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    monkeypatch.setattr(os, "sysconf", lambda name: 1 if about == "memory" else 1 << 30)
    assert about in {finding.about for finding in notes(good)}


def test_what_cannot_be_read_ends_in_a_finding(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(path: Path, how: int) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "access", lambda path, how: False)
    assert any("may not read it" in finding.sentence for finding in bad(good))
    monkeypatch.setattr(os, "access", locked)
    assert bad(good)[-1].sentence == "It cannot be read: Permission denied."


def test_leftovers_and_a_missing_policy_are_notes(good: Path, tmp_path: Path) -> None:
    root = shutil.copytree(good, tmp_path / "data")
    (root / "town" / "v0123456789abcdef.part").mkdir()
    (root / "policies" / "shops.toml").rename(root / "policies" / "gone.toml")
    found = [f for f in examine(root) if f.grade == "note"]
    said = " ".join(f.sentence for f in found)
    assert "A stopped ingest left files" in said
    assert "has no policy" in said
    assert "There is no dataset of this name" in said
    assert bad(root) == []


def test_a_folder_that_is_not_there_is_one_finding(tmp_path: Path) -> None:
    assert len(bad(tmp_path / "none")) == 1


def test_what_no_backup_holds_is_a_note(good: Path, tmp_path: Path) -> None:
    root = tmp_path / "data"
    shutil.copytree(good, root)
    assert not [f for f in examine(root) if "no backup holds it" in f.sentence]
    (root / "notes.txt").write_text("by hand")
    assert [f.about for f in examine(root) if "no backup holds it" in f.sentence] == ["notes.txt"]


@pytest.mark.parametrize("said", [True, False])
def test_a_ledger_is_told_which_variables_follow_from_others(tmp_path: Path, said: bool) -> None:
    zeros = [
        {"reason": "Elsewhere.", "where": {"region": ["n"], "area": ["s1"]}},
        {"reason": "Elsewhere.", "where": {"region": ["s"], "area": ["n1", "n2"]}},
    ]
    dataset = Dataset.from_mapping(
        {
            "dataset": {"name": "town", "record_id": "id"},
            "variables": [
                {"name": "area", "codes": ["n1", "n2", "s1"]},
                {"name": "region", "codes": ["n", "s"]},
                {"name": "sex", "codes": ["f", "m"]},
            ],
            "structural_zeros": zeros if said else [],
        }
    )
    area = ["n1", "n2", "s1"] * 40
    people = pa.table(
        {"id": range(120), "area": area, "region": [a[0] for a in area], "sex": ["f", "m"] * 60}
    )
    store = Store(tmp_path)
    ingest(FrameSource(people), dataset, store)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "town.toml").write_text(preset("keyed-rounding", "town"))
    found = [f.sentence for f in notes(tmp_path) if "structural_zeros" in f.sentence]
    assert [sentence.split(":")[0] for sentence in found] == (
        [] if said else ["area tells region of everybody, and no [[structural_zeros]] says so"]
    )
