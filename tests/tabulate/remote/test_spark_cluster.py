"""Blocks on a standalone cluster: the bytes of one process, whichever process dies in the middle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import services

BENCH = Path(__file__).parents[3] / "bench" / "spark_cluster.py"
KINDS = ("executor", "worker", "driver")


@pytest.mark.deep
def test_a_cluster_that_loses_processes_makes_the_bytes_of_one_process() -> None:
    if services.ensure_services.java() is None:
        pytest.skip("Java is missing; run scripts/ensure_services.py")
    size = ["--areas", "200", "--people", "20000", "--blocks", "4", "--sweeps", "4"]
    command = [sys.executable, str(BENCH), *size, "--times", "5", "--kill", *KINDS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line for line in done.stdout.splitlines() if line.startswith("| 2 workers")]
    assert len(rows) == 16
    assert all(row.endswith("| yes |") for row in rows)
    for kind in KINDS:
        assert sum(f"{kind} killed" in row for row in rows) == 5
