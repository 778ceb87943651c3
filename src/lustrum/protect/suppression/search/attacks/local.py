"""Programs of few cells, for attacks on patterns: of all suppressed cells, or of those tied to one of them.

Of a table with hierarchies and tens of thousands of cells, a pattern falls into parts of a few dozen cells:
only what relations tie to a cell can move with it. A program of one part is solved at once, where a program of
all suppressed cells takes long.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from lustrum.model.arrays import Ints, Mask, Sparse
from lustrum.numeric.solve.deviations import DeviationProgram
from lustrum.protect.suppression.search.attacks.space import independent_part

_SMALL = 300  # cells of a program that counts as one step
_MOST = 600  # cells of a part that is looked at by itself
_AROUND = 400  # cells from which on no further ones are looked for
_KEPT = 512  # programs that are kept for later questions


class LocalPrograms:
    """Programs for the parts of patterns; ``matrix`` holds independent relations between all cells."""

    def __init__(self, matrix: Sparse) -> None:
        self.rows = sparse.csr_array(matrix)
        self.columns = sparse.csc_array(matrix)
        self._known: dict[bytes, DeviationProgram] = {}

    def tied(self, cell: int, suppressed: Mask) -> Ints | None:
        """The suppressed cells that relations tie to a cell, with itself; None where they are many."""
        seen, rows = {cell}, set[int]()
        waiting = [cell]
        while waiting:
            waiting.extend(self._beside(waiting.pop(), suppressed, seen, rows))
            if len(seen) > _MOST:
                return None
        return np.array(sorted(seen), dtype=np.int64)

    def near(self, cell: int, allowed: Mask) -> Ints:
        """The allowed cells around a cell, ring by ring until they are some hundred."""
        seen, rows = {cell}, set[int]()
        ring = [cell]
        while ring and len(seen) < _AROUND:
            ring = [c for one in ring for c in self._beside(one, allowed, seen, rows)]
        return np.array(sorted(seen), dtype=np.int64)

    def _beside(self, cell: int, mask: Mask, seen: set[int], rows: set[int]) -> list[int]:
        """The cells of a mask in the relations of a cell, without those seen; both sets take what is new."""
        fresh: list[int] = []
        span = slice(self.columns.indptr[cell], self.columns.indptr[cell + 1])
        for row in self.columns.indices[span].tolist():
            if row in rows:
                continue
            rows.add(row)
            others = self.rows.indices[self.rows.indptr[row] : self.rows.indptr[row + 1]]
            more = [c for c in others[mask[others]].tolist() if c not in seen]
            seen.update(more)
            fresh.extend(more)
        return fresh

    def program(self, cells: Ints) -> DeviationProgram:
        key = cells.tobytes()
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            part = self.columns[:, cells].tocsr()
            known = DeviationProgram(part[np.flatnonzero(np.diff(part.indptr))])
            self._known[key] = known
        return known


class FewCells:
    """A program of few columns: the cells of a mask, in the relations that they have part in."""

    def __init__(self, matrix: Sparse, mask: Mask) -> None:
        self.mask = mask
        self.cells = np.flatnonzero(mask)
        # A question that goes on from the last one takes time in proportion to the cells.
        self.weight = 1 + self.cells.size // _SMALL
        part = matrix[:, self.cells].tocsr()
        rows, certain = independent_part(part)
        self.program = DeviationProgram(part[rows], independent=certain)
        self.every = matrix[rows].T.tocsr()
