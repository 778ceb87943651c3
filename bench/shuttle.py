"""Sharp integer bounds by the shuttle and programs after it, beside a cold MILP pair per cell, as markdown.

Run it from the root of the project: ``python bench/shuttle.py``. All two-way margins of each table are
released. Both ways must give the same bounds, which is checked; each table is done by both in turn.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations

import numpy as np
from parts.figures import record
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from lustrum.audit.closed import Margins
from lustrum.audit.shuttle import generalised, sharp_bounds

PAPER = Margins.of(
    {"I": 4, "J": 4, "K": 3},
    {
        "IJ": [[3, 87, 68, 72], [5, 8, 80, 4], [3, 4, 7, 107], [64, 6, 56, 7]],
        "JK": [[5, 2, 68], [10, 10, 85], [69, 81, 61], [7, 132, 51]],
        "IK": [[74, 75, 81], [3, 85, 9], [8, 61, 52], [6, 4, 123]],
    },
)


def drawn(shape: tuple[int, ...], people: float, seed: int) -> Margins:
    """A random table, released in all its two-way margins."""
    table = np.random.default_rng(seed).poisson(people, shape)
    return Margins.of_table(table, combinations(range(len(shape)), 2))


CASES = (
    ("4 x 4 x 3, published example", PAPER),
    ("4 x 4 x 3, mean 10", drawn((4, 4, 3), 10, 1)),
    ("2^6, mean 1", drawn((2,) * 6, 1, 2)),
    ("2^6, mean 10", drawn((2,) * 6, 10, 3)),
    ("2^6, mean 100", drawn((2,) * 6, 100, 4)),
)


def cold(margins: Margins) -> tuple[list[int], list[int]]:
    """Two integer programs a cell, each from nothing."""
    rows, ends = [], []
    for generator in margins.generators:
        known = margins.margin(generator)
        row = np.broadcast_to(np.arange(known.size).reshape(known.shape), margins.shape).ravel()
        rows.append(sparse.csr_array((np.ones(row.size), (row, np.arange(row.size)))))
        ends.append(known.ravel())
    sums = np.concatenate(ends)
    fits = LinearConstraint(sparse.vstack(rows), sums, sums)
    found: list[list[int]] = [[], []]
    for cell in range(margins.size):
        for side, sign in enumerate((1.0, -1.0)):
            cost = np.zeros(margins.size)
            cost[cell] = sign
            best = milp(
                cost,
                integrality=np.ones(margins.size),
                bounds=Bounds(0, np.inf),
                constraints=[fits],
                options={"mip_rel_gap": 0.0},
            )
            found[side].append(round(sign * best.fun))
    return found[0], found[1]


def main() -> None:
    """Print one line for each table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=3, help="runs of the shuttle; the median counts"
    )
    runs = parser.parse_args().runs
    sharp_bounds(drawn((2, 2, 2, 2), 2, 0))  # compiles
    for name, margins in CASES:
        times = []
        for _ in range(runs):
            started = time.perf_counter()
            found = sharp_bounds(margins)
            times.append(time.perf_counter() - started)
        started = time.perf_counter()
        low, high = cold(margins)
        slow = time.perf_counter() - started
        if not found.sharp.all() or [low, high] != [found.low.tolist(), found.high.tolist()]:
            raise SystemExit(f"{name}: the two ways differ.")
        wide = generalised(margins)
        loose = int((wide.low < found.low).sum() + (wide.high > found.high).sum())
        quick = float(np.median(times))
        record(
            "Sharp whole-number bounds by the shuttle",
            {
                "table": name,
                "cells": margins.size,
                "ends open after the shuttle alone": loose,
                "search (s)": quick,
                "cold MILP pairs (s)": slow,
                "times faster": slow / quick,
            },
        )


if __name__ == "__main__":
    main()
