"""Problems that fall apart: cells that no relation ties together once frozen cells are constants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lustrum.arrays import Ints
from lustrum.protect.suppression.problem import ContributorView, SuppressionProblem
from lustrum.structure.connected import connected_parts


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
        own = np.flatnonzero(inside)
        parts.append(ProblemPart(own, cut_out(problem, own, own_rows)))
    return parts


def cut_out(problem: SuppressionProblem, own: Ints, rows: Ints) -> SuppressionProblem:
    """Some cells and the relations among them as a problem of their own."""
    place = np.full(problem.values.size, -1, dtype=np.int64)
    place[own] = np.arange(own.size)
    views = []
    for view in problem.views:
        mine = place[view.cells] >= 0
        targets = None if view.targets is None else view.targets[own]
        levels = None if view.own is None else view.own[:, mine]
        ends = view.low[mine], view.high[mine]
        views.append(ContributorView(view.name, place[view.cells[mine]], *ends, targets, levels))
    return SuppressionProblem(
        values=problem.values[own],
        relations=sparse.csr_array(problem.relations[rows][:, own]),
        primary=problem.primary[own],
        lower=problem.lower[own],
        upper=problem.upper[own],
        sliding=problem.sliding[own],
        low=problem.low[own],
        high=problem.high[own],
        cost=problem.cost[own],
        frozen=problem.frozen[own],
        never=problem.never[own],
        whole=problem.whole,
        views=tuple(v for v in views if v.cells.size),
    )
