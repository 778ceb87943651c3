"""Compiled loops are kept on disk, and compiled again when anything they are made of has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.audit import bounds, from_release
from lustrum.numeric import compiled as compiling
from lustrum.numeric.counting import kernel
from lustrum.protect import Suppression
from lustrum.sensitivity import Threshold
from small import summed

INNER = """
from typing import NamedTuple
from lustrum.numeric.compiled import compiled

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
from lustrum.numeric.compiled import compiled

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


def runs(folder: Path, times: int) -> list[tuple[int, int]]:
    """The value and how often it was on disk, by processes that run at once."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RUN],
            cwd=folder,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(times)
    ]
    found = []
    for process in started:
        out, error = process.communicate()
        assert process.returncode == 0, error
        value, hits = out.split()
        found.append((int(value), int(hits)))
    return sorted(found)


def run(folder: Path) -> tuple[int, int]:
    return runs(folder, 1)[0]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("first")
    write(made / "inner.py", INNER.format(step=0, formula="pair.left + pair.right"), 1)
    write(made / "outer.py", OUTER.format(pairs="inner"), 1)
    assert runs(made, 2) == [(7, 0), (7, 1)], "two processes at once compile one loop once"
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
    write(folder / "inner.py", "from lustrum.numeric.compiled import compiled\n\nSTEP" + rest, 2)
    write(folder / "outer.py", OUTER.format(pairs="pairs"), 2)
    assert run(folder) == (7, 0)


def test_a_type_with_another_name_leaves_no_error(tmp_path: Path) -> None:
    loop = "@compiled\ndef add(pair):\n    return pair.left + pair.right\n"
    write(tmp_path / "loop.py", "from lustrum.numeric.compiled import compiled\n\n" + loop, 1)
    for name in ("Pair", "Couple"):
        words = f"from typing import NamedTuple\n\nclass {name}(NamedTuple):\n    left: int\n    right: int\n"
        write(tmp_path / "pairs.py", words, 1)
        uses = f"import loop, pairs; print(loop.add(pairs.{name}(3, 4)))"
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-B", "-c", uses],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.stdout == "7\n", done.stderr


def test_a_process_that_hangs_holds_no_other_up_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "loop.py"
    path.touch()
    monkeypatch.setattr(compiling, "_patience", 0.2)
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with compiling._alone(str(path)), compiling._alone(str(path)):
            assert compiling._patience <= 0
        with compiling._alone(str(path)):
            pass
    assert not compiling._alone_with


SMALL = """
import sys
import numpy as np
from lustrum.numeric.compiled import PLAIN_WORK, compiled_if_large

@compiled_if_large
def inner(values, k):
    values[k] += 1

@compiled_if_large
def outer(values):
    for k in range(values.size):
        inner(values, k)
    return values.sum()
"""
USES = """
import sys
import numpy as np
import small

few = np.zeros(10, np.int64)
print(small.outer(few), "numba" in sys.modules)
many = np.zeros(int(small.PLAIN_WORK**0.5) + 1, np.int64)
print(small.outer(many), "numba" in sys.modules, len(small.outer.signatures), small.outer(few))
"""


def test_a_loop_is_compiled_once_a_process_has_much_to_do(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(SMALL)
    done = subprocess.run(
        [sys.executable, "-c", USES], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:2] == ["10 False", "1415 True 1 20"]


@pytest.mark.parametrize("seed", range(4))
def test_small_tables_give_the_same_whether_loops_are_compiled_or_not(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = summed(np.random.default_rng(seed).poisson(6, (4, 3)))
    found = []
    for work in (0, 10**12):
        monkeypatch.setattr(compiling, "_plain_work_left", work)
        pattern = Suppression(rule=Threshold(4)).pattern(table)
        release = Suppression(rule=Threshold(4)).apply(table)
        reached = bounds(from_release(release), integer=True)
        found.append((pattern.suppressed.tolist(), reached.low.tolist(), reached.high.tolist()))
    assert found[0] == found[1]


@given(st.integers(0, 2**32), st.integers(0, 300))
def test_twins_of_counting_loops_give_what_the_loops_give(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 9, rows).astype(np.uint8)
    entry = rng.integers(-3, 8, 9) + np.where(rng.random(9) < 0.2, kernel.OUTSIDE, 0)
    weights = rng.integers(0, 2**64, rows, dtype=np.uint64)  # sums go round at 2**64
    found = []
    for way in ("twin", "kernel"):
        start, add, tally = (
            getattr(loop, way)
            for loop in (kernel.start_codes, kernel.add_codes, kernel.tally_counts)
        )
        index, cells = np.empty(rows, np.int64), np.zeros((16, 2), np.uint64)
        start(codes, entry, index)
        add(codes, entry[::-1].copy(), index)
        tally(index, weights, cells[:, 1])
        found.append((index.tolist(), cells.tolist()))
    assert found[0] == found[1]


NOTICED = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="log: %(message)s", stream=sys.stdout)
import lustrum.numeric.compile_notice as noticing
noticing.notice._next = noticing.SOON = {soon}
import outer
outer.outer(outer.Pair(3, 4))
"""


def notices(folder: Path, soon: float, **extra: str) -> tuple[list[str], str]:
    """What a run logs, and what it writes to a terminal."""
    controller, terminal = os.openpty()
    with os.fdopen(terminal, "w") as errors:
        done = subprocess.run(
            [sys.executable, "-B", "-c", NOTICED.format(soon=soon)],
            cwd=folder,
            env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), **extra},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=True,
        )
        errors.write("end")
    seen = os.read(controller, 10_000).decode().replace("\r\n", "\n")
    os.close(controller)
    lines = [line for line in done.stdout.splitlines() if line.startswith("log: Loops")]
    return lines, seen


def test_a_loop_that_must_be_compiled_says_so_once_and_only_the_first_time(
    folder: Path, tmp_path: Path
) -> None:
    logged, seen = notices(folder, soon=0.0)
    assert len(logged) == 1
    assert seen.startswith("Loops are compiled when they are first used on a machine")
    assert "Later runs find them compiled." in seen
    assert notices(folder, soon=0.0) == ([], "end")
