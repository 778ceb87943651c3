"""Sums of a million-record register: noise, errors, the audit, and the time of a table of sums.

    python bench/magnitudes.py                          # everything, a million records
    python bench/magnitudes.py --records 200000         # smaller
    python bench/magnitudes.py --parts errors           # errors and audit only; also: table

Errors are relative, over the cells of all tables of up to three variables at every level that are not
sensitive by the p% rule. The cell key method gets tables at finest levels with its own parameters. Times of a
table alternate, and ratios are those of medians: the count of the same table, and DuckDB's GROUP BY of sum,
count and two largest on its own table, which does not know that several records belong to one holding.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
from parts.figures import record

from lustrum.answer import answer
from lustrum.demo import businesses, description_path
from lustrum.model import Axis, Dataset, TableQuery
from lustrum.model.records import Records
from lustrum.policy.read import parse_policy
from lustrum.protect.cell_key import CellKeyMagnitude
from lustrum.protect.magnitudes.check import audit_contributors
from lustrum.protect.magnitudes.method import ProtectedMagnitudes
from lustrum.publish.records import EngineNumbers
from lustrum.sensitivity import PPercent
from lustrum.tabulate import FrameEngine, KernelEngine, Secret, read_description, records_of

KEY = b"a key for benchmarks, 32 bytes.."


def register(count: int) -> tuple[Dataset, pa.Table]:
    """The demo register with turnover as its only measure."""
    described = read_description(description_path("businesses"))
    turnover = replace(described.measure("turnover"), parts=(), earlier=None)
    dataset = replace(described, measures=(turnover,), weights=())
    return dataset, businesses(count)


def errors(records: Records, asked: list[str]) -> None:
    """Seconds, errors and the audit of the noise, for several protections such as ``5`` or ``5:secret``."""
    ProtectedMagnitudes().protect(records.take(np.arange(2000)), KEY)  # compiles the kernels
    for words in asked:
        percent, _, directions = words.partition(":")
        p = float(percent)
        directions = directions or "known"
        spec = ProtectedMagnitudes(p=p, directions=directions)  # type: ignore[arg-type]
        start, used = time.perf_counter(), time.process_time()
        made = spec.protect(records, KEY)
        seconds, used = time.perf_counter() - start, time.process_time() - used
        own = made.agency.of("turnover")
        rates = "; ".join(
            f"from {size:,}: {plain:.0f} %, {known:.0f} % with the direction"
            for size, (plain, known) in sorted(own.guessed.items())
        )
        audit = audit_contributors(
            records, made.records["turnover"], "turnover", spec.factors, spec.share
        )
        record(
            "Protected sums: errors and audit",
            {
                "method": f"protected-magnitudes, p = {p:g}, directions {directions}",
                "clock (s)": seconds,
                "CPU (s)": used,
                "mean error (%)": own.mean,
                "median error (%)": own.median,
                "error of the total (%)": own.total,
                "cells": own.cells + own.sensitive,
                "sensitive": own.sensitive,
                "certain within p %": audit.certain,
                "certain if the direction is known": audit.certain_with_direction,
                "certain only below (units)": audit.from_units,
                "protected too little": audit.unprotected,
            },
        )
        print(f"  guessed within p percent: {rates}", flush=True)
        by = ", ".join(f"{k}: {v:.2f} %" for k, v in own.by_variables.items())
        print(f"  mean errors by variables: {by}", flush=True)


def keyed(engine: KernelEngine) -> None:
    """The same errors of the cell key method, over tables of one to three variables at finest levels."""
    for p in (5.0, 10.0):
        spec = CellKeyMagnitude(p_percent=p, extra=0.5, flex_point=1000.0, small=0.2, large=0.03)
        relative, total = [], 0.0
        for names in (
            (),
            ("activity",),
            ("area",),
            ("size",),
            ("activity", "size"),
            ("activity", "area"),
            ("size", "area"),
            ("activity", "size", "area"),
        ):
            query = TableQuery("businesses", tuple(Axis(n) for n in names), measure="turnover")
            table = engine.tabulate(query, ranks=2)
            found = np.abs(spec.apply(table).published - table.values)
            open_cells = (table.values > 0) & ~PPercent(p=p).judge(table).mask
            share = 100 * found[open_cells] / table.values[open_cells]
            relative.append(share)
            if not names:
                total = float(share.max(initial=0))
        every = np.concatenate(relative)
        record(
            "Sums by cell keys, which do not add up",
            {
                "method": f"cell-key-magnitude, p = {p:g}",
                "mean error (%)": float(every.mean()),
                "median error (%)": float(np.median(every)),
                "error of the total (%)": total,
            },
        )


def medians(
    runs: dict[str, Callable[[], object]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median milliseconds of each, run in turn."""
    for run in runs.values():
        run()
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = clock()
            run()
            taken[name].append(1000 * (clock() - start))
    return {name: statistics.median(times) for name, times in taken.items()}


def tables(engine: KernelEngine, table: pa.Table, repeats: int) -> None:
    """A three-way table of sums with its two largest contributors, beside its count and DuckDB."""
    axes = (Axis("activity", total=True), Axis("size", total=True), Axis("region", total=True))
    sums = TableQuery("businesses", axes, measure="turnover")
    connection = duckdb.connect()
    connection.execute(f"SET threads = {len(os.sched_getaffinity(0))}")
    names = ["activity", "size", "region"]
    codes = {n: table.column(n).combine_chunks().indices.cast(pa.uint8()) for n in names}
    connection.register("given", pa.table(codes | {"turnover": table.column("turnover")}))
    connection.execute("CREATE TABLE t AS SELECT * FROM given")
    by = ", ".join(names)
    flat = f"SELECT {by}, sum(turnover), count(*), max(turnover, 2) FROM t GROUP BY {by}"
    cube = f"SELECT {by}, sum(turnover), count(*), max(turnover, 2) FROM t GROUP BY CUBE ({by})"
    found = medians(
        {
            "count": lambda: engine.tabulate(TableQuery("businesses", axes)),
            "sum": lambda: engine.tabulate(sums, ranks=2),
            "duckdb": lambda: connection.sql(flat).fetchall(),
            "duckdb cube": lambda: connection.sql(cube).fetchall(),
        },
        repeats,
    )
    for name, taken in found.items():
        ratio = found["sum"] / taken
        record(
            "A table of sums with its two largest contributors",
            {"what": name, "took (ms)": taken, "ratio of the sums": ratio},
        )


FIVE_STEPS = """dataset = "businesses"
protect = {method = "cell-key"}
sums = {method = "cell-key-magnitude", p_percent = 10.0, extra = 1.0, large = 0.1}
rules = {max_dimensions = 3, nested_only = false}
risk = {limit = 1.0}
end = true
"""


def five_steps(engine: KernelEngine, repeats: int) -> None:
    """The same table through all five steps: rules, protection, risk and utility, answer."""
    policy = parse_policy(FIVE_STEPS.encode(), "the policy of the benchmark")
    numbers = EngineNumbers(engine, policy)
    axes = (Axis("activity", total=True), Axis("size", total=True), Axis("region", total=True))

    def asked(measure: str | None) -> None:
        decision = answer(TableQuery("businesses", axes, measure=measure), numbers, policy)
        assert decision.released, decision.reasons

    found = medians(
        {"count": lambda: asked(None), "sum": lambda: asked("turnover")}, repeats, time.process_time
    )
    wall = medians({"count": lambda: asked(None), "sum": lambda: asked("turnover")}, repeats)
    for name in wall:
        figures = {"question": name, "clock (ms)": wall[name], "CPU (ms)": found[name]}
        record("Sums through all five steps", figures | {"ratio": wall[name] / wall["count"]})


def protection(words: str) -> str:
    """The words of a protection, if they are a percentage and directions."""
    percent, _, directions = words.partition(":")
    if not percent.replace(".", "", 1).isdigit() or directions not in ("", "known", "secret"):
        raise argparse.ArgumentTypeError(f"write {words!r} as 10, 10:known or 10:secret")
    return words


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--records", type=int, default=1_000_000)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--parts", nargs="+", default=["errors", "keyed", "table"])
    options.add_argument(
        "--protections",
        nargs="+",
        type=protection,
        default=["5:known", "10:known", "5:secret"],
        help="p, and whether directions are 'known' (by default) or 'secret', such as 5:secret",
    )
    given = options.parse_args()
    dataset, table = register(given.records)
    engine = FrameEngine(table, dataset, Secret(KEY))
    if "table" in given.parts:
        tables(engine, table, given.repeats)
        five_steps(engine, given.repeats)
    if "keyed" in given.parts:
        keyed(engine)
    if "errors" in given.parts:
        errors(records_of(engine), given.protections)


if __name__ == "__main__":
    main()
