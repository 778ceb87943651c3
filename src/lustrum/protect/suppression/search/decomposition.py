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

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.protect.suppression.problem import AxisSums, SuppressionProblem
from lustrum.protect.suppression.search.attacks.attack import Attacks, attacks_on
from lustrum.protect.suppression.search.attacks.cuts import InfeasibleError
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.exact import BranchAndCut
from lustrum.protect.suppression.search.greedy import Publisher, witnessed
from lustrum.protect.suppression.search.heuristic import WitnessedPattern, clean_up, protect_all
from lustrum.protect.suppression.search.parts import cut_out
from lustrum.runtime.stop import keeping_best


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


# What no safe pattern costs less than, without a search among patterns.
#
# In each relation others must carry what a primary cell needs (:func:`simple_bound`). And a pattern that
# protects the whole table protects every part too, where fewer relations are known: the optimum of the linear
# program of a part is a lower bound. What its multipliers do not use of a cell's cost is left for the other
# parts that hold the cell, and the bounds of all parts add up (:func:`bound_by_parts`).


_ROUNDS = 30  # of cuts for one part
_LITTLE = 1e-3  # a rise of the bound by less than this share is hardly any
_STALLED = 3  # rounds with hardly any rise


def bound_by_parts(problem: SuppressionProblem, parts: Iterable[SubTable]) -> tuple[float, int]:
    """What no safe pattern costs less than, and the steps that took."""
    left, total, steps = problem.cost.copy(), 0.0, 0
    with keeping_best():  # the bounds of some parts are a bound too
        for part in parts:
            asked = problem.primary & (problem.upper + problem.lower + problem.sliding > 0)
            if not bool(asked[part.cells].any()):
                continue
            sub_problem = cut_out(problem, part.cells, part.rows).with_cost(left[part.cells])
            # Where sums of cells are judged, a secondary cell may be of use without a companion.
            attacks = attacks_on(Tasks.of(replace(sub_problem, unions=problem.unions)))
            bound, rest = _part_bound(attacks)
            left[part.cells] = rest
            total += bound
            steps += attacks.steps
    return total, steps


def _part_bound(attacks: Attacks) -> tuple[float, Floats]:
    """The bound of one part, and which costs it leaves to others."""
    problem = attacks.tasks.problem
    search = BranchAndCut(attacks, WitnessedPattern(attacks, ~problem.frozen), 0, _nothing)
    if not search.choice.size or not search.separate(np.zeros(search.choice.size)):
        return 0.0, problem.cost
    bound, rest = 0.0, problem.cost.copy()
    stalled = 0
    for _ in range(_ROUNDS):
        relaxed = search.program.relax()
        if relaxed is None:
            break
        if relaxed.bound > bound:
            stalled = 0 if relaxed.bound - bound > _LITTLE * relaxed.bound else stalled + 1
            bound = relaxed.bound
            # A multiplier of the end x <= 1 uses the cost of its cell up, and no more than that.
            rest[search.choice] = np.clip(relaxed.reduced, 0.0, problem.cost[search.choice])
        else:
            stalled += 1
        if stalled >= _STALLED or not search.separate(relaxed.x):
            break
    return bound, rest


def _nothing(what: str, cost: float, bound: float) -> None:
    """Nobody is told about parts."""


def simple_bound(problem: SuppressionProblem) -> float:
    """A lower bound without any attack: in each relation others must carry what a primary cell needs.

    What the cells suppressed in any case carry is taken off the level. Different relations may be met by the
    same cell, so what a relation takes of a cell's cost is no longer there for the next (dual ascent). A
    secondary cell needs a companion itself in relations without a primary cell; in a second ascent it takes
    over what the cheapest companion costs.
    """
    rows = [_needs(problem, row) for row in _rows_of(problem, problem.primary)]
    needs = [need for row_needs in rows for need in row_needs]
    plain = _ascent(needs, problem.cost.copy())
    if problem.unions is not None:
        return plain
    return max(plain, _ascent(needs, _with_companions(problem, needs)))


def _rows_of(problem: SuppressionProblem, cells: Mask) -> Ints:
    return np.flatnonzero(abs(problem.relations) @ cells.astype(np.int64))


def _needs(problem: SuppressionProblem, row: int) -> list[tuple[Ints, Floats]]:
    """For the primary cells of one relation: cells of which enough must be suppressed, and their weights."""
    matrix = problem.relations
    span = slice(matrix.indptr[row], matrix.indptr[row + 1])
    cells, weights = matrix.indices[span], matrix.data[span]
    out = []
    for index in np.flatnonzero(problem.primary[cells]).tolist():
        cell = cells[index]
        times = -weights / weights[index]
        best: tuple[float, Ints, Floats] | None = None
        for sign, level in ((1, int(problem.upper[cell])), (-1, int(problem.lower[cell]))):
            rises = sign * times > 0
            room = np.where(rises, problem.room_up[cells], problem.room_down[cells])
            carried = np.abs(times) * room
            carried[index] = 0.0
            side = level - float(carried[problem.fixed[cells]].sum())
            useful = problem.choice[cells] & (carried > 0)
            if side <= 0 or not bool(useful.any()):
                continue
            if best is None or side > best[0]:
                best = side, cells[useful], np.minimum(carried[useful] / side, 1.0)
        if best is not None:
            out.append((best[1], best[2]))
    return out


def _ascent(needs: list[tuple[Ints, Floats]], left: Floats) -> float:
    total = 0.0
    for cells, weights in needs:
        least = float((left[cells] / weights).min())
        if least > 0:
            left[cells] -= least * weights
            total += least
    # What rounding may have added is taken off.
    return max(total * (1.0 - 1e-9), 0.0)


def _with_companions(problem: SuppressionProblem, needs: list[tuple[Ints, Floats]]) -> Floats:
    """Costs in which useful cells carry the cost of a companion in each relation without a primary cell."""
    matrix, left = problem.relations, problem.cost.copy()
    useful = np.zeros(left.size, dtype=np.bool_)
    for cells, _ in needs:
        useful[cells] = True
    free = (abs(matrix) @ problem.fixed.astype(np.int64) == 0) & (
        abs(matrix) @ useful.astype(np.int64) == 1
    )
    for row in np.flatnonzero(free).tolist():
        cells = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        cells = cells[problem.choice[cells]]
        others = cells[~useful[cells]]
        if others.size:
            least = float(left[others].min())
            left[others] -= least
            left[cells[useful[cells]]] += least
    return left
