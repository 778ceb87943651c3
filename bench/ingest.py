"""Ingest of a Parquet file, beside DuckDB making its own table of it and pyarrow reading it whole.

    python bench/ingest.py [--millions 1.5 6 15] [--variables 8] [--ids shuffled] [--row-group 122880]

The file is invented and written in batches. Every task runs in a process of its own with as many threads as
there are processors. Seconds are those of the task alone, of all processors and by the clock; the peak memory
is that of the whole process, with all that it imports. DuckDB makes a table in its own file with CREATE TABLE
AS SELECT, and checks neither codes nor record ids, which the ingest does. At the end both are asked for the
same counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from parts.figures import record

SIZES = (101, 2, 43, 9, 38, 6, 24, 12, 256, 5, 3, 17, 8, 21, 13, 4, 7, 60, 11, 2)
BATCH = 1 << 20
POOL = 8  # batches of codes that are drawn for each variable and used in turn
TASKS = ("lustrum", "duckdb", "pyarrow")


def names(variables: int) -> dict[str, int]:
    """The variables and how many codes each has."""
    return {f"v{i + 1}": SIZES[i % len(SIZES)] for i in range(variables)}


def make(path: Path, records: int, variables: int, ids: str, row_group: int) -> None:
    """Write skewed records, a batch at a time."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    chance = np.random.default_rng(1)
    count = min(BATCH, records)
    pools: list[list[pa.Array]] = []
    for size in names(variables).values():
        share = np.cumsum(chance.dirichlet(np.full(size, 2.0)))[:-1]
        entries = pa.array([str(i + 1) for i in range(size)])
        drawn = [np.searchsorted(share, chance.random(count)) for _ in range(POOL)]
        codes = [pa.array(one.astype(np.int16 if size > 100 else np.int8)) for one in drawn]
        pools.append([pa.DictionaryArray.from_arrays(one, entries) for one in codes])
    writer: pq.ParquetWriter | None = None
    for number, start in enumerate(range(0, records, BATCH)):
        count = min(BATCH, records - start)
        place = np.arange(start, start + count, dtype=np.uint64)
        # Odd multiples modulo a power of two meet no number twice.
        shuffled = (place * np.uint64(0x9E3779B97F4A7C15)) % np.uint64(1 << 40)
        columns: dict[str, pa.Array] = {}
        if ids == "ascending":
            columns["id"] = pa.array(place.astype(np.int64))
        elif ids == "shuffled":
            columns["id"] = pa.array(shuffled.astype(np.int64))
        elif ids == "text":
            columns["id"] = pa.array([f"P{i:012d}" for i in shuffled.tolist()])
        for i, (name, pool) in enumerate(zip(names(variables), pools, strict=True)):
            # Other parts of the pool beside each other in every batch.
            columns[name] = pool[(number // POOL**i + number * (i + 1)) % POOL].slice(0, count)
        table = pa.table(columns)
        # Without Arrow's own description in the file the columns are plain texts.
        writer = writer or pq.ParquetWriter(path, table.schema, store_schema=False)
        writer.write_table(table, row_group_size=row_group)
    assert writer is not None
    writer.close()


def describe(variables: int, ids: str) -> Any:
    """The dataset that the file holds."""
    from lustrum.model import Dataset

    head = {"name": "bench"} | ({} if ids == "none" else {"record_id": "id"})
    return Dataset.from_mapping(
        {
            "dataset": head,
            "variables": [
                {"name": name, "codes": [str(i + 1) for i in range(size)]}
                for name, size in names(variables).items()
            ],
        }
    )


def task(kind: str, folder: Path, variables: int, ids: str) -> dict[str, Any]:
    """Do one of the tasks, and say what it took."""
    file = folder / "people.parquet"
    threads = len(os.sched_getaffinity(0))
    out: dict[str, Any] = {}
    if kind == "lustrum":
        from lustrum.tabulate import FileSource, Store, ingest

        dataset, store = describe(variables, ids), Store(folder / "store")
        begun = spent()
        rows = ingest(FileSource(file), dataset, store)
        ended = spent()
        home = store.root / "bench" / store.version("bench")
        identities = 0 if ids == "none" else 8
        out["records"] = (home / "records.arrow").stat().st_size / rows
        out["codes"] = (out["records"] - identities) / variables
        out["keys"] = (home / "keys.arrow").stat().st_size / rows
    elif kind == "duckdb":
        import duckdb

        begun = spent()
        with duckdb.connect(str(folder / "people.duckdb"), config={"threads": threads}) as base:
            base.execute(f"CREATE TABLE people AS SELECT * FROM read_parquet('{file}')")
            base.execute("CHECKPOINT")
        ended = spent()
    elif kind == "pyarrow":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pa.set_cpu_count(threads)
        begun = spent()
        pq.read_table(file)
        ended = spent()
    out["seconds"], out["cpu"] = (
        after - before for before, after in zip(begun, ended, strict=True)
    )
    out["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return out


def spent() -> tuple[float, float]:
    """The clock, and the CPU seconds of this process with all of its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), used.ru_utime + used.ru_stime


def compare(folder: Path) -> None:
    """Ask both for the counts of all codes of the first variable."""
    import duckdb

    from lustrum.model import TableQuery
    from lustrum.tabulate import Store

    engine = Store(folder / "store").open("bench")
    query = TableQuery.from_mapping({"dataset": "bench", "by": ["v1"]})
    counts = [int(count) for count in engine.tabulate(query).values]
    with duckdb.connect(str(folder / "people.duckdb"), read_only=True) as base:
        rows = base.execute("SELECT v1, count(*) FROM people GROUP BY v1").fetchall()
    expected = dict(rows)
    assert counts == [expected.get(str(i + 1), 0) for i in range(len(counts))]


def child(*words: object) -> str:
    """Run this file in a process of its own; this one stays small, for its memory would be counted too."""
    command = [sys.executable, __file__, *(str(word) for word in words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def measure(records: int, given: argparse.Namespace) -> None:
    """One row: all tasks on one file, in turn."""
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        same = ("--folder", folder, "--variables", given.variables, "--ids", given.ids)
        child("--child", "make", *same, "--records", records, "--row-group", given.row_group)
        took: dict[str, list[dict[str, Any]]] = {kind: [] for kind in given.tasks}
        for _ in range(given.repeats):
            for kind in given.tasks:
                if kind == "lustrum":
                    shutil.rmtree(folder / "store", ignore_errors=True)
                (folder / "people.duckdb").unlink(missing_ok=True) if kind == "duckdb" else None
                took[kind].append(json.loads(child("--child", kind, *same)))
        if {"lustrum", "duckdb"} <= set(given.tasks):
            child("--child", "compare", *same)
    own = {
        key: statistics.median(one[key] for one in took["lustrum"]) for key in took["lustrum"][0]
    }
    figures = {
        "records (million)": records / 1e6,
        "variables": given.variables,
        "CPU (s)": own["cpu"],
        "records (million a CPU s)": records / own["cpu"] / 1e6,
        "records (million a s)": records / own["seconds"] / 1e6,
        "peak (MiB)": own["peak"] / 2**20,
        "bytes a record and variable": own["codes"],
    }
    for kind, name in {"duckdb": "DuckDB", "pyarrow": "pyarrow"}.items():
        for key, what in {"cpu": "CPU", "seconds": "clock", "peak": "memory"}.items():
            if kind in took:
                theirs = statistics.median(one[key] for one in took[kind])
                figures[f"{what}, ratio to {name}"] = own[key] / theirs
    record(f"Ingest, {given.ids} ids", figures)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--millions", type=float, nargs="+", default=[1.5, 6, 15])
    parser.add_argument("--variables", type=int, default=8)
    parser.add_argument(
        "--ids", choices=("none", "ascending", "shuffled", "text"), default="shuffled"
    )
    parser.add_argument("--row-group", type=int, default=122_880)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--folder", type=Path, help="where the files are made and removed")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--records", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child == "make":
        path = given.folder / "people.parquet"
        make(path, given.records, given.variables, given.ids, given.row_group)
    elif given.child == "compare":
        compare(given.folder)
    elif given.child:
        print(json.dumps(task(given.child, given.folder, given.variables, given.ids)))
    else:
        processors, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
        print(
            f"{processors} processors, load {load:.1f}, {given.ids} record ids, "
            f"row groups of {given.row_group:,}, median of {given.repeats}"
        )
        for millions in given.millions:
            measure(round(millions * 1e6), given)


if __name__ == "__main__":
    main()
