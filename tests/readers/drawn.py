"""Drawn tables with totals and subtotals, the files that show them, and bounds by a second solver."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import LinearConstraint, milp

Key = tuple[str, ...]


@dataclass
class Drawn:
    """True cells of a table, what is hidden, and the equations between cells."""

    names: tuple[str, ...]
    values: dict[Key, int]
    hidden: set[Key]
    totals: dict[str, dict[str, tuple[str, ...]]]
    equations: list[dict[Key, int]] = field(default_factory=list)

    def csv(self, symbol: str = "x") -> str:
        """The file: a row for each cell."""
        rows = [",".join((*self.names, "value"))]
        for key, value in self.values.items():
            rows.append(",".join((*key, symbol if key in self.hidden else str(value))))
        return "\n".join(rows) + "\n"

    def layout(self) -> str:
        """The true layout."""
        lines = ['kind = "counts"', "[symbols]", 'x = "hidden"', "[[tables]]", "[tables.columns]"]
        lines += [f'{name} = {{ role = "code" }}' for name in self.names]
        lines.append('value = { role = "value" }')
        for name, totals in self.totals.items():
            lines.append(f"[dimensions.{name}]")
            lines += [
                f'totals."{t}" = {list(parts)}'.replace("'", '"') for t, parts in totals.items()
            ]
        return "\n".join(lines) + "\n"

    def ranges(self) -> dict[Key, tuple[int, int | None]]:
        """The least and the greatest whole value of every hidden cell, by integer programs of its own."""
        keys = sorted(self.hidden)
        index = {key: i for i, key in enumerate(keys)}
        rows, right = [], []
        for equation in self.equations:
            row, rest = np.zeros(len(keys)), 0
            for key, weight in equation.items():
                if key in index:
                    row[index[key]] += weight
                else:
                    rest -= weight * self.values[key]
            if row.any():
                rows.append(row)
                right.append(rest)
        constraints = [LinearConstraint(np.array(rows), right, right)] if rows else []
        out: dict[Key, tuple[int, int | None]] = {}
        for key, i in index.items():
            ends: list[int | None] = []
            for sign in (1, -1):
                cost = np.zeros(len(keys))
                cost[i] = sign
                solved = milp(cost, constraints=constraints, integrality=np.ones(len(keys)))
                ends.append(None if solved.x is None else round(solved.x[i]))
            assert ends[0] is not None
            out[key] = (ends[0], ends[1])
        return out


def draw(rng: np.random.Generator, groups: tuple[int, ...] = (2, 3), columns: int = 3) -> Drawn:
    """A table of a hierarchy of codes by a few columns with totals, some cells hidden."""
    subtotals = {f"G{i}": tuple(f"g{i}{j}" for j in range(size)) for i, size in enumerate(groups)}
    totals = {"area": {"Total": tuple(subtotals), **subtotals}}
    totals["job"] = {"All": tuple(f"j{i}" for i in range(columns))}
    values: dict[Key, int] = {}
    leaves = [code for parts in subtotals.values() for code in parts]
    small = rng.integers(0, 30, size=(len(leaves), columns))
    inner = {(a, f"j{c}"): int(small[i, c]) for i, a in enumerate(leaves) for c in range(columns)}
    for area in ("Total", *(code for g in subtotals for code in (g, *subtotals[g]))):
        below = leaves if area == "Total" else subtotals.get(area, (area,))
        for job in ("All", *totals["job"]["All"]):
            jobs = totals["job"]["All"] if job == "All" else (job,)
            values[area, job] = sum(inner[a, j] for a in below for j in jobs)
    equations = [
        {(t, job): -1, **{(p, job): 1 for p in parts}}
        for t, parts in totals["area"].items()
        for job in ("All", *totals["job"]["All"])
    ]
    areas = ["Total", *(code for g in subtotals for code in (g, *subtotals[g]))]
    equations += [{(a, "All"): -1, **{(a, j): 1 for j in totals["job"]["All"]}} for a in areas]
    cells = sorted(values)
    picks = rng.choice(len(cells), size=int(rng.integers(1, len(cells) // 2)), replace=False)
    return Drawn(("area", "job"), values, {cells[int(i)] for i in picks}, totals, equations)
