"""SIGKILL at every step of the work leaves the old state or the new one, and the next attempt succeeds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from faults.world import WORK

TESTS = Path(__file__).parents[1]


def killed(names: list[str], tmp_path: Path, kills: int) -> list[dict[str, int]]:
    done = subprocess.run(
        [sys.executable, "-m", "faults.kills", str(tmp_path / "kills"), str(kills), *names],
        capture_output=True,
        text=True,
        timeout=1200,
        cwd=TESTS,
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_kill_at_some_steps_loses_and_doubles_nothing(tmp_path: Path) -> None:
    for found in killed([name for name in WORK if name != "answer"], tmp_path, 2):
        assert found["wrong"] == 0
        assert found["kills"] == 6


@pytest.mark.deep
def test_a_kill_at_every_step_loses_and_doubles_nothing(tmp_path: Path) -> None:
    for found in killed(list(WORK), tmp_path, 100_000):
        assert found["wrong"] == 0
        assert found["kills"] == 3 * found["calls"]
