"""Better patterns near the best one: most of its cells stay, the others are chosen anew by branch and cut.

Of the secondary cells of the best pattern all are kept except some that lie near each other. What is left is a
small problem of the same kind with a close bound: its linear program closes most other cells by their reduced
costs, and a short search decides. Every inequality found on the way holds for the whole problem. The choice of
cells has some chance in it, drawn from a fixed seed (large neighbourhood search).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.arithmetic import exp, normal_draws
from lustrum.numeric.solve.cutting import CuttingProgram
from lustrum.numeric.solve.products import sparse_product
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.search.heuristic import WitnessedPattern

_FREE = (12, 24)  # secondary cells that are chosen anew: at first, and at most
_STEPS = 4  # relations between a cell and those near it
_NOISE = 0.3  # standard deviation of the logarithm of how near a cell is
_NODES = 50  # of one search
_COLUMNS = 120  # of the same
_SEARCHES = 4  # in one neighbourhood
_LITTLE = 0.02  # a rise of the bound by less than this share of what is left is hardly any
_IN_VAIN = 12  # neighbourhoods in a row without a cheaper pattern


class CoverSearch(Protocol):
    """What branch and cut has to offer: its program, the best pattern so far, and ways to learn more."""

    problem: SuppressionProblem
    program: CuttingProgram
    choice: Ints
    best: WitnessedPattern
    cost: float
    steps: int

    @property
    def spent(self) -> int:
        """Attacks and programs so far."""
        ...

    @property
    def done(self) -> bool:
        """Whether the best pattern is proven to be good enough."""
        ...

    @property
    def least_step(self) -> float:
        """How much cheaper a pattern is at least that is cheaper at all."""
        ...

    def room(self, bound: float) -> float:
        """By how much columns can raise a bound before no cheaper pattern is left."""
        ...

    def separate(self, x: Floats) -> int:
        """Add inequalities that a fractional point violates; gives how many are new."""
        ...


def improve_nearby(search: CoverSearch, end: int, complete: Callable[[Floats], None]) -> None:
    """Look for cheaper patterns in one neighbourhood after the other, while there is work left.

    ``complete`` makes a whole pattern safe and offers it to the search.
    """
    luck = np.random.default_rng(0)
    size, in_vain = _FREE[0], 0
    while search.spent < end and not search.done and in_vain < _IN_VAIN:
        mine = search.best.suppressed & ~search.problem.fixed
        if not mine.any():
            return
        cells = cells_near_each_other(search.problem, search.best.suppressed, size, luck)
        before = search.cost
        _choose_anew(search, mine, cells, end, complete)
        in_vain = 0 if search.cost < before else in_vain + 1
        size = _FREE[0] if search.cost < before else min(size + 1, _FREE[1])


def cells_near_each_other(
    problem: SuppressionProblem, suppressed: Mask, size: int, luck: np.random.Generator
) -> Ints:
    """Some secondary cells of a pattern around one of them, linked by relations of suppressed cells."""
    mine = np.flatnonzero(suppressed & ~problem.fixed)
    matrix = abs(problem.relations)
    inside = suppressed.astype(np.float64)
    spread = np.zeros(suppressed.size)
    spread[luck.choice(mine)] = 1.0
    near = spread.copy()
    for _ in range(_STEPS):
        spread = sparse_product(matrix.T, sparse_product(matrix, spread)) * inside
        spread /= spread.sum()
        near += spread
    weight = near[mine] * exp(_NOISE * normal_draws(luck, mine.size))
    return mine[np.argsort(-weight, kind="stable")[:size]]


def _choose_anew(
    search: CoverSearch, mine: Mask, cells: Ints, end: int, complete: Callable[[Floats], None]
) -> None:
    """Branch and cut with all but some cells of the best pattern kept, until one cheaper pattern is found."""
    program, choice = search.program, search.choice
    fixed = mine.copy()
    fixed[cells] = False
    low = np.maximum(program.low, fixed[choice].astype(np.float64))
    high = program.high.copy()
    if bool((low > high).any()):
        return
    cost, searches, stalled, last = search.cost, 0, 0, 0.0
    while search.spent < end:
        relaxed = program.relax(low, high)
        if relaxed is None:
            return
        search.steps += program.work(relaxed.steps)
        room = search.room(relaxed.bound)
        if room <= 0:
            return
        high = np.where((relaxed.reduced > room) & (low == 0), 0.0, high)
        low = np.where((-relaxed.reduced > room) & (high == 1), 1.0, low)
        stalled = stalled + 1 if relaxed.bound - last < _LITTLE * room else 0
        last = relaxed.bound
        fresh = search.separate(relaxed.x)
        if fresh and stalled < 2:
            continue
        if searches >= _SEARCHES:
            return
        searches += 1
        closed = _distant(relaxed.x, relaxed.reduced, low, high, mine[choice])
        solution = program.search(
            _NODES, low=low, high=np.where(closed, 0.0, high), below=search.cost - search.least_step
        )
        search.steps += program.work(solution.steps)
        if solution.x is None:
            return
        complete(solution.x)
        if search.cost < cost:
            return
        stalled = 1


def _distant(x: Floats, reduced: Floats, low: Floats, high: Floats, mine: Mask) -> Mask:
    """The columns that the linear program likes least, and the best pattern does not use."""
    free = np.flatnonzero(low < high)
    if free.size <= _COLUMNS:
        return np.zeros(x.size, dtype=np.bool_)
    limit = np.sort(reduced[free])[_COLUMNS]
    return np.asarray((reduced > limit) & (low == 0) & ~mine & (x < 1e-3))
