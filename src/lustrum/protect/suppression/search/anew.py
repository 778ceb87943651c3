"""Cheaper patterns from the best one, by publishing part of it anew.

There are two ways. Around a cell: some cheap cells near it may be suppressed too, and what the pattern
suppresses near it may be published; all else stays. From the whole: part of what was published is taken back,
wherever it is, and published anew. The first suits tables in which a pattern consists of many small ones, the
second those in which one deviation moves nearly all suppressed cells, so that a few more cells change nothing.
Each way gets work for what it gained. The chance in both is drawn from a fixed seed.
"""

from __future__ import annotations

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.arithmetic import exp, log, normal_draws
from lustrum.numeric.solve.products import sparse_product
from lustrum.protect.suppression.search.attacks.attack import Attacks
from lustrum.protect.suppression.search.attacks.cuts import Needs
from lustrum.protect.suppression.search.attacks.joint import Pool
from lustrum.protect.suppression.search.greedy import (
    PublishedPattern,
    Publisher,
    most_dimensions,
    spread_out,
    witnessed,
)
from lustrum.protect.suppression.search.heuristic import WitnessedPattern

_AROUND = 60  # cheap cells around a cell
_ANEW = 80  # cells of the pattern near it that may be published; the others stay as they are
_FAR = 2  # relations between that cell and these
_CHANCE = 0.5  # standard deviation of the logarithm of how near a cell is
_UNLIKELY = 0.05  # what a cell counts for that a fractional point publishes; a suppressed one counts for 1 more
_WORSE = 0.005  # by which share of the best, on average, a pattern may cost more to be gone on from
_STALE = 80  # patterns around cells without a cheaper one, after which the search goes on elsewhere
_ENDS = 4  # good patterns that are mixed
_BACK = (0.3, 0.97)  # which share of what was published is taken back
_IN_VAIN = (
    40  # patterns from the whole that are no cheaper than the last, after which one is made afresh
)
_UNCHANGED = 8  # patterns around cells that are the same as before, after which there are no others
_TRIED = 0.1  # of the work, at least, goes into the way that gained less


class FreshPatterns:
    """One pattern after the other; ``whole`` made one from all cells, where that is quick enough."""

    def __init__(
        self, attacks: Attacks, needs: Needs, whole: tuple[Publisher, PublishedPattern] | None
    ) -> None:
        self.attacks, self.needs, self.whole = attacks, needs, whole
        self.luck = np.random.default_rng(0)
        self._start: Mask | None = None
        self._here: Mask | None = None
        self._mixed = False  # whether it is made of two
        # The best pattern since the search began where it is, and those of earlier beginnings.
        self._end: tuple[float, Mask] = np.inf, np.zeros(0, dtype=np.bool_)
        self._ends: list[tuple[float, Mask]] = []
        self._pool: Pool | None = None  # witnesses of the pattern here, over all cells
        self._least = np.inf
        self._stale = self._unchanged = self._in_vain = 0
        self._turns = [0, 0]
        self._spent = [0, 0]
        self._gained = [0.0, 0.0]

    def pattern(self, best: Mask, x: Floats | None = None) -> WitnessedPattern | None:
        """The next safe pattern, given the best one so far; None where there is nothing to choose.

        What a fractional point suppresses is more likely to be suppressed, every other time.
        """
        problem = self.attacks.tasks.problem
        if not (best & problem.choice).any() or not (problem.choice & ~best).any():
            return None
        cost = problem.total_cost(best)
        if self._start is None or cost < self._least:
            self._begin(best)
        if self._start is None:
            self._start = best.copy()
        self._least = min(self._least, cost)
        way = self._way()
        self._turns[way] += 1
        point = x if self._turns[way] % 2 else None
        before, least = self.attacks.steps, self._least
        if way:
            afresh = self._in_vain >= _IN_VAIN and x is not None
            pattern: WitnessedPattern | None = self._from_whole(
                x if afresh else point, afresh=afresh
            )
        else:
            assert self._here is not None
            pattern = self._around(self._here, point)
        self._spent[way] += self.attacks.steps - before
        self._gained[way] += least - self._least
        return pattern

    def _way(self) -> int:
        """Around a cell (0) or from the whole (1): the one that gained more for its work, but both at times."""
        if self.whole is None or self._unchanged >= _UNCHANGED:
            return int(self.whole is not None)
        for way in (0, 1):
            if self._spent[way] <= _TRIED * sum(self._spent):
                return way
        rate = [gained / spent for gained, spent in zip(self._gained, self._spent, strict=True)]
        return int(rate[1] > rate[0] or (rate[1] == rate[0] and self._spent[1] < self._spent[0]))

    def _around(self, here: Mask, x: Floats | None) -> WitnessedPattern | None:
        """A pattern that differs from the last one near one of its cells; the first of a mixture anywhere.

        One that costs more is gone on from at times, less often the longer nothing cheaper has turned up.
        """
        problem = self.attacks.tasks.problem
        cells, fixed_cells = np.flatnonzero(here), np.zeros(0, dtype=np.int64)
        if not self._mixed:
            cells, fixed_cells = self._beside(here, x)
        publisher = Publisher.of(self.attacks.tasks, cells, most_dimensions(cells.size), self.needs)
        if publisher is None:
            return None
        publisher.luck = self.luck
        publisher.stay_hidden = np.isin(cells, fixed_cells)
        # What moves cells of the pattern alone moves them here too.
        known = None if self._pool is None else [rows[:, cells] for rows in self._pool]
        published = publisher.first(np.zeros(problem.values.size), known)
        self.attacks.steps += publisher.steps
        if published is None:
            return None
        pattern = publisher.pattern(published)
        self._unchanged = self._unchanged + 1 if bool((pattern == here).all()) else 0
        cost = problem.total_cost(pattern)
        worse = _WORSE * (1.0 - self._stale / _STALE) * self._least
        # Drawn by the exponential distribution.
        allowed = worse * -float(log(1.0 - self.luck.random()))
        if cost <= problem.total_cost(here) + allowed:
            self._here = pattern
            self._pool = [spread_out(rows, cells, problem.values.size) for rows in published.pool]
        self._mixed = False
        given = self._given(pattern, cost, publisher, published)
        self._stale += 1
        if cost < self._end[0]:
            self._end, self._stale = (cost, pattern), 0
        elif self._stale >= _STALE:
            self._begin_elsewhere()
        return given

    def _begin(self, pattern: Mask, *, mixed: bool = False) -> None:
        cost = np.inf if mixed else self.attacks.tasks.problem.total_cost(pattern)
        self._here, self._pool, self._mixed = pattern.copy(), None, mixed
        self._end, self._stale = (cost, self._here), 0

    def _begin_elsewhere(self) -> None:
        """Go on from the first pattern once more, and later from the cells of two good ones together."""
        ends = [*self._ends, self._end]
        different = {end[1].tobytes(): end for end in ends}
        self._ends = sorted(different.values(), key=lambda end: end[0])[:_ENDS]
        if len(self._ends) < 2:
            assert self._start is not None
            self._begin(self._start)
            return
        one, other = self.luck.choice(len(self._ends), 2, replace=False).tolist()
        self._begin(self._ends[one][1] | self._ends[other][1], mixed=True)

    def _beside(self, here: Mask, x: Floats | None) -> tuple[Ints, Ints]:
        """The cells of a pattern and some cheap ones near one of them, and which of the former stay."""
        problem = self.attacks.tasks.problem
        mine = np.flatnonzero(here & problem.choice)
        others = np.flatnonzero(problem.choice & ~here)
        matrix = abs(problem.relations)
        spread = np.zeros(here.size)
        spread[self.luck.choice(mine)] = 1.0
        near = np.zeros(here.size)
        for _ in range(_FAR):
            spread = sparse_product(matrix.T, sparse_product(matrix, spread))
            spread /= spread.sum()
            near += spread
        chance = exp(_CHANCE * normal_draws(self.luck, others.size))
        value = near[others] * chance / np.maximum(problem.cost[others], 1.0)
        if x is not None:
            value *= x[others] + _UNLIKELY
        more = others[np.argsort(-value, kind="stable")[:_AROUND]]
        fixed_cells = mine[np.argsort(-near[mine], kind="stable")[_ANEW:]]
        return np.union1d(np.flatnonzero(here), more), fixed_cells

    def near(self, x: Floats) -> WitnessedPattern:
        """A pattern from the whole in which what a fractional point suppresses in part is cheap."""
        return self._from_whole(x, afresh=True)

    def _from_whole(self, x: Floats | None, *, afresh: bool) -> WitnessedPattern:
        """A pattern by all cells, from part of what the last one of its kind published, or afresh."""
        assert self.whole is not None
        publisher, last = self.whole
        before = publisher.steps
        publisher.luck = self.luck
        publisher.allow_more()
        published = (
            publisher.first(x) if afresh else publisher.again(last, last.cost, back=_BACK, x=x)
        )
        self.attacks.steps += publisher.steps - before
        cheaper = published is not None and published.cost < last.cost
        self._in_vain = 0 if cheaper or afresh else self._in_vain + 1
        if published is None:
            return WitnessedPattern(self.attacks, publisher.pattern(last))
        if afresh or published.cost <= last.cost:
            self.whole = publisher, published
        pattern = publisher.pattern(published)
        cost = self.attacks.tasks.problem.total_cost(pattern)
        if cost < self._least:
            self._begin(pattern)
        return self._given(pattern, cost, publisher, published)

    def _given(
        self, pattern: Mask, cost: float, publisher: Publisher, published: PublishedPattern
    ) -> WitnessedPattern:
        if cost >= self._least:
            return WitnessedPattern(self.attacks, pattern)
        self._least = cost
        return witnessed(self.attacks, publisher, published)
