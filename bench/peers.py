"""Suppression patterns of other tools beside Lustrum's, cell by cell, all judged by one audit.

Run it from the root of the project: ``python bench/peers.py FOLDER PATTERNS``. FOLDER holds
``tables/*.csv.gz`` as for ``bench/suppression.py``, with the number of contributors ``n``. PATTERNS holds files
``TOOL-TABLE.csv`` with the codes of every cell and a column ``suppressed`` (0 or 1), wherever they were made.
With ``--make`` they are made first: ``Rscript bench/peers.R`` runs every tool on every table, in a process of
its own, and the CPU seconds that it took stand beside Lustrum's of the same run. R needs the packages
GaussSuppression, sdcTable and highs for that. It prints markdown.

Levels count both ways, attacker bounds run from 0 to the grand total, and the cost of a cell is its value. The
audit of ``lustrum.protect.suppression.check`` knows nothing of how a pattern was found. ``disclosed`` are
primary cells whose value follows exactly, ``short`` others whose range does not reach their level on both
sides, and ``short for sole contributors`` those that somebody who is alone in another cell, and knows it, can
narrow down too far. ``--sole`` adds a pattern of Lustrum that holds against them too. ``blocks`` are the
connected parts of the difference from Lustrum's pattern: two cells are joined if a relation holds both.
``--cells`` lists the cells that differ.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import itertools
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from parts.figures import record
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from suppression import MADE, from_table, large_table

from lustrum.model.arrays import Ints, Mask
from lustrum.protect.suppression import SuppressionProblem, suppress
from lustrum.protect.suppression.check import audit_pattern
from lustrum.protect.suppression.contributors import singleton_views

TABLES = ("t2_20_p5", "t2_50_p5", "h2_40_p5", "t2_100_p1", "t3_10_p10", "t3_20_p5")
TOOLS = ("gauss", "gauss-intervals", "sdctable-simple", "sdctable-opt", "sdctable-hitas")


@dataclass(frozen=True)
class TableFile:
    """A table of the folder: its problem, the codes of every cell, and which cells have one contributor."""

    problem: SuppressionProblem
    codes: list[tuple[str, ...]]
    alone: Mask

    @staticmethod
    def read(path: Path) -> TableFile:
        problem = from_table(path)
        with gzip.open(path, "rt") as file:
            rows = list(csv.DictReader(file))
        names = [name for name in rows[0] if name[0] == "v" and name[1:].isdigit()]
        codes: list[tuple[str, ...]] = sorted({tuple(row[n] for n in names) for row in rows})
        number = {own: i for i, own in enumerate(codes)}
        alone = np.zeros(len(codes), dtype=np.bool_)
        for row in rows:
            cell = number[tuple(row[n] for n in names)]
            alone[cell] = int(row["n"]) == 1
            assert problem.values[cell] == int(row["value"])
        return TableFile(problem, codes, alone)

    def pattern(self, path: Path) -> Mask:
        """A pattern from a file; every cell must be there once."""
        number = {own: i for i, own in enumerate(self.codes)}
        found = np.full(len(self.codes), -1)
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                own = tuple(value for name, value in row.items() if name != "suppressed")
                found[number[own]] = int(row["suppressed"])
        if (found < 0).any():
            missing = ", ".join(self.codes[int(np.argmin(found))])
            raise SystemExit(f"{path} says nothing about the cell {missing}.")
        return found == 1


def write_made(name: str, path: Path) -> None:
    """A table that the bench of suppression makes, in the form of those of the folder."""
    axes, share, seed = MADE[name]()
    problem = large_table(axes, share, seed)
    every = []
    for axis, letter in zip(axes, "abcde", strict=False):
        groups = [total for total, _ in axis.sums[:-1]]
        leaves = [c for c in range(axis.size) if c not in dict(axis.sums)]
        own = {c: f"{letter}{i + 1:03d}" for i, c in enumerate(leaves)}
        own |= {c: f"{letter}G{i + 1:02d}" for i, c in enumerate(groups)}
        every.append([own.get(c, "Total") for c in range(axis.size)])
    with gzip.open(path, "wt", newline="") as file:
        out = csv.writer(file)
        out.writerow(
            [*(f"v{i + 1}" for i in range(len(axes))), "n", "value", "inner", "primary", "upl"]
        )
        for cell, codes in enumerate(itertools.product(*every)):
            inner = all(code != "Total" and code[1] != "G" for code in codes)
            primary = bool(problem.primary[cell])
            level = int(problem.upper[cell]) if primary else 0
            out.writerow([*codes, 2, int(problem.values[cell]), int(inner), int(primary), level])


def make(tool: str, table: Path, out: Path, limit: int) -> None:
    """One pattern of another tool, unless it fails or takes longer than the limit."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

    out.unlink(missing_ok=True)
    out.with_suffix(".txt").unlink(missing_ok=True)
    words = ["Rscript", str(Path(__file__).with_name("peers.R")), tool, str(table), str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=limited)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("Error")]
        why = errors[-1] if errors else f"stopped, at the latest after {limit} CPU seconds"
        print(f"{out.stem}: no pattern: {why}", file=sys.stderr, flush=True)


def blocks_of(problem: SuppressionProblem, cells: Ints) -> int:
    """How many connected parts some cells have, joined by the relations that hold two of them."""
    if not cells.size:
        return 0
    part = sparse.csr_array(abs(problem.relations[:, cells]))
    return int(connected_components(part.T @ part, directed=False)[0])


def compared(
    name: str,
    tool: str,
    table: TableFile,
    pattern: Mask,
    ours: Mask,
    seconds: float | None,
    own: float,
) -> None:
    """Record what one pattern is beside Lustrum's: cells, value, the verdict of the audit, and time."""
    problem = table.problem
    beyond, mine = pattern & ~problem.primary, ours & ~problem.primary
    left, right = mine & ~beyond, beyond & ~mine
    found = audit_pattern(problem, pattern)
    exact = set(found.cells.cells[found.cells.low == found.cells.high].tolist())
    short = {cell for cell, _ in found.short}
    views = singleton_views(problem.values, table.alone)
    told = audit_pattern(replace(problem, views=views), pattern).short if views else ()
    record(
        "Patterns of other tools, audited",
        {
            "table": name,
            "pattern": tool,
            "secondary": beyond.sum(),
            "suppressed value": round(problem.total_cost(pattern)),
            "common": (beyond & mine).sum(),
            "only Lustrum": left.sum(),
            "only the tool": right.sum(),
            "blocks": blocks_of(problem, np.flatnonzero(left | right)),
            "disclosed": len(exact & short),
            "short": len(short - exact),
            "short for sole contributors": len({cell for cell, who in told if who >= 0}),
            "CPU (s)": seconds,
            "ratio to Lustrum": None if seconds is None else seconds / own,
        },
    )


def listed(table: TableFile, pattern: Mask, ours: Mask) -> list[str]:
    """The secondary cells in which two patterns differ, with their values."""
    told = []
    for what, cells in (("only Lustrum", ours & ~pattern), ("only the tool", pattern & ~ours)):
        names = ["/".join(table.codes[c]) for c in np.flatnonzero(cells)]
        values = table.problem.values[cells]
        told.append(
            f"  {what}: {', '.join(f'{n} {v:,}' for n, v in zip(names, values, strict=True))}"
        )
    return told


def timed(problem: SuppressionProblem, work: int | None) -> tuple[Mask, float]:
    """Lustrum's pattern, and the CPU seconds that it takes with its own audit."""
    begin = time.process_time()
    found = suppress(problem, work=work)
    return np.asarray(found.suppressed), time.process_time() - begin


def report(
    table: TableFile, name: str, folder: Path, work: int | None, sole: bool, cells: bool
) -> None:
    """The rows of one table: Lustrum's pattern, then those of the files."""
    ours, own = timed(table.problem, work)
    compared(name, "Lustrum", table, ours, ours, own, own)
    if sole:
        views = singleton_views(table.problem.values, table.alone)
        safe, spent = timed(replace(table.problem, views=views), work)
        compared(name, "Lustrum, sole contributors as attackers", table, safe, ours, spent, own)
    lists: list[str] = []
    for path in sorted(folder.glob(f"*-{name}.csv")):
        tool = path.stem.removesuffix(f"-{name}")
        pattern = table.pattern(path)
        if not pattern[table.problem.primary].all():
            print(f"{tool} publishes a primary cell of {name}.")
            continue
        seconds = None
        if path.with_suffix(".txt").is_file():
            seconds = float(path.with_suffix(".txt").read_text().split()[-1])
        compared(name, tool, table, pattern, ours, seconds, own)
        lists += [f"{tool}, {name}", *listed(table, pattern, ours)] if cells else []
    print(*lists, sep="\n", end="\n" if lists else "")


def main() -> None:
    """All tables, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="folder with tables/")
    parser.add_argument("patterns", type=Path, nargs="?", help="folder with TOOL-TABLE.csv")
    parser.add_argument("tables", nargs="*", help="names; all if none is given")
    parser.add_argument("--make", action="store_true", help="make the patterns with R first")
    parser.add_argument("--tools", nargs="+", default=TOOLS, help="the tools to make patterns with")
    parser.add_argument("--limit", type=int, default=600, help="CPU seconds for one pattern in R")
    parser.add_argument("--work", type=int, help="steps of Lustrum's search")
    parser.add_argument("--sole", action="store_true", help="sole contributors as attackers too")
    parser.add_argument("--cells", action="store_true", help="list the cells that differ")
    given = parser.parse_args()
    if given.patterns is None:
        print(
            "Skipped: this bench needs a folder of problems and one of pattern files; see bench/peers.R"
        )
        return
    if given.make and shutil.which("Rscript") is None:
        raise SystemExit("--make needs R; install it, or make the pattern files elsewhere.")
    given.patterns.mkdir(exist_ok=True)
    for name in given.tables or TABLES:
        path = given.folder / "tables" / f"{name}.csv.gz"
        if name in MADE:
            path = given.patterns / f"{name}.csv.gz"
            write_made(name, path)
        for tool in given.tools if given.make else ():
            make(tool, path, given.patterns / f"{tool}-{name}.csv", given.limit)
        report(TableFile.read(path), name, given.patterns, given.work, given.sole, given.cells)


if __name__ == "__main__":
    main()
