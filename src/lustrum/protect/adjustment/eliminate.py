"""Free cells: all whole solutions of ``A z = 0``, expressed by a few whole numbers.

Most relations between the cells of a table follow from others. Exact elimination in whole numbers finds the
independent rows, and cells from which all others follow by adding and subtracting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.model.arrays import Ints

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any
Row = dict[int, int]


@dataclass(frozen=True, eq=False)
class Freedom:
    """All z with ``A z = 0`` are ``span @ t`` for the t with ``rest @ t = 0``; whole t give all whole z.

    ``free`` are the cells whose values are t, and ``rows`` are relations from which all others follow.
    """

    span: Sparse
    rest: Sparse
    free: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp]

    def __repr__(self) -> str:
        return f"Freedom({self.free.size} free of {self.span.shape[0]} cells)"


def eliminate(matrix: Sparse, order: Sequence[int] | npt.NDArray[np.intp] | None = None) -> Freedom:
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
