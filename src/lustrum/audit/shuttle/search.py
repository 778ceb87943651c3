"""The generalised shuttle, and the search that makes its bounds sharp."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.audit.bounding.compute import Bounds
from lustrum.audit.closed.choose import reducible
from lustrum.audit.closed.margins import Margins
from lustrum.audit.knowledge.facts import ContradictionError
from lustrum.audit.shuttle.kernels import FOUND, NO_TABLE, dive, narrow
from lustrum.audit.shuttle.lattice import CONTRADICTION, Detail, Lattice
from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.solve import Highs, LinearProblem, Loaded, Optimum, Outcome, Solver

# How long a search may go on.


@dataclass(frozen=True)
class Effort:
    """How long to search for sharp bounds; bounds always hold, however short the search.

    ``nodes`` is the number of cells that all dives together may fix, ``dive`` the number for one dive,
    ``seconds`` the time. Without a ``solver``, only the shuttle's own search runs, with longer and longer
    dives: it is quick for three variables with all pairs, and slow where few margins tie many cells.

    >>> Effort(seconds=2.0, solver=None).nodes
    1000000
    """

    nodes: int = 1_000_000
    dive: int = 100
    seconds: float | None = None
    solver: Solver | None = field(default_factory=Highs)

    def __post_init__(self) -> None:
        if self.nodes < 0 or self.dive < 1 or (self.seconds is not None and self.seconds < 0):
            raise InputError("An effort needs nodes of 0 or more, dives of 1 or more, and time.")


@dataclass
class Clock:
    """What is left of the effort, shared by all parts."""

    end: float | None
    nodes: int

    @classmethod
    def start(cls, effort: Effort) -> Clock:
        limit = effort.seconds
        return cls(None if limit is None else time.monotonic() + limit, effort.nodes)

    @property
    def seconds(self) -> float | None:
        return None if self.end is None else self.end - time.monotonic()

    @property
    def over(self) -> bool:
        left = self.seconds
        return self.nodes <= 0 or (left is not None and left <= 0)


def shuttle(margins: Margins, *, rounds: int = 1000) -> Bounds:
    """Bounds of every cell by the shuttle algorithm along the released margins.

    Buzzigoli and Giusti (1999) gave it for three variables and all two-way margins. A cell is at least its
    sum minus the upper bounds of the others in the sum, and at most the sum minus their lower bounds. This
    is repeated for all sums until nothing changes::

        L' = max(L, n_C - (sum of U along the sum - U))
        U' = min(U, n_C - (sum of L along the sum - L))

    Any margins are allowed. The bounds hold, are quick and often wide: only cells with one feasible value
    are called sharp. After this many ``rounds`` the bounds reached by then are returned.

    >>> table = [[[1, 2], [3, 0]], [[2, 2], [0, 4]]]
    >>> found = shuttle(Margins.of_table(table, [[0, 1], [0, 2], [1, 2]]))
    >>> found.low.astype(int).tolist(), found.high.astype(int).tolist()
    ([1, 0, 1, 0, 0, 2, 0, 2], [3, 2, 3, 2, 2, 4, 2, 4])
    """
    low: Ints = np.zeros(margins.shape, dtype=np.int64)
    high: Ints = np.full(margins.shape, margins.total, dtype=np.int64)
    sums = [
        (margins.margin(g), tuple(a for a in range(len(margins.names)) if a not in g))
        for g in margins.generators
    ]
    for _ in range(rounds):
        before = low, high
        for total, along in sums:
            least, most = (a.sum(axis=along, keepdims=True) for a in (low, high))
            low, high = np.maximum(low, total - most + high), np.minimum(high, total - least + low)
        if bool((low > high).any()):
            raise ContradictionError(CONTRADICTION)
        if np.array_equal(low, before[0]) and np.array_equal(high, before[1]):
            break
    return margins.bounds(low, high, low == high)


Box = tuple[npt.ArrayLike, npt.ArrayLike]

_SHAKES = 12  # vertices tried at an open bound
_NEAR = 1e-6  # how far a solver's value may be from a whole number
_ROOM = 2**23  # the most bounds that one dive may save
_CREEP = 6  # the average number of visits of a sum in one narrowing


def generalised(
    margins: Margins, within: Box | None = None, *, detail: Detail = Detail.ALL
) -> Bounds:
    """Bounds by the generalised shuttle (Dobra 2002), without search.

    Bounds of all collapsed cells are propagated along all sums of two of them until nothing changes. They
    hold; they are known to be sharp for decomposable margins and for dichotomous tables with all margins of
    one variable less, but are marked so only where one value is left. ``within`` gives bounds of cells in
    advance, for example structural zeros.

    >>> table = [[[1, 2], [3, 0]], [[2, 2], [0, 4]]]
    >>> found = generalised(Margins.of_table(table, [[0, 1], [0, 2], [1, 2]]))
    >>> found.low.astype(int).tolist(), found.high.astype(int).tolist()
    ([1, 0, 1, 0, 0, 2, 0, 2], [3, 2, 3, 2, 2, 4, 2, 4])
    """
    lattice = Lattice.of(margins, _box(margins, within), detail=detail)
    low, high = (a[lattice.inner].reshape(margins.shape) for a in (lattice.low, lattice.high))
    return margins.bounds(low, high, low == high)


def sharp_bounds(
    margins: Margins, within: Box | None = None, *, effort: Effort | None = None
) -> Bounds:
    """Sharp bounds of whole cells for any margins: shuttle, then search (Dobra 2002).

    A bound is sharp once a table is found that reaches it; that table settles every other cell whose bound
    it reaches too. The shuttle's own search fixes the cell at its bound, propagates that, and fixes cell
    after cell, going back where no value is feasible. If there is no such table, the bound moves, and so do
    the bounds that follow from it. Before the search dives, a solver tightens the bounds by linear programs
    and looks at vertices with the cell fixed, many of which are whole tables. Integer programs come last,
    for the bounds that nothing else settles. Parts that margins separate are searched apart, and those with
    a closed form are not searched. When the effort is spent, the bounds still hold but are not marked
    sharp.

    >>> table = np.arange(12).reshape(2, 3, 2) % 5
    >>> found = sharp_bounds(Margins.of_table(table, [[0, 1], [0, 2], [1, 2]]))
    >>> found
    Bounds(12 cells, 12 sharp, 0 exact)
    >>> found.low.astype(int).tolist()
    [0, 0, 1, 2, 3, 0, 0, 2, 2, 3, 0, 0]
    """
    if not margins.whole:
        raise InputError("The shuttle searches whole numbers; bound real cells by linear programs.")
    spent = effort or Effort()
    clock = Clock.start(spent)
    box = _box(margins, within)
    if box is not None:
        return _CubeSearch(margins, box, spent, clock).run()
    return reducible(margins, lambda part: _CubeSearch(part, None, spent, clock).run())


def _box(margins: Margins, within: Box | None) -> tuple[Ints, Ints] | None:
    if within is None:
        return None
    ends = []
    for end, cut, limit in zip(within, (np.maximum, np.minimum), (0, margins.total), strict=True):
        array = np.asarray(end)
        if array.size == margins.size:
            array = array.reshape(margins.shape)
        elif array.size != 1:
            raise InputError(f"Bounds of cells must have the shape {margins.shape} of the cube.")
        ends.append(np.broadcast_to(cut(array, limit), margins.shape))
    return ends[0].astype(np.int64), ends[1].astype(np.int64)


class _CubeSearch:
    """The search inside one cube: proven bounds, and the values that tables found so far reach."""

    def __init__(
        self, margins: Margins, box: tuple[Ints, Ints] | None, effort: Effort, clock: Clock
    ) -> None:
        self.margins, self.effort, self.clock = margins, effort, clock
        self.lattice = Lattice.of(margins, box)
        self.box = box
        self.cells = self.lattice.inner
        self.least = np.full(self.cells.size, np.iinfo(np.int64).max)
        self.most = np.full(self.cells.size, -1, dtype=np.int64)
        rows, width = self.lattice.indptr.size - 1, self.lattice.low.size
        self.queue = np.zeros(max(rows, 1), dtype=np.int64)
        self.queued = np.zeros(max(rows, 1), dtype=np.bool_)
        self.visits = _CREEP * max(rows, 1)
        # Dives that are too deep for the saved bounds count as cut short.
        depth = max(64, min(2 * self.cells.size + 64, _ROOM // width))
        self.saved_low = np.empty((depth, width), dtype=np.int64)
        self.saved_high = np.empty((depth, width), dtype=np.int64)
        self.saved = np.empty((depth, 3), dtype=np.int64)
        self.problem = self._problem()
        rows = self.problem.matrix
        self.released = (
            rows.indptr.astype(np.int64),
            rows.indices.astype(np.int64),
            self.problem.row_low,
        )

    @property
    def low(self) -> Ints:
        return np.asarray(self.lattice.low[self.cells])

    @property
    def high(self) -> Ints:
        return np.asarray(self.lattice.high[self.cells])

    def run(self) -> Bounds:
        solver = self.effort.solver
        if solver is not None:
            loaded = solver.load(self.problem)
            self._ask_all(loaded)
            self._try_vertices(solver)
            self._dive_all(self.effort.dive)
            self._ask_all(loaded, whole=True)
        else:
            nodes = self.effort.dive
            while any(True for _ in self._open()):
                self._dive_all(nodes)
                nodes *= 4
        low, high = self.low, self.high
        reached = (self.least <= low) & (self.most >= high)
        shape = self.margins.shape
        return self.margins.bounds(low.reshape(shape), high.reshape(shape), reached.reshape(shape))

    def _open(self) -> Iterator[tuple[int, int]]:
        """Bounds that no table reaches yet, as (cell, 1) for the lower and (cell, -1) for the upper."""
        for cell in range(self.cells.size):
            for sign in (1, -1):
                if self.clock.over:
                    return
                if self._is_open(cell, sign):
                    yield cell, sign

    def _is_open(self, cell: int, sign: int) -> bool:
        if sign > 0:
            return bool(self.least[cell] > self.lattice.low[self.cells[cell]])
        return bool(self.most[cell] < self.lattice.high[self.cells[cell]])

    def _ask_all(self, loaded: Loaded, *, whole: bool = False) -> None:
        """Ask the solver about every open bound."""
        for cell, sign in self._open():
            cost = np.zeros(self.cells.size)
            cost[cell] = sign
            near = float(sign * (self.low if sign > 0 else self.high)[cell])
            left = self.clock.seconds
            optimum = loaded.minimise(
                cost, whole=whole, seconds=left, target=near if whole else None
            )
            self._learn(cell, sign, optimum)

    def _try_vertices(self, solver: Solver) -> None:
        """Look at some vertices where a cell is fixed at its bound; often one is a whole table.

        The costs are random and pull other cells to their own open bounds, which such a table may settle at
        the same time.
        """
        rng = np.random.default_rng(0)
        for cell, sign in self._open():
            low, high = self.lattice.low.copy(), self.lattice.high.copy()
            at = int(self.cells[cell])
            end = int(low[at] if sign > 0 else high[at])
            if not self._narrow(low, high, at, end, end):
                self._move(cell, sign, end + sign)
                continue
            ends = (a[self.cells].astype(np.float64) for a in (low, high))
            loaded = solver.load(replace(self.problem, low=next(ends), high=next(ends)))
            for _ in range(_SHAKES):
                if self.clock.over or not self._is_open(cell, sign):
                    break
                pull = 1.0 * (self.least > self.low) - 1.0 * (self.most < self.high)
                cost = rng.integers(-4, 5, self.cells.size) + 4.0 * pull
                optimum = loaded.minimise(cost, seconds=self.clock.seconds)
                if optimum.outcome is Outcome.INFEASIBLE:
                    self._move(cell, sign, end + sign)
                    break
                if optimum.point is not None:
                    self._meet_point(optimum.point)

    def _dive_all(self, nodes: int) -> None:
        """Dive for a table at every open bound, each time from a central table."""
        guide = _fitted(self.margins, self.high)
        for cell, sign in self._open():
            self._reach(cell, sign, guide, nodes)

    def _reach(self, cell: int, sign: int, guide: Floats, nodes: int) -> bool:
        """Move a bound until a table reaches it; False if the search was cut short."""
        at, step = int(self.cells[cell]), 0
        while self._is_open(cell, sign):
            if self.clock.over:
                return False
            low, high = self.lattice.low.copy(), self.lattice.high.copy()
            near = int(low[at] if sign > 0 else high[at])
            far = near + sign * step
            outcome = NO_TABLE
            if self._narrow(low, high, at, min(near, far), max(near, far)):
                outcome, used = dive(
                    self.lattice.sums,
                    low,
                    high,
                    self.queue,
                    self.queued,
                    self.visits,
                    self.released,
                    self.cells,
                    guide.copy(),
                    min(nodes, self.clock.nodes),
                    self.saved_low,
                    self.saved_high,
                    self.saved,
                )
                self.clock.nodes -= used
            if outcome == FOUND:
                self._meet(low[self.cells])
                step = 0
            elif outcome == NO_TABLE:
                # No table this near: look at twice as many values at once.
                self._move(cell, sign, far + sign)
                step = 2 * step + 1
            elif step:
                step = 0
            else:
                return False
        return True

    def _narrow(self, low: Ints, high: Ints, at: int, least: int, most: int) -> bool:
        fine: bool = narrow(
            self.lattice.sums,
            low,
            high,
            self.queue,
            self.queued,
            self.visits,
            at,
            least,
            most,
        )
        return fine

    def _move(self, cell: int, sign: int, end: int) -> None:
        """Set a proven bound, and propagate it."""
        at, (low, high) = int(self.cells[cell]), (self.lattice.low, self.lattice.high)
        ends = (max(end, int(low[at])), int(high[at])) if sign > 0 else (int(low[at]), end)
        if not self._narrow(low, high, at, *ends):
            raise ContradictionError(CONTRADICTION)

    def _learn(self, cell: int, sign: int, optimum: Optimum) -> None:
        """Use a solver's answer: the bound that it proves, and its point."""
        if optimum.outcome is Outcome.INFEASIBLE:
            raise ContradictionError(CONTRADICTION)
        if optimum.point is not None:
            self._meet_point(optimum.point)
        if np.isfinite(optimum.bound):
            self._move(cell, sign, sign * int(np.ceil(optimum.bound - _NEAR)))

    def _meet_point(self, point: Floats) -> None:
        near = np.round(point).astype(np.int64)
        if bool((np.abs(point - near) <= _NEAR * (1 + np.abs(near))).all()):
            self._meet(near)

    def _meet(self, values: Ints) -> None:
        """Record the values that a point reaches, if it is a table, checked in whole numbers."""
        table = values.reshape(self.margins.shape)
        rest = range(table.ndim)
        if self.box is not None and bool(((table < self.box[0]) | (table > self.box[1])).any()):
            return
        if bool((table < 0).any()) or not all(
            np.array_equal(
                table.sum(axis=tuple(a for a in rest if a not in g), keepdims=True),
                self.margins.margin(g),
            )
            for g in self.margins.generators
        ):
            return
        np.minimum(self.least, values, out=self.least)
        np.maximum(self.most, values, out=self.most)

    def _problem(self) -> LinearProblem:
        """One row for each released sum."""
        shape, rows, ends = self.margins.shape, [], []
        for generator in self.margins.generators:
            known = self.margins.margin(generator)
            row = np.broadcast_to(np.arange(known.size).reshape(known.shape), shape).ravel()
            data = np.ones(row.size), (row, np.arange(row.size))
            rows.append(sparse.csr_array(data, shape=(known.size, row.size)))
            ends.append(known.ravel().astype(np.float64))
        sums = np.concatenate(ends)
        low, high = self.low.astype(np.float64), self.high.astype(np.float64)
        return LinearProblem(sparse.vstack(rows, format="csr"), sums, sums, low, high)


def _fitted(margins: Margins, high: Ints, rounds: int = 20) -> Floats:
    """A central table of real numbers, by iterative proportional fitting."""
    table = (high > 0).astype(np.float64).reshape(margins.shape)
    for _ in range(rounds):
        for generator in margins.generators:
            rest = tuple(a for a in range(table.ndim) if a not in generator)
            sums = table.sum(axis=rest, keepdims=True)
            table = table * (margins.margin(generator) / np.where(sums > 0, sums, 1.0))
    return np.asarray(table.ravel())
