"""Public bundles under damage: the same numbers as before, or a refusal; also from a backup."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from answer.test_agreement import POLICY
from faults.injector import Faults
from faults.kills import in_child
from faults.world import build
from lustrum.answer import TableService
from lustrum.model import DatasetError
from lustrum.public.bundle import read_bundle
from lustrum.publish import prepared as folders
from lustrum.publish.bundles.make import make_bundle
from lustrum.publish.bundles.write import pack_bundle, write_bundle
from lustrum.publish.doctor import examine
from lustrum.tabulate import Store
from lustrum.tabulate.store.backup import back_up, restore


def made(root: Path) -> Path:
    path = root / "policies" / "town.toml"
    path.write_text(POLICY)
    make_bundle(Store(root), "town", path, root / "bundles" / "town", workers=1)
    return root / "bundles" / "town"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = build(tmp_path_factory.mktemp("bundles") / "data")
    made(root)
    return root


def test_a_bit_flipped_or_a_byte_lost_anywhere_is_refused(house: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(house / "bundles" / "town", tmp_path / "town"))
    right = read_bundle(bundle)
    tried = 0
    for path in sorted(bundle.iterdir()):
        raw = path.read_bytes()
        for place in range(0, len(raw), max(1, len(raw) // 60)):
            flipped = bytearray(raw)
            flipped[place] ^= 1 << (place % 8)
            for content in (bytes(flipped), raw[:place]):
                path.write_bytes(content)
                try:
                    found = read_bundle(bundle)
                except DatasetError:
                    tried += 1
                    continue
                assert found.digest == right.digest
                assert (found.cells.counts == right.cells.counts).all()
        path.write_bytes(raw)
    assert tried > 300
    assert read_bundle(bundle).digest == right.digest


def test_the_doctor_and_a_backup_know_bundles(house: Path, tmp_path: Path) -> None:
    memory = house / "reports" / "town" / "memory-1.arrow"
    memory.parent.mkdir(parents=True)
    memory.write_bytes(b"what is remembered")
    back_up(house, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "data")
    root = tmp_path / "data"
    right = read_bundle(house / "bundles" / "town").digest
    assert read_bundle(root / "bundles" / "town").digest == right
    assert (root / "reports" / "town" / "memory-1.arrow").read_bytes() == b"what is remembered"
    assert not [f for f in examine(root) if f.grade == "bad"]
    cells = root / "bundles" / "town" / "cells.arrow"
    cells.write_bytes(cells.read_bytes()[:-1])
    assert [f.about for f in examine(root) if f.grade == "bad"] == ["bundles/town"]


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.deep)])
@pytest.mark.parametrize("exchanges", [True, False], ids=["exchange", "two renames"])
def test_a_kill_at_any_call_leaves_a_whole_bundle_in_its_place(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool, step: int
) -> None:
    """Also between the two renames, on a system that cannot exchange two names at one moment."""
    if not exchanges:
        monkeypatch.setattr(folders, "exchange", lambda _first, _second: False)
    first = read_bundle(house / "bundles" / "town")
    later = replace(first.cells, counts=first.cells.counts + 3)
    policy = (house / "bundles" / "town" / "policy.toml").read_bytes()

    def written(path: Path) -> str:
        return write_bundle(path, pack_bundle(later, policy, first.report))

    path = Path(shutil.copytree(house / "bundles", tmp_path / "counted")) / "town"
    with Faults().active() as counted:
        new = written(path)
    assert new != first.digest
    seen = set()
    # Those that move something are tried in every run, and the last one, with some of the others.
    moves = {at for at, call in enumerate(counted.calls, start=1) if call in ("rename", "replace")}
    for at in sorted({*moves, *range(1, len(counted.calls), step), len(counted.calls)}):
        root = tmp_path / f"kill{at}"
        path = Path(shutil.copytree(house / "bundles", root / "bundles")) / "town"
        shutil.copytree(house / "policies", root / "policies")

        def dies(at: int = at, path: Path = path) -> int:
            with Faults(at, kill=True).active():
                written(path)
            return 0

        assert in_child(dies) == -9
        found = read_bundle(path).digest
        assert found in (first.digest, new)
        seen.add((found == new, path.exists()))
        assert TableService(root, records=NoRecords()).states()["town"] == "ready"
        assert written(path) == new
        assert read_bundle(path).digest == new
        assert not list(path.parent.glob("*.old"))
    assert {is_new for is_new, _ in seen} == {True, False}
    assert ((False, False) in seen) is not exchanges


class NoRecords:
    """A machine without records."""

    def names(self) -> list[str]:
        return []

    def close(self) -> None:
        """Nothing is open."""


def test_a_bundle_of_another_layout_is_said_to_be_of_another_version(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes fit its digests, so that nothing is damaged."""
    from lustrum.protect.population.public import PublicReport
    from lustrum.publish.bundles import write

    right = read_bundle(house / "bundles" / "town")
    policy = (house / "bundles" / "town" / "policy.toml").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(write, "FORMAT", 1)
        write_bundle(tmp_path / "older", pack_bundle(right.cells, policy, right.report))
    with monkeypatch.context() as patched:
        patched.setattr(PublicReport, "to_mapping", lambda _self: {"other": "words"})
        write_bundle(tmp_path / "other", pack_bundle(right.cells, policy, right.report))
    for name in ("older", "other"):
        with pytest.raises(DatasetError, match="written by another version of Lustrum") as error:
            read_bundle(tmp_path / name)
        assert "damaged" not in str(error.value)
    manifest = json.loads((tmp_path / "older" / "manifest.json").read_text())
    manifest["format"] = 3
    (tmp_path / "older" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DatasetError, match="damaged"):
        read_bundle(tmp_path / "older")


def test_a_bundle_that_is_replaced_while_it_is_read_is_read_again(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(shutil.copytree(house / "bundles" / "town", tmp_path / "town"))
    first = read_bundle(path)
    later = replace(first.cells, counts=first.cells.counts + 3)
    policy = (path / "policy.toml").read_bytes()
    real = Path.read_bytes

    def replaced(self: Path) -> bytes:
        if self.name == "cells.arrow":
            monkeypatch.setattr(Path, "read_bytes", real)
            write_bundle(path, pack_bundle(later, policy, first.report))
        return real(self)

    monkeypatch.setattr(Path, "read_bytes", replaced)
    assert (read_bundle(path).cells.counts == later.counts).all()
