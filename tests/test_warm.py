"""A quick start: what the first command and the first audit do not wait for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lustrum import warm as warming
from lustrum.warm import WAYS, warm

HEAVY = ("duckdb", "fastapi", "highspy", "numba", "pandas", "polars", "pyarrow", "scipy", "uvicorn")


@pytest.mark.parametrize(
    "words", [["--help"], ["audit", "--help"], ["serve", "--help"], ["--version"]]
)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    program = (
        "import sys\n"
        "from lustrum.cli import main\n"
        f"sys.argv = ['lustrum', *{words!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print(sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
    assert done.stdout


AUDIT = """
import numpy as np
from lustrum.audit import bounds, from_release
from lustrum.model import Category, Table, TableAxis
from lustrum.protect import RandomRounding

def axis(name):
    cats = (Category("a", "a", (0,)), Category("b", "b", (1,)), Category("_T", "all", (0, 1)))
    return TableAxis(name, name, cats)

values = np.array([[3, 5, 8], [7, 2, 9], [10, 7, 17]])
table = Table((axis("x"), axis("y")), values)
bounds(from_release(RandomRounding(base=3).apply(table, rng=np.random.default_rng(1))), integer=True)
"""


@pytest.mark.slow
def test_the_first_audit_compiles_nothing_after_a_warm_up(tmp_path: Path) -> None:
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    program = "from lustrum.warm import WAYS; WAYS['audits']()"
    subprocess.run([sys.executable, "-c", program], env=env, check=True)
    kept = {path.name for path in tmp_path.rglob("*.nbc")}
    assert kept
    subprocess.run([sys.executable, "-c", AUDIT], env=env, check=True)
    assert {path.name for path in tmp_path.rglob("*.nbc")} == kept


def test_one_way_that_fails_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def broken() -> None:
        raise OSError("secret text")

    monkeypatch.setattr(warming, "WAYS", {"first": broken, "second": lambda: done.append("second")})
    said: list[str] = []
    assert not warm(said.append)
    assert done == ["second"]
    assert said[0] == "first: OSError"
    assert set(WAYS) == {"answers", "audits", "rounding"}


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_every_way_runs(name: str) -> None:
    WAYS[name]()
