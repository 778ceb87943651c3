"""Why a cell cannot be protected, and what would help."""

from __future__ import annotations

import numpy as np

from lustrum.model.arrays import Ints
from lustrum.numeric.solve.deviations import DeviationProgram
from lustrum.numeric.solve.products import power_of_two
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.result import Unprotectable
from lustrum.protect.suppression.search.attacks.tasks import Tasks

_A_LITTLE = 1.0 + 2.0**-23  # a cell is moved by hardly more than its level
_NAMED = 5  # cells that a message names


def unprotectable_cells(
    problem: SuppressionProblem, tasks: Tasks, candidates: Ints
) -> tuple[Unprotectable, ...]:
    """The cells of these tasks that stay open even if every cell that is not frozen is suppressed."""
    program = DeviationProgram(problem.relations)
    every = problem.relations.T.tocsr()
    unprotectable: dict[int, Unprotectable] = {}
    free = (~problem.frozen).astype(np.float64)
    for task in candidates.tolist():
        cell, level = int(tasks.cell[task]), float(tasks.level[task])
        if cell in unprotectable:
            continue
        up, down = tasks.rooms(int(tasks.view[task]))
        unit = power_of_two(level)
        low, high = -np.minimum(down / unit, 64.0) * free, np.minimum(up / unit, 64.0) * free
        signs = (int(tasks.sign[task]),) if tasks.sign[task] else (1, -1)
        reach, blocked = 0.0, np.zeros(0, dtype=np.intp)
        for sign in signs:
            room = up[cell] if sign > 0 else down[cell]
            limit = min(_A_LITTLE * level, room) / unit
            end, weights = program.reasons(every, cell, (cell, sign, low, high, max(limit, 1e-9)))
            reach += min(end, limit) * unit
            touched = np.flatnonzero(weights)
            blocked = np.union1d(blocked, touched[problem.frozen[touched]])
            if room < level and end >= limit - 1e-9:
                blocked = np.zeros(0, dtype=np.intp)
        if reach < level * (1.0 - 1e-6):
            unprotectable[cell] = _explained(problem, tasks, task, blocked.astype(np.int64))
    return tuple(unprotectable.values())


def _explained(
    problem: SuppressionProblem, tasks: Tasks, task: int, blocked: Ints
) -> Unprotectable:
    cell, who = int(tasks.cell[task]), tasks.attacker(task)
    name = problem.name(cell)
    names = ", ".join(problem.name(int(c)) for c in blocked[:_NAMED])
    if blocked.size > _NAMED:
        names += f" and {blocked.size - _NAMED} more"
    if blocked.size:
        reason = (
            f"{name} cannot be protected from {who}: it can be worked out too closely from cells that must "
            f"be published ({names})."
        )
        empty = bool((problem.values[blocked] == 0).all())
        allow = "empty cells" if empty else "one of these"
        how = " ('zeros', or --zeros)" if empty else ""
        cure = (
            f"Allow {allow} to be suppressed{how}, or merge the category of the cell with another."
        )
    else:
        reason = (
            f"{name} cannot be protected from {who}: the attacker bounds are closer than its level."
        )
        cure = "Widen the attacker bounds, lower the level, or merge the category of the cell with another."
    return Unprotectable(cell, name, who, tuple(int(c) for c in blocked), reason, cure)
