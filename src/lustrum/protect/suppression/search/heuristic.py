"""A safe pattern quickly: the cheapest way to protect each cell in turn, then a clean-up.

Every task keeps a witness, the cells that move in a deviation that fulfils it; as long as these are
suppressed the task needs no further look. A cell that no witness needs is published again, and one that some
witness needs is tried, the most expensive first.
"""

from __future__ import annotations

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.protect.suppression.search.attacks.attack import Attacks
from lustrum.protect.suppression.search.attacks.cuts import InfeasibleError
from lustrum.protect.suppression.search.attacks.tasks import SharedMoves

_ENOUGH = 1.0 - 1e-6


class WitnessedPattern:
    """A pattern, and for each task the cells that show that it is fulfilled."""

    def __init__(self, attacks: Attacks, suppressed: Mask) -> None:
        self.attacks = attacks
        self.suppressed = suppressed.copy()
        count = len(attacks.tasks)
        self.witness: list[Ints | None] = [None] * count
        self.users: dict[int, set[int]] = {}
        self._shared: SharedMoves | None = None

    @classmethod
    def of(cls, attacks: Attacks, suppressed: Mask, witness: list[Ints]) -> WitnessedPattern:
        pattern = cls(attacks, suppressed)
        for task, cells in enumerate(witness):
            pattern.fulfil(task, cells)
        return pattern

    def copy(self) -> WitnessedPattern:
        """The same, to go on apart."""
        twin = WitnessedPattern(self.attacks, self.suppressed)
        twin.witness = list(self.witness)
        twin.users = {cell: set(tasks) for cell, tasks in self.users.items()}
        return twin

    def fulfil(self, task: int, cells: Ints) -> None:
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

    def share(self) -> None:
        """Let the deviations of the last look stand for other tasks that they fulfil too."""
        for cells, moves in self.attacks.moves:
            if self._shared is None:
                self._shared = SharedMoves(self.attacks.tasks)
            for task in np.flatnonzero(self._shared.fulfilled(cells, moves)).tolist():
                if self.witness[task] is None:
                    self.fulfil(task, cells)

    def without(self, cells: Ints) -> int | None:
        """Publish cells again if all tasks can do without; otherwise gives a task that cannot."""
        picked = [int(c) for c in cells]
        hurt = sorted(set().union(*(self.users.get(c, set()) for c in picked)))
        self.suppressed[cells] = False
        old_witnesses = [(t, self.witness[t]) for t in hurt]
        for done, task in enumerate(hurt):
            share, moved = self.attacks.reach(np.array([task]), self.suppressed)
            if share[0] < _ENOUGH:
                self.suppressed[cells] = True
                for other, cells_of in old_witnesses[:done]:
                    assert cells_of is not None
                    self.fulfil(other, cells_of)
                return task
            self.fulfil(task, moved[0])
        return None


def protect_all(
    state: WitnessedPattern, cost: Floats, order: Ints, allowed: Mask | None = None
) -> None:
    """Fulfil the tasks in order, each at the least further cost; raises where one cannot be fulfilled."""
    tasks = state.attacks.tasks
    if allowed is None:
        allowed = ~tasks.problem.frozen
    for task in order.tolist():
        if state.witness[task] is not None:
            continue
        if not state.look(np.array([task])).size:
            state.share()
            continue
        price = np.where(state.suppressed, 0.0, np.maximum(cost, 1e-9))
        cells = state.attacks.cheapest(task, price, allowed)
        if cells is not None:
            state.suppressed[cells] = True
        if cells is None or state.look(np.array([task])).size:
            # Both ends of an interval together may do what one end cannot; a clean-up follows.
            state.suppressed |= allowed
            if state.look(np.array([task])).size:
                raise InfeasibleError(task, np.zeros(0, dtype=np.int64))


def clean_up(state: WitnessedPattern, cost: Floats, among: Mask | None = None) -> None:
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


def improve(state: WitnessedPattern, cost: Floats, work: int) -> WitnessedPattern:
    """Forbid one secondary cell after the other and protect anew what needed it, while that makes it cheaper.

    The most expensive cells come first. A cell that was forbidden in vain stays out of the way until some
    change succeeds (tabu). Work counts attacks.
    """
    attacks = state.attacks
    problem = attacks.tasks.problem
    end = attacks.steps + work
    best, least = state, problem.total_cost(state.suppressed)
    tabu: set[int] = set()
    while attacks.steps < end:
        extra = np.flatnonzero(best.suppressed & ~problem.fixed)
        extra = extra[np.argsort(-cost[extra], kind="stable")]
        cell = next((int(c) for c in extra if int(c) not in tabu), None)
        if cell is None:
            return best
        tabu.add(cell)
        other = _without_cell(best, cost, cell)
        if other is None:
            continue
        price = problem.total_cost(other.suppressed)
        if price < least - 1e-9:
            best, least = other, price
            tabu = {cell}
    return best


def _without_cell(state: WitnessedPattern, cost: Floats, cell: int) -> WitnessedPattern | None:
    """A pattern without one cell, or None where nothing else can take its place."""
    twin = state.copy()
    problem = state.attacks.tasks.problem
    hurt = np.array(sorted(twin.users.get(cell, set())), dtype=np.int64)
    near = problem.fixed.copy()
    for task in hurt.tolist():
        witness = twin.witness[task]
        if witness is not None:
            near[witness] = True
        twin.forget(task)
    twin.suppressed[cell] = False
    before = twin.suppressed.copy()
    allowed = ~problem.frozen
    allowed[cell] = False
    try:
        protect_all(twin, cost, hurt, allowed)
    except InfeasibleError:
        return None
    clean_up(twin, cost, near | (twin.suppressed & ~before))
    return twin
