"""Folders of prepared tables under kills and failing calls: the earlier one or the new one, whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faults.injector import ERRORS, Faults
from faults.kills import in_child
from lustrum.answer.prepared.shelf import PreparedShelf
from lustrum.model import DatasetError
from lustrum.public.prepared import read_prepared
from lustrum.publish import folders
from lustrum.publish.prepared import write_prepared

HEAD: dict[str, Any] = {
    "name": "town",
    "title": "Town",
    "period": "2025",
    "notes": [],
    "dataset": "town",
    "source": {},
    "tables": [],
}
OLD = {"report.json": b"old", "tables/a/b.csv": b"1"}
NEW = {"report.json": b"new", "tables/a/b.csv": b"2", "tables/c/d.csv": b"3"}


@pytest.mark.parametrize("exchanges", [True, False], ids=["exchange", "two renames"])
def test_a_kill_at_any_call_leaves_a_whole_folder_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    if not exchanges:
        monkeypatch.setattr(folders, "exchange", lambda _first, _second: False)
    path = tmp_path / "counted" / "prepared" / "town"
    old = write_prepared(path, HEAD, OLD)
    with Faults().active() as counted:
        new = write_prepared(path, HEAD, NEW)
    seen = set()
    for at in range(1, len(counted.calls) + 1):
        root = tmp_path / f"kill{at}"
        path = root / "prepared" / "town"
        write_prepared(path, HEAD, OLD)

        def dies(at: int = at, path: Path = path) -> int:
            with Faults(at, kill=True).active():
                write_prepared(path, HEAD, NEW)
            return 0

        assert in_child(dies) == -9
        found = read_prepared(path).digest
        assert found in (old, new)
        seen.add((found == new, path.exists()))
        assert PreparedShelf(root).folder("town").digest == found
        assert PreparedShelf(None, [path]).names() == ["town"]
        assert write_prepared(path, HEAD, NEW) == new
        assert read_prepared(path).digest == new
        assert not list(path.parent.glob("*.old"))
    assert {is_new for is_new, _ in seen} == {True, False}
    assert ((False, False) in seen) is not exchanges


@pytest.mark.parametrize("exchanges", [True, False], ids=["exchange", "two renames"])
def test_one_failing_call_leaves_the_earlier_folder_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    if not exchanges:
        monkeypatch.setattr(folders, "exchange", lambda _first, _second: False)
    path = tmp_path / "town"
    old = write_prepared(path, HEAD, OLD)
    with Faults().active() as counted:
        new = write_prepared(path, HEAD, NEW)
    for at in range(1, len(counted.calls) + 1):
        write_prepared(path, HEAD, OLD)
        faults = Faults(at, ERRORS[at % 3])
        try:
            with faults.active():
                write_prepared(path, HEAD, NEW)
        except (DatasetError, OSError):
            assert faults.hit
        assert read_prepared(path).digest in (old, new)


def test_what_is_no_folder_of_prepared_tables_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "own.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("notes", "file"):
        with pytest.raises(DatasetError, match="is not a folder of prepared tables"):
            write_prepared(tmp_path / name, HEAD, NEW)
    assert (tmp_path / "notes" / "own.txt").read_text() == (tmp_path / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "notes"]
