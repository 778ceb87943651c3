"""Which tasks one deviation fulfils: the one it was found for, and often many of other cells and attackers.

A deviation can be multiplied as far as the bounds of an attacker allow, and so can its opposite. What it then
moves far enough is fulfilled for that attacker, without a program.
"""

from __future__ import annotations

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.protect.suppression.search.attacks.tasks import SLIDING, Tasks

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
