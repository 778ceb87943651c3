"""Controlled rounding of two-way tables by network flow, beside HiGHS on the same problem, as markdown.

Run it from the root of the project: ``python bench/parts/rounding_two_way.py``. With ``--data FOLDER`` it reads
the table ``f2_200.csv.gz`` (columns v1, v2, freq) from there or from the folder ``tables`` in it; without, a
like one is drawn. Both solvers must find the same distance, and every number must become an adjacent multiple,
which is checked. HiGHS is asked from scratch, once for whole numbers and once for any.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from figures import record
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from lustrum.model.arrays import Ints
from lustrum.protect.rounding.controlled.method import unbiased_rounding
from lustrum.protect.rounding.controlled.two_way import CirculationLayout, nearest_rounding

NAME = "f2_200.csv.gz"


def drawn(size: int) -> Ints:
    """Counts with many small ones: negative binomial with mean 9."""
    return np.random.default_rng(size).negative_binomial(1, 0.1, (size, size)).astype(np.int64)


def read(folder: Path) -> Ints:
    """The table of a folder, without its totals if it has any."""
    found = [path for path in (folder / "tables" / NAME, folder / NAME) if path.is_file()]
    if not found:
        raise SystemExit(f"There is no {NAME} in that folder, nor in its folder 'tables'.")
    with gzip.open(found[0], "rt", newline="") as lines:
        cells = {
            (line["v1"], line["v2"]): int(line["freq"])
            for line in csv.DictReader(lines)
            if "Total" not in (line["v1"], line["v2"])
        }
    rows, columns = (sorted({key[axis] for key in cells}) for axis in (0, 1))
    return np.array([[cells.get((r, c), 0) for c in columns] for r in rows], dtype=np.int64)


def by_highs(values: Ints, base: int, groups: list[list[int]], whole: bool) -> int:
    """The least distance: one variable a published number, one equation a sum."""
    height, width = values.shape
    over = np.zeros((len(groups), height))
    for place, rows in enumerate(groups):
        over[place, rows] = 1
    every = sparse.csr_array(np.ones((1, height)))
    cells, across = sparse.eye_array(width), sparse.csr_array(np.ones((1, width)))
    blocks = [sparse.kron(sparse.csr_array(over), cells)] if groups else []
    blocks.append(sparse.kron(sparse.eye_array(height), across))
    blocks += [sparse.kron(sparse.csr_array(over), across)] if groups else []
    blocks += [sparse.kron(every, cells), sparse.kron(every, across)]
    sums = sparse.vstack(blocks, format="csr")
    inner = values.ravel()
    true = np.concatenate((inner, (sums @ inner).astype(np.int64)))
    residue = true % base
    right = true[inner.size :] // base - sums @ (inner // base)
    matrix = sparse.hstack([sums, -sparse.eye_array(sums.shape[0])], format="csr")
    found = milp(
        base - 2 * residue,
        integrality=np.full(true.size, int(whole)),
        bounds=Bounds(0, residue > 0),
        constraints=[LinearConstraint(matrix, right, right)],
        options={"mip_rel_gap": 0.0},
    )
    if found.status:
        raise SystemExit("HiGHS did not finish.")
    return round(found.fun) + int(residue.sum())


def timed(task: Callable[[], Any], runs: int) -> tuple[Any, float]:
    """What a task gives, and its best time."""
    best, result = np.inf, None
    for _ in range(runs):
        started = time.perf_counter()
        result = task()
        best = min(best, time.perf_counter() - started)
    return result, best


def check(layout: CirculationLayout, values: Ints, rounded: Ints, base: int) -> None:
    """Cells and totals are adjacent multiples of the base; totals are sums by how they are made."""
    true, shown = layout.published(values), layout.published(rounded)
    if (shown % base).any() or (np.abs(shown - true) >= base).any():
        raise SystemExit("A number is no adjacent multiple of the base.")


def compare(name: str, values: Ints, base: int, groups: list[list[int]], runs: int) -> None:
    """One table and base, by both."""
    layout = CirculationLayout(*values.shape, groups)
    near, quick = timed(lambda: nearest_rounding(values, base, groups=groups), runs)
    fair, drawing = timed(
        lambda: unbiased_rounding(values, base, np.random.default_rng(1), groups=groups), runs
    )
    check(layout, values, near.cells, base)
    check(layout, values, fair, base)
    slow, linear = (timed(lambda w=w: by_highs(values, base, groups, w), 1) for w in (True, False))
    if not slow[0] == linear[0] == near.distance:
        raise SystemExit(f"{name}: the distances differ.")
    away = int(np.abs(layout.published(fair) - layout.published(values)).sum())
    record(
        "Controlled rounding of two-way tables",
        {
            "table": name,
            "base": base,
            "numbers": layout.tail.size,
            "least L1 distance": near.distance,
            "ours (s)": quick,
            "HiGHS, whole (s)": slow[1],
            "HiGHS, linear (s)": linear[1],
            "times faster": min(slow[1], linear[1]) / quick,
            "unbiased: L1 distance": away,
            "unbiased (s)": drawing,
        },
        "rounding",
    )


def main() -> None:
    """Print one line for each table and base, then the growth with the size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help=f"a folder with {NAME}, or with tables/{NAME}")
    parser.add_argument("--runs", type=int, default=5, help="runs of ours; the best counts")
    options = parser.parse_args()
    small = drawn(8)
    nearest_rounding(small, 3)  # compiles
    unbiased_rounding(small, 3, np.random.default_rng(1))
    values = read(options.data) if options.data else drawn(200)
    name = f"{values.shape[0]} x {values.shape[1]}"
    regions = [list(range(k, min(k + 8, len(values)))) for k in range(0, len(values), 8)]
    for base in (3, 5):
        compare(name, values, base, [], options.runs)
        compare(f"{name}, groups of 8", values, base, regions, options.runs)
    for size in (50, 100, 200, 400):
        table = drawn(size)
        for base in (3, 5):
            near, quick = timed(lambda t=table, b=base: nearest_rounding(t, b), options.runs)
            fair, drawing = timed(
                lambda t=table, b=base: unbiased_rounding(t, b, np.random.default_rng(1)),
                options.runs,
            )
            for rounded in (near.cells, fair):
                check(CirculationLayout(size, size), table, rounded, base)
            figures = {"table": f"{size} x {size}", "base": base, "nearest (s)": quick}
            title = "Controlled rounding of two-way tables: growth"
            record(title, figures | {"unbiased (s)": drawing}, "rounding")


if __name__ == "__main__":
    main()
