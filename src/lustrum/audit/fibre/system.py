"""Knowledge as a fibre: independent blocks of open whole-number cells, tied by equations.

Blocks share no fact, so both target distributions are products over blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.audit.bounding.compute import bounds
from lustrum.audit.fibre.margins import FibreMargins
from lustrum.audit.knowledge.facts import ContradictionError, Knowledge
from lustrum.audit.knowledge.reduce import CONTRADICTION, Piece, narrowed, pieces
from lustrum.model import InputError
from lustrum.model.arrays import Indices, Ints, Mask, Sparse
from lustrum.numeric.later import sparse
from lustrum.numeric.structure import UNBOUNDED


@dataclass(frozen=True, eq=False)
class FibreBlock:
    """All whole x with ``matrix @ x == totals`` and ``low <= x <= high``.

    The first columns are ``cells`` of the knowledge; the others are slack columns, one for each fact with
    two different ends. ``counted`` columns enter the hypergeometric target, the others follow from them.
    """

    cells: Indices
    matrix: Sparse
    totals: Ints
    low: Ints
    high: Ints
    counted: Mask

    def __repr__(self) -> str:
        rows, columns = self.matrix.shape
        return f"FibreBlock({self.cells.size} cells, {rows} equations, {columns} columns)"

    def __len__(self) -> int:
        return int(self.low.size)

    def holds(self, point: Ints) -> bool:
        """Whether a point is in the fibre, checked exactly."""
        inside = bool(((self.low <= point) & (point <= self.high)).all())
        return inside and bool((self.matrix @ point == self.totals).all())

    def extended(self, values: Ints) -> Ints:
        """Values of the cells, and of the columns that follow from them."""
        n = self.cells.size
        if n == len(self):
            return values.astype(np.int64)
        out = np.concatenate([values, np.zeros(len(self) - n, dtype=np.int64)])
        links = self.matrix[:, n:].tocoo()  # every slack column is in one row, as 1 or -1
        sums = self.matrix[:, :n] @ values
        out[n + links.col] = -sums[links.row] * links.data
        return out


@dataclass(frozen=True, eq=False)
class FibreSystem:
    """Knowledge split into settled cells and blocks of open ones.

    >>> system = FibreSystem.of(FibreMargins.two_way([3, 2], [1, 4]))
    >>> system, system.blocks
    (FibreSystem(4 cells, 1 block), (FibreBlock(4 cells, 4 equations, 4 columns),))
    """

    known: Knowledge
    low: Ints
    high: Ints
    blocks: tuple[FibreBlock, ...]
    margins: FibreMargins | None

    def __repr__(self) -> str:
        count = len(self.blocks)
        return f"FibreSystem({len(self.known)} cells, {count} block{'s' * (count != 1)})"

    @classmethod
    def of(
        cls, given: Knowledge | FibreMargins, counted: npt.ArrayLike | None = None
    ) -> FibreSystem:
        """Narrow the bounds, fix the cells that they determine, and split the rest into blocks."""
        if not isinstance(given, (Knowledge, FibreMargins)):
            raise InputError("A fibre needs Knowledge or Margins to be given.")
        known = given.knowledge() if isinstance(given, FibreMargins) else given
        margins = given if isinstance(given, FibreMargins) else FibreMargins.known(given)
        if not known.whole:
            raise InputError("A fibre holds whole numbers; this knowledge is about real ones.")
        mask = _counted(known, counted)
        low, high = _bounded(known)
        everything = np.ones(len(known), dtype=np.bool_)
        blocks = [_block(p, mask) for p in pieces(known, low, high, everything)]
        tied = np.zeros(len(known), dtype=np.bool_)
        for block in blocks:
            tied[block.cells] = True
        for cell in np.flatnonzero(~tied & (low < high)).tolist():
            one = np.array([cell], dtype=np.intp)
            none = sparse.csr_array((0, 1), dtype=np.int64)
            empty = np.zeros(0, dtype=np.int64)
            blocks.append(FibreBlock(one, none, empty, low[one], high[one], mask[one]))
        return cls(known, low, high, tuple(blocks), margins)

    @property
    def settled(self) -> Ints:
        """The value of each fixed cell; for other cells, the lower bound."""
        return self.low


def _counted(known: Knowledge, given: npt.ArrayLike | None) -> Mask:
    """The cells whose factorials the hypergeometric target divides by: each inner cell once."""
    if given is not None:
        marks = np.asarray(given).ravel()
        if marks.size != len(known):
            raise InputError(f"'counted' marks {marks.size} cells; there are {len(known)}.")
        if not bool(((marks == 0) | (marks == 1)).all()):
            raise InputError("'counted' is True or False for each cell, not a list of cells.")
        return marks.astype(np.bool_)
    mask = np.ones(len(known), dtype=np.bool_)
    if known.structure is not None:
        matrix = known.structure.matrix.tocsr()
        alone = np.flatnonzero(np.diff(matrix.indptr) == 1)
        _, first = np.unique(matrix.indices[matrix.indptr[alone]], return_index=True)
        mask[:] = False
        mask[alone[first]] = True
    return mask


def _bounded(known: Knowledge) -> tuple[Ints, Ints]:
    low, high = narrowed(known)
    endless = np.flatnonzero((low <= -UNBOUNDED) | (high >= UNBOUNDED))
    if endless.size == 0:
        return low, high
    low, high = low.copy(), high.copy()
    cell_bounds = bounds(known, endless.tolist())
    if not bool((np.isfinite(cell_bounds.low) & np.isfinite(cell_bounds.high)).all()):
        cell = endless[~(np.isfinite(cell_bounds.low) & np.isfinite(cell_bounds.high))][0]
        raise InputError(
            f"Nothing bounds {known.names[int(cell)]}, so there are infinitely many tables; bound it."
        )
    low[endless], high[endless] = (
        cell_bounds.low.astype(np.int64),
        cell_bounds.high.astype(np.int64),
    )
    return low, high


def _block(piece: Piece, counted: Mask) -> FibreBlock:
    matrix = piece.matrix.tocsr().astype(np.int64)
    least, most = _reach(matrix, piece.low, piece.high)
    fact_low, fact_high = np.maximum(piece.fact_low, least), np.minimum(piece.fact_high, most)
    loose = piece.fact_low < piece.fact_high
    # A fact that follows from the bounds alone is dropped.
    binding = ~loose | (piece.fact_low > least) | (piece.fact_high < most)
    rows = np.flatnonzero(binding)
    extra = np.flatnonzero(loose[rows])
    slack = sparse.csr_array(
        (np.full(extra.size, -1, dtype=np.int64), (extra, np.arange(extra.size))),
        shape=(rows.size, extra.size),
    )
    whole = sparse.hstack([matrix[rows], slack], format="csr").astype(np.int64)
    totals = np.where(loose[rows], 0, piece.fact_low[rows])
    whole, totals = _distinct(whole, totals)
    return FibreBlock(
        cells=piece.cells,
        matrix=whole,
        totals=totals,
        low=np.concatenate([piece.low, fact_low[rows][extra]]),
        high=np.concatenate([piece.high, fact_high[rows][extra]]),
        counted=np.concatenate([counted[piece.cells], np.zeros(extra.size, dtype=np.bool_)]),
    )


def _reach(matrix: Sparse, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """The least and the greatest value of each sum, from the bounds alone; open where 64 bits may not do."""
    up, down = matrix.maximum(0), (-matrix).maximum(0)
    largest = max(int(np.abs(low).max()), int(np.abs(high).max()))
    beyond = abs(matrix).sum(axis=1) > UNBOUNDED // largest
    least, most = up @ low - down @ high, up @ high - down @ low
    return np.where(beyond, -UNBOUNDED, least), np.where(beyond, UNBOUNDED, most)


def _distinct(matrix: Sparse, totals: Ints) -> tuple[Sparse, Ints]:
    """Each equation once, with a positive first coefficient, so that margins can be recognised."""
    matrix.sort_indices()
    first_rows: dict[tuple[bytes, bytes], int] = {}
    signs = np.ones(totals.size, dtype=np.int64)
    for row in range(totals.size):
        part = slice(matrix.indptr[row], matrix.indptr[row + 1])
        data = matrix.data[part]
        if data.size and data[0] < 0:
            signs[row] = -1
        key = matrix.indices[part].tobytes(), (data * signs[row]).tobytes()
        first = first_rows.setdefault(key, row)
        if totals[first] * signs[first] != totals[row] * signs[row]:
            raise ContradictionError(CONTRADICTION + "one sum of cells has two different values.")
    rows = np.fromiter(first_rows.values(), dtype=np.intp, count=len(first_rows))
    flipped = matrix[rows]
    flipped.data = flipped.data * np.repeat(signs[rows], np.diff(flipped.indptr))
    return flipped, totals[rows] * signs[rows]
