"""A problem: a population, the tables of a run, a rule and the files that go in."""

from __future__ import annotations

import csv
import random
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from attacks.suppression.cells import Content, Leaves, Population, Variable
from attacks.suppression.rules import MARGIN, Rule, demanded

Columns = Literal["none", "n", "largest", "holdings"]
Door = Literal["suppress", "programme", "frame", "crosstab"]


@dataclass(frozen=True)
class Problem:
    """Everything that one run needs; ``write`` makes its input files."""

    kind: str
    seed: int
    population: Population
    tables: tuple[tuple[str, ...], ...]
    rules: tuple[Rule, ...]
    columns: Columns = "none"
    options: tuple[str, ...] = ()
    format: str = "csv"
    door: Door = "suppress"
    blanks: Literal["zero", "empty"] = "zero"
    gaps: bool = False
    hierarchy: Literal["prefix", "file"] = "prefix"
    by_hand: bool = False
    spoiled: bool = False

    @property
    def counts(self) -> bool:
        """Whether the tables count units."""
        return self.columns == "none" and not self.by_hand

    @property
    def free(self) -> bool:
        """Whether values may be negative."""
        return any(r.amount < 0 for r in self.population.records)

    @property
    def zeros(self) -> bool:
        """Whether empty cells may be suppressed."""
        return "--zeros" in self.options

    @property
    def withstands_pairs(self) -> bool:
        """Whether the run was asked to withstand any two contributors."""
        return "pairs" in self.options

    @property
    def minimum(self) -> int | None:
        """The threshold of a table of counts."""
        return self.rules[0].numbers[0] if self.counts else None

    def cells(self) -> dict[Leaves, Content]:
        """The truth about every cell of every table."""
        found: dict[Leaves, Content] = {}
        for names in self.tables:
            for where in self.population.table(names):
                leaves = self.population.leaves(where)
                if leaves not in found:
                    found[leaves] = self.population.content(leaves)
        return found

    def primary(self) -> dict[Leaves, Fraction]:
        """The sensitive cells, and how far each must be hidden; 0 means: not exactly known."""
        found: dict[Leaves, Fraction] = {}
        for leaves, cell in self.cells().items():
            if self.by_hand:
                if cell.n and self._chosen(leaves):
                    found[leaves] = Fraction(MARGIN * abs(cell.value), 100)
            elif self.counts:
                if 0 < cell.value < self.rules[0].numbers[0]:
                    found[leaves] = Fraction(0)
            elif (level := demanded(self.rules, cell)) is not None:
                found[leaves] = level
        return found

    def write(self, folder: Path) -> list[Path]:
        """Write the confidential files of the run."""
        paths = []
        for names in self.tables:
            path = folder / f"{'-'.join(names)}.csv"
            with path.open("w", newline="", encoding="utf-8") as file:
                rows = csv.writer(file, lineterminator="\n")
                rows.writerow([*names, "value", *self._headings()])
                for where in self.population.table(names):
                    leaves = self.population.leaves(where)
                    cell = self.population.content(leaves)
                    if self.gaps and cell.n == 0 and len(leaves) == 1:
                        continue
                    rows.writerow([*where.values(), cell.value, *self._beside(leaves, cell)])
            paths.append(path)
        return paths

    def trees(self, folder: Path) -> list[str]:
        """Write files of hierarchies, and the options that name them."""
        if self.hierarchy == "prefix":
            return []
        options = []
        for v in self.population.variables:
            if v.groups and any(v.name in names for names in self.tables):
                path = folder / f"{v.name}.hrc"
                inner = {c for parts in v.groups.values() for c in parts}
                lines: list[str] = []
                for code in (*v.groups, *v.leaves):
                    if code not in inner:
                        _branch(v, code, 0, lines)
                path.write_text("\n".join(lines) + "\n", encoding="utf-8")
                options += ["--hierarchy", f"{v.name}={path}"]
        return options

    def _headings(self) -> list[str]:
        if self.by_hand:
            return ["primary"]
        ranks = range(1, 4)
        largest = [f"x{i}" for i in ranks]
        return {
            "none": [],
            "n": ["n"],
            "largest": ["n", *largest],
            "holdings": ["n", *largest, *(f"h{i}" for i in ranks)],
        }[self.columns]

    def _beside(self, leaves: Leaves, cell: Content) -> list[object]:
        if self.by_hand:
            return [int(bool(cell.n) and self._chosen(leaves))]
        if self.columns == "none":
            return []
        if self.columns == "n":
            return [cell.n]
        empty: object = 0 if self.blanks == "zero" else ""
        largest: list[object] = [cell.largest(i) if i < cell.n else empty for i in range(3)]
        if self.spoiled and 0 < cell.n <= 2:
            # A third of the problems also say what cannot be, and must be refused.
            largest = _spoil(cell, self.seed + min(leaves), false=self.seed % 3 == 0)
        if self.columns == "largest":
            return [cell.n, *largest]
        return [cell.n, *largest, *(cell.parts[i][1] if i < cell.n else "" for i in range(3))]

    def _chosen(self, leaves: Leaves) -> bool:
        return random.Random(f"{self.seed} {sorted(leaves)}").random() < 0.12 and len(leaves) == 1


def _spoil(cell: Content, seed: int, *, false: bool) -> list[object]:
    """Contributions that say less than the truth, in ways that occur: blanks, and parts left out."""
    how = seed % 3
    if how == 0 or (how == 1 and not false):
        return ["", "", ""]
    if how == 1:
        return [max(cell.largest(0) // 20, 1), "", ""]
    return [cell.largest(0) if cell.n == 2 else "", "", ""]


def _branch(variable: Variable, code: str, depth: int, lines: list[str]) -> None:
    lines.append("@" * depth + code)
    for part in variable.groups.get(code, ()):
        _branch(variable, part, depth + 1, lines)
