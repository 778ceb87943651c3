"""Large tables as files, beside pyarrow's writers of the same columns.

    python bench/outputs.py [--side 100] [--rounds 3]
    python bench/outputs.py --areas 190000

A release of ``side`` to the third power of cells, 5 % of them hidden, in every format. Tasks take turns; the
figures are medians of CPU seconds, and ratios to the writer of pyarrow for the same format, or else for CSV.

With ``--areas`` one table of a server's: a bundle of so many areas, asked for areas by age, employment
and citizenship (216 cells an area) as Parquet, which is made in the background.
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
from parts.figures import record

from lustrum.formats import Csv, JsonStat, Parquet, Xlsx, release_as_arrow, write_release
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
    return Release(axes, values, status, {"method": "cell-key"}, least=values - 3, most=values + 3)


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
            "Parquet of an answer": lambda: Parquet().write(release),
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
        figures = {"format": name, "CPU (s)": seconds, "ratio to pyarrow": ratio, "its": beside}
        record("A release as a file", figures)
    print(f"  peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


POLICY = """dataset = "areas"
rules = {max_dimensions = 4, max_cells = 100000000, nested_only = false}
risk = {limit = 1.0}
before = [{method = "protected-population", sweeps = 1, extra_tables = 0, max_variables = 1}]
protect = {method = "none"}
end = true
"""


def as_a_job(areas: int) -> None:
    """One large table from a server with a bundle."""
    from fastapi.testclient import TestClient
    from protected_areas import fill

    from lustrum.answer import TableService
    from lustrum.publish.bundles.make import make_bundle
    from lustrum.server import Settings, create_app
    from lustrum.tabulate import Store

    def held() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        fill(Store(place / "data"), areas, 5 * areas)
        (place / "policy.toml").write_text(POLICY)
        make_bundle(Store(place / "data"), "areas", place / "policy.toml", place / "areas")
        print(f"bundle made, most memory {held():.2f} GiB")
        service = TableService(bundles=[place / "areas"])
        app = create_app(service, Settings(rate="", memory=16384))
        link = "/api/v1/tables?dataset=areas&by=area&by=age&by=employment&by=citizenship"
        with TestClient(app, base_url="http://lustrum.test") as client:
            client.get("/api/v1/tables?dataset=areas&by=sex")
            begun = time.process_time()
            job = client.get(f"{link}&format=parquet").json()["links"]["self"]
            while (state := client.get(job).json())["state"] in ("waiting", "running"):
                time.sleep(0.2)
            made = time.process_time()
            file = client.get(f"{link}&format=parquet")
            written = time.process_time()
            rows = pyarrow.parquet.ParquetFile(io.BytesIO(file.content)).metadata.num_rows
            client.get(f"{link}&format=parquet")
            again = time.process_time()
        record(
            "One very large table over HTTP",
            {
                "cells": rows,
                "job": state["state"],
                "job (CPU s)": made - begun,
                "file (MiB)": len(file.content) / 2**20,
                "file (CPU s)": written - made,
                "file again (CPU s)": again - written,
                "memory (GiB)": held(),
            },
        )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--areas", type=int)
    asked = parser.parse_args()
    if asked.areas:
        as_a_job(asked.areas)
    else:
        files(asked.side, asked.rounds)


if __name__ == "__main__":
    main()
