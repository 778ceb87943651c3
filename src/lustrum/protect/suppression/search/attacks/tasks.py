"""What must be shown about a pattern: one task for each primary cell, direction and attacker.

One deviation often fulfils many tasks, of other cells and attackers. It can be multiplied as far as the bounds
of an attacker allow, and so can its opposite. What it then moves far enough is fulfilled for that attacker,
without a program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.protect.suppression.problem import SuppressionProblem

OUTSIDER = -1
SLIDING = 0  # the sign of a task that asks for the width of an interval


@dataclass(frozen=True, eq=False)
class Tasks:
    """Task i: for attacker ``view[i]``, cell ``cell[i]`` can be ``level[i]`` away in direction ``sign[i]``.

    A task with sign 0 asks that the two ends are a level apart. The tasks of the outsider come first.
    """

    problem: SuppressionProblem
    cell: Ints
    sign: Ints
    level: Ints
    view: Ints

    def __len__(self) -> int:
        return int(self.cell.size)

    @classmethod
    def of(cls, problem: SuppressionProblem) -> Tasks:
        """All tasks of a problem, the largest levels first for each attacker."""
        rows: list[Ints] = []
        for number, view in enumerate((None, *problem.views)):
            targets, lower, upper, sliding = problem.levels_against(view)
            for sign, level in ((1, upper), (-1, lower), (SLIDING, sliding)):
                asked = level
                if sign == SLIDING:
                    asked = np.where(level > upper + lower, level, 0)
                cells = np.flatnonzero(targets & (asked > 0))
                task_rows = np.empty((cells.size, 4), dtype=np.int64)
                task_rows[:, 0], task_rows[:, 1], task_rows[:, 2] = cells, sign, asked[cells]
                task_rows[:, 3] = number - 1
                rows.append(task_rows)
        every = np.concatenate(rows) if rows else np.zeros((0, 4), dtype=np.int64)
        order = np.lexsort((-every[:, 1], every[:, 0], -every[:, 2], every[:, 3]))
        every = every[order]
        return cls(problem, *(np.ascontiguousarray(every[:, k]) for k in range(4)))

    def rooms(self, view: int) -> tuple[Floats, Floats]:
        """By how much every suppressed cell can be higher, and lower, for all that an attacker knows."""
        up, down = self._outside
        if view != OUTSIDER:
            up, down = up.copy(), down.copy()
            known = self.problem.views[view]
            values = self.problem.values[known.cells]
            up[known.cells] = np.minimum(up[known.cells], known.high - values)
            down[known.cells] = np.minimum(down[known.cells], values - known.low)
        return up, down

    @cached_property
    def _outside(self) -> tuple[Floats, Floats]:
        return self.problem.room_up.astype(np.float64), self.problem.room_down.astype(np.float64)

    def by_view(self, picks: Ints) -> list[tuple[int, Ints]]:
        """Some tasks, attacker by attacker."""
        views = self.view[picks]
        return [(int(v), picks[views == v]) for v in np.unique(views)]

    def attacker(self, task: int) -> str:
        """Who attacks, for messages."""
        view = int(self.view[task])
        return "an outsider" if view == OUTSIDER else self.problem.views[view].name


_ENOUGH = 1.0 - 1e-6


class SharedMoves:
    """The tasks of one problem, and by how much each attacker thinks that cells can move."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self._up, self._down = tasks.rooms(-1)
        views = tasks.problem.views
        sizes = [view.cells.size for view in views]
        self._view = np.repeat(np.arange(len(views)), sizes)
        nothing = np.zeros(0, dtype=np.int64)
        self._cell = np.concatenate([nothing, *(view.cells for view in views)])
        values = tasks.problem.values[self._cell]
        high = np.concatenate([nothing, *(view.high for view in views)]) - values
        low = values - np.concatenate([nothing, *(view.low for view in views)])
        self._own_up, self._own_down = high.astype(np.float64), low.astype(np.float64)

    def fulfilled(self, cells: Ints, moves: Floats) -> Mask:
        """Whether each task is fulfilled by a deviation that moves these cells, or by its opposite.

        Tasks that ask for the width of an interval are left to a program of their own.
        """
        if not cells.size:
            return np.zeros(len(self.tasks), dtype=np.bool_)
        moved = np.zeros(self.tasks.problem.values.size)
        moved[cells] = moves
        ahead, back = self._stretches(moved)
        # The outsider, number -1, stands last.
        target_moves = moved[self.tasks.cell] * self.tasks.sign
        reach = np.maximum(
            target_moves * ahead[self.tasks.view], -target_moves * back[self.tasks.view]
        )
        enough = reach >= self.tasks.level * _ENOUGH
        return np.asarray(enough & (self.tasks.sign != SLIDING))

    def _stretches(self, moved: Floats) -> tuple[Floats, Floats]:
        """By how much each attacker, and last the outsider, lets a deviation and its opposite be multiplied."""
        cells = np.flatnonzero(moved)
        least = [
            float((room[cells] / np.abs(moved[cells])).min())
            for room in _ahead_and_back(moved, self._up, self._down)
        ]
        out = np.repeat(np.array(least)[:, None], len(self.tasks.problem.views) + 1, axis=1)
        mine = moved[self._cell]
        used = np.flatnonzero(mine)
        for row, room in zip(out, _ahead_and_back(mine, self._own_up, self._own_down), strict=True):
            np.minimum.at(row, self._view[used], room[used] / np.abs(mine[used]))
        return out[0], out[1]


def _ahead_and_back(moved: Floats, up: Floats, down: Floats) -> tuple[Floats, Floats]:
    """The rooms that a deviation uses, and those that its opposite uses."""
    return np.where(moved > 0, up, down), np.where(moved > 0, down, up)
