"""Published files in many manners: hierarchies, subsets, units, nested columns, wide tables, symbols, notes.

Every file is drawn from a seed with its true layout and one planted disclosure, or none. The ranges of hidden
cells come from integer programs of this module, over the smallest cells, and share nothing with the reader.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import LinearConstraint, milp

Key = tuple[str, str, str]
"""Area, job, measure."""

_SYMBOLS = ("x", "..", "(D)", "*", ":", "c", "•", "n.p.", "")
_TOTALS = ("Total", "Insgesamt", "Ensemble", "Totaal", "I alt", "All areas", "Land")
_INSIDE = ("of which {}", "darunter: {}", "dont {}", "waarvan {}", "herav {}", "memo: {}")


@dataclass
class DrawnFile:
    """The text of a file, its true layout, and what is hidden in it."""

    text: str
    layout: str
    planted: str = ""
    ranges: dict[str, tuple[int, int | None]] = field(default_factory=dict)


def draw_file(seed: int, *, disclosing: bool) -> DrawnFile:
    """A file from a seed; a harmless one is drawn again until every hidden count has four values left."""
    rng = np.random.default_rng(seed)
    while True:
        made = _Table(rng, disclosing=disclosing).file()
        if made is not None:
            return made


class _Table:
    """Counts by areas and jobs; smallest cells are unknown to the reader, everything else is sums of them."""

    def __init__(self, rng: np.random.Generator, *, disclosing: bool) -> None:
        self.rng, self.disclosing = rng, disclosing
        self.total = str(rng.choice(_TOTALS))
        groups = [int(rng.integers(2, 5)) for _ in range(int(rng.integers(1, 4)))]
        self.groups = {
            f"Region {chr(65 + i)}": [f"{chr(97 + i)}{j + 1}" for j in range(n)]
            for i, n in enumerate(groups)
        }
        self.jobs = [f"job{j}" for j in range(int(rng.integers(2, 5)))]
        self.leaves = [leaf for parts in self.groups.values() for leaf in parts]
        self.cells = {(a, j): int(rng.integers(6, 400)) for a in self.leaves for j in self.jobs}
        self.subset = ""
        if rng.random() < 0.4:
            self.subset = str(rng.choice(_INSIDE)).format("the capital")
        self.within = {
            j: int(self.cells[self.leaves[0], j] * rng.uniform(0.2, 0.8)) for j in self.jobs
        }
        self.thousands = bool(rng.random() < 0.25)
        self.symbol = str(rng.choice(_SYMBOLS))

    def value(self, area: str, job: str) -> int:
        jobs = self.jobs if job == "Sum" else [job]
        if area == self.subset:
            return sum(self.within[j] for j in jobs)
        return sum(self.cells[a, j] for a in self._below(area) for j in jobs)

    def _below(self, area: str) -> list[str]:
        return self.leaves if area == self.total else self.groups.get(area, [area])

    def areas(self) -> list[str]:
        rows = [self.total]
        for region, parts in self.groups.items():
            rows.append(region)
            for leaf in parts:
                rows.append(leaf)
                if self.subset and leaf == self.leaves[0]:
                    rows.append(self.subset)
        return rows

    def hide(self) -> tuple[set[tuple[str, str]], tuple[str, str] | None]:
        """Cells to hide: a square of four in one region, and for a disclosure one that a sum gives away."""
        region = next((r for r, parts in self.groups.items() if len(parts) > 1), "")
        parts = self.groups[region]
        rows, columns = (
            self.rng.choice(parts, 2, replace=False),
            self.rng.choice(self.jobs, 2, replace=False),
        )
        hidden = {(str(a), str(j)) for a in rows for j in columns}
        if not self.disclosing:
            return hidden, None
        free = [
            (a, j)
            for a in self.areas()
            for j in (*self.jobs, "Sum")
            if (a, j) not in hidden and a != self.subset
        ]
        free = [c for c in free if c[0] not in {a for a, _ in hidden} or c[1] == "Sum"]
        planted = free[int(self.rng.integers(len(free)))]
        return hidden | {planted}, planted

    def ranges(self, hidden: set[tuple[str, str]]) -> dict[tuple[str, str], tuple[int, int | None]]:
        """The least and greatest value of every hidden cell, by integer programs over the smallest cells."""
        names = [(a, j) for a in self.leaves for j in self.jobs]
        names += [(self.subset, j) for j in self.jobs] if self.subset else []
        index = {name: i for i, name in enumerate(names)}

        def row(cell: tuple[str, str]) -> np.ndarray:
            out = np.zeros(len(names))
            areas = [cell[0]] if cell[0] == self.subset else self._below(cell[0])
            for area in areas:
                for job in self.jobs if cell[1] == "Sum" else [cell[1]]:
                    out[index[area, job]] += 1
            return out

        shown = [(a, j) for a in self.areas() for j in (*self.jobs, "Sum") if (a, j) not in hidden]
        matrix = np.array([row(cell) for cell in shown])
        right = np.array([self.value(*cell) for cell in shown])
        limits = [LinearConstraint(matrix, right, right)]
        if self.subset:
            inside = np.array([row((self.leaves[0], j)) - row((self.subset, j)) for j in self.jobs])
            limits.append(LinearConstraint(inside, 0, np.inf))
        out = {}
        for cell in hidden:
            ends: list[int | None] = []
            for sign in (1, -1):
                solved = milp(sign * row(cell), constraints=limits, integrality=np.ones(len(names)))
                ends.append(None if solved.x is None else round(abs(solved.fun)))
            assert ends[0] is not None
            out[cell] = (ends[0], ends[1])
        return out

    def file(self) -> DrawnFile | None:
        hidden, planted = self.hide()
        ranges = self.ranges(hidden)
        widths = [np.inf if high is None else high - low for low, high in ranges.values()]
        if planted is None and min(widths) < 4:
            return None
        if planted is not None and ranges[planted][0] != ranges[planted][1]:
            return None
        manner = str(self.rng.choice(["long", "wide", "nested", "units"]))
        text, layout, name_of = getattr(self, f"_{manner}")(hidden)
        named = {name_of(cell): ends for cell, ends in ranges.items()}
        return DrawnFile(text, layout, "" if planted is None else name_of(planted), named)

    def _shown(self, cell: tuple[str, str], hidden: set[tuple[str, str]]) -> str:
        if cell in hidden:
            return self.symbol
        return f"{self.value(*cell):,}" if self.thousands else str(self.value(*cell))

    def _area_roles(self, prefix: dict[str, str] | None = None) -> str:
        called = prefix or {}
        totals = {self.total: list(self.groups), **self.groups}
        lines = [
            f"totals.{json.dumps(called.get(t, t), ensure_ascii=False)} = "
            f"{json.dumps([called.get(p, p) for p in parts], ensure_ascii=False)}"
            for t, parts in totals.items()
        ]
        if self.subset:
            head, code = (called.get(c, c) for c in (self.leaves[0], self.subset))
            inside = json.dumps([code], ensure_ascii=False)
            lines.append(f"subsets.{json.dumps(head)} = {{ codes = {inside}, complete = false }}")
        return "\n".join(lines)

    def _head(self, more: str = "") -> str:
        return f'kind = "counts"\n{more}[symbols]\n{json.dumps(self.symbol, ensure_ascii=False)} = "hidden"\n'

    def _job_roles(self) -> str:
        return f"totals.Sum = {json.dumps(self.jobs)}"

    def _long(self, hidden: set[tuple[str, str]]):  # type: ignore[no-untyped-def]
        separator = ";" if self.thousands else str(self.rng.choice([",", ";", "\t"]))
        rows = [["area", "job", "value"]]
        rows += [
            [a, j, self._shown((a, j), hidden)] for a in self.areas() for j in ("Sum", *self.jobs)
        ]
        text = "\n".join(separator.join(r) for r in rows) + "\n"
        layout = (
            f"{self._head()}[[tables]]\n[tables.columns]\n"
            'area = { role = "code" }\njob = { role = "code" }\nvalue = { role = "value" }\n'
            f"[dimensions.area]\n{self._area_roles()}\n[dimensions.job]\n{self._job_roles()}\n"
        )
        return text, layout, lambda cell: f"area={cell[0]}, job={cell[1]}"

    def _wide(self, hidden: set[tuple[str, str]]):  # type: ignore[no-untyped-def]
        notes = bool(self.rng.random() < 0.5)
        head = ["Table 3. Staff by area, 2025", ""] if notes else []
        rows = [";".join(["Area", "Sum", *self.jobs])]
        rows += [
            ";".join([a, *(self._shown((a, j), hidden) for j in ("Sum", *self.jobs))])
            for a in self.areas()
        ]
        text = "\n".join([*head, *rows, *(["", "Source: the office"] if notes else [])]) + "\n"
        columns = "\n".join(f'{name} = {{ role = "value" }}' for name in ("Sum", *self.jobs))
        where = f"head = [3]\nlast = {2 + len(rows)}\n" if notes else ""
        said = self._head('notes = "nothing"\n' if notes else "")
        layout = (
            f'{said}[[tables]]\n{where}across = ["job"]\n[tables.columns]\n'
            f'Area = {{ role = "code" }}\n{columns}\n'
            f"[dimensions.Area]\n{self._area_roles()}\n[dimensions.job]\n{self._job_roles()}\n"
        )
        return text, layout, lambda cell: f"Area={cell[0]}, job={cell[1]}"

    def _nested(self, hidden: set[tuple[str, str]]):  # type: ignore[no-untyped-def]
        pairs = {self.total: (self.total, "")}
        for region, parts in self.groups.items():
            pairs[region] = (region, "")
            pairs |= {leaf: (region, leaf) for leaf in parts}
        if self.subset:
            pairs[self.subset] = (next(iter(self.groups)), self.subset)
        called = {area: " / ".join(filter(None, pair)) for area, pair in pairs.items()}
        rows = ["region;place;job;n"]
        rows += [
            ";".join([*pairs[a], j, self._shown((a, j), hidden)])
            for a in self.areas()
            for j in ("Sum", *self.jobs)
        ]
        layout = (
            f'{self._head()}[[tables]]\nnested = ["region", "place"]\n[tables.columns]\n'
            'region = { role = "code" }\n'
            'place = { role = "code" }\njob = { role = "code" }\nn = { role = "value" }\n'
            f"[dimensions.place]\n{self._area_roles(called)}\n[dimensions.job]\n{self._job_roles()}\n"
        )
        return (
            "\n".join(rows) + "\n",
            layout,
            lambda cell: f"place={called[cell[0]]}, job={cell[1]}",
        )

    def _units(self, hidden: set[tuple[str, str]]):  # type: ignore[no-untyped-def]
        """The counts and a coarse unit beside them, which is hidden where they are."""
        rows = ["area;job;unit;value"]
        for a in self.areas():
            for j in ("Sum", *self.jobs):
                rows.append(f"{a};{j};NR;{self._shown((a, j), hidden)}")
                coarse = self.symbol if (a, j) in hidden else f"{self.value(a, j) / 1000:.3f}"
                rows.append(f"{a};{j};THS;{coarse}")
        self_layout = (
            f"{self._head()}[[tables]]\n[tables.columns]\n"
            'area = { role = "code" }\njob = { role = "code" }\n'
            'unit = { role = "code" }\nvalue = { role = "value" }\n'
            f"[dimensions.area]\n{self._area_roles()}\n[dimensions.job]\n{self._job_roles()}\n"
            '[dimensions.unit]\nunits.THS = "NR / 1000"\n'
        )
        return (
            "\n".join(rows) + "\n",
            self_layout,
            lambda cell: f"area={cell[0]}, job={cell[1]}, unit=NR",
        )
