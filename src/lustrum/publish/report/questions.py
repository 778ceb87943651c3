"""The questions on which methods are compared: any dataset has them, and they are the same for all records."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from lustrum.model import Axis, Dataset, Filter, Group, TableQuery, Variable

_MOST_CELLS = 20_000


def fine_tables(dataset: Dataset, most: int) -> list[TableQuery]:
    """Tables of two and three variables at finest codes, those with fewer cells first."""
    candidates = []
    for ways in (2, 3):
        for chosen in combinations(_varying(dataset), ways):
            cells = int(np.prod([len(v.codes) for v in chosen]))
            if cells <= _MOST_CELLS:
                candidates.append((ways, cells, tuple(Axis(v.name) for v in chosen)))
    table_axes = [
        axes
        for ways in (2, 3)
        for _, axes in _spread(
            sorted(((c, a) for w, c, a in candidates if w == ways), key=lambda one: one[0]),
            most // 2,
        )
    ]
    return [TableQuery(dataset.name, axes) for axes in table_axes]


def random_tables(dataset: Dataset, count: int, *, own_groups: bool) -> Iterator[TableQuery]:
    """Tables of one to three variables at random levels, with a filter now and then, or with own groups."""
    rng = np.random.default_rng(7 + own_groups)
    variables = _varying(dataset)
    for _ in range(count):
        order = [variables[index] for index in rng.permutation(len(variables))]
        size = int(rng.integers(1, min(3, len(order)) + 1))
        axes = [_axis(variable, rng) for variable in order[:size]]
        if own_groups:
            axes[0] = Axis(order[0].name, groups=(Group("group", _some(order[0], rng)),))
        where: tuple[Filter, ...] = ()
        if len(order) > size and rng.random() < 0.5:
            where = (Filter(order[size].name, (str(rng.choice(order[size].codes)),)),)
        query = TableQuery(dataset.name, tuple(axes), where)
        if _size(query, dataset) <= _MOST_CELLS:
            yield query


def nested_pairs(dataset: Dataset, count: int) -> Iterator[tuple[TableQuery, TableQuery]]:
    """A table of a group of codes, and the same with one code fewer: their difference is that code."""
    rng = np.random.default_rng(11)
    variables = [v for v in _varying(dataset) if len(v.codes) > 2]
    others = _varying(dataset)
    for _ in range(count if variables and len(others) > 1 else 0):
        variable = variables[int(rng.integers(len(variables)))]
        rest = [v for v in others if v.name != variable.name]
        axis = _axis(rest[int(rng.integers(len(rest)))], rng)
        codes = _some(variable, rng, least=2)
        yield (
            TableQuery(dataset.name, (axis,), (Filter(variable.name, codes),)),
            TableQuery(dataset.name, (axis,), (Filter(variable.name, codes[1:]),)),
        )


def _varying(dataset: Dataset) -> list[Variable]:
    return [v for v in dataset.variables if len(v.codes) > 1]


def _spread(
    items: list[tuple[int, tuple[Axis, ...]]], most: int
) -> list[tuple[int, tuple[Axis, ...]]]:
    if not items:
        return []
    places = np.unique(np.linspace(0, len(items) - 1, most).astype(int)).tolist()
    return [items[index] for index in places]


def _axis(variable: Variable, rng: np.random.Generator) -> Axis:
    levels = [None, *(level.name for level in variable.levels)]
    return Axis(variable.name, levels[int(rng.integers(len(levels)))])


def _some(variable: Variable, rng: np.random.Generator, least: int = 1) -> tuple[str, ...]:
    size = int(rng.integers(least, max(least, len(variable.codes) // 2) + 1))
    places = sorted(rng.permutation(len(variable.codes))[:size].tolist())
    return tuple(variable.codes[index] for index in places)


def _size(query: TableQuery, dataset: Dataset) -> int:
    return int(np.prod([len(a.categories(dataset.variable(a.variable))) for a in query.by]))
