"""Compiled loops are kept on disk, and compiled again when anything they are made of has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

INNER = """
from typing import NamedTuple
from lustrum.compiled import compiled

class Pair(NamedTuple):
    left: int
    right: int

STEP = {step}

@compiled
def inner(pair):
    return {formula}
"""
OUTER = """
from {pairs} import Pair
from inner import inner as add, STEP
from lustrum.compiled import compiled

@compiled
def outer(pair):
    return add(pair) + STEP
"""
RUN = (
    "import outer; print(outer.outer(outer.Pair(3, 4)), sum(outer.outer.stats.cache_hits.values()))"
)


def write(path: Path, text: str, second: int) -> None:
    path.write_text(text)
    os.utime(path, (second, second))


def run(folder: Path) -> tuple[int, int]:
    result = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    value, hits = result.stdout.split()
    return int(value), int(hits)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("first")
    write(made / "inner.py", INNER.format(step=0, formula="pair.left + pair.right"), 1)
    write(made / "outer.py", OUTER.format(pairs="inner"), 1)
    assert run(made) == (7, 0)
    assert run(made) == (7, 1)
    return made


@pytest.fixture
def folder(first: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first, tmp_path / "copy"))


def test_a_change_in_a_loop_that_another_loop_calls_is_seen_by_both(folder: Path) -> None:
    write(folder / "inner.py", INNER.format(step=0, formula="pair.left * pair.right"), 2)
    assert run(folder) == (12, 0)


def test_a_constant_from_another_file_that_changes_is_seen(folder: Path) -> None:
    write(folder / "inner.py", INNER.format(step=5, formula="pair.left + pair.right"), 1)
    assert run(folder)[0] == 12


def test_a_type_that_moved_to_another_file_leaves_no_error(folder: Path) -> None:
    head, rest = INNER.format(step=0, formula="pair.left + pair.right").split("STEP", 1)
    write(folder / "pairs.py", head, 2)
    write(folder / "inner.py", "from lustrum.compiled import compiled\n\nSTEP" + rest, 2)
    write(folder / "outer.py", OUTER.format(pairs="pairs"), 2)
    assert run(folder) == (7, 0)
