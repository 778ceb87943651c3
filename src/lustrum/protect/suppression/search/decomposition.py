"""Tables with hierarchies, protected sub-table by sub-table from the top down.

A sub-table has along each axis one total and its parts, so it has no hierarchies. In two dimensions it is a
network, for which the cheapest pattern is found quickly. Every relation of the table is in at least one of
them. What a sub-table suppresses is primary in the sub-tables that share it, with the level that the cells
above need of it. What a higher sub-table publishes stays published where that is possible; otherwise the sub-
tables above are protected again (de Wolf 2002). Levels that are kept in every sub-table need not be kept in
the table as a whole, so the result is only a start for attacks on the whole table, which suppress more cells
where needed and publish those that are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from lustrum.model.arrays import Ints, Mask
from lustrum.protect.suppression.problem import AxisSums, SuppressionProblem
from lustrum.protect.suppression.search.attacks.attack import Attacks, attacks_on
from lustrum.protect.suppression.search.attacks.cuts import InfeasibleError
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.greedy import Publisher, witnessed
from lustrum.protect.suppression.search.heuristic import WitnessedPattern, clean_up, protect_all
from lustrum.protect.suppression.search.parts import cut_out


@dataclass(frozen=True, eq=False)
class SubTable:
    """Some cells with all relations among them; ``depth`` counts the steps down from the totals of all axes."""

    cells: Ints
    rows: Ints
    depth: int


def subtables_of(problem: SuppressionProblem) -> list[SubTable] | None:
    """The sub-tables from the top down; None where there is only one, or where the cells are no table."""
    if problem.axes is None or all(len(axis.sums) < 2 for axis in problem.axes):
        return None
    shape = tuple(axis.size for axis in problem.axes)
    number = np.arange(problem.values.size).reshape(shape)
    lengths = np.diff(problem.relations.indptr)
    by_cell = problem.relations.tocsc()
    subtables = []
    for groups in product(*(_groups(axis) for axis in problem.axes)):
        cells = np.sort(number[np.ix_(*(members for members, _ in groups))].ravel())
        inside = np.concatenate(
            [by_cell.indices[by_cell.indptr[c] : by_cell.indptr[c + 1]] for c in cells.tolist()]
        )
        rows, count = np.unique(inside, return_counts=True)
        rows = rows[count == lengths[rows]]
        if rows.size:
            subtables.append(SubTable(cells, rows, sum(depth for _, depth in groups)))
    return sorted(subtables, key=lambda sub: sub.depth)


def _groups(axis: AxisSums) -> list[tuple[Ints, int]]:
    """The totals of an axis with their parts and how deep they are; categories without a sum stand alone."""
    parents: dict[int, list[int]] = {}
    for total, parts in axis.sums:
        for part in parts:
            parents.setdefault(part, []).append(total)

    def depth(category: int) -> int:
        return max((1 + depth(total) for total in parents.get(category, ())), default=0)

    groups = [(np.array([total, *parts]), depth(total)) for total, parts in axis.sums]
    held = {category for members, _ in groups for category in members.tolist()}
    return groups + [(np.array([c]), 0) for c in range(axis.size) if c not in held]


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


Tell = Callable[[str, float, float], object]

_DIMENSIONS = 1600  # of a basis that is written down


def repaired(attacks: Attacks, suppressed: Mask, tell: Tell) -> WitnessedPattern:
    """Attack the whole table, suppress more where a level is not kept, then publish what is not needed."""
    problem = attacks.tasks.problem
    state = WitnessedPattern(attacks, suppressed)
    every = np.arange(len(attacks.tasks))
    short = state.look(every)
    protect_all(state, problem.cost, short)
    tell("repaired", problem.total_cost(state.suppressed), 0.0)
    cells = np.flatnonzero(state.suppressed & ~problem.frozen)
    publisher = Publisher.of(attacks.tasks, cells, _DIMENSIONS)
    published = None if publisher is None else publisher.first()
    if publisher is None or published is None:
        clean_up(state, problem.cost)
        return state
    attacks.steps += publisher.steps
    candidate = witnessed(attacks, publisher, published)
    if problem.total_cost(candidate.suppressed) < problem.total_cost(state.suppressed):
        return candidate
    return state
