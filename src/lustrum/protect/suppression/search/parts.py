"""Smaller problems with the same patterns: parts that fall apart, and cells that move together as one.

Cells that no relation ties together once frozen cells are constants make problems of their own. A category
with a single part makes a relation of two cells, and so does a line in which all others are published.
Whatever an attacker cannot rule out moves both by the same amount, so a pattern needs both or neither: a
secondary cell that is given away protects nothing. The merged problem counts in deviations: all its values are
0, and what is published in any case is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from lustrum.model.arrays import Ints, Mask, Sparse
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


@dataclass(frozen=True, eq=False)
class Merged:
    """A smaller problem; ``number`` is the small cell of each cell, -1 for one that never moves.

    ``constant`` is the cost of cells that every pattern suppresses because they give a primary cell away.
    """

    problem: SuppressionProblem
    number: Ints
    constant: float

    def gathered(self, suppressed: Mask) -> Mask:
        """A pattern of the original as one of the small problem."""
        out = np.zeros(len(self.problem), dtype=np.bool_)
        out[self.number[suppressed & (self.number >= 0)]] = True
        return out

    def spread(self, original: SuppressionProblem, suppressed: Mask) -> Mask:
        """A pattern of the small problem as one of the original."""
        inside = self.number >= 0
        out = original.fixed.copy()
        out[inside] |= suppressed[self.number[inside]] & ~original.frozen[inside]
        return out


def merged_problem(problem: SuppressionProblem) -> Merged | None:
    """The problem with cells merged, or None where none are, or where some cell cannot be protected.

    >>> problem = SuppressionProblem.of(
    ...     [4, 4, 6, 10], [(1, [0]), (3, [1, 2])], primary=[0], upper=[2]
    ... )
    >>> merged_problem(problem).number.tolist()
    [0, 0, 1, 2]
    """
    if problem.unions is not None:
        return None  # sums of cells are judged along the lines of the original
    sizes = abs(problem.relations).sign() @ (~problem.frozen).astype(np.int64)
    if not bool(((sizes > 0) & (sizes < 3)).any()):
        return None  # every relation leaves its cells some freedom, so that none are tied together
    number, sign = _classes(problem)
    live = np.flatnonzero(~problem.frozen)
    asked = problem.primary & (problem.upper + problem.lower + problem.sliding > 0)
    if bool((asked & (number < 0)).any()):
        return None
    count = int(number.max(initial=-1)) + 1
    if count == 0 or count == live.size:
        return None
    inside = np.flatnonzero(number >= 0)
    class_of, ahead = number[inside], sign[inside] > 0
    primary = _any(asked[inside], class_of, count)
    choice = _any(problem.choice[inside], class_of, count)
    rise, fall = problem.room_up[inside], problem.room_down[inside]
    high = _least(np.where(ahead, rise, fall), class_of, count)
    low = -_least(np.where(ahead, fall, rise), class_of, count)
    above, below = problem.upper[inside], problem.lower[inside]
    views = []
    for view in problem.views:
        merged_view = _view(problem, view, number, sign, count)
        if merged_view is None:
            return None
        views.append(merged_view)
    price = np.where(problem.choice[inside], problem.cost[inside], 0.0)
    cost = np.zeros(count)
    np.add.at(cost, class_of, price)
    small = SuppressionProblem(
        values=np.zeros(count, dtype=np.int64),
        relations=_relations(problem, number, sign, count),
        primary=primary,
        upper=_most(np.where(ahead, above, below), class_of, count),
        lower=_most(np.where(ahead, below, above), class_of, count),
        sliding=_most(problem.sliding[inside], class_of, count),
        low=low,
        high=high,
        cost=cost,
        frozen=np.zeros(count, dtype=np.bool_),
        never=~primary & ~choice,
        whole=problem.whole,
        views=tuple(v for v in views if v.cells.size),
    )
    return Merged(small, number, float(cost[primary].sum()))


def moving_together(problem: SuppressionProblem) -> Ints:
    """For each cell the class of cells that always move with it, -1 for a cell that never moves."""
    return _classes(problem)[0]


def _classes(problem: SuppressionProblem) -> tuple[Ints, Ints]:
    """For each cell its class and whether it moves with it (1) or against it (-1); -1, 0 for constants.

    Relations are looked at again whenever one of their cells turns out constant or merges with another.
    """
    cells = problem.values.size
    parent, sign = np.arange(cells), np.ones(cells, dtype=np.int64)
    constant = problem.frozen.copy()
    rows = _rows(problem.relations)
    of_cell: list[list[int]] = [[] for _ in range(cells)]
    for number, row in enumerate(rows):
        for cell in row:
            of_cell[cell].append(number)

    def root(cell: int) -> tuple[int, int]:
        way = 1
        while parent[cell] != cell:
            way *= int(sign[cell])
            cell = int(parent[cell])
        return cell, way

    waiting = list(range(len(rows) - 1, -1, -1))
    while waiting:
        number = waiting.pop()
        left: dict[int, int] = {}
        for cell, weight in rows[number].items():
            top, way = root(cell)
            if not constant[top]:
                left[top] = left.get(top, 0) + way * weight
        rows[number] = left = {cell: weight for cell, weight in left.items() if weight}
        if len(left) == 1:
            (gone,) = left
            constant[gone] = True
            waiting.extend(of_cell[gone])
        elif len(left) == 2:
            (first, one), (second, two) = left.items()
            if abs(one) == abs(two):
                if len(of_cell[first]) < len(of_cell[second]):
                    first, second = second, first
                parent[second] = first
                sign[second] = -1 if one == two else 1
                waiting.extend(of_cell[second])
                of_cell[first].extend(of_cell[second])
                of_cell[second] = []
    tops = [root(cell) for cell in range(cells)]
    which = np.array([top for top, _ in tops], dtype=np.int64)
    ways = np.array([way for _, way in tops], dtype=np.int64)
    number_of = np.full(cells, -1, dtype=np.int64)
    moves = ~constant[which]
    # Small cells stand in the order of the first of their cells.
    _, first_place, back = np.unique(which[moves], return_index=True, return_inverse=True)
    rank = np.empty(first_place.size, dtype=np.int64)
    rank[np.argsort(first_place, kind="stable")] = np.arange(first_place.size)
    number_of[moves] = rank[back]
    lead = np.zeros(first_place.size, dtype=np.int64)
    lead[rank] = ways[moves][first_place]
    signs = np.zeros(cells, dtype=np.int64)
    signs[moves] = ways[moves] * lead[number_of[moves]]
    return number_of, signs


def _rows(matrix: Sparse) -> list[dict[int, int]]:
    ends, cells, weights = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
    return [dict(zip(cells[a:b], weights[a:b], strict=True)) for a, b in pairwise(ends)]


def _relations(problem: SuppressionProblem, number: Ints, sign: Ints, count: int) -> Sparse:
    """The relations between small cells, each once."""
    links = problem.relations.tocoo()
    inside = number[links.col] >= 0
    rows, columns = links.row[inside], number[links.col[inside]]
    weights = links.data[inside] * sign[links.col[inside]]
    matrix = sparse.coo_array((weights, (rows, columns)), shape=(problem.relations.shape[0], count))
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    first_rows: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    ends = matrix.indptr.tolist()
    for row in range(matrix.shape[0]):
        span = slice(ends[row], ends[row + 1])
        row_classes, values = matrix.indices[span], matrix.data[span]
        if row_classes.size:
            values = values * np.sign(values[0])
            first_rows.setdefault((tuple(row_classes.tolist()), tuple(values.tolist())), row)
    return sparse.csr_array(matrix[sorted(first_rows.values())])


def _view(
    problem: SuppressionProblem, view: ContributorView, number: Ints, sign: Ints, count: int
) -> ContributorView | None:
    """What a contributor knows about small cells, and the levels that they need against it.

    None where a class needs lower levels than against others though nothing of it is known, or where it cannot
    be protected.
    """
    mine = problem.primary & (problem.upper + problem.lower + problem.sliding > 0)
    asked, lower, upper, sliding = problem.levels_against(view)
    asked = asked & mine

    def turned(levels: Ints) -> Ints:
        return np.where(sign > 0, levels, levels[[1, 0, 2]])

    usual = turned(np.stack([problem.upper, problem.lower, problem.sliding]))
    against = turned(np.stack([upper, lower, sliding]))
    every = np.stack([_most(row[mine], number[mine], count) for row in usual])
    part = np.stack([_most(row[asked], number[asked], count) for row in against])
    targets = _any(asked[mine], number[mine], count)
    moves = number[view.cells] >= 0
    other = targets.copy()
    other[number[view.cells[moves]]] = False
    if bool((every != part)[:, other].any()):
        return None
    cells = view.cells[moves]
    rise, fall = view.high[moves] - problem.values[cells], problem.values[cells] - view.low[moves]
    class_of, ahead = number[cells], sign[cells] > 0
    known = np.unique(class_of)
    high = _least(np.where(ahead, rise, fall), class_of, count)[known]
    low = -_least(np.where(ahead, fall, rise), class_of, count)[known]
    levels = part[[1, 0, 2]][:, known]
    if bool(((levels[0] > -low) | (levels[1] > high)).any()):
        return None
    return ContributorView(view.name, known, low, high, targets, levels)


def _any(marks: Mask, class_of: Ints, count: int) -> Mask:
    return np.asarray(np.bincount(class_of[marks], minlength=count) > 0)


def _least(values: Ints, class_of: Ints, count: int) -> Ints:
    out = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(out, class_of, values)
    return out


def _most(values: Ints, class_of: Ints, count: int) -> Ints:
    out = np.zeros(count, dtype=np.int64)
    np.maximum.at(out, class_of, values)
    return out
