"""Problems that fall apart: cells that no relation ties together once frozen cells are constants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lustrum.model.arrays import Ints
from lustrum.numeric.structure.ragged import connected_parts
from lustrum.protect.suppression.problem import ContributorView, SuppressionProblem


@dataclass(frozen=True, eq=False)
class ProblemPart:
    """Some cells of a problem as a problem of their own."""

    cells: Ints
    problem: SuppressionProblem


def parts_of(problem: SuppressionProblem) -> list[ProblemPart] | None:
    """The parts that hold primary cells with levels, or None where there is one part only.

    Frozen cells stay in every part whose relations they have part in. Contributors know cells of several
    parts, but what they know in one says nothing about another. A rule about sums of cells is looked at
    along relations, so it does not tie parts together either.
    """
    matrix = problem.relations
    rows, cells = matrix.shape
    links = matrix.tocoo()
    free = ~problem.frozen[links.col]
    label = connected_parts(cells + rows, cells + links.row[free], links.col[free])
    asked = problem.primary & (problem.upper + problem.lower + problem.sliding > 0)
    wanted = np.unique(label[np.flatnonzero(asked)])
    if wanted.size < 2:
        return None
    parts = []
    for number in wanted.tolist():
        own_rows = np.flatnonzero(label[cells:] == number)
        inside = np.zeros(cells, dtype=np.bool_)
        inside[(label[:cells] == number) & ~problem.frozen] = True
        inside[matrix[own_rows].indices] = True
        part_cells = np.flatnonzero(inside)
        parts.append(ProblemPart(part_cells, cut_out(problem, part_cells, own_rows)))
    return parts


def cut_out(problem: SuppressionProblem, part_cells: Ints, rows: Ints) -> SuppressionProblem:
    """Some cells and the relations among them as a problem of their own."""
    cell_index = np.full(problem.values.size, -1, dtype=np.int64)
    cell_index[part_cells] = np.arange(part_cells.size)
    views = []
    for view in problem.views:
        mine = cell_index[view.cells] >= 0
        targets = None if view.targets is None else view.targets[part_cells]
        levels = None if view.levels is None else view.levels[:, mine]
        ends = view.low[mine], view.high[mine]
        views.append(
            ContributorView(view.name, cell_index[view.cells[mine]], *ends, targets, levels)
        )
    return SuppressionProblem(
        values=problem.values[part_cells],
        relations=sparse.csr_array(problem.relations[rows][:, part_cells]),
        primary=problem.primary[part_cells],
        lower=problem.lower[part_cells],
        upper=problem.upper[part_cells],
        sliding=problem.sliding[part_cells],
        low=problem.low[part_cells],
        high=problem.high[part_cells],
        cost=problem.cost[part_cells],
        frozen=problem.frozen[part_cells],
        never=problem.never[part_cells],
        whole=problem.whole,
        views=tuple(v for v in views if v.cells.size),
    )
