"""Which cells follow from the equations alone, by elimination instead of optimisation.

A cell is determined by equations if and only if it is 0 in every solution of the homogeneous ones. So one
random solution modulo a large prime answers for all cells at once. It is built in the order in which one
would solve by hand: equations with one unknown first, then cells that occur in one equation only, which can
wait until all others are known. Both steps take time in proportion to the size of the table. Only the rest
needs elimination.

Bounds can reveal more: two cells that add up to 0 and are not negative are both 0, which no equation
states. See :func:`lustrum.audit.bounding.compute`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lustrum.audit.knowledge.facts import Knowledge
from lustrum.audit.knowledge.reduce import echelon, inverse
from lustrum.model import InputError
from lustrum.model.arrays import Array, Indices, Ints, Mask, Sparse
from lustrum.numeric.compiled import compiled
from lustrum.numeric.structure.ragged import connected_parts
from lustrum.numeric.structure.rank import EXCESSES, reduced

_MOST_WORK = 10**10  # the most multiplications of a dense elimination
_MOST_STEPS = 3 * 10**9  # the most entries that a sparse elimination may touch
_TRIES = 2  # random solutions modulo each prime


def exactly_disclosed(known: Knowledge) -> Mask:
    """Which cells follow from published values and equations, whatever the bounds are.

    A published cell counts as disclosed too. The two errors are not alike. Let p be a prime near ``2**31``.
    A cell that is not determined modulo p looks determined with probability ``1/p`` in each of two random
    solutions, so once in ``4e18``. A cell is determined modulo p exactly where it is determined over the
    integers, unless p divides certain minors of the equations; then a cell may be reported wrongly, or
    missed if both primes do. A reported cell can be checked exactly: its bounds are equal, and
    :func:`~lustrum.audit.certificate.certify` proves them in whole numbers.

    >>> known = Knowledge.of(["x", "y", "z"]).fact({"x": 1, "y": 1}, 5, 5)
    >>> exactly_disclosed(known.fact({"x": 1, "y": 1, "z": 1}, 7, 7)).tolist()
    [False, False, True]
    """
    system = _System.of(known)
    out = np.ones(len(known), dtype=np.bool_)
    given_away = np.zeros(system.cells.size, dtype=np.bool_)
    for excess in EXCESSES:
        given_away |= (system.solution(excess) == 0).all(axis=1)
    out[system.cells] = given_away
    return out


@dataclass(frozen=True, eq=False)
class _System:
    """The equations among open cells, and the order in which they are solved.

    ``state`` of a row is the cell that it determines, or -1; ``order`` lists the rows in the order in which
    they were removed. A row removed with ``late`` set determines its cell after all remaining cells are
    known.
    """

    cells: Indices
    matrix: Sparse
    order: Ints
    gives: Ints
    late: Mask

    @classmethod
    def of(cls, known: Knowledge) -> _System:
        cells = np.flatnonzero(known.low < known.high)
        matrix = known.matrix.astype(np.int64)[np.flatnonzero(known.fact_low == known.fact_high)]
        matrix = matrix[:, cells]
        columns = matrix.tocsc()
        order, gives, late = _peel(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int64),
            columns.indptr.astype(np.int64),
            columns.indices.astype(np.int64),
        )
        return cls(cells, matrix, order, gives, late)

    def solution(self, excess: int) -> Ints:
        """Random solutions of the homogeneous equations modulo ``2**31 - excess``."""
        prime = 2**31 - excess
        luck = np.random.default_rng(excess)
        out = luck.integers(1, prime, (self.cells.size, _TRIES))
        peeled = np.zeros(self.cells.size, dtype=np.bool_)
        peeled[self.gives] = True
        out[self.gives[~self.late]] = 0
        remaining = np.ones(self.matrix.shape[0], dtype=np.bool_)
        remaining[self.order] = False
        open_cells = np.flatnonzero(~peeled)
        core = self.matrix[np.flatnonzero(remaining)][:, open_cells]
        core = core[np.flatnonzero(np.diff(core.indptr))]
        for rows, columns in _parts(core):
            part_cells = open_cells[columns]
            out[part_cells] = _kernel(core[rows][:, columns], out[part_cells], excess)
        matrix = self.matrix
        late = np.flatnonzero(self.late)[::-1]
        _solve(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int64),
            matrix.data,
            self.order[late],
            self.gives[late],
            out,
            prime,
        )
        return out


def _parts(core: Sparse) -> list[tuple[Ints, Ints]]:
    """The rows and columns of each connected part; cells in no equation are left out."""
    height, width = core.shape
    if height == 0:
        return []
    links = core.tocoo()
    label = connected_parts(height + width, links.row, height + links.col)
    order = np.argsort(label, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(label))[:-1])
    cut = [(g[g < height], g[g >= height] - height) for g in groups]
    return [(rows, columns) for rows, columns in cut if rows.size]


def _kernel(part: Sparse, free: Ints, excess: int) -> Ints:
    """Random values in the columns without a pivot, and the values of the others that follow.

    The equations are eliminated in sparse form, and in dense form only where they fill in too much.
    """
    height, width = part.shape
    prime = 2**31 - excess
    rows = part.tocsr()
    _, cell_of, begin, end, cells, values, done = echelon(
        rows.indptr.astype(np.int64),
        rows.indices.astype(np.int64),
        rows.data % prime,
        np.zeros(height, dtype=np.int64),
        np.argsort(np.diff(rows.indptr), kind="stable").astype(np.int64),
        np.bincount(rows.indices, minlength=width).astype(np.int64),
        _MOST_STEPS,
        prime,
    )
    if done:
        out = free.copy()
        _back(cell_of, begin, end, cells, values, out, prime)
        return out
    if height * width * min(height, width) > _MOST_WORK:
        raise InputError(
            f"{width} cells are tied by {height} equations that cannot be solved one by one, too many for "
            "elimination; ask for their bounds instead."
        )
    written, pivots = reduced(part.toarray(), excess, full=True)
    out = free.copy()
    rest = np.setdiff1d(np.arange(part.shape[1]), pivots)
    for attempt in range(out.shape[1]):
        # Products stay below 2**62; their sum is taken modulo the prime one column at a time.
        total = np.zeros(pivots.size, dtype=np.int64)
        for column in rest.tolist():
            total = (total + written[: pivots.size, column] * out[column, attempt]) % prime
        out[pivots, attempt] = (-total) % prime
    return out


@compiled
def _peel(indptr: Array, indices: Array, col_ptr: Array, rows_of: Array) -> Any:  # pragma: no cover
    """Rows in the order of removal, the cell that each determines, and whether it does so late."""
    height, width = indptr.size - 1, col_ptr.size - 1
    # np.diff gives the same, and takes the compiler fifteen times as long.
    in_row = indptr[1:] - indptr[:-1]
    in_column = col_ptr[1:] - col_ptr[:-1]
    row_open, cell_open = np.ones(height, np.bool_), np.ones(width, np.bool_)
    order, gives = np.empty(height, np.int64), np.empty(height, np.int64)
    late = np.zeros(height, np.bool_)
    # Each row and each cell waits at most once: at first, or when all but one of its entries have gone.
    rows, cells = np.empty(height, np.int64), np.empty(width, np.int64)
    waiting_rows = waiting_cells = count = 0
    for r in range(height):
        if in_row[r] == 1:
            rows[waiting_rows] = r
            waiting_rows += 1
    for c in range(width):
        if in_column[c] == 1:
            cells[waiting_cells] = c
            waiting_cells += 1
    while waiting_rows or waiting_cells:
        if waiting_rows:
            waiting_rows -= 1
            r = rows[waiting_rows]
            if not row_open[r] or in_row[r] != 1:
                continue
            cell = -1
            for k in range(indptr[r], indptr[r + 1]):
                if cell_open[indices[k]]:
                    cell = indices[k]
        else:
            waiting_cells -= 1
            cell = cells[waiting_cells]
            if not cell_open[cell] or in_column[cell] != 1:
                continue
            r = -1
            for k in range(col_ptr[cell], col_ptr[cell + 1]):
                if row_open[rows_of[k]]:
                    r = rows_of[k]
            late[count] = True
        order[count], gives[count] = r, cell
        count += 1
        row_open[r], cell_open[cell] = False, False
        for k in range(indptr[r], indptr[r + 1]):
            other = indices[k]
            in_column[other] -= 1
            if cell_open[other] and in_column[other] == 1:
                cells[waiting_cells] = other
                waiting_cells += 1
        for k in range(col_ptr[cell], col_ptr[cell + 1]):
            other = rows_of[k]
            in_row[other] -= 1
            if row_open[other] and in_row[other] == 1:
                rows[waiting_rows] = other
                waiting_rows += 1
    return order[:count], gives[:count], late[:count]


@compiled
def _back(  # pragma: no cover
    cell_of: Array, begin: Array, end: Array, cells: Array, values: Array, out: Array, prime: int
) -> None:
    """Fill in the cell of each combined row, the last row first: it holds no cell of rows before it."""
    for row in range(cell_of.size - 1, -1, -1):
        cell = cell_of[row]
        for attempt in range(out.shape[1]):
            total = 0
            for k in range(begin[row], end[row]):
                if cells[k] != cell:
                    total = (total + values[k] * out[cells[k], attempt]) % prime
            out[cell, attempt] = (prime - total) % prime


@compiled
def _solve(
    indptr: Array, indices: Array, data: Array, order: Array, gives: Array, out: Array, prime: int
) -> None:  # pragma: no cover
    """Compute the postponed cells, each from its row."""
    for step in range(order.size):
        r, cell = order[step], gives[step]
        for attempt in range(out.shape[1]):
            total, weight = 0, 0
            for k in range(indptr[r], indptr[r + 1]):
                if indices[k] == cell:
                    weight = data[k]
                else:
                    total = (total + (data[k] % prime) * out[indices[k], attempt]) % prime
            out[cell, attempt] = (prime - total) % prime * inverse(weight, prime) % prime
