"""How fast all suppressed cells are bounded, beside one pair of cold linear programs a cell.

Run it from the root of the project: ``python bench/bounds.py``; with ``--data FOLDER`` the problems
of a folder of CSPLIB files (``*.json.gz``) too. The cold programs are measured on a sample of cells and
scaled up to all; on the sample both must give the same bounds to 1e-6. It prints markdown.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import highspy
import numpy as np
from parts.figures import Figure, record
from scipy import sparse

from lustrum.audit import Knowledge, PublishedTable, bounds, from_margins, from_tables
from lustrum.audit.bounding.elimination import exactly_disclosed
from lustrum.audit.knowledge.reduce import as_floats, narrowed
from lustrum.model import Category, InputError, TableAxis
from lustrum.numeric.solve import Highs

PROBLEMS = ("hier13", "two5in6", "ninenew")
MANY = 100  # programs from which on their rate is measured


def with_total(name: str, size: int) -> TableAxis:
    """Single codes and their total."""
    codes = [Category(str(i), str(i), (i,)) for i in range(size)]
    return TableAxis(name, name, (*codes, Category("T", "Total", tuple(range(size)))))


def suppressed_table(shape: Sequence[int], share: float, seed: int) -> Knowledge:
    """Magnitudes with all totals shown, a share of the inner cells suppressed at random."""
    rng = np.random.default_rng(seed)
    values = np.floor(rng.lognormal(4.0, 1.2, shape)).astype(np.int64)
    mask = rng.random(shape) < share
    for place in range(len(shape)):
        values = np.concatenate([values, values.sum(axis=place, keepdims=True)], axis=place)
        mask = np.concatenate(
            [mask, np.zeros_like(mask[(slice(None),) * place + (slice(1),)])], place
        )
    axes = [with_total(n, s) for n, s in zip("ABCDEF", shape, strict=False)]
    return from_tables([PublishedTable.exact(axes, np.where(mask, 0, values), mask)])


def csplib(path: Path, share: float, seed: int) -> tuple[Knowledge, Any]:
    """A problem with its primaries and a random share of the cells suppressed, and the truth."""
    with gzip.open(path, "rt") as file:
        data = json.load(file)
    value = np.array(data["value"], dtype=np.int64)
    hidden = np.random.default_rng(seed).random(value.size) < share
    hidden[np.array(data["primary"], dtype=np.int64)] = True
    rows = [[total, *parts] for total, parts in data["relations"]]
    signs = [[-1] + [1] * len(parts) for _, parts in data["relations"]]
    indptr = np.cumsum([0] + [len(r) for r in rows])
    matrix = sparse.csr_array(
        (np.concatenate(signs), np.concatenate(rows), indptr), shape=(len(rows), value.size)
    )
    zeros = np.zeros(len(rows), dtype=np.int64)
    known = Knowledge(
        names=[f"cell {i}" for i in range(value.size)],
        low=np.where(hidden, 0, value),
        high=np.where(hidden, int(np.max(data["total_bound"])), value),
        matrix=matrix,
        fact_low=zeros,
        fact_high=zeros,
    )
    return known, value


class Cold:
    """HiGHS with its own defaults on all suppressed cells; forgets everything between questions."""

    def __init__(self, known: Knowledge) -> None:
        self.cells = np.flatnonzero(known.low < known.high)
        matrix = known.matrix.tocsr().astype(np.float64)
        shown = np.where(known.low == known.high, known.low, 0).astype(np.float64)
        part = matrix[:, self.cells]
        rows = np.flatnonzero(np.diff(part.indptr))
        part, settled = part[rows].tocsc(), (matrix @ shown)[rows]
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = part.shape
        lp.col_cost_ = np.zeros(part.shape[1])
        lp.col_lower_ = as_floats(known.low[self.cells])
        lp.col_upper_ = as_floats(known.high[self.cells])
        lp.row_lower_ = known.fact_low[rows] - settled
        lp.row_upper_ = known.fact_high[rows] - settled
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = part.indptr, part.indices
        lp.a_matrix_.value_ = part.data
        self.model = highspy.Highs()
        self.model.setOptionValue("output_flag", False)
        self.model.passModel(lp)

    def pair(self, column: int) -> tuple[float, float]:
        """The least and the most of one cell."""
        ends = []
        for sign in (1.0, -1.0):
            self.model.changeColCost(column, sign)
            self.model.clearSolver()
            self.model.run()
            assert self.model.getModelStatus() == highspy.HighsModelStatus.kOptimal
            ends.append(sign * self.model.getObjectiveValue())
        self.model.changeColCost(column, 0.0)
        return ends[0], ends[1]


def against_cold(
    label: str, known: Knowledge, sample: int, workers: int | None
) -> dict[str, Figure]:
    """One row of the first table."""
    cold = Cold(known)
    picks = np.random.default_rng(1).choice(cold.cells.size, min(sample, cold.cells.size), False)
    start = time.perf_counter()
    pairs = np.array([cold.pair(int(p)) for p in picks])
    slow = (time.perf_counter() - start) / picks.size * cold.cells.size
    best, found = timed(known, cold.cells, workers)
    real = bounds(known.relaxed(), cold.cells, workers=workers)
    off = max(
        np.abs(real.low[picks] - pairs[:, 0]).max(), np.abs(real.high[picks] - pairs[:, 1]).max()
    )
    assert off <= 1e-6 * (1 + np.abs(pairs).max() * 1e-3), off
    return {
        "table": label,
        "suppressed": cold.cells.size,
        "cold (s)": slow,
        "ours (s)": best,
        "times faster": slow / best,
        "programs": found.programs,
        "flows": found.flows,
        "sharp": int(found.sharp.sum()),
        "exact": int(found.exact.sum()),
    }


def cold_rate(known: Knowledge, sample: int) -> float:
    """Cold programs in a second of the processor."""
    cold = Cold(known)
    picks = np.random.default_rng(1).choice(cold.cells.size, min(sample, cold.cells.size), False)
    start = time.process_time()
    for pick in picks.tolist():
        cold.pair(pick)
    return float(2 * picks.size / (time.process_time() - start))


def rates(path: Path, share: float, given: argparse.Namespace) -> dict[str, Figure]:
    """Open cells bounded on both sides in a minute of the processor: ours, without the core, and cold.

    Linear bounds, on one thread, cut after ``--seconds`` of the processor; cells that narrowing alone settles
    do not count.
    """
    known = csplib(path, share, 7)[0].relaxed()
    low, high = narrowed(known)
    cells = np.flatnonzero(low < high)
    minute = []
    programs = []
    for solver in (None, Highs()):
        start = time.process_time()
        found = bounds(
            known,
            cells,
            workers=1,
            solver=solver,
            stop=partial(_later, start + given.seconds),
        )
        spent = time.process_time() - start
        minute.append(60.0 * float(found.sharp.sum()) / spent)
        programs.append(f"{int(found.sharp.sum()):,} in {spent:.1f} s, {found.programs:,}")
    slow = 30.0 * cold_rate(known, given.sample) if cells.size else np.inf
    ours, plain = minute
    return {
        "problem": path.name.split(".")[0],
        "suppressed": f"{share:.0%}",
        "open cells": cells.size,
        "ours: cells, programs": programs[0],
        "without the core": programs[1],
        "cold (a minute)": slow,
        "ratio to without the core": ours / plain,
        "ratio to cold": ours / slow,
    }


def _later(end: float) -> bool:
    """Whether the processor has worked so long."""
    return time.process_time() >= end


def timed(known: Knowledge, cells: Any, workers: int | None, **options: Any) -> tuple[float, Any]:
    """The best of three, or the first where one takes seconds."""
    best, found = np.inf, None
    for _ in range(3):
        start = time.perf_counter()
        found = bounds(known, cells, workers=workers, **options)
        best = min(best, time.perf_counter() - start)
        if best > 2.0:
            break
    return best, found


def all_two_way(shape: Sequence[int], seed: int) -> Knowledge:
    """All two-way margins of a random sparse cube."""
    cube = np.random.default_rng(seed).poisson(2.0, shape)
    names = "ABCDEFG"[: len(shape)]
    margins = {
        "".join(pair): cube.sum(axis=tuple(i for i, n in enumerate(names) if n not in pair))
        for pair in combinations(names, 2)
    }
    return from_margins(dict(zip(names, shape, strict=True)), margins)


def problem(folder: Path, name: str) -> Path:
    """The file of a problem, in the folder or below it."""
    path = next(folder.rglob(f"{name}.json.gz"), None)
    if path is None:
        raise SystemExit(f"There is no {name}.json.gz in {folder} or below it.")
    return path


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder of CSPLIB problems, *.json.gz")
    parser.add_argument("--sample", type=int, default=40, help="cells solved cold")
    parser.add_argument(
        "--workers", type=int, default=None, help="threads; all processors if absent"
    )
    parser.add_argument(
        "--shares",
        type=float,
        nargs="+",
        default=[0.1, 0.3, 0.5, 0.7, 0.8, 0.9],
        help="shares suppressed",
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="the most that one CSPLIB case may take"
    )
    parser.add_argument("--problems", nargs="+", default=PROBLEMS, help="of the folder")
    parser.add_argument("--whole", type=float, help="seconds for whole bounds of a large cube")
    parser.add_argument("--only-data", action="store_true", help="only the CSPLIB problems")
    parser.add_argument("--rates", action="store_true", help="only cells in a minute, beside cold")
    given = parser.parse_args()
    bounds(suppressed_table((5, 5), 0.5, 0))  # the first run compiles a kernel
    if given.rates and given.data is not None:
        for name in given.problems:
            for share in given.shares:
                title = "Open cells bounded on both sides, linear, one thread"
                record(title, rates(problem(given.data, name), share, given))
        return
    if not given.only_data:
        invented(given)
    if given.whole is not None:
        known = suppressed_table((20, 20, 20), 0.2, 7)
        cells = np.flatnonzero(known.low < known.high)
        plain = bounds(known, cells, workers=given.workers)
        start = time.perf_counter()
        late = after(given.whole)
        found = bounds(known, cells, integer=True, stop=late, workers=given.workers)
        took = time.perf_counter() - start
        record(
            "Whole-number bounds of 20 x 20 x 20, 20 % suppressed",
            {
                "took (s)": took,
                "suppressed": cells.size,
                "sharp without": int(plain.sharp.sum()),
                "sharp": int(found.sharp.sum()),
                "programs": found.programs,
                "searches": found.searches,
            },
        )
    if given.data is not None:
        for name in given.problems:
            for share in given.shares:
                figures = real(problem(given.data, name), share, given)
                record("CSPLIB problems with a random share of cells suppressed", figures)


def after(seconds: float) -> Callable[[], bool]:
    """Whether so many seconds are over."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def invented(given: argparse.Namespace) -> None:
    """The tables about invented problems."""
    for shape in ((100, 100), (20, 20, 20)):
        for share in (0.1, 0.2):
            label = f"{' x '.join(map(str, shape))}, {share:.0%}"
            known = suppressed_table(shape, share, 7)
            figures = against_cold(label, known, given.sample, given.workers)
            record("Bounds of all suppressed cells", figures)
    for shape in ((2,) * 6, (4, 4, 3)):
        known = all_two_way(shape, 3)
        took, found = timed(known, known.table(0), given.workers, integer=True)
        label = " x ".join(map(str, shape))
        record(
            "Sharp whole-number bounds given all two-way margins",
            {
                "table": label,
                "cells": len(found),
                "took (s)": took,
                "sharp": int(found.sharp.sum()),
            },
        )


def real(path: Path, share: float, given: argparse.Namespace) -> dict[str, Figure]:
    """One row of the last table; a time with '>' was cut short, and its bounds are outer ones.

    Programs a second are those of the processor, and their ratio is to cold programs about a sample of cells.
    """
    known, value = csplib(path, share, 7)
    cells = np.flatnonzero(known.low < known.high)
    start, processor = time.perf_counter(), time.process_time()
    found = bounds(known, cells, workers=given.workers, stop=after(given.seconds))
    took, spent = time.perf_counter() - start, time.process_time() - processor
    cut = ">" if took >= given.seconds else ""
    rates: tuple[float | None, float | None] = (None, None)
    if found.programs >= MANY:
        rate = found.programs / spent
        rates = (rate, rate / cold_rate(known, given.sample))
    assert ((found.low <= value[cells]) & (value[cells] <= found.high)).all()
    start = time.perf_counter()
    try:
        disclosed = exactly_disclosed(known)[cells]
        assert cut or found.exact[disclosed].all()
        eliminated = f"{int(disclosed.sum())} in {time.perf_counter() - start:.2f} s"
    except InputError:
        eliminated = "too large"
    return {
        "problem": path.name.split(".")[0],
        "suppressed at random": f"{share:.0%}",
        "suppressed": cells.size,
        "took (s)": f"{cut}{took:.2f}",
        "programs": found.programs,
        "sharp": int(found.sharp.sum()),
        "exactly disclosed": int(found.exact.sum()),
        "by elimination": eliminated,
        "programs (a CPU s)": rates[0],
        "ratio to cold": rates[1],
    }


if __name__ == "__main__":
    main()
