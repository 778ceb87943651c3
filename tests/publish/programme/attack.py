"""An attack on published files that shares no code with the programme: cells, sums and a linear program."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

ACT = {
    "a1": {"a1"},
    "a2": {"a2"},
    "b1": {"b1"},
    "b2": {"b2"},
    "A": {"a1", "a2"},
    "B": {"b1", "b2"},
    "_T": {"a1", "a2", "b1", "b2"},
}
REGION = {"n": {"n"}, "s": {"s"}, "w": {"w"}, "_T": {"n", "s", "w"}}
SIZE = {"s": {"s"}, "m": {"m"}, "l": {"l"}, "_T": {"s", "m", "l"}}
SETS = {"act": ACT, "region": REGION, "size": SIZE}
CUBE = list(product(sorted(ACT["_T"]), sorted(REGION["_T"]), sorted(SIZE["_T"])))

Cell = tuple[frozenset[str], frozenset[str], frozenset[str]]


def cell(codes: Mapping[str, str], only: Mapping[str, set[str]] | None = None) -> Cell:
    """The people of a cell: for each variable the finest codes it holds."""
    parts = []
    for name in ("act", "region", "size"):
        held = SETS[name][codes.get(name, "_T")]
        parts.append(frozenset(held & (only or {}).get(name, held)))
    return parts[0], parts[1], parts[2]


def published(path: Path, only: Mapping[str, set[str]] | None = None) -> dict[Cell, float | None]:
    """The cells of a file, None where a value is not shown."""
    found: dict[Cell, float | None] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            value = row["value"]
            found[cell(row, only)] = None if value == "" else float(value)
            assert (value == "") == (row["status"] != "F")
    return found


def contributions(path: Path, measure: str, wanted: Cell) -> list[int]:
    """What each holding contributes to a cell, the largest first."""
    held: dict[str, int] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if all(row[n] in w for n, w in zip(("act", "region", "size"), wanted, strict=True)):
                held[row["group"]] = held.get(row["group"], 0) + int(row[measure])
    return sorted(held.values(), reverse=True)


def attack(
    facts: Mapping[str, Iterable[Mapping[Cell, float | None]]],
    responses: tuple[str, ...],
    total: tuple[str, tuple[str, ...]] | None = None,
) -> Callable[[str, Cell], tuple[float, float]]:
    """The least and the most that a cell can be; ``total`` names a response that is the sum of the others.

    The unknowns are the free responses of every cell of the cube, none below 0.
    """
    free = [r for r in responses if total is None or r != total[0]]
    width = len(CUBE)

    def weights(response: str, wanted: Cell) -> np.ndarray:
        inside = np.array([all(c in w for c, w in zip(one, wanted, strict=True)) for one in CUBE])
        parts = total[1] if total is not None and response == total[0] else (response,)
        out = np.zeros(width * len(free))
        for part in parts:
            place = free.index(part) * width
            out[place : place + width] = inside
        return out

    rows, ends = [], []
    for response, tables in facts.items():
        for table in tables:
            for wanted, value in table.items():
                if value is not None:
                    rows.append(weights(response, wanted))
                    ends.append(value)
    matrix = np.array(rows) if rows else None

    def ask(response: str, wanted: Cell) -> tuple[float, float]:
        goal = weights(response, wanted)
        least, most = (
            linprog(sign * goal, A_eq=matrix, b_eq=ends, bounds=(0, None), method="highs")
            for sign in (1, -1)
        )
        low = float(least.fun)
        return low, float("inf") if most.status == 3 else -float(most.fun)

    return ask
