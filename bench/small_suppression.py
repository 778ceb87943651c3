"""How long the command takes for small tables by default, and whether it says that it goes on.

Run it from the root of the project: ``python bench/small_suppression.py [NUMBERS]``. Ten tables of fewer than
500 cells are drawn from fixed seeds and suppressed by ``lustrum suppress`` without any option for the search:
two to four ways, hierarchies, linked files, counts and sums with contributors. Seconds are those of the
processor, to the end of the command. The last column is when the command said that it goes on to find a cheaper
pattern or to prove that there is none.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import itertools
import random
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from parts.figures import Figure, record
from parts.limited import Tell, limited

from lustrum.cli.application import main as lustrum


@dataclass(frozen=True)
class Drawn:
    """A table to draw: codes of each variable, how many contribute to a cell on average, and the rule."""

    name: str
    sizes: tuple[int, ...]
    people: float
    rule: str
    seed: int
    groups: int = 0
    """How many codes of the first variable make a group; 0 for no groups."""
    linked: bool = False
    """Whether every two of three variables are a file of their own."""

    @property
    def counts(self) -> bool:
        """Whether the table counts contributors."""
        return self.rule.startswith("threshold")


TABLES = (
    Drawn("counts, 20 x 20", (20, 20), 9.0, "threshold=4", 1),
    Drawn("sums, 20 x 20", (20, 20), 6.0, "p=10", 2),
    Drawn("sums, 12 x 30, many primary", (12, 30), 3.0, "p=10", 3),
    Drawn("counts, 6 x 6 x 6", (6, 6, 6), 9.0, "threshold=4", 4),
    Drawn("sums, 4 x 5 x 5", (4, 5, 5), 4.0, "p=10", 5),
    Drawn("sums, 6 x 6 x 6", (6, 6, 6), 6.0, "p=10", 6),
    Drawn("sums, groups of 4, 16 x 12", (16, 12), 5.0, "p=10", 7, groups=4),
    Drawn("counts, groups of 5, 20 x 15", (20, 15), 8.0, "threshold=4", 8, groups=5),
    Drawn("counts, 3 x 3 x 3 x 3", (3, 3, 3, 3), 8.0, "threshold=4", 9),
    Drawn("sums, 3 linked files, 8 x 8 x 8", (8, 8, 8), 0.5, "p=10", 10, linked=True),
)


class Heard(io.StringIO):
    """What a command says, and the processor seconds at which it said that it goes on."""

    on: float | None = None

    def __init__(self, tell: Tell) -> None:
        super().__init__()
        self.tell = tell
        self.start = time.process_time()

    def write(self, text: str, /) -> int:
        """Take some of it in."""
        done = super().write(text)
        if self.on is None and "The search goes on" in " ".join(self.getvalue().split()):
            self.on = time.process_time() - self.start
            self.tell(self.on)
        return done


def draw(table: Drawn) -> list[tuple[tuple[int, ...], int]]:
    """Records: the codes of each and what it contributes; few are much larger than the others."""
    rng = random.Random(table.seed)
    found = []
    for codes in itertools.product(*map(range, table.sizes)):
        number = int(rng.expovariate(1 / table.people))
        found += [(codes, int(10 * rng.paretovariate(1.1))) for _ in range(number)]
    return found


def covered(table: Drawn, variable: int) -> dict[str, set[int]]:
    """The codes of a variable as files show them, and the finest codes behind each."""
    letter, size = "abcd"[variable], table.sizes[variable]
    step = table.groups if variable == 0 else 0
    fine = {f"{letter}{i // step}{i % step}" if step else f"{letter}{i}": {i} for i in range(size)}
    above = (
        {f"{letter}{i}": set(range(i * step, i * step + step)) for i in range(size // step)}
        if step
        else {}
    )
    return {**above, **fine, "Total": set(range(size))}


def write(table: Drawn, variables: Sequence[int], path: Path) -> None:
    """A confidential file of some variables, with totals and subtotals."""
    records = draw(table)
    codes = [covered(table, v) for v in variables]
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        beside = [] if table.counts else ["n", "x1", "x2"]
        rows.writerow([*("abcd"[v] for v in variables), "value", *beside])
        for where in itertools.product(*codes):
            inside = [
                amount
                for at, amount in records
                if all(at[v] in codes[k][where[k]] for k, v in enumerate(variables))
            ]
            inside.sort(reverse=True)
            first, second, *_ = [*inside, 0, 0]
            more = [] if table.counts else [len(inside), first, second]
            rows.writerow([*where, len(inside) if table.counts else sum(inside), *more])


def run(table: Drawn, tell: Tell) -> None:
    """Suppress a table by the command; tell when it goes on, and a row of the report."""
    ways = range(len(table.sizes))
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for variables in itertools.combinations(ways, 2) if table.linked else [tuple(ways)]:
            files.append(Path(folder) / f"{'-'.join('abcd'[v] for v in variables)}.csv")
            write(table, variables, files[-1])
        out = Path(folder) / ("public" if table.linked else "public.csv")
        if table.linked:
            out.mkdir()
        layout = Path(folder) / "layout.toml"
        layout.write_text("[suppress]\nzeros = true\n", encoding="utf-8")
        words = [*map(str, files), "--rule", table.rule, "--out", str(out), "--layout", str(layout)]
        before = sys.argv
        sys.argv = ["lustrum", "suppress", *words, "--kind", "counts" if table.counts else "sums"]
        said = Heard(tell)
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                lustrum()
            except SystemExit as end:
                code = end.code
        seconds = time.process_time() - said.start
        sys.argv = before
    text = " ".join(said.getvalue().split())
    found = re.search(r"([\d,]+) cells, ([\d,]+) primary, ([\d,]+) secondary", text)
    if found is None or code not in (0, None):
        raise SystemExit(f"{table.name} ended with {code}: {text[-300:]}")
    cells, primary, secondary = (int(number.replace(",", "")) for number in found.groups())
    row: dict[str, Figure] = {
        "table": table.name,
        "cells": cells,
        "primary": primary,
        "secondary": secondary,
        "proven": "yes" if "no pattern costs less" in text else "no",
        "CPU (s)": seconds,
        "said after (CPU s)": said.on,
    }
    tell(row)


def measured(table: Drawn, minutes: int) -> dict[str, Figure]:
    """A row of the report; a search is stopped after so many CPU minutes."""
    heard, stopped = limited(lambda tell: run(table, tell), 60 * minutes)
    if not stopped:
        row: dict[str, Figure] = heard[-1]
        return row
    return {
        "table": table.name,
        "cells": None,
        "primary": None,
        "secondary": None,
        "proven": f"stopped after {minutes} CPU minutes",
        "CPU (s)": None,
        "said after (CPU s)": heard[0] if heard else None,
    }


def main() -> None:
    """All tables, or those named by their numbers from 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "numbers", nargs="*", type=int, help="numbers of tables; all if none is given"
    )
    parser.add_argument("--minutes", type=int, default=30, help="CPU minutes that stop a case")
    given = parser.parse_args()
    for number in given.numbers or range(1, len(TABLES) + 1):
        record("Small tables by default", measured(TABLES[number - 1], given.minutes))


if __name__ == "__main__":
    main()
