"""What must be shown about a pattern: one task for each primary cell, direction and attacker."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Floats, Ints
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
        rows: list[npt.NDArray[np.int64]] = []
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
