"""Counting with summed keys: the embedded engine beside DuckDB's GROUP BY on its own table.

    python bench/tabulate.py [--records 20000000] [--repeats 7] [--sorted] [--whole] [--cpu]

Both have the same number of threads and warm files; their runs alternate, and the ratio is that of the
medians. DuckDB is given every chance: its own table with the smallest integer types, and besides the same
64-bit keys also 32-bit ones, whose sum it computes faster. The peak memory of the embedded engine is that
of a process of its own that opens the dataset and answers, less what it had before. On a busy machine ``--cpu``
compares CPU seconds of all threads, those of DuckDB too, since it runs in the same process.

With ``--sorted`` the records are sorted by one of 400 areas, and questions are about some of them: the embedded
engine with the zones that it keeps, without them, and DuckDB, which keeps zones too. With ``--whole`` the same
records and a policy of cell keys: the time from a question to its decision, beside that of counting alone the
table that is asked for; once with nothing remembered of earlier questions, and once with the table of
everybody, which is the same for every filter.
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
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from parts.figures import record

from lustrum.answer.table_service import TableService
from lustrum.model import Dataset, TableQuery
from lustrum.numeric.counting.plan import Zones
from lustrum.policy.presets import preset
from lustrum.publish.records.local import LocalRecordsService
from lustrum.tabulate import KernelEngine, Store
from lustrum.tabulate.encode import Chunk

SIZES = {"age": 21, "occupation": 13, "education": 9, "region": 2}
AREAS = 400
DISTRICTS = 20
QUERIES = {
    "three-way": ({"by": ["age", "occupation", "education"]}, ""),
    "three-way, one filter": (
        {"by": ["age", "occupation", "education"], "where": {"region": ["1"]}},
        "WHERE region = 0",
    ),
    "one-way": ({"by": ["age"]}, ""),
}
BY_AREA = {
    "three-way, one area": (
        {"by": ["age", "occupation", "education"], "where": {"area": ["200"]}},
        "WHERE area = 199",
    ),
    "three-way, one district": (
        {"by": ["age", "occupation", "education"], "where": {"area": ["d10"]}},
        "WHERE area >= 180 AND area < 200",
    ),
    "three-way, half of all districts": (
        {
            "by": ["age", "occupation", "education"],
            "where": {"area": [f"d{i + 1}" for i in range(5, 15)]},
        },
        "WHERE area >= 100 AND area < 300",
    ),
    "three-way, everybody": ({"by": ["age", "occupation", "education"]}, ""),
    "age by area": ({"by": ["area", "age"]}, ""),
}
WHOLE: dict[str, dict[str, Any]] = {
    **{name: words for name, (words, _) in QUERIES.items()},
    "age by education, one area": {"by": ["age", "education"], "where": {"area": ["200"]}},
    "age by education, one district": {"by": ["age", "education"], "where": {"area": ["d10"]}},
    "age by area": {"by": ["area", "age"]},
}


def describe(areas: bool = False) -> Dataset:
    """Four variables of the sizes of a census hypercube, and areas in districts of 20 if asked for."""
    variables: list[dict[str, Any]] = [
        {"name": name, "codes": [str(i + 1) for i in range(size)]} for name, size in SIZES.items()
    ]
    if areas:
        codes = [str(i + 1) for i in range(AREAS)]
        groups = [
            {"code": f"d{i + 1}", "members": codes[i * DISTRICTS : (i + 1) * DISTRICTS]}
            for i in range(AREAS // DISTRICTS)
        ]
        levels = [{"name": "district", "groups": groups}]
        ladder = [{"name": "districts", "levels": levels}]
        variables.append({"name": "area", "codes": codes, "hierarchies": ladder})
    return Dataset.from_mapping({"dataset": {"name": "bench"}, "variables": variables})


def make(store: Store, database: Path, records: int, areas: bool = False) -> None:
    """The same skewed records for both, sorted by area if they have one."""
    rng = np.random.default_rng(1)
    shares = {name: rng.dirichlet(np.full(size, 2.0)) for name, size in SIZES.items()}
    ends = np.cumsum(rng.multinomial(records, rng.dirichlet(np.full(AREAS, 2.0))))
    connection = duckdb.connect(str(database))
    columns = ", ".join([*(f"{n} UTINYINT" for n in SIZES), *(["area USMALLINT"] if areas else [])])
    connection.execute(f"CREATE TABLE t ({columns}, key UBIGINT, key32 UINTEGER)")
    with store.replace(describe(areas)) as writer:
        for start in range(0, records, 1 << 20):
            rows = min(1 << 20, records - start)
            codes: dict[str, Any] = {
                name: np.searchsorted(np.cumsum(share)[:-1], rng.random(rows)).astype(np.uint8)
                for name, share in shares.items()
            }
            if areas:
                places = np.arange(start, start + rows)
                codes["area"] = np.searchsorted(ends, places, side="right").astype(np.uint16)
            keys = rng.integers(0, 2**64, rows, dtype=np.uint64)
            writer.write(Chunk(rows, codes, keys=keys))
            batch = pa.table(
                codes | {"key": keys, "key32": (keys >> np.uint64(32)).astype(np.uint32)}
            )
            connection.register("batch", batch)
            connection.execute("INSERT INTO t SELECT * FROM batch")
    connection.close()


clock: Callable[[], float] = time.perf_counter


def median_times(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each, run in turn."""
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = clock()
            run()
            seconds[name].append(clock() - start)
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


def beside(own: float, wide: float, narrow: float) -> dict[str, float]:
    """DuckDB's milliseconds with keys of 64 and of 32 bits, and ratios to them."""
    return {
        "DuckDB, 64-bit keys (ms)": wide * 1e3,
        "ratio": own / wide,
        "DuckDB, 32-bit keys (ms)": narrow * 1e3,
        "ratio to 32-bit keys": own / narrow,
    }


def compare_sorted(root: Path, connection: duckdb.DuckDBPyConnection, repeats: int) -> None:
    """Questions about areas: with zones, without, and by DuckDB."""
    begun = time.perf_counter()
    engine = Store(root / "large").open("bench")
    opened = time.perf_counter() - begun
    plain = KernelEngine(engine.dataset, engine.chunks)
    for name, (words, where) in BY_AREA.items():
        query = TableQuery.from_mapping({"dataset": "bench"} | words)
        axes = ", ".join(words["by"])
        sql = f"SELECT {axes}, count(*), sum({{key}}) FROM t {where} GROUP BY {axes}"
        own, other = engine.tabulate(query), plain.tabulate(query)
        assert own.values.tobytes() == other.values.tobytes()
        assert own.keys is not None
        assert other.keys is not None
        assert own.keys.tobytes() == other.keys.tobytes()
        rows = connection.sql(sql.format(key="key")).fetchall()
        cells = {tuple(np.array(row[:-2])): (row[-2], row[-1] % 2**64) for row in rows}
        assert len(cells) == np.count_nonzero(own.values)
        assert all((own.values[place], own.keys[place]) == found for place, found in cells.items())
        runs: dict[str, Callable[[], object]] = {
            "own": lambda query=query: engine.tabulate(query),
            "plain": lambda query=query: plain.tabulate(query),
            "wide": lambda sql=sql: connection.sql(sql.format(key="key")).fetchall(),
            "narrow": lambda sql=sql: connection.sql(sql.format(key="key32")).fetchall(),
        }
        zoned, without, wide, narrow = median_times(runs, repeats).values()
        times = {"embedded engine (ms)": zoned * 1e3, "without zones (ms)": without * 1e3}
        record("Counting some areas", {"table": name} | times | beside(zoned, wide, narrow))
    begun = time.perf_counter()
    Zones.of(engine.chunks, [variable.name for variable in engine.dataset.variables])
    noted = time.perf_counter() - begun
    print(f"\nBy the clock opening the dataset took {opened:.2f} s, its zones alone {noted:.3f} s.")


def compare_whole(root: Path, repeats: int) -> None:
    """From a question to its decision, beside counting the table that is asked for."""
    (root / "large" / "policies").mkdir()
    text = preset("cell-key", "bench").replace("nested_only = true", "nested_only = false")
    (root / "large" / "policies" / "bench.toml").write_text(text)
    records = LocalRecordsService(root / "large")
    service, engine = TableService(root / "large", records=records), records.engine("bench")
    for name, words in WHOLE.items():
        query = TableQuery.from_mapping({"dataset": "bench"} | words)

        def anew(query: TableQuery = query) -> object:
            engine._everybody.clear()
            return service.answer(query)

        decision = service.answer(query)
        assert decision.released, decision.reasons
        assert decision.release is not None
        runs: dict[str, Callable[[], object]] = {
            "counted": lambda query=query: engine.tabulate(query),
            "whole": anew,
            "again": lambda query=query: service.answer(query),
        }
        counted, whole, again = (1e3 * one for one in median_times(runs, repeats).values())
        record(
            "Whole answers beside counting",
            {
                "table": name,
                "cells": decision.release.published.size,
                "counted alone (ms)": counted,
                "nothing remembered (ms)": whole,
                "above 1.2 times (ms)": whole - 1.2 * counted,
                "everybody remembered (ms)": again,
                "remembered, above 1.2 times (ms)": again - 1.2 * counted,
            },
        )
    service.close()


def main() -> None:
    """Measure and print."""
    global clock
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--sorted", action="store_true", help="questions about areas, in order")
    parser.add_argument("--whole", action="store_true", help="from a question to its decision")
    parser.add_argument("--cpu", action="store_true", help="CPU seconds of all threads, if busy")
    parser.add_argument("--peak-memory", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peak_memory:
        peak_memory(given.peak_memory)
        return
    clock = time.process_time if given.cpu else time.perf_counter
    threads = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make(Store(root / "small"), root / "small.duckdb", 10_000)
        print(f"Making {given.records:,} records …", file=sys.stderr)
        by_area = given.sorted or given.whole
        make(Store(root / "large"), root / "large.duckdb", given.records, by_area)
        connection = duckdb.connect(str(root / "large.duckdb"), read_only=True)
        connection.execute(f"SET threads = {threads}")
        how = "of CPU seconds" if given.cpu else "by the clock"
        print(f"{given.records:,} records, {threads} threads, medians of {given.repeats} {how}")
        if given.sorted:
            compare_sorted(root, connection, given.repeats)
        if given.whole:
            compare_whole(root, given.repeats)
        if by_area:
            return
        engine = Store(root / "large").open("bench")
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
            times = {"embedded engine (ms)": own * 1e3}
            record("Counting", {"table": name} | times | beside(own, wide, narrow))
        told = subprocess.run(
            [sys.executable, __file__, "--peak-memory", str(root)],
            check=True,
            capture_output=True,
            text=True,
        )
        memory = json.loads(told.stdout)
        record(
            "Memory of counting",
            {
                "records": given.records,
                "peak above the start (MiB)": memory["grown"] / 2**20,
                "encoded columns (MiB)": memory["touched"] / 2**20,
                "ratio": memory["grown"] / memory["touched"],
            },
        )


if __name__ == "__main__":
    main()
