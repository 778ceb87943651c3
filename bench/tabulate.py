"""Counting with summed keys: the embedded engine beside DuckDB's GROUP BY on its own table.

    python bench/tabulate.py [--records 20000000] [--repeats 7]

Both have the same number of threads and warm files; their runs alternate, and the ratio is that of the
medians. DuckDB is given every chance: its own table with the smallest integer types, and besides the same
64-bit keys also 32-bit ones, whose sum it computes faster. The peak memory of the embedded engine is that
of a process of its own that opens the dataset and answers, less what it had before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from lustrum.model import Dataset, TableQuery
from lustrum.tabulate import Store
from lustrum.tabulate.encode import Chunk

SIZES = {"age": 21, "occupation": 13, "education": 9, "region": 2}
QUERIES = {
    "three-way": ({"by": ["age", "occupation", "education"]}, ""),
    "three-way, one filter": (
        {"by": ["age", "occupation", "education"], "where": {"region": ["1"]}},
        "WHERE region = 0",
    ),
    "one-way": ({"by": ["age"]}, ""),
}


def describe() -> Dataset:
    """Four variables of the sizes of a census hypercube."""
    return Dataset.from_mapping(
        {
            "dataset": {"name": "bench"},
            "variables": [
                {"name": name, "codes": [str(i + 1) for i in range(size)]}
                for name, size in SIZES.items()
            ],
        }
    )


def make(store: Store, database: Path, records: int) -> None:
    """The same skewed records for both."""
    rng = np.random.default_rng(1)
    shares = {name: rng.dirichlet(np.full(size, 2.0)) for name, size in SIZES.items()}
    connection = duckdb.connect(str(database))
    columns = ", ".join(f"{name} UTINYINT" for name in SIZES)
    connection.execute(f"CREATE TABLE t ({columns}, key UBIGINT, key32 UINTEGER)")
    with store.replace(describe()) as writer:
        for start in range(0, records, 1 << 20):
            rows = min(1 << 20, records - start)
            codes = {
                name: np.searchsorted(np.cumsum(share)[:-1], rng.random(rows)).astype(np.uint8)
                for name, share in shares.items()
            }
            keys = rng.integers(0, 2**64, rows, dtype=np.uint64)
            writer.write(Chunk(rows, codes, keys=keys))
            batch = pa.table(
                codes | {"key": keys, "key32": (keys >> np.uint64(32)).astype(np.uint32)}
            )
            connection.register("batch", batch)
            connection.execute("INSERT INTO t SELECT * FROM batch")
    connection.close()


def median_times(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each, run in turn."""
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(s) for name, s in seconds.items()}


def peak_memory(root: Path) -> None:
    """Run in a process of its own: how much memory an answer takes above the start."""
    small = Store(root / "small").open("bench")
    query = TableQuery.from_mapping({"dataset": "bench"} | QUERIES["three-way"][0])
    small.tabulate(query)  # compiles the kernels, which is not the data's memory
    # A new process starts with its parent's peak; this forgets it.
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    engine = Store(root / "large").open("bench")
    engine.tabulate(query)
    after = peak()
    touched = sum(
        chunk.keys.nbytes
        + sum(chunk.codes[name].nbytes for name in ("age", "occupation", "education"))
        for chunk in engine.chunks
        if chunk.keys is not None
    )
    print(json.dumps({"grown": after - before, "touched": touched}))


def peak() -> int:
    """The peak of resident memory in bytes, mapped files included."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--peak-memory", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peak_memory:
        peak_memory(given.peak_memory)
        return
    threads = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make(Store(root / "small"), root / "small.duckdb", 10_000)
        print(f"Making {given.records:,} records …", file=sys.stderr)
        make(Store(root / "large"), root / "large.duckdb", given.records)
        engine = Store(root / "large").open("bench")
        connection = duckdb.connect(str(root / "large.duckdb"), read_only=True)
        connection.execute(f"SET threads = {threads}")
        print(f"{given.records:,} records, {threads} threads, median of {given.repeats}\n")
        print("| table | embedded | DuckDB, 64-bit keys | ratio | DuckDB, 32-bit keys | ratio |")
        print("|---|---|---|---|---|---|")
        for name, (words, where) in QUERIES.items():
            query = TableQuery.from_mapping({"dataset": "bench"} | words)
            axes = ", ".join(words["by"])
            sql = f"SELECT {axes}, count(*), sum({{key}}) FROM t {where} GROUP BY {axes}"
            runs: dict[str, Callable[[], object]] = {
                "own": lambda query=query: engine.tabulate(query),
                "wide": lambda sql=sql: connection.sql(sql.format(key="key")).fetchall(),
                "narrow": lambda sql=sql: connection.sql(sql.format(key="key32")).fetchall(),
            }
            own, wide, narrow = median_times(runs, given.repeats).values()
            print(
                f"| {name} | {own * 1e3:.0f} ms | {wide * 1e3:.0f} ms | {own / wide:.2f} "
                f"| {narrow * 1e3:.0f} ms | {own / narrow:.2f} |"
            )
        told = subprocess.run(
            [sys.executable, __file__, "--peak-memory", str(root)],
            check=True,
            capture_output=True,
            text=True,
        )
        memory = json.loads(told.stdout)
        print(
            f"\nPeak memory of the embedded engine: {memory['grown'] / 2**20:.0f} MiB for "
            f"{memory['touched'] / 2**20:.0f} MiB of encoded columns, "
            f"{memory['grown'] / memory['touched']:.2f} of them."
        )


if __name__ == "__main__":
    main()
