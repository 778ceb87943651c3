"""The least and the most that each cell can be, given all that is known.

Narrowing along the facts comes first; then, for each open cell, one minimisation and one maximisation
by linear programming (Domingo-Ferrer, Oganian and Torra 2002, section 4.1; Duncan, Fienberg, Krishnan,
Padman and Roehrig 2001, section 4). A table of whole numbers that a solver meets on its way settles
every cell that reaches its bound there, so most questions need not be asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.audit.knowledge import CellRef, ContradictionError, Knowledge
from lustrum.audit.reduce import CONTRADICTION, Piece, as_floats, narrowed, pieces
from lustrum.model import InputError
from lustrum.solve import Loaded, Outcome, ScipyHighs, Solver

__all__ = ["Bounds", "bounds"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_NEAR = 1e-6  # as far from a whole number as a solver may leave one


@dataclass(frozen=True, eq=False)
class Bounds:
    """The least and the most that each cell can be, in units of ``10**-decimals``.

    They always hold. Where ``sharp`` is set both are reached, for whole numbers by tables that were
    checked in whole numbers; elsewhere the true range may be narrower. Infinite where nothing bounds.
    """

    cells: npt.NDArray[np.intp]
    low: Floats
    high: Floats
    sharp: Mask
    decimals: int = 0
    whole: bool = True

    def __post_init__(self) -> None:
        for name in ("cells", "low", "high", "sharp"):
            array = getattr(self, name).view()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        return f"Bounds({len(self)} cells, {int(self.sharp.sum())} sharp, {int(self.exact.sum())} exact)"

    def __len__(self) -> int:
        return int(self.low.size)

    @property
    def exact(self) -> Mask:
        """Which cells are disclosed: only one value is left."""
        return np.asarray(self.low == self.high)

    @property
    def count(self) -> Floats:
        """How many values of the domain lie between the bounds: the m of equation 3."""
        if not self.whole:
            raise InputError("Real numbers cannot be counted; ask for the bounds of whole ones.")
        return self.high - self.low + 1.0


def bounds(
    known: Knowledge,
    cells: Iterable[CellRef] | slice | None = None,
    *,
    integer: bool = False,
    seconds: float | None = None,
    solver: Solver | None = None,
) -> Bounds:
    """Bound the given cells, or all.

    Linear bounds of whole cells are drawn in to whole numbers; where these are not known to be reached,
    ``integer`` lets integer programming find those that are. After so many ``seconds`` the cells not
    yet done keep wider bounds that still hold, and are not ``sharp``.

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
    low, high = narrowed(known)
    lows, highs = as_floats(low), as_floats(high)
    sharp = np.ones(len(known), dtype=np.bool_)
    clock = _Clock.start(seconds)
    for piece in pieces(known, low, high, asked):
        search = _Search(piece, known, (solver or ScipyHighs()).load(piece.problem), clock)
        search.run(np.flatnonzero(asked[piece.cells]), integer=integer)
        lows[piece.cells], highs[piece.cells] = search.low, search.high
        sharp[piece.cells] = search.sharp
    return Bounds(picks, lows[picks], highs[picks], sharp[picks], known.decimals, known.whole)


def _picked(known: Knowledge, cells: Iterable[CellRef] | slice | None) -> npt.NDArray[np.intp]:
    if cells is None or isinstance(cells, slice):
        return np.arange(len(known), dtype=np.intp)[cells if cells is not None else slice(None)]
    return np.array([known.cell(c) for c in cells], dtype=np.intp)


@dataclass(frozen=True)
class _Clock:
    """When the time is over, if ever."""

    end: float | None

    @classmethod
    def start(cls, seconds: float | None) -> _Clock:
        return cls(None if seconds is None else time.monotonic() + seconds)

    @property
    def left(self) -> float | None:
        return None if self.end is None else self.end - time.monotonic()


class _Search:
    """The questions put to a solver about one piece, and what is known after each answer."""

    def __init__(self, piece: Piece, known: Knowledge, loaded: Loaded, clock: _Clock) -> None:
        self.piece, self.known, self.loaded, self.clock = piece, known, loaded, clock
        self.low, self.high = as_floats(piece.low), as_floats(piece.high)
        # The least and the most that some table, seen on the way, is known to have.
        self.least = np.full(self.low.size, np.inf)
        self.most = np.full(self.low.size, -np.inf)

    @property
    def sharp(self) -> Mask:
        return np.asarray((self.least <= self.low) & (self.most >= self.high))

    def run(self, asked: npt.NDArray[np.intp], *, integer: bool) -> None:
        """Linear programs for all cells asked, then integer ones where these are not enough."""
        for whole in (False, True) if integer and self.known.whole else (False,):
            for cell in asked.tolist():
                if self.least[cell] > self.low[cell]:
                    self._ask(cell, 1.0, whole)
                if self.most[cell] < self.high[cell]:
                    self._ask(cell, -1.0, whole)

    def _ask(self, cell: int, sign: float, whole: bool) -> None:
        """Minimise (sign 1) or maximise (sign -1) one cell."""
        left = self.clock.left
        if left is not None and left <= 0:
            return
        cost = np.zeros(self.low.size)
        cost[cell] = sign
        found = self.loaded.minimise(cost, whole=whole, seconds=left)
        if found.outcome is Outcome.INFEASIBLE:
            names = self.known.names[int(self.piece.cells[cell])]
            kind = "of whole numbers " if whole else ""
            raise ContradictionError(
                f"{CONTRADICTION}no table {kind}fits all that is known about {names}."
            )
        if found.point is not None:
            self._meet(found.point)
        if found.outcome is Outcome.UNBOUNDED:
            reached = self.least if sign > 0 else self.most
            reached[cell] = -np.inf if sign > 0 else np.inf
        self._narrow(cell, sign, found.bound)
        if found.outcome is Outcome.OPTIMAL and not self.known.whole:
            # Real cells have no exact check: the optimum is reached as far as floats can tell.
            self.least[cell] = self.low[cell] if sign > 0 else self.least[cell]
            self.most[cell] = self.high[cell] if sign < 0 else self.most[cell]

    def _narrow(self, cell: int, sign: float, proven: float) -> None:
        if not np.isfinite(proven):
            return
        if self.known.whole:
            proven = float(np.ceil(proven - _NEAR))
        if sign > 0:
            self.low[cell] = max(self.low[cell], proven)
        else:
            self.high[cell] = min(self.high[cell], -proven)

    def _meet(self, point: Floats) -> None:
        """Remember what a table found on the way reaches, if it is one."""
        if not self.known.whole:
            return
        near = np.round(point)
        if bool((np.abs(point - near) > _NEAR * (1.0 + np.abs(near))).any()):
            return
        if self.piece.holds(near.astype(np.int64)):
            np.minimum(self.least, near, out=self.least)
            np.maximum(self.most, near, out=self.most)
