"""A safe pattern quickly: the cheapest way to protect each cell in turn, then a clean-up.

Every task keeps a witness, the cells that move in a deviation that fulfils it; as long as these are
suppressed the task needs no further look. A cell that no witness needs is published again, and one that some
witness needs is tried, the most expensive first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lustrum.protect.suppression.attacks import Attacks
from lustrum.protect.suppression.cuts import InfeasibleError

__all__ = ["Witnessed", "clean_up", "protect_all"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_ENOUGH = 1.0 - 1e-6


class Witnessed:
    """A pattern, and for each task the cells that show that it is fulfilled."""

    def __init__(self, attacks: Attacks, suppressed: Mask) -> None:
        self.attacks = attacks
        self.suppressed = suppressed.copy()
        count = len(attacks.tasks)
        self.witness: list[Ints | None] = [None] * count
        self.users: dict[int, set[int]] = {}

    def copy(self) -> Witnessed:
        """The same, to go on apart."""
        twin = Witnessed(self.attacks, self.suppressed)
        twin.witness = list(self.witness)
        twin.users = {cell: set(own) for cell, own in self.users.items()}
        return twin

    def fulfil(self, task: int, cells: Ints) -> None:
        """Note the witness of a task."""
        self.forget(task)
        self.witness[task] = cells
        for cell in cells.tolist():
            self.users.setdefault(cell, set()).add(task)

    def forget(self, task: int) -> None:
        """A task has no witness any more."""
        old = self.witness[task]
        if old is not None:
            for cell in old.tolist():
                self.users[cell].discard(task)
        self.witness[task] = None

    @property
    def open(self) -> Ints:
        """The tasks without a witness."""
        return np.array([t for t, w in enumerate(self.witness) if w is None], dtype=np.int64)

    def look(self, tasks: Ints) -> Ints:
        """Attack tasks; gives those that fail."""
        if tasks.size == 0:
            return tasks
        share, moved = self.attacks.reach(tasks, self.suppressed)
        for task, part, cells in zip(tasks.tolist(), share, moved, strict=True):
            if part >= _ENOUGH:
                self.fulfil(task, cells)
        return tasks[share < _ENOUGH]

    def without(self, cells: Ints) -> bool:
        """Publish cells again if all tasks can do without; gives whether that was so."""
        picked = [int(c) for c in cells]
        hurt = sorted(set().union(*(self.users.get(c, set()) for c in picked)))
        self.suppressed[cells] = False
        kept = [(t, self.witness[t]) for t in hurt]
        for done, task in enumerate(hurt):
            share, moved = self.attacks.reach(np.array([task]), self.suppressed)
            if share[0] < _ENOUGH:
                self.suppressed[cells] = True
                for other, cells_of in kept[:done]:
                    assert cells_of is not None
                    self.fulfil(other, cells_of)
                return False
            self.fulfil(task, moved[0])
        return True


def protect_all(
    state: Witnessed,
    cost: Floats,
    order: Ints,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Fulfil the tasks in order, each at the least further cost; raises where one cannot be fulfilled."""
    tasks = state.attacks.tasks
    allowed = ~tasks.problem.frozen
    for task in order.tolist():
        if state.witness[task] is not None:
            continue
        if not state.look(np.array([task])).size:
            continue
        price = np.where(state.suppressed, 0.0, np.maximum(cost, 1e-9))
        cells = state.attacks.cheapest(task, price, allowed)
        if cells is None:
            raise InfeasibleError(task, np.zeros(0, dtype=np.int64))
        state.suppressed[cells] = True
        state.suppressed[tasks.cell[task]] = True
        if state.look(np.array([task])).size and tasks.sign[task] == 0:
            state.fulfil(task, np.append(cells, tasks.cell[task]))


def clean_up(state: Witnessed, cost: Floats, among: Mask | None = None) -> None:
    """Publish again what is not needed, the most expensive first."""
    problem = state.attacks.tasks.problem
    extra = state.suppressed & ~problem.fixed
    if among is not None:
        extra &= among
    cells = np.flatnonzero(extra)
    idle = np.array([not state.users.get(int(c)) for c in cells], dtype=np.bool_)
    state.suppressed[cells[idle]] = False
    cells = cells[~idle]
    for cell in cells[np.argsort(-cost[cells], kind="stable")].tolist():
        state.without(np.array([cell]))
