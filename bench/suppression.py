"""How good patterns of secondary suppression are, and how long they take.

Run it from the root of the project: ``python bench/suppression.py FOLDER``. The folder holds
``csplib/*.json.gz`` (values, primary cells, protection levels, relations, a bound for all cells) and
``tables/*.csv.gz`` (codes with ``Total`` for the margin and groups of one size, ``aG01``, values, primary
cells, levels). Levels are used both ways, attacker bounds run from 0 to the grand total or the bound given, and
the cost of a cell is its value. Some problems are made here: ``large`` has five variables with hierarchies and
about 400,000 cells, 5 % of them primary; ``five_3k`` and ``five_20k`` are smaller ones of its kind;
``h2_2k`` to ``h2_200k`` have groups along two axes, ``h3_4k`` and ``h3_8k`` along two of three, and 3 % of
their cells are primary; ``t2_250k`` and ``t2_1m`` are two-way tables with about one primary cell in a row, and
``h1_200k`` has groups along one of two axes and 1 % of its cells primary. ``s2_24`` to ``s4`` are small.
``drawn`` stands for 60 small and middle tables from fixed seeds: counts and sums, hierarchies, faces of a cube
as linked tables, sole contributors as attackers. Every problem runs in a process of its own. Seconds are those
of the processor; ``--limit`` ends a search with the best pattern so far. It prints markdown.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from parts.figures import Figure, record

from lustrum.protect.suppression import AxisSums, ContributorView, SuppressionProblem, suppress
from lustrum.runtime.stop import taking_best

PROBLEMS = (
    "t2_20_p5", "t2_50_p5", "h2_40_p5", "t2_100_p1", "table8", "t3_10_p10", "t3_20_p5",
    "hier13", "hier133a", "two5in6", "ninenew", "large",
)  # fmt: skip


def from_csplib(path: Path) -> SuppressionProblem:
    """A problem of CSPLIB."""
    with gzip.open(path, "rt") as file:
        data = json.load(file)
    return SuppressionProblem.of(
        data["value"],
        data["relations"],
        data["primary"],
        data["protection"],
        high=int(data["total_bound"]),
    )


def from_table(path: Path) -> SuppressionProblem:
    """A table with its margins in a file, every cell a row."""
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name[0] == "v" and name[1:].isdigit()]
    codes = [sorted({row[name] for row in rows}) for name in names]
    axes = tuple(axis_of(own) for own in codes)
    shape = tuple(axis.size for axis in axes)
    place = np.array(
        [[own.index(row[n]) for n, own in zip(names, codes, strict=True)] for row in rows]
    )
    cells = np.ravel_multi_index(tuple(place.T), shape)
    arrays = {}
    for name in ("value", "primary", "upl"):
        arrays[name] = np.zeros(len(rows), dtype=np.int64)
        arrays[name][cells] = [int(row[name]) for row in rows]
    relations = relations_of(axes)
    return SuppressionProblem.of(
        arrays["value"], relations, arrays["primary"] == 1, arrays["upl"], axes=axes
    )


def axis_of(codes: list[str]) -> AxisSums:
    """The sums along one axis: groups of one size where there are any, and the total."""
    groups = [code for code in codes if len(code) > 1 and code[1] == "G"]
    leaves = [code for code in codes if code != "Total" and code not in groups]
    size = len(leaves) // max(len(groups), 1)
    sums = {group: leaves[size * i : size * (i + 1)] for i, group in enumerate(groups)}
    sums["Total"] = groups or leaves
    return AxisSums(
        len(codes),
        tuple((codes.index(t), tuple(codes.index(p) for p in parts)) for t, parts in sums.items()),
    )


def relations_of(axes: tuple[AxisSums, ...]) -> list[tuple[int, list[int]]]:
    """All relations of a table in row-major order."""
    shape = tuple(axis.size for axis in axes)
    number = np.arange(int(np.prod(shape))).reshape(shape)
    relations = []
    for place, axis in enumerate(axes):
        lines = np.moveaxis(number, place, -1)
        for total, parts in axis.sums:
            chosen = lines[..., [total, *parts]].reshape(-1, 1 + len(parts))
            relations.extend((row[0], row[1:]) for row in chosen.tolist())
    return relations


def grouped(groups: int, each: int) -> AxisSums:
    """Categories in groups of one size, the groups, and their total."""
    leaves = groups * each
    sums = [(leaves + g, tuple(range(g * each, (g + 1) * each))) for g in range(groups)]
    top = (leaves + groups, tuple(range(leaves, leaves + groups)))
    return AxisSums(leaves + groups + 1, (*sums, top))


def flat(leaves: int) -> AxisSums:
    """Categories and their total."""
    return AxisSums(leaves + 1, ((leaves, tuple(range(leaves))),))


def large_table(axes: tuple[AxisSums, ...], share: float, seed: int = 1) -> SuppressionProblem:
    """Magnitudes of contributors of very different sizes; the most concentrated cells are primary.

    A cell is judged by what its second largest contributor can work out about the largest, as the p % rule
    does; the percentage is set so that the share of primary cells among all is as asked for.
    """
    rng = np.random.default_rng(seed)
    shape = tuple(axis.size for axis in axes)
    leaves = [np.array([c for c in range(a.size) if c not in dict(a.sums)]) for a in axes]
    inside = tuple(leaf.size for leaf in leaves)
    count = 1 + rng.poisson(rng.gamma(2.0, 4.0, inside))
    largest = np.ceil(rng.lognormal(3.5, 1.0, inside)).astype(np.int64)
    second = np.where(count > 1, np.ceil(largest * rng.beta(4, 2, inside)), 0).astype(np.int64)
    rest = np.ceil(np.maximum(count - 2, 0) * second * rng.beta(2, 2, inside)).astype(np.int64)
    full = np.zeros(shape, dtype=np.int64)
    full[np.ix_(*leaves)] = largest + second + rest
    for place, axis in enumerate(axes):
        lines = np.moveaxis(full, place, -1)
        for total, parts in axis.sums:
            lines[..., total] = lines[..., list(parts)].sum(axis=-1)
    number = np.arange(full.size).reshape(shape)
    need = largest * 0.1 - rest
    inner = number[np.ix_(*leaves)].ravel()
    most = int(share * full.size)
    order = np.argsort(-(need / largest).ravel(), kind="stable")[:most]
    level = np.maximum(np.ceil(need.ravel()[order]), 1)
    level = np.minimum(level, full.ravel()[inner[order]])
    relations = relations_of(axes)
    return SuppressionProblem.of(full.ravel(), relations, inner[order], level, axes=axes)


MADE: dict[str, Callable[[], tuple[tuple[AxisSums, ...], float, int]]] = {
    "large": lambda: ((grouped(5, 6), grouped(3, 4), flat(8), flat(7), flat(9)), 0.05, 1),
    "five_3k": lambda: ((grouped(2, 3), grouped(2, 2), flat(3), flat(2), flat(3)), 0.05, 1),
    "five_20k": lambda: ((grouped(2, 4), grouped(2, 3), flat(5), flat(4), flat(6)), 0.05, 1),
    "h2_2k": lambda: ((grouped(4, 10), grouped(5, 8)), 0.03, 1),
    "h2_12k": lambda: ((grouped(10, 10), grouped(10, 10)), 0.03, 1),
    "h2_50k": lambda: ((grouped(20, 10), grouped(20, 10)), 0.03, 1),
    "h2_100k": lambda: ((grouped(28, 10), grouped(28, 10)), 0.03, 1),
    "h2_200k": lambda: ((grouped(45, 10), grouped(45, 10)), 0.03, 1),
    "t2_250k": lambda: ((flat(500), flat(500)), 0.002, 1),
    "t2_1m": lambda: ((flat(1000), flat(1000)), 0.001, 1),
    "h1_200k": lambda: ((grouped(50, 20), flat(200)), 0.01, 1),
    "h3_4k": lambda: ((grouped(3, 5), grouped(3, 4), flat(10)), 0.03, 1),
    "h3_8k": lambda: ((grouped(4, 5), grouped(4, 5), flat(12)), 0.03, 1),
    # Small ones, to compare searches in seconds.
    "s2_24": lambda: ((grouped(4, 6), grouped(4, 6)), 0.06, 13),
    "s3_5": lambda: ((flat(5), flat(5), flat(5)), 0.1, 6),
    "s3_7": lambda: ((flat(7), flat(7), flat(7)), 0.15, 7),
    "s3_8": lambda: ((flat(8), flat(8), flat(8)), 0.1, 3),
    "s3_679": lambda: ((flat(6), flat(7), flat(9)), 0.1, 4),
    "s3_groups": lambda: ((grouped(2, 3), flat(6), flat(5)), 0.06, 10),
    "s4": lambda: ((flat(3), flat(4), flat(3), flat(4)), 0.08, 9),
}


def drawn_problem(seed: int) -> SuppressionProblem:
    """A small or middle table; its kind follows from the seed, its size and values are drawn."""
    rng = np.random.default_rng(seed)
    kind, counts = seed % 5, seed % 2 == 0
    ways = 2 if kind < 2 else 3
    axes = [
        flat(int(size)) for size in rng.integers(*((6, 41) if ways == 2 else (3, 9)), size=ways)
    ]
    if kind in (1, 3):
        axes[0] = grouped(int(rng.integers(2, 5)), int(rng.integers(2, 9 if ways == 2 else 5)))
    shape = tuple(axis.size for axis in axes)
    leaves = np.ix_(*(np.array([c for c in range(a.size) if c not in dict(a.sums)]) for a in axes))
    inside = np.zeros(shape)[leaves].shape
    count, value, level = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    # In faces of a cube many cells come together.
    people = rng.uniform(0.3, 0.8) if kind == 4 else rng.uniform(4.0, 20.0)
    count[leaves] = rng.poisson(rng.gamma(1.5, people, inside))
    largest = np.ceil(rng.lognormal(3.5, 1.0, inside)) * (count[leaves] > 0)
    value[leaves] = largest + np.ceil(largest * rng.beta(2, 3, inside) * (count[leaves] - 1)).clip(
        0
    )
    for place, axis in enumerate(axes):
        for table in (count, value):
            lines = np.moveaxis(table, place, -1)
            for total, parts in axis.sums:
                lines[..., total] = lines[..., list(parts)].sum(axis=-1)
    few = (count > 0) & (count < 4)
    level = np.where(few, 4 - count if counts else np.ceil(value / 4).astype(np.int64), 0)
    shown = np.ones(shape, dtype=np.bool_)
    if kind == 4:  # every two of three variables are a table of their own
        shown[tuple(slice(-1) for _ in axes)] = False
    cells = np.flatnonzero(shown)
    place_of = np.cumsum(shown.ravel()) - 1
    relations = [
        (place_of[total], [place_of[part] for part in parts])
        for total, parts in relations_of(tuple(axes))
        if shown.ravel()[[total, *parts]].all()
    ]
    values = (count if counts else value).ravel()[cells]
    alone = np.flatnonzero((count.ravel()[cells] == 1) & (seed % 3 == 0))
    known = [np.array([cell]) for cell in alone.tolist()]
    return SuppressionProblem.of(
        values,
        relations,
        few.ravel()[cells],
        level.ravel()[cells],
        np.minimum(level.ravel()[cells], values),
        whole=counts,
        views=[
            ContributorView(f"the one in {own[0]}", own, values[own], values[own]) for own in known
        ],
        axes=None if kind == 4 else axes,
    )


def problem_named(name: str, folder: Path) -> SuppressionProblem:
    """A problem of the folder, or one that is made."""
    if name in MADE:
        return large_table(*MADE[name]())
    if name.startswith("drawn_"):
        return drawn_problem(int(name[6:]))
    if (folder / "csplib" / f"{name}.json.gz").is_file():
        return from_csplib(folder / "csplib" / f"{name}.json.gz")
    return from_table(folder / "tables" / f"{name}.csv.gz")


def row_of(name: str, given: argparse.Namespace) -> dict[str, Figure]:
    """Suppress one problem and say how that went."""
    problem = problem_named(name, given.folder)
    begin = time.process_time()

    found_by: dict[int, str] = {}

    def tell(what: str, cost: float, bound: float) -> None:
        found_by.setdefault(round(cost), what)
        if given.verbose:
            seconds = time.process_time() - begin
            print(f"{seconds:8.1f} {what} {cost:.0f} {bound:.0f}", file=sys.stderr)

    with taking_best(lambda: time.process_time() - begin > given.limit):
        pattern = suppress(problem, algorithm=given.algorithm, work=given.work, progress=tell)
    seconds = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "problem": name,
        "cells": len(problem),
        "primary": int(problem.primary.sum()),
        "secondary": int(pattern.secondary.sum()),
        "suppressed value": round(pattern.cost),
        "proven gap (%)": round(100 * pattern.gap, 1),
        "CPU (s)": round(seconds, 1),
        "peak (MiB)": round(peak),
        "audited safe": "yes" if pattern.safe else "no",
        "algorithm": pattern.algorithm,
        "found by": found_by.get(round(pattern.cost), ""),
    }


def main() -> None:
    """All problems, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="folder with csplib/ and tables/")
    parser.add_argument("problems", nargs="*", help="names; all if none is given")
    parser.add_argument("--algorithm", default="auto")
    parser.add_argument("--work", type=int)
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds of one search")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.folder is None:
        print("Skipped: this bench needs a folder of problems; give one: make bench DATA=folder")
        return
    if given.one:
        (name,) = given.problems
        print(json.dumps(row_of(name, given)))
        return
    names = given.problems or PROBLEMS
    if "drawn" in names:
        names = [name for name in names if name != "drawn"] + [f"drawn_{i}" for i in range(1, 61)]
    for name in names:
        words = [sys.executable, __file__, str(given.folder), name, "--one"]
        words += ["--limit", str(given.limit)]
        words += ["--algorithm", given.algorithm]
        words += [] if given.work is None else ["--work", str(given.work)]
        words += ["--verbose"] if given.verbose else []
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            print(f"{name} failed", flush=True)
            continue
        kind = "Suppression" if given.algorithm == "auto" else f"Suppression by {given.algorithm}"
        record(kind, json.loads(done.stdout.splitlines()[-1]) | {"work": given.work})


if __name__ == "__main__":
    main()
