"""Cells that move together, asked about once.

Where two suppressed cells are all that is open in a sum, one follows from the other: it is a constant less the
other, or a constant more. In tables published at many levels that holds for half of the cells. One cell stands
for each group; its range gives those of all others, in whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from lustrum.audit.knowledge.facts import ContradictionError
from lustrum.audit.knowledge.reduce import CONTRADICTION, Piece, less
from lustrum.model.arrays import Floats, Indices, Ints, Mask
from lustrum.numeric.compiled import compiled_if_large
from lustrum.numeric.structure import UNBOUNDED


@dataclass(frozen=True, eq=False)
class Twins:
    """One cell for each group: ``x = sign * x[stands] + shift`` for all cells of a piece.

    ``piece`` has only the cells that stand for others, and ``stands`` is the place there.
    """

    piece: Piece
    stands: Indices
    sign: Ints
    shift: Ints

    @classmethod
    def of(cls, piece: Piece) -> Twins | None:
        """The groups of a piece, or None where every cell is alone."""
        matrix = piece.matrix.tocsr()
        pairs = np.flatnonzero((np.diff(matrix.indptr) == 2) & (piece.fact_low == piece.fact_high))
        first = matrix.indptr[pairs]
        coefficient, other = matrix.data[first], matrix.data[first + 1]
        plain = (np.abs(coefficient) == 1) & (np.abs(other) == 1)
        pairs, first = pairs[plain], first[plain]
        if pairs.size == 0:
            return None
        a, b = matrix.indices[first].astype(np.int64), matrix.indices[first + 1].astype(np.int64)
        # w_a x_a + w_b x_b = total, and w_b is 1 or -1, so x_b = w_b total - w_a w_b x_a.
        turn = -(matrix.data[first] * matrix.data[first + 1])
        total = piece.fact_low[pairs] * matrix.data[first + 1]
        root, sign, shift = _joined(piece.cells.size, a, b, turn, total)
        stands, label = np.unique(root, return_inverse=True)
        return cls(_merged(piece, stands, label, sign, shift), label, sign, shift)

    def asked(self, cells: Indices) -> Indices:
        """The groups of the cells asked for."""
        return np.unique(self.stands[cells])

    def spread(self, low: Floats, high: Floats, sharp: Mask) -> tuple[Floats, Floats, Mask]:
        """The ranges of all cells from those of the cells that stand for them."""
        ends = [self.sign * end[self.stands] + self.shift for end in (low, high)]
        up = self.sign > 0
        return np.where(up, *ends), np.where(up, ends[1], ends[0]), sharp[self.stands]


@compiled_if_large
def _joined(  # pragma: no cover
    count: int, a: Any, b: Any, turn: Any, totals: Any
) -> Any:
    """The first cell of each group, with the sign and the shift of every cell from it.

    Equation k says ``x_b = turn * x_a + total``. One that ties two cells of the same group adds no new group.
    """
    parent = np.arange(count)
    sign, shift = np.ones(count, np.int64), np.zeros(count, np.int64)
    for k in range(a.size):
        ends = np.array([a[k], b[k]])
        signs, shifts = np.ones(2, np.int64), np.zeros(2, np.int64)
        for e in range(2):
            while parent[ends[e]] != ends[e]:
                cell = ends[e]
                shifts[e] += signs[e] * shift[cell]
                signs[e] *= sign[cell]
                ends[e] = parent[cell]
        if ends[0] == ends[1]:
            continue
        times = turn[k] * signs[0] * signs[1]
        more = signs[1] * (turn[k] * shifts[0] + totals[k] - shifts[1])
        first, last = ends[0], ends[1]
        if first > last:
            first, last = last, first
            more = -times * more
        parent[last], sign[last], shift[last] = first, times, more
    for cell in range(count):
        above = parent[cell]
        # A cell comes after the one that it hangs from, which is settled by now.
        if above != cell:
            shift[cell] += sign[cell] * shift[above]
            sign[cell] *= sign[above]
            parent[cell] = parent[above]
    return parent, sign, shift


def _merged(piece: Piece, stands: Indices, label: Indices, sign: Ints, shift: Ints) -> Piece:
    """The piece in terms of the cells that stand for others; equations that say nothing more are left out."""
    count = piece.cells.size
    groups = sparse.csr_array((sign, (np.arange(count), label)), shape=(count, stands.size))
    matrix = sparse.csr_array(piece.matrix @ groups)
    matrix.eliminate_zeros()
    settled = piece.matrix @ shift
    ends = [less(end, settled) for end in (piece.fact_low, piece.fact_high)]
    empty = np.diff(matrix.indptr) == 0
    if bool((empty & ((ends[0] > 0) | (ends[1] < 0))).any()):
        raise ContradictionError(CONTRADICTION + "a sum of them does not match.")
    low, high = less(piece.low, shift), less(piece.high, shift)
    least = np.where(sign > 0, low, -high)
    most = np.where(sign > 0, high, -low)
    tight_low = np.full(stands.size, -UNBOUNDED, dtype=np.int64)
    tight_high = np.full(stands.size, UNBOUNDED, dtype=np.int64)
    np.maximum.at(tight_low, label, least)
    np.minimum.at(tight_high, label, most)
    if bool((tight_low > tight_high).any()):
        raise ContradictionError(CONTRADICTION + "no value is left for some of them.")
    rows = np.flatnonzero(~empty)
    return replace(
        piece,
        cells=piece.cells[stands],
        matrix=matrix[rows],
        fact_low=ends[0][rows],
        fact_high=ends[1][rows],
        low=tight_low,
        high=tight_high,
    )
