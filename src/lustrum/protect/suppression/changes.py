"""What changed against the pattern of the last period, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lustrum.model.arrays import Ints, Mask
from lustrum.protect.suppression.check import audit_pattern
from lustrum.protect.suppression.problem import SuppressionProblem

_LARGE = 50_000  # with more cells the old pattern is not audited: linear programs take too long


@dataclass(frozen=True)
class ChangedCell:
    """A cell that is suppressed now and was not before, or was suppressed and is published again."""

    cell: int
    change: Literal["added", "published again"]
    why: str


@dataclass(frozen=True, eq=False)
class PatternChanges:
    """All cells that changed, and the sensitive cells that the pattern of the last period leaves open.

    ``open_before`` is None where the old pattern was not audited, because the table is very large.
    """

    cells: tuple[ChangedCell, ...]
    open_before: Ints | None

    def __repr__(self) -> str:
        return f"PatternChanges({len(self.cells)} cells)"


def explain_changes(
    problem: SuppressionProblem,
    suppressed: Mask,
    previous: Mask,
    *,
    among: Mask | None = None,
    workers: int | None = None,
) -> PatternChanges:
    """Say why each changed cell changed; the old pattern is audited on the present numbers.

    With ``among`` only these cells are reported, such as those that are published.

    >>> problem = SuppressionProblem.of([4, 6, 9, 19], [(3, [0, 1, 2])], primary=[0], upper=[2])
    >>> before, now = np.array([0, 0, 1, 1], bool), np.array([1, 1, 0, 0], bool)
    >>> found = explain_changes(problem, now, before)
    >>> [(c.cell, c.change) for c in found.cells]
    [(0, 'added'), (1, 'added'), (2, 'published again'), (3, 'published again')]
    >>> found.cells[0].why
    'It is sensitive now.'
    """
    open_before, held = None, False
    if problem.values.size <= _LARGE:
        old = (previous & ~problem.frozen) | problem.fixed
        audit = audit_pattern(problem, old, workers=workers)
        open_before = np.unique(np.array([cell for cell, _ in audit.short], dtype=np.int64))
        held = audit.safe
    helps = "It protects a sensitive cell that the old pattern leaves open."
    if held:
        helps = "It costs less than cells that were suppressed before."
    elif open_before is None:
        helps = "It protects a sensitive cell."
    changed_cells: list[ChangedCell] = []
    changed = (suppressed != previous) & (True if among is None else among)
    for cell in np.flatnonzero(changed).tolist():
        if not suppressed[cell]:
            why = (
                "It must be published now."
                if problem.frozen[cell]
                else "All sensitive cells are protected without it."
            )
            changed_cells.append(ChangedCell(cell, "published again", why))
            continue
        why = helps
        if problem.primary[cell]:
            why = "It is sensitive now."
        elif problem.never[cell]:
            why = "It must not be published."
        changed_cells.append(ChangedCell(cell, "added", why))
    return PatternChanges(tuple(changed_cells), open_before)
