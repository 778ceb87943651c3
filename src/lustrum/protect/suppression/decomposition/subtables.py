"""The sub-tables of a table with hierarchies: along each axis one total and its parts.

Each sub-table is a table without hierarchies. In two dimensions it is a network, for which the cheapest pattern
is found quickly. Every relation of the table is in at least one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from lustrum.model.arrays import Ints
from lustrum.protect.suppression.problem import AxisSums, SuppressionProblem


@dataclass(frozen=True, eq=False)
class SubTable:
    """Some cells with all relations among them; ``depth`` counts the steps down from the totals of all axes."""

    cells: Ints
    rows: Ints
    depth: int


def subtables_of(problem: SuppressionProblem) -> list[SubTable] | None:
    """The sub-tables from the top down; None where there is only one, or where the cells are no table."""
    if problem.axes is None or all(len(axis.sums) < 2 for axis in problem.axes):
        return None
    shape = tuple(axis.size for axis in problem.axes)
    number = np.arange(problem.values.size).reshape(shape)
    lengths = np.diff(problem.relations.indptr)
    by_cell = problem.relations.tocsc()
    subtables = []
    for groups in product(*(_groups(axis) for axis in problem.axes)):
        cells = np.sort(number[np.ix_(*(members for members, _ in groups))].ravel())
        inside = np.concatenate(
            [by_cell.indices[by_cell.indptr[c] : by_cell.indptr[c + 1]] for c in cells.tolist()]
        )
        rows, count = np.unique(inside, return_counts=True)
        rows = rows[count == lengths[rows]]
        if rows.size:
            subtables.append(SubTable(cells, rows, sum(depth for _, depth in groups)))
    return sorted(subtables, key=lambda sub: sub.depth)


def _groups(axis: AxisSums) -> list[tuple[Ints, int]]:
    """The totals of an axis with their parts and how deep they are; categories without a sum stand alone."""
    parents: dict[int, list[int]] = {}
    for total, parts in axis.sums:
        for part in parts:
            parents.setdefault(part, []).append(total)

    def depth(category: int) -> int:
        return max((1 + depth(total) for total in parents.get(category, ())), default=0)

    groups = [(np.array([total, *parts]), depth(total)) for total, parts in axis.sums]
    held = {category for members, _ in groups for category in members.tolist()}
    return groups + [(np.array([c]), 0) for c in range(axis.size) if c not in held]
