"""Public bundles under damage: the same numbers as before, or a refusal; also from a backup."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from faults.injector import ERRORS, Faults
from faults.world import build
from lustrum.model import DatasetError, LustrumError
from lustrum.release.bundle import read_bundle
from lustrum.release.records.doctor import examine
from lustrum.release.records.make_bundle import make_bundle
from lustrum.tabulate import Store
from lustrum.tabulate.store.backup import back_up, restore

POLICY = """dataset = "town"
[rules]
[risk]
limit = 1.0
[[before]]
method = "protected-population"
base = 3
sweeps = 1
[protect]
method = "none"
end = true
"""


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


def test_one_failing_call_leaves_the_old_bundle_or_the_new_one(house: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(house, tmp_path / "data"))
    right = read_bundle(root / "bundles" / "town").digest
    with Faults().active() as counted:
        made(root)
    for at in range(1, len(counted.calls) + 1, 5):
        faults = Faults(at, ERRORS[at % 3])
        try:
            with faults.active():
                made(root)
        except (LustrumError, OSError):
            assert faults.hit
        assert read_bundle(root / "bundles" / "town").digest == right


def test_the_doctor_and_a_backup_know_bundles(house: Path, tmp_path: Path) -> None:
    back_up(house, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "data")
    root = tmp_path / "data"
    right = read_bundle(house / "bundles" / "town").digest
    assert read_bundle(root / "bundles" / "town").digest == right
    assert not [f for f in examine(root) if f.grade == "bad"]
    cells = root / "bundles" / "town" / "cells.arrow"
    cells.write_bytes(cells.read_bytes()[:-1])
    assert [f.about for f in examine(root) if f.grade == "bad"] == ["bundles/town"]
