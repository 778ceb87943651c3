"""The cheapest pattern, with proof: branch and cut after Fischetti and Salazar (2000).

A covering program decides which cells to suppress and knows few of its inequalities at first. Attacks on its
fractional optimum give more, until nothing is violated or the bound hardly moves; then a search among whole
patterns takes over, whose result is attacked again. Every pattern met on the way is completed to a safe
one. The lower bound and the best safe pattern hold at any stop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lustrum.model.arrays import Floats, Mask
from lustrum.numeric.solve.cutting import Cut, CuttingProgram, Relaxed, stacked
from lustrum.numeric.solve.products import sparse_product
from lustrum.protect.suppression.result import is_least
from lustrum.protect.suppression.search.attacks.attack import Attacks
from lustrum.protect.suppression.search.attacks.cuts import (
    companion_cuts,
    outside_cut,
    protection_cut,
)
from lustrum.protect.suppression.search.heuristic import WitnessedPattern, protect_all
from lustrum.protect.suppression.search.start import FirstPattern
from lustrum.runtime.stop import keeping_best

Tell = Callable[[str, float, float], object]

_VIOLATED = 1e-3
_STALLED = 6  # rounds in which the bound hardly moves before the search begins
_LITTLE = 1e-3  # a rise of the bound by less than this share of the gap is hardly any
_NODES = 3000  # of one search
_FEW_COLUMNS = 200  # for searches that look for a good pattern only
_SHARE_ROOT = 0.35  # of the work, where other patterns can be looked for after the root
_IN_VAIN_ROOT = (
    2  # patterns near points of the root that are no cheaper, where others are looked for later
)
_IN_VAIN_ANEW = 400  # patterns made anew from the best one that are no cheaper
_SHARE_ANEW = 0.9  # of the work that is left after the root
_LEARNT = 200  # inequalities learnt from one clean-up
_OFTEN = 4  # rounds between two completions of the fractional point
_AT_LEAST = 4  # rounds of the root, so that something is proven however little work is allowed
_FEW_TASKS = 40  # protection levels with which a search among whole patterns ends soon
_WIDE = 0.1  # a gap after the root that a search among whole patterns hardly closes
_TOO_WIDE = 0.15  # one that it does not close
_SMALL = 20_000  # weights in a program that is searched in a moment, however wide the gap
_DENSE = 50_000  # weights in a program that whole patterns take long to search, however few attacks there are
_NODE = 10  # steps that a node of a search takes, roughly
_HEAVY = 100_000  # weights in a program with which a node takes twice as long
_NODES_AT_LEAST = 20  # of one search, however little work is left


@dataclass(frozen=True, eq=False)
class ProvenPattern:
    """The best safe pattern found, and the cost that no safe pattern is below."""

    state: WitnessedPattern
    cost: float
    lower_bound: float
    finished: bool
    steps: int


class BranchAndCut:
    """The search for one problem, from a safe pattern."""

    def __init__(
        self,
        attacks: Attacks,
        start: WitnessedPattern,
        work: int,
        tell: Tell,
        first: FirstPattern | None = None,
    ) -> None:
        # Gives safe patterns near fractional points and from other patterns, and learns inequalities meanwhile;
        # without it the cheapest way for each cell in turn does.
        self.first = first
        self.attacks, self.problem = attacks, attacks.tasks.problem
        self.best = start
        self.cost = self.problem.total_cost(start.suppressed)
        self.work, self.tell = work, tell
        self.choice = np.flatnonzero(self.problem.choice)
        self.column = np.full(self.problem.values.size, -1, dtype=np.int64)
        self.column[self.choice] = np.arange(self.choice.size)
        self.program = CuttingProgram(self.problem.cost[self.choice])
        self.bound = 0.0
        self.steps = 0
        self._begin = attacks.steps
        prices = self.problem.cost[self.choice]
        self._whole = bool((prices == np.rint(prices)).all())
        count = len(attacks.tasks)
        self._quiet = np.zeros(count, dtype=np.int64)
        self.rounds = self.completed = 0
        self.last: Floats | None = None  # the last fractional optimum
        self.needs: list[Cut] = []
        self._taken_in = 0
        self._take_in()

    @property
    def spent(self) -> int:
        return self.steps + self.attacks.steps - self._begin

    @property
    def done(self) -> bool:
        """Whether the best pattern is proven to be the cheapest."""
        least = float(np.ceil(self.bound - 1e-6)) if self._whole else self.bound
        return is_least(self.cost, least)

    def _say(self, what: str) -> None:
        """Tell what goes on; if nobody wants to wait any longer, no work is left."""
        if self.tell(what, self.cost, self.bound):
            self.work = min(self.work, self.spent)

    def run(self) -> ProvenPattern:
        """Search until the best pattern is proven, the work is used up, or somebody takes the best so far."""
        with keeping_best():
            self._run()
        if not self.done and self.first is None:
            self._clean(self.best)
            self.cost = self.problem.total_cost(self.best.suppressed)
        bound = np.ceil(self.bound - 1e-6) if self._whole else self.bound
        return ProvenPattern(
            self.best, self.cost, min(float(bound), self.cost), self.done, self.spent
        )

    def _run(self) -> None:
        if self.done or not self.choice.size:
            return
        self._root()
        self._search(self.spent + (self.work - self.spent) // 2, _SMALL)
        self._anew()
        if self.first is None or not self._is_wide(_TOO_WIDE):
            self._search(self.work)

    def _root(self) -> None:
        """Cut off fractional optima while that raises the bound."""
        stalled = 0
        # Where patterns can be made anew from the best one, part of the work is left for that.
        work = self.work if self.first is None else int(_SHARE_ROOT * self.work)
        in_vain, most = 0, np.inf if self.first is None else _IN_VAIN_ROOT
        self.program.add(self._cuts(self._point(np.zeros(self.choice.size)), every=True))
        while not self.done:
            before = self.bound
            relaxed = self._relax()
            if relaxed is None or (self.spent >= work and self.rounds >= _AT_LEAST):
                return
            x = self._point(relaxed.x)
            # A pattern near the point takes as much work as the first one, so not beyond the limit.
            often = self.rounds % _OFTEN == _OFTEN - 1 and in_vain < most
            if often and (self.first is None or self.spent < work):
                cost = self.cost
                self._complete(x)
                in_vain = 0 if self.cost < cost else in_vain + 1
            self._fix(relaxed)
            self.rounds += 1
            cuts = self._cuts(x, every=False)
            nothing_new = not self.program.add(cuts)
            if nothing_new:
                nothing_new = not self.program.add(self._cuts(x, every=True))
            stalled = stalled + 1 if self.bound - before < _LITTLE * (self.cost - before) else 0
            if nothing_new or stalled >= _STALLED:
                if self.first is None:
                    self._complete(x)
                return

    def _relax(self) -> Relaxed | None:
        self.steps += 1
        relaxed = self.program.relax()
        if relaxed is None:
            # Nothing cheaper than the best pattern is left.
            self.bound = self.cost
            return None
        self.bound = max(self.bound, relaxed.bound)
        self.last = relaxed.x
        self._say("cut")
        return relaxed

    def _point(self, x: Floats) -> Floats:
        point = self.problem.fixed.astype(np.float64)
        point[self.choice] = x
        return point

    def _cuts(self, x: Floats, *, every: bool) -> list[Cut]:
        """Inequalities that a fractional point violates, by attacks on the tasks that failed lately."""
        picks = np.flatnonzero((self._quiet <= self.rounds) | every)
        share, reasons = self.attacks.reasons(picks, x)
        calm = picks[share >= 1.0 - 1e-4]
        self._quiet[calm] = self.rounds + 3
        self._quiet[picks[share < 1.0 - 1e-4]] = 0
        inside = x[self.choice]
        cuts = []
        for reason in reasons:
            cut = protection_cut(self.attacks.tasks, reason, self.column)
            if cut is not None and cut.lacks(inside) > _VIOLATED:
                cuts.append(cut)
        self.needs.extend(cuts)
        if self.problem.unions is None:
            cuts.extend(companion_cuts(self.problem, x, self.column))
        return cuts

    def _complete(self, x: Floats) -> None:
        """A safe pattern near a fractional point: what the point suppresses in part is cheap."""
        self.completed += 1
        state = None if self.first is None else self.first.near(x)
        if state is not None:
            self._take_in()
            self._offer(state)
            return
        cost = self.problem.cost * (1.0 - 0.999 * x)
        self.attacks.forget_prices()
        state = WitnessedPattern(self.attacks, self.problem.fixed)
        order = np.arange(len(self.attacks.tasks))
        protect_all(state, cost, order)
        self._clean(state)
        self._offer(state)

    def _take_in(self) -> None:
        """Add the inequalities that were learnt elsewhere since the last time; they count cells by number."""
        fresh = [] if self.first is None else self.first.needs.cuts[self._taken_in :]
        self._taken_in += len(fresh)
        cuts = [replace(c, columns=self.column[c.columns].astype(np.intp)) for c in fresh]
        self.needs.extend(cuts)
        self.program.keep(cuts)

    def _anew(self) -> None:
        """Patterns made anew from the best one where the gap is wide, while cheaper ones turn up."""
        if self.first is None or not self._is_wide(_WIDE, few=0):
            return
        if not self.completed and self.last is not None and self.spent < self.work:
            # The root had no work left for this, and no other step gets as far from the first pattern.
            self._complete(self._point(self.last))
        end = self.spent + int(_SHARE_ANEW * (self.work - self.spent))
        in_vain = 0
        while self.spent < end and in_vain < _IN_VAIN_ANEW and not self.done:
            cost = self.cost
            point = None if self.last is None else self._point(self.last)
            state = self.first.anew.pattern(self.best.suppressed, point)
            if state is None:
                break
            self._take_in()
            self._offer(state)
            in_vain = 0 if self.cost < cost else in_vain + 1

    def _is_wide(self, share: float, few: int = _FEW_COLUMNS) -> bool:
        """Whether the gap is more than a share of the cost, too much for a search among whole patterns.

        With few columns to choose from it is not.
        """
        free = int((self.program.low < self.program.high).sum())
        many = len(self.attacks.tasks) > _FEW_TASKS or self.program.entries > _DENSE
        wide = self.cost - self.bound > share * self.cost
        return not self.done and free > few and wide and many

    def separate(self, x: Floats) -> int:
        """Add inequalities that a fractional point violates; gives how many are new."""
        self.rounds += 1
        return self.program.add(self._cuts(self._point(x), every=False))

    def _clean(self, state: WitnessedPattern) -> None:
        """Publish again what is not needed; known inequalities tell for most cells that they are."""
        cost, limit = self.problem.cost, len(self.needs)
        extra = np.flatnonzero(state.suppressed & ~self.problem.fixed)
        matrix, side = stacked(self.needs, self.choice.size)
        left = sparse_product(matrix, state.suppressed[self.choice].astype(np.float64)) - side
        columns = matrix.tocsc()
        for cell in extra[np.argsort(-cost[extra], kind="stable")].tolist():
            column = int(self.column[cell])
            span = slice(columns.indptr[column], columns.indptr[column + 1])
            rows, weights = columns.indices[span], columns.data[span]
            if bool((left[rows] < weights - 1e-6).any()):
                continue
            task = state.without(np.array([cell]))
            if task is None:
                left[rows] -= weights
            elif len(self.needs) < limit + _LEARNT:
                self._learn(state, cell, task)

    def _learn(self, state: WitnessedPattern, cell: int, task: int) -> None:
        """A cell that cannot be published again gives an inequality that good patterns nearly violate."""
        x = state.suppressed.astype(np.float64)
        x[cell] = 0.0
        _, reasons = self.attacks.reasons(np.array([task]), x)
        for reason in reasons:
            cut = protection_cut(self.attacks.tasks, reason, self.column)
            if cut is not None and cut.lacks(x[self.choice]) > _VIOLATED:
                self.needs.append(cut)
                self.program.add([cut])

    def _offer(self, state: WitnessedPattern) -> None:
        cost = self.problem.total_cost(state.suppressed)
        if cost < self.cost:
            self.best, self.cost = state, cost
            self._say("pattern")

    def _fix(self, relaxed: Relaxed) -> None:
        """Columns whose reduced cost exceeds the gap are settled."""
        # By how much columns can raise the bound before no cheaper pattern is left.
        room = self.cost - relaxed.bound - (1.0 - 1e-6 if self._whole else 0.0) + 1e-7
        none = relaxed.reduced > room
        full = -relaxed.reduced > room
        self.program.fix(none & (self.program.low == 0), full & (self.program.high == 1))

    def _search(self, end: int, most: float = np.inf) -> None:
        """Search among whole patterns and attack what is found, first among few columns, then among all.

        With ``most`` only as long as the program holds no more weights than this on columns to choose from.
        """
        near = True
        while not self.done and self.spent < end and self.program.entries <= most:
            relaxed = self._relax()
            if relaxed is None:
                return
            self._fix(relaxed)
            mine = self.best.suppressed[self.choice]
            closed = self._distant(relaxed, mine) if near else None
            high = None if closed is None else np.where(closed, self.program.low, self.program.high)
            node = _NODE * (1 + self.program.entries // _HEAVY)
            nodes = min(_NODES, max((end - self.spent) // node, _NODES_AT_LEAST))
            solution = self.program.search(nodes, self.cost, high=high)
            self.steps += self.program.work(solution.steps)
            if closed is None:
                self.bound = max(self.bound, min(solution.bound, self.cost))
            self._say("search")
            if solution.x is None or not self._judge(solution.x):
                if closed is None:
                    return
                near = False

    def _distant(self, relaxed: Relaxed, mine: Mask) -> Mask | None:
        """The columns that the linear program likes least, and the best pattern does not use."""
        free = np.flatnonzero(self.program.low < self.program.high)
        if free.size <= _FEW_COLUMNS:
            return None
        limit = np.sort(relaxed.reduced[free])[_FEW_COLUMNS]
        return np.asarray((relaxed.reduced > limit) & ~mine & (relaxed.x < 1e-3))

    def _judge(self, columns: Floats) -> bool:
        """Attack a whole pattern: add what it violates, or take it; gives whether it violated anything."""
        x = self._point(columns)
        pattern = x > 0.5
        state = WitnessedPattern(self.attacks, pattern)
        failed = state.look(np.arange(len(self.attacks.tasks)))
        if failed.size:
            if not self.program.add(self._cuts(x, every=True)):
                self.program.add([outside_cut(self.column, pattern)])
            protect_all(state, self.problem.cost, np.arange(len(self.attacks.tasks)))
        self._clean(state)
        self._offer(state)
        return bool(failed.size)
