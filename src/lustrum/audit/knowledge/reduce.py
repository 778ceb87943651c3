"""Knowledge reduced to what a solver needs: open cells, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lustrum.audit.knowledge.facts import ContradictionError, Knowledge
from lustrum.model.arrays import Array, Floats, Indices, Ints, Mask, Sparse
from lustrum.numeric.compiled import compiled_if_large
from lustrum.numeric.later import sparse
from lustrum.numeric.solve import LinearProblem
from lustrum.numeric.structure import UNBOUNDED, Relations, propagate
from lustrum.numeric.structure.ragged import Lists, connected_parts, pointers

CONTRADICTION = "The published cells contradict each other: "


@dataclass(frozen=True, eq=False)
class Piece:
    """Open cells that facts tie together, independent of all others: whole-number rows and bounds."""

    cells: Indices
    matrix: Sparse
    fact_low: Ints
    fact_high: Ints
    low: Ints
    high: Ints

    @property
    def problem(self) -> LinearProblem:
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


def _components(part: Sparse) -> tuple[int, Indices]:
    facts, cells = part.shape
    links = part.tocoo()
    label = connected_parts(cells + facts, links.col, cells + links.row)
    return int(label.max(initial=-1)) + 1, label[:cells].astype(np.intp)


def _grouped(label: Indices, count: int) -> list[Indices]:
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1])


def _check_settled(known: Knowledge, sums: Ints, closed: Mask) -> None:
    """Facts whose cells are all fixed must be satisfied."""
    if bool((closed & ((sums < known.fact_low) | (sums > known.fact_high))).any()):
        raise ContradictionError(CONTRADICTION + "a sum of them does not match.")


def less(ends: Ints, sums: Ints) -> Ints:
    """Ends of ranges without sums that are known; an open end stays open."""
    return np.where(np.abs(ends) >= UNBOUNDED, ends, ends - sums)


# Remove equations that follow from others, which make linear programs slow and add nothing.
#
# Tables that are published at many levels repeat most of their information. At a vertex where many redundant
# equations meet, the simplex method can make no progress for a long time; without them it goes on at once.


_PRIME = 2**31 - 1
# The search ends when combined equations have this many entries for each entry of the original ones.
_FILL = 2000


def without_repeats(piece: Piece) -> Piece:
    """The same piece without equations that follow from others, as far as these are quickly found."""
    rows = independent_rows(piece)
    if rows.size == piece.matrix.shape[0]:
        return piece
    return replace(
        piece,
        matrix=piece.matrix[rows],
        fact_low=piece.fact_low[rows],
        fact_high=piece.fact_high[rows],
    )


def independent_rows(piece: Piece) -> Indices:
    """The facts that are needed: all ranges, and equations that do not follow from shorter ones.

    Elimination is modulo a prime. An equation that follows modulo the prime, but not over the integers,
    would be left out wrongly. That makes bounds wider but never wrong, and can happen only if the prime
    divides a minor of the equations. Equations that contradict each other are kept.
    """
    matrix = piece.matrix.tocsr().astype(np.int64)
    equation = piece.fact_low == piece.fact_high
    length = np.diff(matrix.indptr)
    # Short equations first: they fill in least.
    order = np.flatnonzero(equation)[np.argsort(length[equation], kind="stable")]
    uses = np.bincount(matrix.indices, minlength=matrix.shape[1])
    independent = ~equation
    independent[order] = echelon(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int64),
        matrix.data % _PRIME,
        np.where(equation, piece.fact_low, 0) % _PRIME,
        order.astype(np.int64),
        uses.astype(np.int64),
        _FILL * matrix.nnz,
        _PRIME,
    )[0]
    return np.flatnonzero(independent)


@compiled_if_large
def inverse(number: int, prime: int) -> int:  # pragma: no cover
    """The inverse modulo a prime, by Fermat."""
    result, number, power = 1, number % prime, prime - 2
    while power:
        if power & 1:
            result = result * number % prime
        number = number * number % prime
        power >>= 1
    return result


@compiled_if_large
def echelon(  # pragma: no cover
    indptr: Array,
    indices: Array,
    data: Array,
    totals: Array,
    order: Array,
    uses: Array,
    most: int,
    prime: int,
) -> Any:
    """Which rows, in the given order, are not combinations of those before them, modulo a prime.

    Also returns the pivot cell of each kept row, where its combined form begins and ends, and that form,
    which has a 1 in the pivot cell and no pivot cell of an earlier row. The last value says whether all
    rows were handled within ``most`` steps.
    """
    width = uses.size
    independent = np.ones(order.size, np.bool_)
    pivot_of, cell_of = np.full(width, -1, np.int64), np.empty(width, np.int64)
    begin, end = np.zeros(width + 1, np.int64), np.zeros(width + 1, np.int64)
    total_of = np.zeros(width + 1, np.int64)
    cells, values = np.empty(4 * data.size + 16, np.int64), np.empty(4 * data.size + 16, np.int64)
    stored = pivots = work_done = 0
    work, marked = np.zeros(width, np.int64), np.zeros(width, np.bool_)
    touched = np.empty(width, np.int64)
    for position in range(order.size):
        row = order[position]
        count, first = 0, pivots
        for k in range(indptr[row], indptr[row + 1]):
            cell = indices[k]
            work[cell] = data[k]
            marked[cell] = True
            touched[count] = cell
            count += 1
            if pivot_of[cell] >= 0:
                first = min(first, pivot_of[cell])
        total = totals[row]
        # A kept row holds no pivot cell of an earlier one, so one pass in their order is enough.
        for pivot in range(first, pivots):
            times = work[cell_of[pivot]]
            if times == 0:
                continue
            total = (total - times * total_of[pivot]) % prime
            work_done += end[pivot] - begin[pivot]
            for k in range(begin[pivot], end[pivot]):
                other = cells[k]
                if not marked[other]:
                    marked[other] = True
                    touched[count] = other
                    count += 1
                work[other] = (work[other] - times * values[k]) % prime
        best, left = -1, 0
        for k in range(count):
            if work[touched[k]] != 0:
                left += 1
                if best < 0 or uses[touched[k]] < uses[best]:
                    best = touched[k]
        if work_done <= most:
            independent[position] = left > 0 or total != 0
            if left > 0:
                while stored + left > cells.size:
                    cells = np.concatenate((cells, np.empty_like(cells)))
                    values = np.concatenate((values, np.empty_like(values)))
                factor = inverse(work[best], prime)
                begin[pivots] = stored
                for k in range(count):
                    if work[touched[k]] != 0:
                        cells[stored] = touched[k]
                        values[stored] = work[touched[k]] * factor % prime
                        stored += 1
                end[pivots] = stored
                total_of[pivots] = total * factor % prime
                pivot_of[best], cell_of[pivots] = pivots, best
                pivots += 1
        for k in range(count):
            work[touched[k]] = 0
            marked[touched[k]] = False
        if work_done > most:
            break
    done = work_done <= most
    return independent, cell_of[:pivots], begin, end, cells, values, done
