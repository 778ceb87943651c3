"""Bounds of cells: the least and the greatest value that each can have, given the knowledge.

Narrowing along the facts comes first; then, for each open cell, one minimisation and one maximisation by
linear programming (Domingo-Ferrer, Oganian and Torra 2002, section 4.1; Duncan, Fienberg, Krishnan, Padman
and Roehrig 2001, section 4). Where the facts form a network, as in a two-way table, flows replace the
programs; see :mod:`lustrum.audit.bounding.network`. Every table of whole numbers that a solver finds along
the way settles all cells that reach a bound in it, so most programs need not be solved; see
:mod:`lustrum.audit.bounding.sweep`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from lustrum.audit.bounding.network import BoundNetwork
from lustrum.audit.bounding.sweep import BoundSweep, Impossible, Progress, Watch
from lustrum.audit.knowledge.conflicts import ConflictError, conflict
from lustrum.audit.knowledge.facts import CellRef, ContradictionError, Knowledge
from lustrum.audit.knowledge.reduce import CONTRADICTION, Piece, as_floats, less, narrowed, pieces
from lustrum.model import InputError
from lustrum.model.arrays import Array, Floats, Indices, Ints, Mask
from lustrum.model.workers import workers as processors
from lustrum.numeric.compiled import compiled_if_large
from lustrum.numeric.later import sparse
from lustrum.numeric.solve import Solver
from lustrum.numeric.structure import UNBOUNDED

# Cells that move together, asked about once.
#
# Where two suppressed cells are all that is open in a sum, one follows from the other: it is a constant less
# the other, or a constant more. In tables published at many levels that holds for half of the cells. One cell
# stands for each group; its range gives those of all others, in whole numbers.


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
        return np.unique(self.stands[cells])

    def spread(self, low: Floats, high: Floats, sharp: Mask) -> tuple[Floats, Floats, Mask]:
        """The ranges of all cells from those of the cells that stand for them."""
        ends = [self.sign * end[self.stands] + self.shift for end in (low, high)]
        up = self.sign > 0
        return np.where(up, *ends), np.where(up, ends[1], ends[0]), sharp[self.stands]


@compiled_if_large
def _joined(  # pragma: no cover
    count: int, a: Array, b: Array, turn: Array, totals: Array
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


Part: TypeAlias = tuple[BoundSweep, Indices]
Each: TypeAlias = Callable[..., Iterable[Any]]
"""Applies a function to each of some things, one after the other or on several threads."""

_THREADED = 64
"""Cells that are asked about from which on threads pay."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """The least and the greatest value of each cell, in units of ``10**-decimals``.

    The bounds always hold. Where ``sharp`` is set, some table reaches each of the two; for whole numbers,
    such tables were checked in whole numbers. Elsewhere the true range may be narrower. A cell without a
    bound has an infinite one. ``programs``, ``searches`` and ``flows`` count the linear programs, the
    searches for whole tables and the flows that were computed.
    """

    cells: Indices
    low: Floats
    high: Floats
    sharp: Mask
    decimals: int = 0
    whole: bool = True
    programs: int = 0
    searches: int = 0
    flows: int = 0

    def __post_init__(self) -> None:
        for name in ("cells", "low", "high", "sharp"):
            array = getattr(self, name).view()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        return f"Bounds({len(self)} cells, {int(self.sharp.sum())} sharp, {int(self.exact.sum())} exact)"

    def __len__(self) -> int:
        return int(self.low.size)

    def of(self, known: Knowledge, cells: Iterable[CellRef] | slice | None = None) -> Bounds:
        picks = _picked(known, cells)
        return replace(
            self, cells=picks, low=self.low[picks], high=self.high[picks], sharp=self.sharp[picks]
        )

    @property
    def exact(self) -> Mask:
        return np.asarray(self.low == self.high)

    @property
    def count(self) -> Floats:
        """How many values of the domain lie between the bounds: the m of equation 3."""
        if not self.whole:
            raise InputError("Real values cannot be counted; ask for bounds of whole numbers.")
        return self.high - self.low + 1.0


def bounds(
    known: Knowledge,
    cells: Iterable[CellRef] | slice | None = None,
    *,
    integer: bool = False,
    solver: Solver | None = None,
    workers: int | None = None,
    progress: Callable[[Progress], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Bounds:
    """Bound the given cells, or all.

    Linear bounds of whole cells are tightened to whole numbers. Where no table is known to reach them and
    ``integer`` is set, a walk among whole tables looks for one, and after it integer programming. Once
    ``stop`` returns True, the remaining cells keep wider bounds that still
    hold and are not ``sharp``. ``progress`` is called after each program and may raise to end the audit.
    The result is the same for any number of ``workers``; the default is one for each processor. If the
    caller names a ``solver``, it is used for networks too.

    >>> known = Knowledge.of(["x1", "x2", "x3", "x4"])
    >>> for row, total in ((("x1", "x2"), 1537), (("x3", "x4"), 1251), (("x1", "x3"), 406)):
    ...     known = known.fact(dict.fromkeys(row, 1), total, total)
    >>> found = bounds(known)
    >>> found.low.tolist(), found.high.tolist()
    ([0.0, 1131.0, 0.0, 845.0], [406.0, 1537.0, 406.0, 1251.0])
    """
    picks = _picked(known, cells)
    asked = np.zeros(len(known), dtype=np.bool_)
    asked[picks] = True
    try:
        low, high = narrowed(known)
        piece_list = list(pieces(known, low, high, asked))
        merged = [_twins(p, solver) for p in piece_list]
        parts = [p if t is None else t.piece for p, t in zip(piece_list, merged, strict=True)]
        wanted = [np.flatnonzero(asked[p.cells]) for p in piece_list]
        wanted = [w if t is None else t.asked(w) for w, t in zip(wanted, merged, strict=True)]
        tied = [w for p, w in zip(parts, wanted, strict=True) if p.matrix.shape[0]]
        watch = Watch(2 * sum(w.size for w in tied), stop, progress)
        sweeps = [
            BoundSweep(p, known, w, solver, watch) for p, w in zip(parts, wanted, strict=True)
        ]
        _run(sweeps, watch, workers or processors(), integer and known.whole)
    except (ContradictionError, Impossible) as nothing:
        raise _explained(known, nothing) from None
    lows, highs = as_floats(low), as_floats(high)
    sharp = np.ones(len(known), dtype=np.bool_)
    for piece, sweep, twins in zip(piece_list, sweeps, merged, strict=True):
        ranges = sweep.low, sweep.high, sweep.sharp
        piece_cells = piece.cells
        lows[piece_cells], highs[piece_cells], sharp[piece_cells] = (
            ranges if twins is None else twins.spread(*ranges)
        )
    return Bounds(
        picks,
        lows[picks],
        highs[picks],
        sharp[picks],
        known.decimals,
        known.whole,
        watch.programs,
        watch.searches,
        watch.flows,
    )


def _twins(piece: Piece, solver: Solver | None) -> Twins | None:
    """Groups of cells that move together, unless flows or a solver that the caller names get the piece."""
    twins = Twins.of(piece) if solver is None else None
    if twins is None or BoundNetwork.of(piece) is not None:
        return None
    # A merged cell may be left without any fact. Flows do not see such a cell, so the piece
    # stays as it is.
    alone = np.diff(twins.piece.matrix.tocsc().indptr) == 0
    return None if bool(alone.any()) else twins


def _run(sweeps: Sequence[BoundSweep], watch: Watch, workers: int, integer: bool) -> None:
    """Answer all questions about all pieces: sums, then single cells, then whole tables."""
    if workers == 1 or sum(s.asked.size for s in sweeps) < _THREADED:
        # A thread costs more than a few small programs; the answers are the same.
        _answer_all(map, sweeps, watch, integer)
        return
    with ThreadPoolExecutor(max_workers=workers) as pool:
        try:
            _answer_all(pool.map, sweeps, watch, integer)
        except BaseException:
            # Whatever ends the audit, including an interrupt, also ends the work in progress.
            watch.halt()
            raise


def _answer_all(each: Each, sweeps: Sequence[BoundSweep], watch: Watch, integer: bool) -> None:
    for _ in each(BoundSweep.random_sums, sweeps):
        pass
    _ask_in_rounds(each, sweeps, watch)
    _ask(each, sweeps, partial(BoundSweep.answer, hard=False), hard=False)
    if integer:
        for _ in each(BoundSweep.meet_walker, sweeps):
            pass
        _ask(each, [s for s in sweeps if s.walker is not None], BoundSweep.seek, hard=True)
        _ask(each, sweeps, partial(BoundSweep.answer, hard=True), hard=True)
    watch.tell_left(sum(sweep.open().size for sweep in sweeps))


def _ask_in_rounds(each: Each, sweeps: Sequence[BoundSweep], watch: Watch) -> None:
    """Ask all questions that linear programs can answer; after each round all share what they found."""
    lanes = {id(sweep): sweep.lanes() for sweep in sweeps}
    waiting = [sweep for sweep in sweeps if lanes[id(sweep)]]
    while waiting and not watch.stopped():
        parts: list[Part] = []
        for sweep in waiting:
            sweep_lanes = lanes[id(sweep)]
            parts.extend(
                zip(sweep_lanes, np.array_split(sweep.narrowable(), len(sweep_lanes)), strict=True)
            )
        for _ in each(lambda part: BoundSweep.round(*part), parts):
            pass
        for sweep in waiting:
            sweep.share(lanes[id(sweep)])
        waiting = [sweep for sweep in waiting if sweep.narrowable().size]


def _ask(
    each: Each,
    sweeps: Sequence[BoundSweep],
    how: Callable[[BoundSweep, Indices], BoundSweep],
    *,
    hard: bool,
) -> None:
    """Ask all open questions, block by block, and add up what is found.

    Nothing is added before every block is answered: a block that starts late would otherwise know more.
    """
    parts = [(s, block) for s in sweeps for block in s.blocks(hard=hard)]
    answers = list(each(lambda part: how(*part), parts))
    for (sweep, _), answer in zip(parts, answers, strict=True):
        sweep.take(answer)


def _explained(known: Knowledge, nothing: ContradictionError | Impossible) -> ContradictionError:
    """A few facts that contradict each other, or the contradiction that was noticed first."""
    contradiction = conflict(known)
    if contradiction is not None:
        return ConflictError(contradiction)
    if isinstance(nothing, ContradictionError):
        return nothing
    kind = "of whole numbers " if nothing.whole else ""
    name = known.names[nothing.cell]
    return ContradictionError(f"{CONTRADICTION}no table {kind}fits all that is known about {name}.")


def _picked(known: Knowledge, cells: Iterable[CellRef] | slice | None) -> Indices:
    if cells is None or isinstance(cells, slice):
        return np.arange(len(known), dtype=np.intp)[cells if cells is not None else slice(None)]
    return np.array([known.cell(c) for c in cells], dtype=np.intp)
