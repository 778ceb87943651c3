"""Covering programs that grow: least cost over 0 and 1 subject to inequalities that are found one by one.

Minimise ``cost @ x`` over ``0 <= x <= 1`` with ``row @ x >= side`` for every row so far. The linear program
goes on from its last basis when rows are added; the search among whole x sees a stated number of nodes, so that
the same rows always give the same answer. Lower bounds are computed again from the multipliers alone. What the
solver says is rounded far above its noise before anything depends on it. Of a search that is cut short nothing
is used: where it stands depends on its way.

A solver that meets several optima takes the first on its way, and the way differs between processors. So x
comes from a program with small irregular costs added, which has one optimum, and the multipliers come from
one with sides that are a little lower, which has one optimum too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse

from lustrum.model.arrays import Floats, Indices, Mask, Sparse
from lustrum.numeric.solve.highs import FINE, SIMPLEX, Program, single_optimum
from lustrum.numeric.solve.products import cleared, dot, floored, sparse_product

_SIZE = 20  # rows and columns of a search that ends by itself and takes as long as one question
_NODE = 3  # questions that a node of a search in vain takes as long as
_ROWS = 10  # that are new to a program and take as long as one question
_OLD = 12  # rounds that a row may be slack before it is set aside
_HEAVY = 50_000  # weights with which a program takes twice as long
_LOWER = (
    2.0**-14
)  # by which sides are lower, and columns can go beyond 0 and 1, in the program of multipliers
_AT_ONCE = 200  # kept rows that begin to take part together, those violated most first
_BITS = 26  # of a column between 0 and 1
_DUAL_BITS = 40  # of a multiplier, in units of the largest
_RANK_BITS = 30  # of what rows are ranked by


# The caller has patterns of its own; searches within searches take most of the time otherwise.
_NO_HEURISTICS: dict[str, object] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_feasibility_jump": False,
    # Few of the cuts that HiGHS finds itself are worth their place among ours.
    "mip_pool_soft_limit": 200,
}


@dataclass(frozen=True, eq=False)
class Cut:
    """The inequality ``sum weights * x[columns] >= side``."""

    columns: Indices
    weights: Floats
    side: float

    def key(self) -> bytes:
        """The same for the same inequality."""
        shares = np.round(self.weights / (self.side or 1.0), 9)
        # Inequalities can be long and many, so a digest stands for each.
        return blake2b(self.columns.tobytes() + shares.tobytes(), digest_size=16).digest()

    def lacks(self, x: Floats) -> float:
        """By how much a point violates it."""
        return self.side - dot(self.weights, x[self.columns])


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The optimum of the linear program: no x in 0 to 1 that satisfies the rows costs less than ``bound``.

    ``steps`` says how many questions took as long, by the rows that were new.
    """

    x: Floats
    bound: float
    reduced: Floats
    steps: int


@dataclass(frozen=True, eq=False)
class Searched:
    """The outcome of a search among whole x: the best found, and what none is below."""

    x: Floats | None
    bound: float
    steps: int
    finished: bool


class CuttingProgram:
    """A covering program with its rows so far. Columns can be fixed at 0 or 1 for good."""

    def __init__(self, cost: Floats) -> None:
        self.cost = np.asarray(cost, dtype=np.float64)
        self.cuts: list[Cut] = []
        self._seen: set[bytes] = set()
        self._idle: list[Cut] = []
        self._kept: list[Cut] = []
        self.low, self.high = np.zeros(self.cost.size), np.ones(self.cost.size)
        self._stack: tuple[Any, Floats] | None = None
        self._age = np.zeros(0, dtype=np.int64)
        self._luck = np.random.default_rng(0)
        self._wider = _LOWER * (1.0 + self._luck.random(self.cost.size))
        self._points = self._program(single_optimum(self.cost), dual_feasibility_tolerance=FINE)
        self._prices = self._program(self.cost, primal_feasibility_tolerance=FINE)
        self._fresh = 0

    def _program(self, cost: Floats, **options: object) -> Program:
        none, empty = np.zeros(0), sparse.csr_array((0, self.cost.size))
        ends = self.low, self.high
        return Program(empty, (none, none), ends, cost, None, **(SIMPLEX | options))

    def __len__(self) -> int:
        return len(self.cuts)

    @property
    def entries(self) -> int:
        """How many weights of all rows stand at columns that are still open."""
        open_columns = self.low < self.high
        return sum(int(open_columns[cut.columns].sum()) for cut in (*self.cuts, *self._idle))

    def work(self, programs: int) -> int:
        """How many questions of a usual size take as long as a number of programs."""
        weights = sum(cut.columns.size for cut in self.cuts)
        return 1 + programs * (1 + weights // _HEAVY)

    def add(self, cuts: Sequence[Cut]) -> int:
        """Add rows that are new; gives how many were."""
        fresh = []
        for cut in cuts:
            key = cut.key()
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(cut)
        self._append(fresh)
        return len(fresh)

    def keep(self, cuts: Sequence[Cut]) -> None:
        """Keep rows that are new for later: each takes part from when an optimum violates it."""
        for cut in cuts:
            key = cut.key()
            if key not in self._seen:
                self._seen.add(key)
                self._kept.append(cut)

    def fix(self, at_zero: Mask, at_one: Mask) -> None:
        """Close columns for good: at 0, or at 1."""
        self.low, self.high = np.where(at_one, 1.0, self.low), np.where(at_zero, 0.0, self.high)

    def relax(self) -> Relaxed | None:
        """Solve the linear program; None where no x satisfies all rows within the fixed columns."""
        self._recall()
        self._points.bound(self.low, self.high)
        wider = np.where(self.low < self.high, self._wider, 0.0)
        self._prices.bound(self.low - wider, self.high + wider)
        while True:
            if not self._points.finds():
                return None
            x = cleared(np.clip(self._points.point, 0.0, 1.0), _BITS)
            late = lacking(self._idle, x) > 1e-6
            again = [c for c, violated in zip(self._idle, late, strict=True) if violated]
            self._idle = [c for c, violated in zip(self._idle, late, strict=True) if not violated]
            again += self._violated(x)
            if not again:
                break
            self._append(again)
        y = np.zeros(len(self.cuts))
        if self._prices.finds():
            y = np.maximum(self._prices.prices, 0.0)
            y = cleared(y, _DUAL_BITS, float(y.max(initial=1.0)))
        reduced, bound = self._proven(y)
        self._grow_old(y)
        steps, self._fresh = 1 + self._fresh // _ROWS, 0
        return Relaxed(x, bound, reduced, steps)

    def search(self, nodes: int, below: float = np.inf, *, high: Floats | None = None) -> Searched:
        """Search among whole x that cost less than ``below``, within a number of nodes.

        ``high`` may close further columns for this time; the bound is then one for such x.
        """
        every = [*self.cuts, *self._idle]
        low, high = self.low, self.high if high is None else high
        free = np.flatnonzero(low < high)
        matrix, side = stacked(every, self.cost.size)
        side = side - sparse_product(matrix, low)
        base = dot(self.cost, low)
        part = matrix[:, free].tocsr()
        least = np.asarray(part.minimum(0.0).sum(axis=1)).ravel()
        needed = np.flatnonzero(side > least + 1e-9)
        part, side = part[needed], side[needed]
        program = part, side, self.cost[free]
        steps = (part.shape[0] + free.size) // _SIZE
        ended = finished_search(*program, nodes, below - base)
        if ended is None:
            return Searched(None, -np.inf, steps + nodes * _NODE, False)
        best, price = ended
        if best is None:
            return Searched(None, np.inf, steps, True)
        x = low.copy()
        x[free] = best
        # Without the kept rows the bound is lower, and the next search knows those that x violates.
        self._append(self._violated(x))
        return Searched(x, floored(base + price - 1e-7 * (1 + abs(price))), steps, True)

    def _append(self, cuts: Sequence[Cut]) -> None:
        if not cuts:
            return
        matrix, side = stacked(cuts, self.cost.size)
        lower = side - _LOWER * (1.0 + self._luck.random(side.size))
        self._points.add_rows(matrix, side)
        self._prices.add_rows(matrix, lower)
        self._fresh += len(cuts)
        self.cuts.extend(cuts)
        self._stack = None
        self._age = np.append(self._age, np.zeros(len(cuts), dtype=np.int64))

    def _violated(self, x: Floats) -> list[Cut]:
        """Take those of the kept rows out that a point violates most, for how long they are."""
        lack = lacking(self._kept, x)
        if not bool((lack > 1e-6).any()):
            return []
        size = np.array(
            [float(np.sqrt(dot(cut.weights, cut.weights))) or 1.0 for cut in self._kept]
        )
        worst = np.argsort(-cleared(lack / size, _RANK_BITS), kind="stable")
        out = set(worst[lack[worst] > 1e-6][:_AT_ONCE].tolist())
        violated = [self._kept[number] for number in sorted(out)]
        self._kept = [cut for number, cut in enumerate(self._kept) if number not in out]
        return violated

    def _recall(self) -> None:
        """Set aside rows that have been slack for long; they are looked at again after each optimum."""
        old = np.flatnonzero(self._age > _OLD)
        if old.size <= len(self.cuts) // 4:
            return
        mask = np.zeros(len(self.cuts), dtype=np.bool_)
        mask[old] = True
        for program in (self._points, self._prices):
            program.drop_rows(old)
        self._idle.extend(c for c, gone in zip(self.cuts, mask, strict=True) if gone)
        self.cuts = [c for c, gone in zip(self.cuts, mask, strict=True) if not gone]
        self._age = self._age[~mask]
        self._stack = None

    def _grow_old(self, y: Floats) -> None:
        self._age = np.where(y > 1e-9, 0, self._age + 1)

    def _proven(self, y: Floats) -> tuple[Floats, float]:
        """Reduced costs and the bound that follows from multipliers that are 0 or more."""
        if self._stack is None:
            matrix, side = stacked(self.cuts, self.cost.size)
            self._stack = matrix.T.tocsr(), side
        turned, side = self._stack
        mixed = sparse_product(turned, y)
        reduced = self.cost - mixed
        low, high = self._points.low, self._points.high
        by_column = np.where(reduced > 0, reduced * low, reduced * high)
        bound = dot(y, side) + float(by_column.sum())
        scale = dot(y, np.abs(side)) + float(np.abs(by_column).sum() + np.abs(mixed).sum())
        return reduced, floored(bound - 1e-12 * (1.0 + scale))


def finished_search(
    matrix: Sparse, side: Floats, cost: Floats, nodes: int, below: float = np.inf
) -> tuple[Floats | None, float] | None:
    """The cheapest x of 0 and 1 with ``matrix @ x >= side`` that costs less than ``below``, with its cost.

    None where HiGHS does not finish within these nodes. With small irregular costs an optimum is the only one.
    """
    irregular, limit = cost, below
    if bool((cost == np.rint(cost)).all()):
        # All together are less than 1/2, so that the best with them is one of the best without. Other costs
        # have no ties.
        chance = 1.0 + np.random.default_rng(cost.size).random(cost.size)
        irregular = cost + chance / (4.0 * cost.size)
        limit = np.ceil(below - 1e-6) - 0.5
    program = Program(
        matrix,
        (side, np.full(side.size, np.inf)),
        (np.zeros(cost.size), np.ones(cost.size)),
        irregular,
        np.arange(cost.size),
        mip_rel_gap=0.0,
        mip_abs_gap=0.0,
        mip_max_nodes=nodes,
        **_NO_HEURISTICS,
    )
    if np.isfinite(below):
        program.set(objective_bound=limit)
    ended = program.run()
    if ended in ("infeasible", "bound"):
        return None, np.inf
    if ended != "optimal":
        return None
    x = np.round(program.point)
    least = dot(cost, x)
    return x if least + 1e-9 * (1.0 + least) < below else None, least


def lacking(cuts: Sequence[Cut], x: Floats) -> Floats:
    """By how much a point violates each of many inequalities."""
    matrix, side = stacked(cuts, x.size)
    return np.asarray(side - sparse_product(matrix, x))


def stacked(cuts: Sequence[Cut], width: int) -> tuple[Any, Floats]:
    """Inequalities as a sparse matrix and their sides."""
    sizes = [c.columns.size for c in cuts]
    indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    columns = np.concatenate([c.columns for c in cuts]) if cuts else np.zeros(0, dtype=np.intp)
    weights = np.concatenate([c.weights for c in cuts]) if cuts else np.zeros(0)
    matrix = sparse.csr_array((weights, columns, indptr), shape=(len(cuts), width))
    return matrix, np.array([c.side for c in cuts], dtype=np.float64)
