"""Patterns of tables with hierarchies, sub-table by sub-table from the top down.

What a sub-table suppresses is primary in the sub-tables that share it, with the level that the cells above need
of it. What a higher sub-table publishes stays published where that is possible; otherwise the sub-tables above
are protected again (de Wolf 2002). Levels that are kept in every sub-table need not be kept in the
table as a whole, so the result is only a start for attacks on the whole table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lustrum.model.arrays import Ints, Mask
from lustrum.protect.suppression.decomposition.subtables import SubTable
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.search.attacks.attack import attacks_on
from lustrum.protect.suppression.search.attacks.cuts import InfeasibleError
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.heuristic import WitnessedPattern
from lustrum.protect.suppression.search.parts import cut_out

Solve = Callable[[SuppressionProblem], Mask]
"""Gives a safe pattern of a small problem, or raises InfeasibleError."""


class _TopDown:
    def __init__(
        self, problem: SuppressionProblem, subtables: list[SubTable], solve: Solve
    ) -> None:
        self.problem, self.subtables, self.solve = problem, subtables, solve
        self.suppressed = problem.fixed.copy()
        self.upper, self.lower = problem.upper.copy(), problem.lower.copy()
        self.decided = np.zeros(problem.values.size, dtype=np.bool_)
        self.of_cell: list[list[int]] = [[] for _ in range(problem.values.size)]
        for number, sub in enumerate(subtables):
            for cell in sub.cells.tolist():
                self.of_cell[cell].append(number)

    def run(self) -> Mask:
        waiting = set(range(len(self.subtables)))
        while waiting:
            number = min(waiting)
            waiting.remove(number)
            changed = self._protect(self.subtables[number])
            self.decided[self.subtables[number].cells] = True
            for cell in changed.tolist():
                waiting.update(k for k in self.of_cell[cell] if k != number)
        return self.suppressed

    def _protect(self, sub: SubTable) -> Ints:
        """Protect one sub-table; gives the cells about which others must know more than before."""
        marks = self.suppressed[sub.cells]
        if not bool((marks & (self.upper + self.lower > 0)[sub.cells]).any()):
            return np.zeros(0, dtype=np.int64)
        problem = self.problem
        decided = problem.frozen | (self.decided & ~self.suppressed)
        given_levels = problem.upper, problem.lower, problem.primary
        carried = self.upper, self.lower, self.suppressed & ~problem.never
        for levels, frozen in (
            (carried, decided),
            (carried, problem.frozen),
            (given_levels, problem.frozen),
        ):
            asked = self._asked(sub, levels, frozen)
            try:
                pattern = self.solve(asked)
            except InfeasibleError:
                if levels is given_levels:
                    raise
                continue
            return self._take(sub, asked, pattern)
        raise AssertionError

    def _asked(
        self, sub: SubTable, levels: tuple[Ints, Ints, Mask], frozen: Mask
    ) -> SuppressionProblem:
        sub_problem = cut_out(self.problem, sub.cells, sub.rows)
        upper, lower, primary = levels
        return replace(
            sub_problem,
            upper=upper[sub.cells],
            lower=lower[sub.cells],
            primary=primary[sub.cells],
            never=(self.suppressed & ~primary)[sub.cells],
            frozen=frozen[sub.cells],
        )

    def _take(self, sub: SubTable, asked: SuppressionProblem, pattern: Mask) -> Ints:
        """Suppress what the sub-table needs, with the levels that its cells need of each other."""
        before = self.suppressed.copy(), self.upper.copy(), self.lower.copy()
        self.suppressed[sub.cells[pattern]] = True
        attacks = attacks_on(Tasks.of(asked))
        state = WitnessedPattern(attacks, pattern)
        state.look(np.arange(len(attacks.tasks)))
        need = np.zeros(pattern.size, dtype=np.int64)
        for level, moved in zip(attacks.tasks.level.tolist(), state.witness, strict=True):
            if moved is not None:
                need[moved] = np.maximum(need[moved], level)
        need[~pattern] = 0
        for level, room in (
            (self.upper, self.problem.room_up),
            (self.lower, self.problem.room_down),
        ):
            level[sub.cells] = np.maximum(level[sub.cells], np.minimum(need, room[sub.cells]))
        changed = (
            (before[0] != self.suppressed) | (before[1] < self.upper) | (before[2] < self.lower)
        )
        return np.flatnonzero(changed)


def protect_top_down(problem: SuppressionProblem, subtables: list[SubTable], solve: Solve) -> Mask:
    """A pattern in which every sub-table is protected by itself; raises where a cell cannot be protected."""
    return _TopDown(problem, subtables, solve).run()
