"""Knowledge reduced to what a solver needs: open cells, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.audit.knowledge.facts import ContradictionError, Knowledge, Sparse
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.solve import LinearProblem
from lustrum.numeric.structure import UNBOUNDED, Relations, propagate
from lustrum.numeric.structure.connected import connected_parts
from lustrum.numeric.structure.ragged import Lists, pointers

CONTRADICTION = "The published cells contradict each other: "


@dataclass(frozen=True, eq=False)
class Piece:
    """Open cells that facts tie together, independent of all others: whole-number rows and bounds."""

    cells: npt.NDArray[np.intp]
    matrix: Sparse
    fact_low: Ints
    fact_high: Ints
    low: Ints
    high: Ints

    @property
    def problem(self) -> LinearProblem:
        """The piece for a solver."""
        ends = [as_floats(a) for a in (self.fact_low, self.fact_high, self.low, self.high)]
        return LinearProblem(self.matrix.astype(np.float64), *ends)

    def holds(self, point: Ints) -> bool:
        """Whether a whole point satisfies every fact, checked in whole numbers."""
        sums = self.matrix @ point
        return bool(
            ((self.low <= point) & (point <= self.high)).all()
            and ((self.fact_low <= sums) & (sums <= self.fact_high)).all()
        )


def as_floats(bounds: Ints) -> Floats:
    """Bounds as floats, with infinities where there is no bound."""
    out = bounds.astype(np.float64)
    out[bounds >= UNBOUNDED] = np.inf
    out[bounds <= -UNBOUNDED] = -np.inf
    return out


def narrowed(known: Knowledge) -> tuple[Ints, Ints]:
    """The bounds of the cells after interval propagation along every fact.

    Narrowing rounds to whole numbers, which for real cells is right only where all weights are 1.
    """
    matrix = known.matrix.tocsr()
    if not known.whole and bool((np.abs(matrix.data) != 1).any()):
        return known.low, known.high
    facts, cells = matrix.shape
    # One extra column for each fact is its sum, bounded by the fact's ends.
    sums = sparse.csr_array(-sparse.eye_array(facts, dtype=np.int64))
    wide = sparse.hstack([matrix, sums], format="csr")
    lists = Lists(
        pointers(np.diff(wide.indptr)), wide.indices.astype(np.int64), wide.data.astype(np.int64)
    )
    relations = Relations.of(lists, cells + facts)
    tight = propagate(
        relations,
        np.concatenate([known.low, known.fact_low]),
        np.concatenate([known.high, known.fact_high]),
    )
    if tight.conflict is not None:
        if tight.conflict >= cells:
            raise ContradictionError(CONTRADICTION + "a sum of them does not match.")
        name = known.names[tight.conflict]
        raise ContradictionError(f"{CONTRADICTION}no value is left for {name}.")
    return tight.low[:cells], tight.high[:cells]


def pieces(known: Knowledge, low: Ints, high: Ints, asked: Mask) -> Iterator[Piece]:
    """The pieces that hold an open cell of those asked for."""
    matrix = known.matrix.tocsr().astype(np.int64)
    open_cells = np.flatnonzero(low < high)
    fixed = np.where(low == high, low, 0)
    settled = matrix @ fixed
    part = matrix[:, open_cells]
    used = np.diff(part.indptr) > 0
    _check_settled(known, settled, ~used)
    rows = np.flatnonzero(used)
    part = part[rows]
    count, label = _components(part)
    row_label = label[part.indices[part.indptr[:-1]]]
    wanted = np.unique(label[asked[open_cells]])
    by_cell, by_row = _grouped(label, count), _grouped(row_label, count)
    columns = part.tocsc()
    for piece in wanted.tolist():
        piece_cells, facts = by_cell[piece], by_row[piece]
        if facts.size == 0:
            continue  # no fact ties this cell, so its own bounds are final
        cells, lines = open_cells[piece_cells], rows[facts]
        yield Piece(
            cells=cells,
            matrix=columns[:, piece_cells].tocsr()[facts],
            fact_low=less(known.fact_low[lines], settled[lines]),
            fact_high=less(known.fact_high[lines], settled[lines]),
            low=low[cells],
            high=high[cells],
        )


def _components(part: Sparse) -> tuple[int, npt.NDArray[np.intp]]:
    facts, cells = part.shape
    links = part.tocoo()
    label = connected_parts(cells + facts, links.col, cells + links.row)
    return int(label.max(initial=-1)) + 1, label[:cells].astype(np.intp)


def _grouped(label: npt.NDArray[np.intp], count: int) -> list[npt.NDArray[np.intp]]:
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1])


def _check_settled(known: Knowledge, sums: Ints, closed: Mask) -> None:
    """Facts whose cells are all fixed must be satisfied."""
    if bool((closed & ((sums < known.fact_low) | (sums > known.fact_high))).any()):
        raise ContradictionError(CONTRADICTION + "a sum of them does not match.")


def less(ends: Ints, sums: Ints) -> Ints:
    """Ends of ranges without sums that are known; an open end stays open."""
    return np.where(np.abs(ends) >= UNBOUNDED, ends, ends - sums)
