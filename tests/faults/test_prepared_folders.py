"""Folders of prepared tables under kills and failing calls: the earlier one or the new one, whole."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from faults.injector import ERRORS, Faults
from faults.kills import in_child
from lustrum.answer.prepared import PreparedFolders
from lustrum.model import DatasetError
from lustrum.public.prepared import read_prepared
from lustrum.publish import prepared as folders
from lustrum.publish.prepared import write_prepared
from lustrum.runtime.durable import taken_back_on_failure

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
        assert PreparedFolders(root).folder("town").digest == found
        assert PreparedFolders(None, [path]).names() == ["town"]
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


def _run(root: Path, files: dict[str, bytes], trace: bytes) -> str:
    """What a programme does at its end: a public folder, and a trace for the agency alone."""
    beside = taken_back_on_failure(root / "reports" / "town.json", trace, 0o600)
    return write_prepared(root / "prepared" / "town", HEAD, files, beside)


def _stands(root: Path, old: str) -> tuple[str, str]:
    """Which folder stands there, and which trace."""
    digest = read_prepared(root / "prepared" / "town").digest
    trace = (root / "reports" / "town.json").read_bytes()
    return "old" if digest == old else "new", trace.decode()


def test_one_failing_call_leaves_a_folder_and_the_trace_that_belongs_to_it(tmp_path: Path) -> None:
    with Faults().active() as first:
        old = _run(tmp_path / "first", OLD, b"old")
    _run(tmp_path / "again", OLD, b"old")
    with Faults().active() as again:
        _run(tmp_path / "again", NEW, b"new")
    seen = set()
    for at in range(1, len(again.calls) + 1):
        root = tmp_path / f"again{at}"
        _run(root, OLD, b"old")
        faults = Faults(at, ERRORS[at % 3])
        try:
            with faults.active():
                _run(root, NEW, b"new")
        except (DatasetError, OSError):
            assert faults.hit
        folder, trace = _stands(root, old)
        assert folder == trace
        assert (root / "reports" / "town.json").stat().st_mode & 0o077 == 0
        seen.add(folder)
    assert seen == {"old", "new"}
    for at in range(1, len(first.calls) + 1):
        root = tmp_path / f"first{at}"
        faults = Faults(at, ERRORS[at % 3])
        try:
            with faults.active():
                _run(root, OLD, b"old")
        except (DatasetError, OSError):
            assert faults.hit
        there = [(root / name).exists() for name in ("prepared/town", "reports/town.json")]
        assert there in ([False, False], [True, True])


def test_a_kill_at_any_call_never_leaves_a_new_folder_with_an_old_trace(tmp_path: Path) -> None:
    old = _run(tmp_path / "counted", OLD, b"old")
    with Faults().active() as counted:
        _run(tmp_path / "counted", NEW, b"new")
    seen = []
    for at in range(1, len(counted.calls) + 1):
        root = tmp_path / f"kill{at}"
        _run(root, OLD, b"old")

        def dies(at: int = at, root: Path = root) -> int:
            with Faults(at, kill=True).active():
                _run(root, NEW, b"new")
            return 0

        assert in_child(dies) == -9
        seen.append(_stands(root, old))
        _run(root, NEW, b"new")
        assert _stands(root, old) == ("new", "new")
    assert seen[0] == ("old", "old")
    assert seen[-1] == ("new", "new")
    # Two names change one after the other: between them the trace names the digest of the folder to come.
    assert set(seen) <= {("old", "old"), ("old", "new"), ("new", "new")}


def test_ctrl_c_waits_until_folder_and_trace_are_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = _run(tmp_path, OLD, b"old")
    right = folders.exchange

    def pressed(first: Path, second: Path) -> bool:
        signal.raise_signal(signal.SIGINT)
        return right(first, second)

    monkeypatch.setattr(folders, "exchange", pressed)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _run(tmp_path, NEW, b"new")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)
    assert _stands(tmp_path, old) == ("new", "new")
    assert [p.name for p in (tmp_path / "reports").iterdir()] == ["town.json"]
    assert [p.name for p in (tmp_path / "prepared").iterdir()] == ["town"]


def test_what_is_no_folder_of_prepared_tables_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "own.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("notes", "file"):
        with pytest.raises(DatasetError, match="is not a folder of prepared tables"):
            write_prepared(tmp_path / name, HEAD, NEW)
    assert (tmp_path / "notes" / "own.txt").read_text() == (tmp_path / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "notes"]
