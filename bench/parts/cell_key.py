"""Cell-keying a census hypercube with all its totals, from records to published numbers.

    python bench/parts/cell_key.py FOLDER [--repeats 5]

FOLDER holds the demo census (``lustrum demo``): 1.5 million records, of which seven variables with their totals
span 997,920 cells. Beside it, in the same run, the plain way: DuckDB counts every grouping set and sums
the keys, and pandas merges a lookup table by count and key. Both start from data that was read before. The
peak memory is that of a process of its own, less what it had before the first table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from figures import record

from lustrum.model import Axis, TableQuery
from lustrum.protect.cell_key import CellKey, PTable
from lustrum.protect.perturbation.design import PerturbationDesign, design
from lustrum.tabulate import Engine, Store

VARIABLES = ("region", "sex", "age", "employment", "occupation", "education", "citizenship")
INNER = TableQuery("demo", tuple(Axis(name) for name in VARIABLES))
WHOLE = INNER.with_totals
METHODS = {
    "designed, totals guarded": CellKey(ptable=PerturbationDesign(3, 1.0)),
    "designed, totals on their own": CellKey(ptable=PerturbationDesign(3, 1.0), totals="own"),
    "preset of Shlomo et al. (2015), guarded": CellKey(),
}


def best(run: Callable[[], object], repeats: int) -> float:
    """The least seconds of several runs, after one to warm up."""
    run()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def plain_way(engine: Engine) -> Callable[[], pd.DataFrame]:
    """DuckDB's CUBE over the same columns, and a merge with the lookup table in pandas."""
    chunks = engine.chunks  # type: ignore[attr-defined]
    columns = {name: np.concatenate([c.codes[name] for c in chunks]) for name in VARIABLES}
    columns["key"] = np.concatenate([c.keys for c in chunks])
    connection = duckdb.connect()
    connection.register("records", pa.table(columns))
    connection.execute("CREATE TABLE t AS SELECT * FROM records")
    ptable = PTable.of_matrix("bench", design(3, 1.0), 8)
    rows, keys = np.indices(ptable.steps.shape)
    lookup = pd.DataFrame(
        {"pcv": rows.ravel(), "ckey": keys.ravel(), "pvalue": ptable.steps.ravel()}
    )
    names = ", ".join(VARIABLES)
    sql = (
        f"SELECT {names}, count(*) AS n, (sum(key) % 256)::BIGINT AS ckey "
        f"FROM t GROUP BY CUBE ({names})"
    )
    last = len(ptable.steps) - 1

    def run() -> pd.DataFrame:
        cells = connection.sql(sql).df()
        cells["pcv"] = cells["n"].clip(upper=last)
        merged = cells.merge(lookup, on=["pcv", "ckey"], how="left")
        merged["count"] = merged["n"] + merged["pvalue"]
        return merged

    return run


def peak_memory(folder: Path) -> None:
    """Run in a process of its own: the memory of the whole table above the start."""
    engine, method = Store(folder).open("demo"), METHODS["designed, totals guarded"]
    small = TableQuery("demo", (Axis("sex", total=True), Axis("region", total=True)))
    method.apply(engine.tabulate(small))  # compiles and loads what is not the data's memory
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak of the parent
    before = peak()
    method.apply(engine.tabulate(WHOLE))
    print(json.dumps({"grown": peak() - before}))


def peak() -> int:
    """The peak of resident memory in bytes, mapped files included."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def main() -> None:
    """Measure and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peak-memory", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peak_memory:
        peak_memory(given.folder)
        return
    engine = Store(given.folder).open("demo")
    whole, inner = engine.tabulate(WHOLE), engine.tabulate(INNER)
    print(f"{int(whole.values.ravel()[-1]):,} records; best of {given.repeats}")
    for table, query, name in ((whole, WHOLE, "all totals"), (inner, INNER, "inner cells alone")):
        seconds = best(lambda query=query: engine.tabulate(query), given.repeats)
        tell(f"tabulated with summed keys, {name}", table.values.size, seconds)
    for name, method in METHODS.items():
        seconds = best(lambda method=method: method.apply(whole), given.repeats)
        tell(f"cell-keyed, {name}", whole.values.size, seconds)
    method = METHODS["designed, totals guarded"]
    own = best(lambda: method.apply(engine.tabulate(WHOLE)), given.repeats)
    tell("both, totals guarded", whole.values.size, own)
    part = best(lambda: method.apply(engine.tabulate(INNER)), given.repeats)
    tell("both, inner cells alone", inner.values.size, part)
    plain = plain_way(engine)
    slow = best(plain, max(1, given.repeats // 2))
    tell("DuckDB CUBE and a merge in pandas, no empty cells", len(plain()), slow)
    told = subprocess.run(
        [sys.executable, __file__, str(given.folder), "--peak-memory"],
        check=True,
        capture_output=True,
        text=True,
    )
    grown = json.loads(told.stdout)["grown"]
    print(f"\n{slow / own:.1f} times as fast as the plain way, which fills in no empty cell,")
    print(
        f"guards no total and gives no bounds. Peak memory: {grown / 2**20:.0f} MiB above the start."
    )


def tell(step: str, cells: int, seconds: float) -> None:
    """Record one step."""
    record("Cell key", {"step": step, "cells": cells, "took (s)": seconds}, "perturb")


if __name__ == "__main__":
    main()
