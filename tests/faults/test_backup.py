"""A backup holds all that answers need, and is put back whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from faults.injector import ERRORS, Faults
from faults.kills import in_child
from faults.world import WORK, build, observe
from lustrum.model import LustrumError
from lustrum.tabulate.store.backup import BACKUP, back_up, check_backup, restore


@pytest.fixture
def house(tmp_path: Path) -> Path:
    return build(tmp_path / "data")


def test_a_drill_brings_the_same_answers_back(house: Path, tmp_path: Path) -> None:
    right = observe(house)
    assert back_up(house, tmp_path / "backup") == 11
    shutil.rmtree(house)
    assert restore(tmp_path / "backup", house) == 11
    assert observe(house) == right
    assert (house / "record-keys.secret").stat().st_mode & 0o777 == 0o600
    # What was restored is a folder like any other: it can be replaced and rotated.
    WORK["ingest"].run(house)
    WORK["rotate"].run(house)


def test_a_restore_never_writes_over_anything(house: Path, tmp_path: Path) -> None:
    back_up(house, tmp_path / "backup")
    before = observe(house)
    with pytest.raises(LustrumError, match="is not empty; move it away"):
        restore(tmp_path / "backup", house)
    with pytest.raises(LustrumError, match="is not empty; name a new folder"):
        back_up(house, tmp_path / "backup")
    assert observe(house) == before


@pytest.mark.parametrize("how", ["cut", "flipped", "gone", "unfinished", "outside"])
def test_a_damaged_backup_is_refused_and_nothing_is_restored(
    how: str, house: Path, tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    back_up(house, backup)
    keys = next(backup.glob("town/*/keys.arrow"))
    if how == "cut":
        os.truncate(keys, 10)
    elif how == "flipped":
        raw = bytearray(keys.read_bytes())
        raw[100] ^= 1
        keys.write_bytes(raw)
    elif how == "gone":
        keys.unlink()
    elif how == "unfinished":
        (backup / BACKUP).unlink()
    else:
        words = json.loads((backup / BACKUP).read_text())
        words["files"]["../elsewhere"] = "0" * 64
        (backup / BACKUP).write_text(json.dumps(words))
    with pytest.raises(LustrumError, match="is not a whole backup"):
        restore(backup, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_backup_of_a_damaged_dataset_is_refused(house: Path, tmp_path: Path) -> None:
    keys = next(house.glob("town/*/keys.arrow"))
    raw = bytearray(keys.read_bytes())
    raw[100] ^= 1
    keys.write_bytes(raw)
    with pytest.raises(LustrumError, match="damaged"):
        back_up(house, tmp_path / "backup")
    with pytest.raises(LustrumError, match="was not finished"):
        check_backup(tmp_path / "backup")


def _is_refused_or_whole(backup: Path, new: Path, right: object) -> bool:
    """The last call only makes the manifest's name durable, so a backup may be whole though that failed."""
    try:
        check_backup(backup)
    except LustrumError:
        return True
    restore(backup, new)
    return observe(new) == right


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.deep)])
def test_a_kill_in_a_restore_leaves_no_half_folder_and_the_next_one_is_whole(
    step: int, house: Path, tmp_path: Path
) -> None:
    backup, new = tmp_path / "backup", tmp_path / "new"
    back_up(house, backup)
    right = observe(house)
    with Faults().active() as counted:
        restore(backup, tmp_path / "counted")
    for at in (*range(1, len(counted.calls), step), len(counted.calls)):

        def dies(at: int = at) -> int:
            with Faults(at, kill=True).active():
                restore(backup, new)
            return 0

        assert in_child(dies) == -9
        if not new.exists():
            restore(backup, new)
        assert observe(new) == right
        shutil.rmtree(new)


@pytest.mark.parametrize("step", [19, pytest.param(1, marks=pytest.mark.deep)])
@pytest.mark.parametrize("kind", ["backup", "restore"])
def test_one_failing_call_leaves_no_half_backup_and_no_half_folder(
    kind: str, step: int, house: Path, tmp_path: Path
) -> None:
    backup, new = tmp_path / "backup", tmp_path / "new"
    back_up(house, backup)
    right = observe(house)

    def work() -> None:
        if kind == "backup":
            back_up(house, tmp_path / "second")
        else:
            restore(backup, new)

    with Faults().active() as counted:
        work()
    for at in range(1, len(counted.calls) + 1, step):
        shutil.rmtree(tmp_path / "second", ignore_errors=True)
        shutil.rmtree(new, ignore_errors=True)
        faults = Faults(at, ERRORS[at % 3])
        try:
            with faults.active():
                work()
        except LustrumError:
            if kind == "backup":
                assert _is_refused_or_whole(tmp_path / "second", new, right)
            else:
                assert not new.exists() or observe(new) == right
        else:
            assert kind == "backup" or observe(new) == right
    assert observe(house) == right
