"""The doctor finds every fault that stops answers, and says what to do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.world import build
from lustrum.publish.doctor import HealthFinding, examine
from lustrum.tabulate import Secret, Store


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


def bad(root: Path) -> list[HealthFinding]:
    return [finding for finding in examine(root) if finding.grade == "bad"]


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
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_with_what_to_do(name: str, good: Path, tmp_path: Path) -> None:
    fault, about, sentence = FAULTS[name]
    root = shutil.copytree(good, tmp_path / "data")
    fault(root)
    found = bad(root)
    assert any(about in f.about and sentence in f.sentence for f in found), found


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
