"""A protected population in blocks: memory, time and errors by how many blocks there are.

    python bench/blocks.py --areas 2000 --people 150000 --blocks 1 4 16 64

The same invented people as in the bench of very many areas, whose areas a further level groups into so many
blocks. Every number of blocks is protected in a process of its own, from the same finest cells; with one block
the dataset is not divided. Errors are those of tables that cross blocks, of tables by area, and the largest.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from parts.figures import record
from protected_areas import fill, people_description

from lustrum.model import Dataset
from lustrum.model.finest import FinestCells
from lustrum.protect import ProtectedPopulation
from lustrum.tabulate import Store
from lustrum.tabulate.finest import finest_cells

KEY = bytes(range(32))


def divided(areas: int, blocks: int) -> Dataset:
    """The description of the people, with a level of so many blocks; errors in tables by it are left out."""
    words = people_description(areas)
    area = words["variables"][0]
    codes = [code for code, _ in area["codes"]]
    groups = [
        {"code": f"B{number}", "members": [str(code) for code in chosen]}
        for number, chosen in enumerate(np.array_split(np.array(codes), blocks))
    ]
    area["hierarchies"] = [
        {"name": "blocks", "levels": [{"name": "block", "groups": groups}]},
        {
            "name": "kinds",
            "levels": [
                {
                    "name": "kind",
                    "groups": [{"code": f"K{k}", "members": codes[k::4]} for k in range(4)],
                }
            ],
        },
    ]
    words["dataset"]["blocks"] = "area:block"
    return Dataset.from_mapping(words)


def most_memory() -> float:
    """GiB that this process held at most; ``getrusage`` would count what its parent held as well."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


def protected(root: Path, areas: int, blocks: int, sweeps: int, processes: int) -> dict[str, Any]:
    """Protect the finest cells in so many blocks; gives what that took."""
    with np.load(root / "cells.npz") as held:
        cells = FinestCells(divided(areas, blocks), held["codes"], held["counts"], held["keys"])
    before = most_memory()
    method = ProtectedPopulation(sweeps=sweeps, extra_tables=200)
    clock = time.perf_counter()
    result = method.protect(cells, KEY, processes=processes)
    seconds = time.perf_counter() - clock
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    tables = [t for t in result.agency.tables if t.variables <= method.max_variables]
    crossing = [t for t in tables if "area" not in t.label or "area:kind" in t.label]
    within = [t for t in tables if "area" in t.label and "area:" not in t.label]

    def mean(chosen: list) -> float:  # type: ignore[type-arg]
        return sum(t.total for t in chosen) / max(sum(t.occupied for t in chosen), 1)

    return {
        "blocks": blocks,
        "processes": processes,
        "finest cells": len(cells),
        "CPU (s)": sum(one.ru_utime + one.ru_stime for one in used),
        "clock (s)": seconds,
        "peak (GiB)": most_memory(),
        "before (GiB)": before,
        "mean error, crossing": mean(crossing),
        "largest, crossing": max(t.largest for t in crossing),
        "mean error, by area": mean(within),
        "largest": max(t.largest for t in tables),
    }


def main() -> None:
    """Invent and count people, and protect them once for each number of blocks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--areas", type=int, default=2_000)
    parser.add_argument("--people", type=int, default=150_000)
    parser.add_argument("--sweeps", type=int, default=12)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--blocks", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.data is not None:
        (blocks,) = asked.blocks
        found = protected(asked.data, asked.areas, blocks, asked.sweeps, asked.processes)
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "data")
        fill(store, asked.areas, asked.people)
        cells = finest_cells(store.open("areas"))
        np.savez(
            Path(folder) / "cells.npz", codes=cells.codes, counts=cells.counts, keys=cells.keys
        )
        sizes = ["--areas", str(asked.areas), "--sweeps", str(asked.sweeps)]
        for blocks in asked.blocks:
            words = [
                "--blocks",
                str(blocks),
                "--processes",
                str(1 if blocks < 2 else asked.processes),
            ]
            command = [sys.executable, __file__, *sizes, *words, "--data", folder]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            title = f"Blocks: {asked.areas:,} areas, {asked.people:,} people, {asked.sweeps} sweeps"
            record(title, json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
