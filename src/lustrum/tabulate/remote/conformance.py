"""Does a database answer as a copy of its records does? Drawn questions, asked of both.

A database that Lustrum was never tried with may round, order or overflow otherwise. The records of a table are
read once into memory; every kind of question is asked of the database and of the loops over that copy, and all
that comes back must be the same to the last digit. What is said names questions, and no number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lustrum.model import Dataset, TableQuery
from lustrum.model.errors import LustrumError
from lustrum.numeric.counting.cube import Cube
from lustrum.tabulate.finest import finest_cells
from lustrum.tabulate.remote.connection import Connection
from lustrum.tabulate.remote.engine import IbisEngine

_RANKS = 3
_MOST_CELLS = 100_000
_SEED = 20_240_117


@dataclass(frozen=True)
class EngineCheck:
    """How many questions were asked, and for each that was not answered as by the copy: what differs."""

    asked: int
    different: tuple[tuple[str, str], ...]

    @property
    def conforms(self) -> bool:
        return not self.different


def check_engine(
    connection: Connection,
    dataset: Dataset,
    questions: int = 40,
    progress: Callable[[int], None] = lambda _: None,
) -> EngineCheck:
    """Ask a database and a copy of its records the same questions, which are the same in every run."""
    engine = IbisEngine(connection, dataset)
    different: list[tuple[str, str]] = []
    try:
        engine.check()
        copy = engine.in_memory()
        wrong = _finest_difference(engine, copy)
        if wrong:
            different.append(("the finest cells", wrong))
        asked = 1
        for query in _questions(dataset, questions):
            progress(asked)
            wrong = _difference(engine, copy, query)
            if wrong:
                different.append((_words(query), wrong))
            asked += 1
    finally:
        engine.database.close()
    return EngineCheck(asked, tuple(different))


def _finest_difference(engine: Any, copy: Any) -> str:
    try:
        found = engine.finest_cells()
    except LustrumError as error:
        return str(error)
    expected = finest_cells(copy)
    return ", ".join(n for n in ("codes", "counts", "keys") if not _same(found, expected, n))


def _difference(engine: Any, copy: Any, query: TableQuery) -> str:
    ranks = _RANKS if query.measure is not None else 0
    try:
        expected: Cube = copy.cube(query, ranks=ranks)
    except LustrumError:
        return ""  # what the copy refuses is no question
    try:
        found: Cube = engine.cube(query, ranks=ranks)
    except LustrumError as error:
        return str(error)
    parts = [n for n in ("counts", "keys", "sums", "contributors") if not _same(found, expected, n)]
    one, other = found.contributions, expected.contributions
    if one is not None and other is not None:
        ranked = ("value", "holding", "weight")
        parts += [f"largest {n}" for n in ranked if not _same(one, other, n)]
    return ", ".join(parts)


def _same(one: object, other: Any, name: str) -> bool:
    left, right = getattr(one, name), getattr(other, name)
    return (left is None) == (right is None) and (left is None or np.array_equal(left, right))


def _questions(dataset: Dataset, most: int) -> Iterator[TableQuery]:
    """Every kind of number in turn, over drawn variables, levels, groups and filters."""
    rng = np.random.default_rng(_SEED)
    measures = [m.name for m in dataset.measures]
    weights = [w.name for w in dataset.weights]
    kinds: list[dict[str, str]] = [
        {},
        *({"measure": m} for m in measures),
        *({"weight": w} for w in weights),
        *({"measure": m, "weight": w} for m in measures for w in weights),
    ]
    names = [v.name for v in dataset.variables]
    for number in range(most):
        by: list[dict[str, Any]] = []
        cells = 1
        for name in rng.permutation(names)[: rng.integers(0, 4)].tolist():
            axis, size = _axis(dataset, name, rng)
            if cells * size <= _MOST_CELLS:
                by.append(axis)
                cells *= size
        where = {
            name: _some(list(dataset.variable(name).codes), rng)
            for name in rng.permutation(names)[: rng.integers(0, 3)].tolist()
        }
        kind = kinds[number % len(kinds)]
        yield TableQuery.from_mapping({"dataset": dataset.name, "by": by, "where": where} | kind)


def _axis(dataset: Dataset, name: str, rng: np.random.Generator) -> tuple[dict[str, Any], int]:
    variable = dataset.variable(name)
    codes = list(variable.codes)
    axis: dict[str, Any] = {"variable": name}
    size = len(codes)
    form = int(rng.integers(0, 4))
    if form == 1 and variable.levels:
        axis["level"] = variable.levels[int(rng.integers(len(variable.levels)))].name
    elif form == 2:
        axis["codes"] = _some(codes, rng)
        size = len(axis["codes"])
    elif form == 3:
        # Own groups may overlap, so that a record counts in several.
        axis["groups"] = [
            {"label": f"own {i}", "members": _some(codes, rng)} for i in range(rng.integers(1, 4))
        ]
        size = len(axis["groups"])
    if rng.integers(0, 2):
        axis["total"] = True
    return axis, size + 1


def _some(codes: list[str], rng: np.random.Generator) -> list[str]:
    count = int(rng.integers(1, min(len(codes), 6) + 1))
    return [codes[int(i)] for i in np.sort(rng.permutation(len(codes))[:count])]


def _words(query: TableQuery) -> str:
    what = query.measure or "counts"
    weighted = f" with {query.weight}" if query.weight else ""
    by = ", ".join(axis.variable for axis in query.by) or "nothing"
    where = ", ".join(item.variable for item in query.where)
    return f"{what}{weighted} by {by}" + (f", where {where}" if where else "")
