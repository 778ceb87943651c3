"""Files cut and flipped at every offset: the same answer as before, or none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from faults.world import ASKED, asked, observe
from lustrum.local import local_service
from lustrum.tabulate import Store


def files_of(root: Path) -> dict[str, Path]:
    """Everything that decides about the answers of one dataset."""
    version = root / "town" / Store(root).version("town")
    return {
        "records": version / "records.arrow",
        "keys": version / "keys.arrow",
        "manifest": version / "dataset.json",
        "current": root / "town" / "current",
        "policy": root / "policies" / "town.toml",
        "secret": root / "record-keys.secret",
    }


KINDS = ("records", "keys", "manifest", "current", "policy", "secret")


def places(size: int, step: int) -> list[int]:
    """Every ``step``-th offset, and always the first and the last few."""
    return sorted({*range(0, size, step), *range(min(size, 8)), *range(max(0, size - 8), size)})


def held(root: Path, kind: str, right: object, what: str) -> None:
    """A new process, and one that served before, give the right answer or none."""
    seen = asked(root, "town")
    if kind == "policy" and seen[0] == "answered" and seen != right:
        # A digit became another digit: only a seal can tell, and sealed files have a test of their own.
        return
    assert seen == right or seen[0] in ("unavailable", "refused"), what


def flip_all(root: Path, kind: str, step: int) -> int:
    path, right = files_of(root)[kind], observe(root)["town"]
    raw = path.read_bytes()
    for place in places(len(raw), step):
        changed = bytearray(raw)
        changed[place] ^= 1 << (place % 8)
        path.write_bytes(changed)
        held(root, kind, right, f"{kind}, byte {place}")
    path.write_bytes(raw)
    assert observe(root)["town"] == right
    return len(raw)


def cut_all(root: Path, kind: str, step: int) -> None:
    path, right = files_of(root)[kind], observe(root)["town"]
    raw = path.read_bytes()
    for length in places(len(raw), step):
        path.write_bytes(raw[:length])
        seen = asked(root, "town")
        if kind == "secret" and length == len(raw) - 1:
            assert seen == right  # only the end of the line is missing
        else:
            assert seen[0] == "unavailable", f"{kind} cut to {length} bytes"
    path.write_bytes(raw)
    assert observe(root)["town"] == right


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_gives_the_same_answer_or_none(
    kind: str, house: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(house, tmp_path / "data")
    flip_all(root, kind, max(1, files_of(root)[kind].stat().st_size // 40))


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_file_gives_no_answer(kind: str, house: Path, tmp_path: Path) -> None:
    root = shutil.copytree(house, tmp_path / "data")
    cut_all(root, kind, max(1, files_of(root)[kind].stat().st_size // 40))


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_every_bit_flipped_and_every_length_cut(kind: str, house: Path, tmp_path: Path) -> None:
    root = shutil.copytree(house, tmp_path / "data")
    flip_all(root, kind, 1)
    cut_all(root, kind, 1)


@pytest.mark.parametrize("kind", ["records", "keys"])
def test_a_file_cut_while_it_is_served_ends_the_answers_and_not_the_process(
    kind: str, house: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(house, tmp_path / "data")
    service = local_service(root, workers=1)
    right = {name: asked(root, name, service) for name in ASKED}
    path = files_of(root)[kind]
    raw = path.read_bytes()
    for length in (len(raw) - 1, len(raw) // 2, 0):
        os.truncate(path, length)
        assert asked(root, "town", service)[0] == "unavailable"
        assert asked(root, "shops", service) == right["shops"]
    path.write_bytes(raw)
    assert asked(root, "town", service) == right["town"]
