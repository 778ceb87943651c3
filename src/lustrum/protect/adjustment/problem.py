"""The problem of controlled adjustment, reduced to the cells that can move.

Cells that the relations tie together move as one group. A sensitive cell with only one possible direction
becomes a bound. Often only a fraction of the cells and directions remains.

Most relations between the cells of a table follow from others. Exact elimination in whole numbers
(:func:`eliminate`) finds the independent rows, and cells from which all others follow by adding and
subtracting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Indices, Ints, Sparse
from lustrum.numeric.solve.products import dot
from lustrum.numeric.structure import UNBOUNDED

Row = dict[int, int]

NO_ADJUSTMENT = (
    "No adjustment was found that protects all sensitive cells: the bounds, or cells that must not move, "
    "are closer than the protection levels; free some cells, widen the bounds, lower the levels, or "
    "allow more time."
)


@dataclass(frozen=True, eq=False)
class AdjustmentProblem:
    """Groups of cells that move as one, their bounds, and the groups that must move.

    ``span`` and ``rest`` give all movements (see :class:`Freedom`),
    and ``relations`` is the same as a sparse matrix. Group ``places[i]`` must move up by at least
    ``up[i]`` or down by at least ``down[i]``; its own bounds allow both.
    """

    span: Sparse
    rest: Sparse
    relations: Sparse
    low: Ints
    high: Ints
    weights: Floats
    places: Indices
    down: Ints
    up: Ints
    group: Indices
    sign: Ints

    def __repr__(self) -> str:
        return f"AdjustmentProblem({self.low.size} groups of cells, {self.places.size} directions)"

    def bounds(self, directions: Ints) -> tuple[Ints, Ints]:
        """The bounds of all groups once the directions are given."""
        low, high = self.low.copy(), self.high.copy()
        up = directions > 0
        low[self.places[up]] = np.maximum(low[self.places[up]], self.up[up])
        high[self.places[~up]] = np.minimum(high[self.places[~up]], -self.down[~up])
        return low, high

    def spread(self, moved: Ints) -> Ints:
        """The movement of every cell from that of the groups."""
        every = np.append(moved, 0)  # cells that cannot move are in the last group
        return np.asarray(every[self.group] * self.sign)

    def distance(self, moved: npt.NDArray[Any], norm: str) -> float:
        """The weighted distance: of absolute values, or of squares."""
        size = np.abs(moved.astype(np.float64))
        return dot(self.weights, size if norm == "l1" else size * size)

    @cached_property
    def floats(self) -> Sparse:
        return self.span.astype(np.float64)


def reduce_problem(
    matrix: Sparse,
    sizes: Ints,
    low: Ints,
    high: Ints,
    sensitive: Indices,
    lower: Ints,
    upper: Ints,
    weights: Floats,
) -> AdjustmentProblem:
    """Group cells, and fix the directions without a choice.

    ``low`` and ``high`` bound the movement of each cell; a level of 0 means that a sensitive cell must not
    go that way. ``sizes`` only affects the order of work.
    """
    width = matrix.shape[1]
    held = np.flatnonzero((low == 0) & (high == 0))
    pins = sparse.csr_array(
        (np.ones(held.size, np.int64), (np.arange(held.size), held)), shape=(held.size, width)
    )
    every = sparse.vstack([pins, sparse.csr_array(matrix).astype(np.int64)], format="csr")
    every.eliminate_zeros()
    largest = np.zeros(every.shape[0], dtype=np.int64)
    rows = np.repeat(np.arange(every.shape[0]), np.diff(every.indptr))
    np.maximum.at(largest, rows, sizes[every.indices])
    largest[: held.size] = -1
    freedom = eliminate(every, np.argsort(largest, kind="stable"))
    group, sign, first = _groups(freedom.span)
    count = first.size
    least, most = _together(low, high, group, sign, count)
    ways_up = np.where(upper > 0, upper, UNBOUNDED)
    ways_down = np.where(lower > 0, lower, UNBOUNDED)
    up, down = np.zeros(count, np.int64), np.zeros(count, np.int64)
    groups, turned = group[sensitive], sign[sensitive] < 0
    if bool((groups == count).any()):
        raise InputError(NO_ADJUSTMENT)
    np.maximum.at(up, groups, np.where(turned, ways_down, ways_up))
    np.maximum.at(down, groups, np.where(turned, ways_up, ways_down))
    must = np.flatnonzero(up > 0)
    can_rise, can_fall = up[must] <= most[must], -down[must] >= least[must]
    if bool((~can_rise & ~can_fall).any()):
        raise InputError(NO_ADJUSTMENT)
    only_up, only_down = must[can_rise & ~can_fall], must[can_fall & ~can_rise]
    least[only_up] = np.maximum(least[only_up], up[only_up])
    most[only_down] = np.minimum(most[only_down], -down[only_down])
    if bool((least > most).any()):
        raise InputError(NO_ADJUSTMENT)
    places = must[can_rise & can_fall]
    return AdjustmentProblem(
        span=freedom.span[first],
        rest=freedom.rest,
        relations=_merged(every[freedom.rows], group, sign, count),
        low=least,
        high=most,
        weights=np.asarray(np.bincount(group, weights, count + 1)[:count], dtype=np.float64),
        places=places,
        down=down[places],
        up=up[places],
        group=group,
        sign=sign,
    )


def _groups(span: Sparse) -> tuple[Indices, Ints, Indices]:
    """Cells with the same or the opposite row move as one; cells with an empty row do not move."""
    cuts = span.indptr.tolist()
    empty = np.diff(span.indptr) == 0
    heads = np.zeros(span.shape[0], dtype=np.int64)
    heads[~empty] = span.data[span.indptr[:-1][~empty]]
    sign = np.where(heads < 0, -1, 1).astype(np.int64)
    seen: dict[bytes, int] = {}
    group = np.zeros(span.shape[0], dtype=np.intp)
    first: list[int] = []
    for cell in range(span.shape[0]):
        a, b = cuts[cell], cuts[cell + 1]
        if a == b:
            group[cell] = -1
            continue
        key = span.indices[a:b].tobytes() + (span.data[a:b] * sign[cell]).tobytes()
        if key not in seen:
            seen[key] = len(first)
            first.append(cell)
        group[cell] = seen[key]
    # The first cell of a group moves with sign 1.
    lead = np.array(first, dtype=np.intp)
    moving = group >= 0
    if lead.size:
        sign[moving] = sign[moving] * sign[lead][group[moving]]
    group[~moving] = len(first)
    return group, sign, lead


def _together(low: Ints, high: Ints, group: Indices, sign: Ints, count: int) -> tuple[Ints, Ints]:
    least = np.full(count + 1, -UNBOUNDED, dtype=np.int64)
    most = np.full(count + 1, UNBOUNDED, dtype=np.int64)
    np.maximum.at(least, group, np.where(sign > 0, low, -high))
    np.minimum.at(most, group, np.where(sign > 0, high, -low))
    if least[count] > 0 or most[count] < 0 or bool((least > most).any()):
        raise InputError(NO_ADJUSTMENT)
    return least[:count], most[:count]


def _merged(matrix: Sparse, group: Indices, sign: Ints, count: int) -> Sparse:
    moving = np.flatnonzero(group < count)
    fold = sparse.csr_array(
        (sign[moving], (moving, group[moving])), shape=(group.size, count), dtype=np.int64
    )
    merged = (matrix @ fold).tocsr()
    merged.eliminate_zeros()
    merged.sort_indices()
    seen: dict[bytes, int] = {}
    cuts = merged.indptr.tolist()
    for row in range(merged.shape[0]):
        a, b = cuts[row], cuts[row + 1]
        if b > a:
            data = merged.data[a:b] * (1 if merged.data[a] > 0 else -1)
            seen.setdefault(merged.indices[a:b].tobytes() + data.tobytes(), row)
    return merged[np.fromiter(seen.values(), dtype=np.intp, count=len(seen))]


def as_floats(ends: Ints) -> Floats:
    """Ends for a solver, where no bound is an infinity."""
    real = ends.astype(np.float64)
    real[ends >= UNBOUNDED // 2] = np.inf
    real[ends <= -UNBOUNDED // 2] = -np.inf
    return real


@dataclass(frozen=True, eq=False)
class Freedom:
    """All z with ``A z = 0`` are ``span @ t`` for the t with ``rest @ t = 0``; whole t give all whole z.

    ``free`` are the cells whose values are t, and ``rows`` are relations from which all others follow.
    """

    span: Sparse
    rest: Sparse
    free: Indices
    rows: Indices

    def __repr__(self) -> str:
        return f"Freedom({self.free.size} free of {self.span.shape[0]} cells)"


def eliminate(matrix: Sparse, order: Sequence[int] | Indices | None = None) -> Freedom:
    """Solve every relation for one of its cells, in this order; exact, and whole numbers stay whole.

    Short relations first keep the work small. A relation is solved for a cell with coefficient 1 or -1; a
    relation without such a cell stays in ``rest``.

    >>> found = eliminate(sparse.csr_array([[1, 1, -1], [2, 2, -2]]))
    >>> found.span.toarray().tolist(), found.rows.tolist()
    ([[1, 0], [0, 1], [1, 1]], [0])
    """
    rows, width = matrix.shape
    csr_matrix = sparse.csr_array(matrix).astype(np.int64)
    starts, cells, weights = (
        csr_matrix.indptr.tolist(),
        csr_matrix.indices.tolist(),
        csr_matrix.data.tolist(),
    )
    solved: dict[int, Row] = {}
    users: list[set[int]] = [set() for _ in range(width)]
    used: list[int] = []
    rest: list[tuple[int, Row]] = []
    for row in range(rows) if order is None else np.asarray(order).tolist():
        said: Row = {}
        for at in range(starts[row], starts[row + 1]):
            _add(said, cells[at], weights[at], solved)
        if not said:
            continue
        pivot = _pivot(said, users)
        if pivot is None:
            rest.append((row, said))
            continue
        used.append(row)
        sign = said.pop(pivot)
        solution = {cell: -weight * sign for cell, weight in said.items()}
        for other in users[pivot]:
            expression = solved[other]
            factor = expression.pop(pivot)
            for cell, weight in solution.items():
                total = expression.get(cell, 0) + factor * weight
                if total:
                    expression[cell] = total
                    users[cell].add(other)
                elif cell in expression:
                    del expression[cell]
                    users[cell].discard(other)
        users[pivot] = set()
        solved[pivot] = solution
        for cell in solution:
            users[cell].add(pivot)
    return _collected(width, solved, used, rest)


def _add(said: Row, cell: int, weight: int, solved: dict[int, Row]) -> None:
    for part, share in solved[cell].items() if cell in solved else ((cell, 1),):
        total = said.get(part, 0) + weight * share
        if total:
            said[part] = total
        else:
            said.pop(part, None)


def _pivot(said: Row, users: list[set[int]]) -> int | None:
    """A cell with coefficient 1 or -1: the only one of its sign if there is one, then the least used."""
    plus = sum(weight > 0 for weight in said.values())
    lone = 1 if plus == 1 else -1 if len(said) - plus == 1 else 0
    units = [cell for cell, weight in said.items() if abs(weight) == 1]
    if not units:
        return None
    return min(units, key=lambda cell: (said[cell] != lone, len(users[cell]), cell))


def _collected(
    width: int, solved: dict[int, Row], used: list[int], rest: list[tuple[int, Row]]
) -> Freedom:
    free = np.array([cell for cell in range(width) if cell not in solved], dtype=np.intp)
    column_of = np.full(width, -1, dtype=np.int64)
    column_of[free] = np.arange(free.size)
    span_rows = [solved.get(cell, {cell: 1}) for cell in range(width)]
    left: list[Row] = []
    for _, row in rest:
        said: Row = {}
        for cell, weight in row.items():
            _add(said, cell, weight, solved)
        left.append(said)
    rest_rows = [row for (row, _), said in zip(rest, left, strict=True) if said]
    return Freedom(
        span=_matrix(span_rows, column_of, free.size),
        rest=_matrix([said for said in left if said], column_of, free.size),
        free=free,
        rows=np.sort(np.array(used + rest_rows, dtype=np.intp)),
    )


def _matrix(rows: list[Row], column_of: Ints, width: int) -> Sparse:
    indptr = np.cumsum([0] + [len(row) for row in rows])
    cells = np.array([cell for row in rows for cell in row], dtype=np.intp)
    data = np.array([weight for row in rows for weight in row.values()], dtype=np.int64)
    matrix = sparse.csr_array((data, column_of[cells], indptr), shape=(len(rows), width))
    matrix.sort_indices()
    return matrix
