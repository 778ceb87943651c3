"""How the work grows with people and with areas: counting, protecting, opening, answering.

    python bench/growth.py --sizes 1500000:158 6000000:158 200000:5000
    python bench/growth.py --check --deep

A size is people and areas. Every step runs in a process of its own; figures are CPU seconds, so that other
work on the machine matters little, and the most memory of the process. ``--check`` runs small sizes in a few
minutes and ends with 1 where counting grows faster than the records, protecting faster than the areas, or an
answer from a bundle with the number of people; with ``--deep`` it reaches 190,000 areas.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from parts.figures import record
from protected_areas import POLICY, fill

from lustrum.model import TableQuery
from lustrum.tabulate import Store

NAMES = ("sex", "age", "employment", "citizenship", "marital")
THREE_WAY: dict[str, Any] = {"dataset": "areas", "by": ["age", "employment", "citizenship"]}
QUESTIONS = 200
SWEEPS = 3
# People and areas of the check: four times the people in as many areas, then more areas of twelve people each.
PEOPLE = ((300_000, 158), (1_200_000, 158))
AREAS = ((60_000, 5_000), (240_000, 20_000), (2_280_000, 190_000))


def cpu(task: Callable[[], Any]) -> float:
    """CPU seconds of a task."""
    began = time.process_time()
    task()
    return time.process_time() - began


def made(root: Path, people: int, areas: int) -> dict[str, float]:
    """Invent the people and write them as the store has them."""
    store = Store(root)
    spent = cpu(lambda: fill(store, areas, people))
    (root / "policies").mkdir(exist_ok=True)
    (root / "policies" / "areas.toml").write_text(POLICY.format(sweeps=SWEEPS, extra=100))
    return {"made": spent}


def counted(root: Path, people: int, areas: int) -> dict[str, float]:
    """A three-way table with sums of keys, and the same by DuckDB from its own table."""
    engine = Store(root).open("areas")
    query = TableQuery.from_mapping(THREE_WAY)
    connection = duckdb.connect()
    columns = ", ".join(f"{name} UTINYINT" for name in THREE_WAY["by"])
    connection.execute(f"CREATE TABLE t ({columns}, key UBIGINT)")
    for chunk in engine.chunks:
        batch = pa.table(
            {name: chunk.codes[name] for name in THREE_WAY["by"]} | {"key": chunk.keys}
        )
        connection.register("batch", batch)
        connection.execute("INSERT INTO t SELECT * FROM batch")
    axes = ", ".join(THREE_WAY["by"])
    sql = f"SELECT {axes}, count(*), sum(key) FROM t GROUP BY {axes}"
    ways: dict[str, Callable[[], Any]] = {
        "count": lambda: engine.tabulate(query),
        "duckdb": lambda: connection.sql(sql).fetchall(),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(6):
        for name, way in ways.items():
            seconds = cpu(way)
            if turn:  # the first one compiles and reads files
                spent[name].append(seconds)
    connection.close()
    return {name: statistics.median(found) for name, found in spent.items()}


def protected(root: Path, people: int, areas: int) -> dict[str, float]:
    """``lustrum protect``, with few sweeps."""
    from rich.console import Console

    from lustrum.cli.protect import protect_dataset

    results: list[Any] = []
    console = Console(stderr=True, quiet=True)
    spent = cpu(lambda: results.append(protect_dataset("areas", root, console)))
    return {
        "protect": spent,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "cells": len(results[0].cells),
        "bundle": len(results[0].result.cells),
    }


def drawn() -> Iterator[TableQuery]:
    """The same questions for every size: up to three variables, areas as regions, some with a filter."""
    chance = np.random.default_rng(5)
    regions: dict[str, Any] = {"variable": "area", "level": "region"}
    for _ in range(QUESTIONS):
        names = chance.permutation([*NAMES, "region"])[: 1 + int(chance.integers(3))]
        words: dict[str, Any] = {"dataset": "areas", "totals": bool(chance.integers(2))}
        words["by"] = [regions if name == "region" else str(name) for name in names]
        if "sex" not in names and chance.integers(2):
            words["where"] = {"sex": [str(1 + int(chance.integers(2)))]}
        yield TableQuery.from_mapping(words)


def answered(root: Path, people: int, areas: int) -> dict[str, float]:
    """Open the bundle as a server does, and answer from it."""
    from lustrum.answer import TableService

    queries = list(drawn())
    for turn in range(2):  # the first time imports what it needs
        began = time.process_time()
        service = TableService(bundles=[root / "bundles" / "areas"], workers=1)
        service.answer(queries[0])
        opening = time.process_time() - began
        if not turn:
            service.close()
    for query in queries[:20]:  # what is worked out once for a shape
        service.answer(query)
    spent = [cpu(lambda query=query: service.answer(query)) for query in queries[20:]]  # type: ignore[misc]
    service.close()
    return {"open": opening, "answer": 1000 * statistics.median(spent)}


STEPS = {"made": made, "counted": counted, "protected": protected, "answered": answered}


def measured(people: int, areas: int) -> dict[str, float]:
    """All figures of a size, each step in a process of its own."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:
            command = [sys.executable, __file__, "--step", step, "--sizes", f"{people}:{areas}"]
            done = subprocess.run(
                [*command, "--data", folder], check=True, stdout=subprocess.PIPE, text=True
            )
            figures |= json.loads(done.stdout.splitlines()[-1])
    return figures


def tell(people: int, areas: int, found: dict[str, float], title: str = "Growth") -> None:
    """Record one size."""
    record(
        title,
        {
            "people": people,
            "areas": areas,
            "finest cells": found["cells"],
            "three-way count (CPU s)": found["count"],
            "ratio to DuckDB": found["count"] / found["duckdb"],
            "protect (CPU s)": found["protect"],
            "memory (GiB)": found["memory"],
            "cells of the bundle": found["bundle"],
            "open (CPU s)": found["open"],
            "an answer (CPU ms)": found["answer"],
        },
    )


def power(first: dict[str, float], second: dict[str, float], name: str, by: float) -> float:
    """With which power of ``by`` a figure grows."""
    return math.log(second[name] / first[name]) / math.log(by)


def checked(deep: bool) -> bool:
    """Whether small sizes grow as they should; the limits leave room for what every process begins with."""
    sizes = (*PEOPLE, *AREAS[: 3 if deep else 2])
    rows = []
    for size in sizes:
        rows.append(measured(*size))
        tell(*size, rows[-1], "Growth in the check")
    (_, fewer), (_, more) = sizes[-2:]
    found = {
        "counting, by people": (power(*rows[:2], "count", 4), 1.15),
        f"protecting, from {fewer:,} to {more:,} areas": (
            power(*rows[-2:], "protect", more / fewer),
            1.05,
        ),
        "an answer from a bundle, by people": (power(*rows[:2], "answer", 4), 0.35),
    }
    for name, (grown, limit) in found.items():
        record("Powers of growth", {"what": name, "power": grown, "limit": limit})
    return all(grown <= limit for grown, limit in found.values())


def main() -> int:
    """Measure and print, or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=["1500000:158"], help="people:areas")
    parser.add_argument("--check", action="store_true", help="small sizes only, with limits")
    parser.add_argument("--deep", action="store_true", help="check up to 190,000 areas")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.check:
        return 0 if checked(given.deep) else 1
    sizes = [tuple(map(int, size.split(":"))) for size in given.sizes]
    if given.step:
        print(json.dumps(STEPS[given.step](given.data, *sizes[0])))
        return 0
    for people, areas in sizes:
        tell(people, areas, measured(people, areas))
    return 0


if __name__ == "__main__":
    sys.exit(main())
