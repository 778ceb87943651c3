"""A folder made by the first version of Lustrum is brought to the present format, and counts the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lustrum.model import Axis, DatasetError, TableQuery
from lustrum.protect import RandomRounding
from lustrum.tabulate import Store
from lustrum.tabulate.store.renewal import upgrade

FIRST = Path(__file__).parent / "first_version"
"""Written by the code of format 1; its answers were recorded by that code too."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    root = tmp_path / "data"
    shutil.copytree(FIRST, root)
    secret = (root / "secret.txt").rename(root / "record-keys.secret")
    secret.chmod(0o600)
    return Store(root)


def flip(path: Path, place: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1
    path.write_bytes(raw)


def test_the_first_format_is_refused_until_it_is_upgraded(store: Store) -> None:
    for name in store.names():
        with pytest.raises(DatasetError, match="run 'lustrum upgrade'"):
            store.open(name)


def test_an_upgraded_folder_gives_the_numbers_of_the_first_version(store: Store) -> None:
    assert upgrade(store) == ["shops", "town"]
    for name, recorded in json.loads((FIRST / "answers.json").read_text()).items():
        table = store.open(name).tabulate(TableQuery(name, tuple(map(Axis, recorded["by"]))))
        assert table.keys.tolist() == recorded["keys"]
        assert RandomRounding(base=3).apply(table).published.tolist() == recorded["published"]
        assert {p.name for p in (store.root / name).iterdir()} == {
            ".lock",
            "current",
            store.version(name),
        }
    assert upgrade(store) == []


def test_an_upgrade_needs_the_right_secret(store: Store) -> None:
    path = store.root / "record-keys.secret"
    good = path.read_bytes()
    path.write_text("0" * 64)
    with pytest.raises(DatasetError, match="another secret"):
        upgrade(store)
    path.unlink()
    with pytest.raises(DatasetError, match="is missing"):
        upgrade(store)
    path.write_bytes(good)
    path.chmod(0o600)
    assert upgrade(store) == ["shops", "town"]


@pytest.mark.parametrize("name", ["keys.arrow", "dataset.json"])
def test_an_upgrade_refuses_what_it_can_see_to_be_damaged(name: str, store: Store) -> None:
    path = store.root / "town" / store.version("town") / name
    flip(path, path.stat().st_size // 2)
    before = path.read_bytes()
    with pytest.raises(DatasetError, match="damaged"):
        upgrade(store)
    assert path.read_bytes() == before
