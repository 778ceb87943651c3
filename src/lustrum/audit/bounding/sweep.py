"""The questions that a solver answers about one piece of tied cells, and what each answer proves.

Every table that a solver finds counts for all cells: a cell that reaches its bound in one is settled. So a
few questions about random sums come first, each of which reaches many bounds at once; what is still open is
asked cell by cell. The questions are cut into blocks by their number alone, each with a solver of its own,
so the answers do not depend on how many blocks run at a time. Flows answer for a piece that is a network;
see :mod:`lustrum.audit.bounding.network`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lustrum.audit.bounding.lattice_walk import LatticeWalker, stream
from lustrum.audit.bounding.network import BoundNetwork, Flows
from lustrum.audit.knowledge.facts import Knowledge
from lustrum.audit.knowledge.reduce import Piece, as_floats, without_repeats
from lustrum.model.arrays import Floats, Indices, Mask
from lustrum.numeric.solve import Loaded, Optimum, Outcome, Solver, Substituted
from lustrum.numeric.solve.products import sparse_product

_NEAR = 1e-6  # how far a solver's value may be from a whole number
_CLOSE = 5e-7  # how far a real cell may be from a bound that it counts as reaching
_START = 15  # the fixed cost of a question, in steps of the solver
_SINGLE = 20  # the whole cost of a question about one cell, in steps
_FEW = 6  # with fewer open questions than this, random sums do not pay
_WHILE = 0.02  # seconds of flow computation between two looks at the clock
_TRIES = (50_000, 300_000, 300_000, 300_000)  # steps towards a bound, round by round
_BLOCK, _HARD_BLOCK, _MOST_BLOCKS = 128, 16, 4
_ROUND = 64  # programs of a lane before all lanes share what they found


class Impossible(Exception):  # noqa: N818 - caught inside the package, never shown
    """No table fits, or no table of whole numbers."""

    def __init__(self, cell: int, whole: bool) -> None:
        super().__init__(cell, whole)
        self.cell, self.whole = cell, whole


@dataclass(frozen=True)
class Progress:
    """The progress of an audit: bounds settled and asked for, and programs solved."""

    settled: int
    asked: int
    programs: int


class Watch:
    """When to stop, how much is done, and the function that reports it; shared by all workers."""

    def __init__(
        self,
        asked: int,
        stop: Callable[[], bool] | None = None,
        progress: Callable[[Progress], object] | None = None,
    ) -> None:
        self._stop, self._progress = stop, progress
        self._lock = threading.Lock()
        self._halted = False
        self._settled, self._asked = 0, asked
        self.programs = self.searches = self.flows = 0

    def stopped(self) -> bool:
        """Whether somebody stopped the work; solvers also ask in the middle of a program."""
        if not self._halted and self._stop is not None and self._stop():
            self._halted = True
        return self._halted

    def halt(self) -> None:
        """Make all workers stop."""
        self._halted = True

    def tell_left(self, left: int) -> None:
        """Say how many bounds are open in the end: a block does not count those that others reached."""
        self.tell(max(self._asked - left - self._settled, 0))

    def tell(self, settled: int, programs: int = 0, searches: int = 0, flows: int = 0) -> None:
        """Add to what is done and report it, one worker at a time."""
        with self._lock:
            self._settled += settled
            self.programs += programs
            self.searches += searches
            self.flows += flows
            if self._progress is not None:
                done = self.programs + self.searches + self.flows
                self._progress(Progress(self._settled, self._asked, done))


class BoundSweep:
    """The bounds of one piece: proven ones, and those that some table reaches."""

    def __init__(
        self, piece: Piece, known: Knowledge, asked: Indices, solver: Solver | None, watch: Watch
    ) -> None:
        self.piece, self.whole, self.asked = piece, known.whole, asked
        # A solver that the caller names is used; otherwise flows come first.
        self.solver, self.watch, self.flowing = solver or Substituted(), watch, solver is None
        self.flows: Flows | None = None
        self.walker: LatticeWalker | None = None
        self.low, self.high = as_floats(piece.low), as_floats(piece.high)
        # The least and the greatest value in any table found so far, and in any that counts. A bound that
        # a table with fractions reaches cannot be tightened by another linear program.
        self.seen_least = np.full(self.low.size, np.inf)
        self.seen_most = np.full(self.low.size, -np.inf)
        if piece.matrix.shape[0] == 0:
            # No fact is left, so every value between the bounds is possible.
            self.seen_least, self.seen_most = self.low.copy(), self.high.copy()
        self.least = self.seen_least.copy() if self.whole else self.seen_least
        self.most = self.seen_most.copy() if self.whole else self.seen_most
        self.tables = self.whole_tables = 0
        self.loaded: Loaded | None = None
        self.asked_piece: Piece | None = None
        self.last = np.zeros(self.low.size)
        self.block, self.done = np.zeros(0, dtype=np.intp), 0
        self.answered = np.zeros(0, dtype=np.intp)  # questions that a linear program has answered

    @property
    def sharp(self) -> Mask:
        """Which cells reach both their bounds."""
        return np.asarray((self.least <= self.low) & (self.most >= self.high))

    def open(self) -> Indices:
        """The bounds not known to be reached: ``2 * cell``, plus 1 for an upper bound."""
        every = np.sort(np.concatenate([2 * self.asked, 2 * self.asked + 1]))
        return every[~self._reached(every)]

    def random_sums(self) -> None:
        """Optimise random sums of open cells, as long as each reaches more bounds than it costs.

        A network needs none: a flow for each open bound costs less.
        """
        if self.piece.matrix.shape[0] == 0:
            return
        if self.flowing and not self.watch.stopped() and self._flow():
            return
        left = self.open()
        left = left[~self._exhausted(left)]
        luck = np.random.default_rng(0)
        while left.size >= _FEW and not self.watch.stopped():
            before, settled = left.size, self.open().size
            optimum = self._minimised(self._sum(left, luck), False, 0)
            left = left[~self._exhausted(left)]
            self.watch.tell(settled - self.open().size)
            gained = before - left.size
            if optimum.outcome is not Outcome.OPTIMAL or gained * _SINGLE < _START + optimum.steps:
                return

    def _flow(self) -> bool:
        """Whether the piece is a network; then a first flow is found."""
        network = BoundNetwork.of(self.piece)
        if network is None:
            return False
        self.flows = Flows(network, self.low.size)
        if not self.flows.feasible or not self.piece.holds(self.flows.table):
            raise Impossible(int(self.piece.cells[0]), whole=False)
        before = self.open().size
        self._take_flows(self.flows)
        self.watch.tell(before - self.open().size)
        return True

    def _sum(self, questions: Indices, luck: np.random.Generator) -> Floats:
        cell, upper = questions // 2, questions % 2
        weight = np.where(upper == 1, -1.0, 1.0) * luck.integers(1, 8, cell.size)
        cost = np.zeros(self.low.size)
        # A cell with two open bounds takes part with one of them, drawn at random.
        order = luck.permutation(cell.size)
        cost[cell[order]] = weight[order]
        return cost

    def blocks(self, *, hard: bool) -> list[Indices]:
        """The open questions, cut into parts by their number alone."""
        left = self.open()
        if left.size == 0:
            return []
        size = _HARD_BLOCK if hard else _BLOCK
        return np.array_split(left, min(max(left.size // size, 1), _MOST_BLOCKS))

    def answer(self, block: Indices, *, hard: bool) -> BoundSweep:
        """Answer the questions of a block; by integer programming where ``hard`` is set."""
        sweep = self._copy()
        sweep.block, sweep.done = block, 0
        if self.flows is not None and not hard:
            sweep._push(block, self.flows.copy())
            return sweep
        if hard:
            sweep.loaded = None  # linear programs have narrowed the problem in the meantime
            sweep._in_turn(block, whole=True)
            return sweep
        if sweep.loaded is not None:
            sweep.loaded = sweep.loaded.again()
        rest = sweep._nearest_first(block, block.size)
        # No whole table may be known yet for bounds that linear programs cannot narrow further. One more
        # program finds such a table if vertices tend to be whole, and is wasted if they do not.
        sweep._in_turn(rest, whole=False)
        return sweep

    def lanes(self) -> list[BoundSweep]:
        """Copies that answer questions at the same time, as many as the open questions are worth."""
        left = self.narrowable().size
        if self.flows is not None or left == 0:
            return []
        lanes = [self._copy() for _ in range(min(max(left // _BLOCK, 1), _MOST_BLOCKS))]
        for lane in lanes:
            if lane.loaded is not None:
                lane.loaded = lane.loaded.again()
        return lanes

    def narrowable(self) -> Indices:
        """The open questions that a linear program may still answer, and has not been asked."""
        left = self.open()
        left = left[~self._exhausted(left)]
        return np.setdiff1d(left, self.answered)

    def round(self, block: Indices) -> None:
        """Answer some questions of a block, always the one whose bound is nearest to the last vertex."""
        self._nearest_first(block, _ROUND)

    def share(self, lanes: Sequence[BoundSweep]) -> None:
        """Add what all lanes found, and give it to each of them."""
        before = self.open().size
        for lane in lanes:
            self.take(lane)
        for lane in lanes:
            lane.take(self)
        self.watch.tell(before - self.open().size)

    def meet_walker(self) -> None:
        """Where many bounds of whole cells are open, find a table from which to walk towards them."""
        if self.whole and self.open().size >= _FEW and not self.watch.stopped():
            self.walker = LatticeWalker.of(self.piece, self.low, self.high)
            if self.walker is not None:
                self._take_reached(self.walker)

    def seek(self, block: Indices) -> BoundSweep:
        """Walk towards the bounds of a block, in rounds, while enough of them are reached."""
        sweep = self._copy()
        sweep.block, sweep.done = block, int(self._reached(block).sum())
        if self.walker is None:
            return sweep
        walker, luck = self.walker.copy(), stream(int(block[0]) + 1)
        for tries in _TRIES:
            left = block[~sweep._reached(block)]
            for question in left.tolist():
                if self.watch.stopped():
                    return sweep
                if not sweep._reached(np.array([question]))[0]:
                    walker.seek(question, luck, tries)
                    sweep._take_reached(walker)
                    sweep._tell_done()
            if (~sweep._reached(left)).sum() > 0.9 * left.size:
                break
        return sweep

    def _take_reached(self, walker: LatticeWalker) -> None:
        np.minimum(self.least, walker.least, out=self.least)
        np.maximum(self.most, walker.most, out=self.most)

    def take(self, other: BoundSweep) -> None:
        """Add what another sweep proved about the same piece."""
        np.maximum(self.low, other.low, out=self.low)
        np.minimum(self.high, other.high, out=self.high)
        for mine, theirs in ((self.least, other.least), (self.seen_least, other.seen_least)):
            np.minimum(mine, theirs, out=mine)
        for mine, theirs in ((self.most, other.most), (self.seen_most, other.seen_most)):
            np.maximum(mine, theirs, out=mine)
        self.answered = np.union1d(self.answered, other.answered)
        if other.tables > self.tables:
            self.tables, self.whole_tables = other.tables, other.whole_tables

    def _push(self, block: Indices, flows: Flows) -> None:
        """Answer every question by a flow, in batches small enough to check the clock often."""
        position, size = 0, 1
        while position < block.size and not self.watch.stopped():
            start = time.monotonic()
            took = flows.ask(block[position : position + size])
            position += size
            self._take_flows(flows)
            self._tell_done(flows=took)
            size = size * 2 if time.monotonic() - start < _WHILE else max(size // 2, 1)

    def _take_flows(self, flows: Flows) -> None:
        np.maximum(self.low, as_floats(flows.low), out=self.low)
        np.minimum(self.high, as_floats(flows.high), out=self.high)
        for least, most in ((self.least, self.most), (self.seen_least, self.seen_most)):
            np.minimum(least, as_floats(flows.least), out=least)
            np.maximum(most, as_floats(flows.most), out=most)

    def _tell_done(self, flows: int = 0) -> None:
        done = int(self._reached(self.block).sum())
        self.watch.tell(max(done - self.done, 0), flows=flows)
        self.done = max(done, self.done)

    def _copy(self) -> BoundSweep:
        twin = BoundSweep.__new__(BoundSweep)
        twin.__dict__.update(self.__dict__)
        for name in ("low", "high", "seen_least", "seen_most"):
            setattr(twin, name, getattr(self, name).copy())
        twin.least = self.least.copy() if self.whole else twin.seen_least
        twin.most = self.most.copy() if self.whole else twin.seen_most
        return twin

    def _nearest_first(self, block: Indices, most: int) -> Indices:
        """Solve linear programs that can narrow, always for the bound nearest to the last vertex.

        Returns the questions that were not asked.
        """
        asked: list[int] = []
        left = block[~self._exhausted(block) & ~np.isin(block, self.answered)]
        while left.size and len(asked) < most and not self.watch.stopped():
            cell, upper = left // 2, left % 2
            away = np.abs(self.last[cell] - np.where(upper == 1, self.high[cell], self.low[cell]))
            width = self.high[cell] - self.low[cell]
            away /= np.where(np.isfinite(width), np.maximum(width, 1e-9), 1.0)
            question = int(left[np.argmin(away)])
            self._ask(question, whole=False)
            asked.append(question)
            left = left[(left != question) & ~self._exhausted(left)]
        self.answered = np.union1d(self.answered, np.array(asked, dtype=np.intp))
        return np.setdiff1d(block, self.answered)

    def _in_turn(self, block: Indices, *, whole: bool) -> None:
        for question in block.tolist():
            if self.watch.stopped() or (not whole and 2 * self.whole_tables < self.tables):
                return
            if not self._reached(np.array([question]))[0]:
                self._ask(question, whole=whole)

    def _reached(self, questions: Indices) -> Mask:
        cell, upper = questions // 2, questions % 2
        at_low, at_high = self.least[cell] <= self.low[cell], self.most[cell] >= self.high[cell]
        return np.where(upper == 1, at_high, at_low)

    def _exhausted(self, questions: Indices) -> Mask:
        """Which bounds no linear program can tighten further."""
        cell, upper = questions // 2, questions % 2
        at_low = self.seen_least[cell] <= self.low[cell]
        at_high = self.seen_most[cell] >= self.high[cell]
        return np.where(upper == 1, at_high, at_low)

    def _ask(self, question: int, *, whole: bool) -> None:
        """Minimise or maximise one cell."""
        cell, upper = divmod(question, 2)
        sign = -1.0 if upper else 1.0
        cost = np.zeros(self.low.size)
        cost[cell] = sign
        target = sign * float(self.high[cell] if upper else self.low[cell])
        optimum = self._minimised(cost, whole, cell, target if np.isfinite(target) else None)
        if optimum.outcome is Outcome.UNBOUNDED:
            for reached in (self.most, self.seen_most) if upper else (self.least, self.seen_least):
                reached[cell] = -sign * np.inf
        self._narrow(cell, sign, optimum.bound)
        if optimum.outcome is Outcome.OPTIMAL and not self.whole:
            # Real cells cannot be checked exactly: the optimum is reached up to floating-point error.
            if upper:
                self.most[cell] = max(self.most[cell], self.high[cell])
            else:
                self.least[cell] = min(self.least[cell], self.low[cell])
        self._tell_done()

    def _asked(self, cost: Floats, whole: bool, target: float | None) -> Optimum:
        """The answer of a solver, which holds the narrower bounds known by now where that helps."""
        if self.loaded is None:
            self.asked_piece = self.asked_piece or without_repeats(self.piece)
            problem = self.asked_piece.problem
            if whole:
                problem = replace(problem, low=self.low, high=self.high)
            self.loaded = self.solver.load(problem)
        goal, watch = target if whole else None, self.watch
        return self.loaded.minimise(cost, whole=whole, target=goal, stop=watch.stopped)

    def _minimised(
        self, cost: Floats, whole: bool, cell: int, target: float | None = None
    ) -> Optimum:
        """Ask a solver, and remember the table that it found."""
        optimum = self._asked(cost, whole, target)
        if optimum.point is not None and not self._fits(optimum.point):
            # An equation was left out that does not follow from the others after all.
            self.asked_piece, self.loaded = self.piece, None
            optimum = self._asked(cost, whole, target)
        self.watch.tell(0, programs=int(not whole), searches=int(whole))
        if optimum.outcome is Outcome.INFEASIBLE:
            raise Impossible(int(self.piece.cells[cell]), whole)
        if optimum.point is not None:
            self._meet(optimum.point)
        return optimum

    def _fits(self, point: Floats) -> bool:
        """Whether a solver's table nearly satisfies all facts, including those left out of its model."""
        if self.asked_piece is self.piece:
            return True
        matrix = self.piece.matrix
        sums, size = sparse_product(matrix, point), sparse_product(abs(matrix), np.abs(point))
        slack = 1e-4 * (1.0 + 1e-3 * size)
        ends = as_floats(self.piece.fact_low), as_floats(self.piece.fact_high)
        return bool(((ends[0] - slack <= sums) & (sums <= ends[1] + slack)).all())

    def _narrow(self, cell: int, sign: float, proven: float) -> None:
        if not np.isfinite(proven):
            return
        if self.whole:
            proven = float(np.ceil(proven - _NEAR))
        if sign > 0:
            self.low[cell] = max(self.low[cell], proven)
        else:
            self.high[cell] = min(self.high[cell], -proven)

    def _meet(self, point: Floats) -> None:
        """Record the bounds that a table reaches."""
        self.last = point
        self.tables += 1
        if not self.whole:
            near = np.where(np.abs(point - self.low) <= _close(self.low), self.low, point)
            near = np.where(np.abs(point - self.high) <= _close(self.high), self.high, near)
            self._note(near, near)
            return
        slack = _NEAR * (1.0 + np.abs(point))
        self._note(np.ceil(point - slack), np.floor(point + slack))
        near = np.round(point)
        if bool((np.abs(point - near) <= slack).all()) and self.piece.holds(near.astype(np.int64)):
            self.whole_tables += 1
            np.minimum(self.least, near, out=self.least)
            np.maximum(self.most, near, out=self.most)

    def _note(self, least: Floats, most: Floats) -> None:
        np.minimum(self.seen_least, least, out=self.seen_least)
        np.maximum(self.seen_most, most, out=self.seen_most)


def _close(bound: Floats) -> Floats:
    return np.where(np.isfinite(bound), _CLOSE + 1e-13 * np.abs(bound), 0.0)
