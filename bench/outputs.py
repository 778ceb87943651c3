"""Large tables as files, beside pyarrow's writers of the same columns.

    python bench/outputs.py [--side 100] [--rounds 3]

A release of ``side`` to the third power of cells, 5 % of them hidden, in every format. Tasks take turns; the
figures are medians of CPU seconds, and ratios to the writer of pyarrow for the same format, or else for CSV.
"""

from __future__ import annotations

import argparse
import io
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet

from lustrum.formats import Csv, JsonStat, Xlsx, release_as_arrow, write_release
from lustrum.model import Category, Release, TableAxis


def cpu(task: Callable[[], Any]) -> float:
    """CPU seconds of a task."""
    started = time.process_time()
    task()
    return time.process_time() - started


def release_of(side: int) -> Release:
    """A release with three variables of ``side`` categories each."""
    chance = np.random.default_rng(1)
    shape = (side,) * 3
    axes = tuple(
        TableAxis(
            name,
            name,
            tuple(Category(f"{name}{i:03d}", f"Category {i} of {name}", (i,)) for i in range(side)),
        )
        for name in "abc"
    )
    values = chance.integers(0, 10**6, shape)
    status = np.where(chance.random(shape) < 0.05, "N", "F")
    return Release(axes, values, status, {"method": "cell-key"}, low=values - 3, high=values + 3)


def files(side: int, rounds: int) -> None:
    """Write the release in every format."""
    release = release_of(side)
    columns = release_as_arrow(release)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        tasks: dict[str, Callable[[], Any]] = {
            "pyarrow, CSV": lambda: pyarrow.csv.write_csv(columns, io.BytesIO()),
            "CSV of an answer": lambda: Csv().write(release),
            "write_release, CSV": lambda: write_release(release, place / "t.csv"),
            "pyarrow, Parquet": lambda: pyarrow.parquet.write_table(columns, io.BytesIO()),
            "write_release, Parquet": lambda: write_release(release, place / "t.parquet"),
            "JSON-stat": lambda: JsonStat().write(release),
            "XLSX": lambda: Xlsx().write(release),
        }
        took: dict[str, list[float]] = {name: [] for name in tasks}
        for _ in range(rounds):
            for name, task in tasks.items():
                took[name].append(cpu(task))
    print(f"{release.published.size:,} cells")
    median = {name: statistics.median(seconds) for name, seconds in took.items()}
    for name, seconds in median.items():
        beside = "Parquet" if "Parquet" in name else "CSV"
        ratio = seconds / median[f"pyarrow, {beside}"]
        print(f"  {name:24}{seconds:7.2f} CPU s  {ratio:6.1f} x pyarrow's {beside}")
    print(f"  peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    files(asked.side, asked.rounds)


if __name__ == "__main__":
    main()
