"""What it costs to protect against those who know more: secondary cells beside those for an outsider.

Run it from the root of the project: ``python bench/suppression_costs.py FOLDER [NAMES]``. The folder holds
``tables/*.csv.gz``: codes in columns ``v1``, ``v2`` ..., the number of contributors ``n``, ``value`` and the
largest contributions ``x1``, ``x2``.

Sums are judged by the p % rule with p = 10 and protected against an outsider, also those who are alone in a
cell, and everybody among the largest contributors, which is the default. Contributors are counted too, under a
threshold of 3: as if a hidden count could be 0, for readers who know that empty cells are shown, which is the
default, and for readers whom letters tell which cells are sensitive and what the threshold is.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from parts.figures import Figure, record
from parts.limited import Tell, limited

from lustrum.model import InputError, Table
from lustrum.protect.suppression import Pattern, Suppression, suppress
from lustrum.readers.confidential import read_true
from lustrum.readers.true_tables import members_of, true_table
from lustrum.sensitivity import PPercent, Threshold

NAMES = ("t2_20_p5", "t2_50_p5", "h2_40_p5", "t3_10_p10")


def table_of(path: Path, *, counts: bool) -> Table:
    """The table of a file: its sums, or how many contribute to them."""
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name[0] == "v" and name[1:].isdigit()]
    kept = ["n"] if counts else ["value", "n", "x1", "x2"]
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "t.csv"
        with plain.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*names, *(["value"] if counts else kept)])
            writer.writerows([row[name] for name in (*names, *kept)] for row in rows)
        read = read_true(plain)
        return true_table(read, members_of([read]), "counts" if counts else "sums")


def of_sums(table: Table, **how: object) -> Iterator[tuple[str, Callable[[], Pattern]]]:
    """The same sums against three kinds of attackers."""
    for words, attacker in (
        ("an outsider", "outsider"),
        ("those alone in a cell", "singletons"),
        ("every contributor (default)", "insiders"),
    ):
        spec = Suppression(rule=PPercent(p=10), attacker=attacker, **how)  # type: ignore[arg-type]
        yield words, lambda spec=spec: spec.pattern(table)  # type: ignore[misc]


def of_counts(table: Table, **how: object) -> Iterator[tuple[str, Callable[[], Pattern]]]:
    """The same counts against readers who know nothing, the method, or the letters too."""
    spec = Suppression(rule=Threshold(3), **how)  # type: ignore[arg-type]

    def unknowing() -> Pattern:
        found = spec.judge(table)
        problem = spec.problem(table)
        lower = np.minimum(found.lower, table.values).ravel()
        problem = replace(problem, low=np.zeros_like(problem.low), lower=lower)
        return suppress(problem, algorithm=spec.algorithm, work=spec.work)

    yield "readers of values alone", unknowing
    yield "readers who know that empty cells are shown (default)", lambda: spec.pattern(table)
    told = replace(spec, reasons=True)
    yield "readers told which cells are sensitive", lambda: told.pattern(table)


def main() -> None:
    """All tables, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="folder with tables/")
    parser.add_argument("names", nargs="*", help="names; all if none is given")
    parser.add_argument("--algorithm", default="auto")
    parser.add_argument("--work", type=int)
    parser.add_argument("--only", choices=("sums", "counts"), help="one kind of table")
    parser.add_argument("--against", default="", help="attackers whose name holds this")
    parser.add_argument("--minutes", type=int, default=30, help="CPU minutes that stop a case")
    given = parser.parse_args()
    if given.folder is None:
        print("Skipped: this bench needs a folder of tables; give one: make bench DATA=folder")
        return
    how = {"algorithm": given.algorithm, "work": given.work}
    for name in given.names or NAMES:
        path = given.folder / "tables" / f"{name}.csv.gz"
        for kind, made in (("sums", of_sums), ("counts", of_counts)):
            if given.only not in (None, kind):
                continue
            table = table_of(path, counts=kind == "counts")
            for words, search in made(table, **how):
                if given.against not in words:
                    continue
                limit = "" if given.work is None else f", --work {given.work}"
                row = {"table": f"{name}, {kind}{limit}", "protected against": words}

                def measured(tell: Tell, search: Callable[[], Pattern] = search) -> None:
                    start = time.process_time()
                    try:
                        tell(search())
                    except InputError as refusal:
                        tell(str(refusal))
                    tell(time.process_time() - start)

                heard, stopped = limited(measured, 60 * given.minutes)
                found = None if stopped else heard[0]
                if isinstance(found, str):
                    print(f"{name}, {words}: refused: {found}", flush=True)
                    continue
                record("What knowing more costs", {**row, **figures(table, found, heard, given)})


def figures(
    table: Table, found: Pattern | None, heard: list[Any], given: argparse.Namespace
) -> dict[str, Figure]:
    """What a pattern costs, or that the search was stopped."""
    cells: dict[str, Figure] = {"cells": table.values.size}
    if found is None:
        return {**cells, "safe": f"stopped after {given.minutes} CPU minutes"}
    hidden = found.secondary.reshape(table.shape)
    return {
        **cells,
        "primary": int(found.primary.sum()),
        "secondary": int(hidden.sum()),
        "suppressed value": int(table.values[hidden].sum()),
        "proven at least": found.lower_bound,
        "safe": "yes" if found.safe else f"all but {len(found.unprotectable)}",
        "CPU (s)": heard[-1],
    }


if __name__ == "__main__":
    main()
