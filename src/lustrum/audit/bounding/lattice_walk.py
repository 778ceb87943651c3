"""Whole tables that reach bounds, found by a walk from table to table instead of a search tree.

A bound is sharp as soon as one whole table reaches it. Where equations tie many cells, most cells are
fractions at the vertices of linear programs, and integer programs find no table in useful time. But whole
tables are close together: the changes that keep all equations have a basis of short vectors
(:mod:`lustrum.audit.bounding.lattice`). So a central table is rounded to a whole one (Babai 1986), and from
there steps along those vectors approach each bound. For each bound the vectors are recombined, so that few
of them change the cells of the equation that gives the bound. Every table on the way counts for all cells.
A bound that no table reaches stays open; no bound is called sharp without a table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lustrum.audit.bounding.lattice import integer_kernel, integer_solution, reduced
from lustrum.audit.knowledge.reduce import Piece
from lustrum.model.arrays import Array, Floats, Ints, Whole, Words
from lustrum.numeric.compiled import compiled
from lustrum.numeric.later import sparse
from lustrum.numeric.solve.highs import Program, solved
from lustrum.numeric.solve.products import cholesky, cleared, dot
from lustrum.numeric.stream import below_of, own_next_word

# Steps from one whole table to the next, compiled at first use.


@compiled
def _below(state: Array, count: Whole) -> Any:  # pragma: no cover
    return below_of(own_next_word(state) >> np.uint64(32), count)


@compiled
def _sign(state: Array) -> Any:  # pragma: no cover
    return np.int64(1) if own_next_word(state) >> np.uint64(63) else np.int64(-1)


@compiled
def _reach(  # pragma: no cover
    x: Array,
    low: Array,
    high: Array,
    indptr: Array,
    cells: Array,
    steps: Array,
    move: int,
    sign: Whole,
) -> Any:
    """How many times a step can be taken."""
    most = np.int64(2**31)
    for k in range(indptr[move], indptr[move + 1]):
        cell, step = cells[k], steps[k] * sign
        room = (high[cell] - x[cell]) // step if step > 0 else (x[cell] - low[cell]) // -step
        if room < most:
            most = room
            if most == 0:
                break
    return most


@compiled
def apart(vectors: Array, tied: Array) -> int:  # pragma: no cover
    """Recombine vectors until few of them change the tied cells; these come first. Returns how many.

    Each step subtracts a multiple of one vector from another, so the span stays the same.
    """
    count, size = vectors.shape
    first = 0
    for index in range(tied.size):
        cell = tied[index]
        while True:
            best, others = -1, 0
            for i in range(first, count):
                if vectors[i, cell] != 0:
                    others += 1
                    if best < 0 or abs(vectors[i, cell]) < abs(vectors[best, cell]):
                        best = i
            if others == 0:
                break
            for i in range(count):
                # Vectors that were set apart before keep their cells; only this cell is cleared.
                if i != best and vectors[i, cell] != 0 and (i >= first or others == 1):
                    times = np.int64(np.rint(vectors[i, cell] / vectors[best, cell]))
                    for k in range(size):
                        vectors[i, k] -= times * vectors[best, k]
            if others == 1:
                for k in range(size):
                    vectors[first, k], vectors[best, k] = vectors[best, k], vectors[first, k]
                first += 1
                break
    return first


@compiled
def approach(  # pragma: no cover
    goal: int,
    way: int,
    vectors: Array,
    few: int,
    x: Array,
    low: Array,
    high: Array,
    least: Array,
    most: Array,
    state: Array,
    tries: int,
) -> bool:
    """Move a table towards a bound: one step in four moves the tied cells, the others change the rest."""
    count, size = vectors.shape
    entries = 0
    for i in range(count):
        for k in range(size):
            entries += vectors[i, k] != 0
    indptr = np.zeros(count + 1, np.int64)
    cells, steps = np.empty(entries, np.int64), np.empty(entries, np.int64)
    entries = 0
    for i in range(count):
        for k in range(size):
            if vectors[i, k] != 0:
                cells[entries], steps[entries] = k, vectors[i, k]
                entries += 1
        indptr[i + 1] = entries
    for _ in range(tries):
        if (way > 0 and most[goal] >= high[goal]) or (way < 0 and least[goal] <= low[goal]):
            return True
        if few == count or (few > 0 and own_next_word(state) >> np.uint64(62) == np.uint64(0)):
            move = _below(state, few)
            gain = vectors[move, goal] * way
            sign = _sign(state) if gain == 0 else np.int64(1) if gain > 0 else np.int64(-1)
            times = _reach(x, low, high, indptr, cells, steps, move, sign)
        else:
            move = few + _below(state, count - few)
            sign = _sign(state)
            times = _reach(x, low, high, indptr, cells, steps, move, sign)
            if times > 0:
                times = _below(state, times + 1)
        if times > 0:
            for k in range(indptr[move], indptr[move + 1]):
                cell = cells[k]
                x[cell] += times * sign * steps[k]
                least[cell] = min(least[cell], x[cell])
                most[cell] = max(most[cell], x[cell])
    return False


LEAST, MOST = 100, 4000
"""Pieces with fewer cells are better searched by integer programs; beyond, the basis takes too long."""
_FAR_BITS = 12  # of a distance as a share
_BITS = 20  # of a cell of a real table; a solver's noise is below
_INCREMENT = 0x9E3779B97F4A7C15


class LatticeWalker:
    """A whole table of a piece, the steps that lead to other tables, and the values reached so far.

    ``low`` and ``high`` are proven bounds; ``least`` and ``most`` are values that some table reached.
    """

    def __init__(self, piece: Piece, basis: Ints, table: Ints, low: Ints, high: Ints) -> None:
        self.piece, self.basis = piece, basis
        self.table, self.low, self.high = table, low, high
        self.least, self.most = table.copy(), table.copy()
        self._rows, self._columns = piece.matrix.tocsr(), piece.matrix.tocsc()

    @classmethod
    def of(cls, piece: Piece, low: Floats, high: Floats) -> LatticeWalker | None:
        """A walker for a piece, or None where no basis or no table is found."""
        if not LEAST <= piece.cells.size <= MOST or not np.isfinite(high - low).all():
            return None
        if bool((piece.fact_low != piece.fact_high).any()):
            return None
        try:
            basis = reduced(integer_kernel(piece.matrix))
        except OverflowError:
            return None
        ends = low.astype(np.int64), high.astype(np.int64)
        table = central_table(replace(piece, low=ends[0], high=ends[1]), basis)
        return None if table is None or not basis.size else cls(piece, basis, table, *ends)

    def copy(self) -> LatticeWalker:
        """Another walker at the same table."""
        twin = LatticeWalker(self.piece, self.basis, self.table.copy(), self.low, self.high)
        twin.least, twin.most = self.least.copy(), self.most.copy()
        return twin

    def seek(self, question: int, state: Words, tries: int) -> bool:
        """Walk towards a bound (``2 * cell``, plus 1 for its upper bound); returns whether it was reached."""
        cell, upper = divmod(int(question), 2)
        vectors = self.basis.copy()
        few = apart(vectors, self._tied(cell, 1 if upper else -1))
        ends = (self.low, self.high, self.least, self.most)
        way = 1 if upper else -1
        return bool(approach(cell, way, vectors, few, self.table, *ends, state, tries))

    def _tied(self, cell: int, way: int) -> Ints:
        """The cells of the shortest equation that gives the bound, all of which must be at their ends.

        Where no single equation gives it, the cell alone.
        """
        rows, best = self._rows, np.zeros(0, dtype=np.int64)
        end = (self.high if way > 0 else self.low)[cell]
        column = slice(self._columns.indptr[cell], self._columns.indptr[cell + 1])
        for row, weight in zip(
            self._columns.indices[column], self._columns.data[column], strict=True
        ):
            part = slice(rows.indptr[row], rows.indptr[row + 1])
            cells, weights = rows.indices[part], rows.data[part]
            others = cells != cell
            pull = weights[others] * weight * way
            ends = np.where(pull > 0, self.low[cells[others]], self.high[cells[others]])
            rest = self.piece.fact_low[row] - weights[others] @ ends
            if rest == weight * end and (best.size == 0 or others.sum() < best.size):
                best = cells[others].astype(np.int64)
        return np.append(best, cell).astype(np.int64)


def stream(seed: int) -> Words:
    return np.array([seed * 0xD1342543DE82EF95 % 2**64, _INCREMENT], dtype=np.uint64)


def central_table(piece: Piece, basis: Ints) -> Ints | None:
    """A whole table near the real table that is furthest from all bounds, if rounding finds one."""
    middle = _middle(piece)
    if middle is None:
        return None
    near = np.rint(middle).astype(np.int64)
    missing = integer_solution(piece.matrix, piece.fact_low - piece.matrix @ near)
    if missing is None or max(map(abs, missing)) > 2**40:
        return None
    table = near + np.array(missing, dtype=np.int64)
    # The nearest plane after Babai: the last vector is chosen first, then the one before it.
    factors = cholesky((basis @ basis.T).astype(np.float64))
    if factors is None:
        return None
    lower, vectors = factors.lower, basis.astype(np.float64)
    for _ in range(3):  # repeat where numbers were too large to be exact
        aim = factors.forward((vectors * (middle - table)).sum(axis=1))
        times = np.zeros(len(basis))
        for i in range(times.size - 1, -1, -1):
            rest = aim[i] - dot(lower[i + 1 :, i], times[i + 1 :])
            times[i] = np.rint(rest / lower[i, i])
        if not times.any():
            break
        table = table + times.astype(np.int64) @ basis
    return table if piece.holds(table) else None


def _middle(piece: Piece) -> Floats | None:
    """The real table nearest to the middle of all cells that keeps well away from their bounds.

    A linear program tells how far, relative to the cell's width, all cells can keep from their bounds. Many
    tables do, and which one a solver meets depends on its path. So among those that keep nine tenths of this
    distance the one with the least squares is taken, and there is one only.
    """
    from lustrum.numeric.solve.quadratic import QuadraticProblem, minimise_quadratic

    far = _distance(piece)
    if far is None:
        return None
    share, scale = _share(piece), np.maximum(piece.high - piece.low, 1) / 2.0
    optimum = minimise_quadratic(
        QuadraticProblem(
            1.0 / (scale * scale),
            -(piece.low + piece.high) / 2.0 / (scale * scale),
            piece.matrix.astype(np.float64),
            piece.fact_low.astype(np.float64),
            piece.low + far * share,
            piece.high - far * share,
        )
    )
    return None if optimum.point is None else cleared(optimum.point, _BITS)


def _share(piece: Piece) -> Floats:
    """A narrow cell can keep a distance of half its width at most; a wide one needs only a few units."""
    return np.asarray(np.minimum((piece.high - piece.low) / 2.0, 50.0))


def _distance(piece: Piece) -> float | None:
    """Nine tenths of the share of its width that every cell can keep from its bounds at once."""
    rows, cells = piece.matrix.shape
    one, share = sparse.eye_array(cells, format="csr"), sparse.csr_array(_share(piece)[:, None])
    matrix = sparse.vstack(
        [
            sparse.hstack([-one, share]),
            sparse.hstack([one, share]),
            sparse.hstack([piece.matrix.astype(np.float64), sparse.csr_array((rows, 1))]),
        ]
    )
    facts = piece.fact_low.astype(np.float64)
    above = np.concatenate([-piece.low, piece.high, facts])
    below = np.concatenate([np.full(2 * cells, -np.inf), facts])
    ends = np.append(np.full(cells, np.inf), 1.0)
    cost = np.append(np.zeros(cells), -1.0)
    columns = (np.append(-ends[:-1], 0.0), ends)
    point = solved(Program(matrix, (below, above), columns, cost, solver="ipm"))
    return None if point is None else float(cleared(0.9 * point[-1:], _FAR_BITS)[0])
