"""A pattern in figures, and what changed against the pattern of the last period, and why.

These figures come from true values and are confidential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lustrum.model import Table, TableAxis
from lustrum.model.arrays import Ints, Mask
from lustrum.protect.suppression.check import audit_pattern
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.result import Pattern


@dataclass(frozen=True)
class LevelCounts:
    """The cells of one combination of levels: how many, and how many of them are suppressed.

    ``suppressed_share`` is the share of the value of these cells that is suppressed.
    """

    levels: tuple[str, ...]
    cells: int
    primary: int
    secondary: int
    suppressed_share: float


def axis_levels(axis: TableAxis) -> tuple[Ints, tuple[str, ...]]:
    """For each category the number of levels below it, and the names of the levels.

    >>> from lustrum.model import Category
    >>> sets = {"a": (0,), "b": (1,), "c": (2,), "ab": (0, 1), "_T": (0, 1, 2)}
    >>> axis = TableAxis("x", "x", tuple(Category(k, k, m) for k, m in sets.items()))
    >>> axis_levels(axis)[0].tolist(), axis_levels(axis)[1]
    ([0, 0, 0, 1, 2], ('codes', 'subtotals', 'total'))
    """
    sets = [category.member_set for category in axis.categories]
    height = np.zeros(len(sets), dtype=np.int64)
    for i in sorted(range(len(sets)), key=lambda i: len(sets[i])):
        inside = [height[j] for j in range(len(sets)) if sets[j] < sets[i]]
        height[i] = 1 + max(inside) if inside else 0
    top = int(height.max(initial=0))
    whole = frozenset().union(*sets) if sets else frozenset()
    ends_in_total = top > 0 and any(s == whole for s in sets)
    # The total is above all subtotals, however few levels lie below it.
    for i, members in enumerate(sets):
        if ends_in_total and members == whole:
            height[i] = top
    middle = top - 1 if ends_in_total else top
    names = ["codes"]
    names += ["subtotals"] if middle == 1 else [f"subtotals {k}" for k in range(1, middle + 1)]
    return height, tuple([*names, "total"] if ends_in_total else names)


def level_counts(table: Table, pattern: Pattern) -> tuple[LevelCounts, ...]:
    """The counts of every combination of levels that the table has, the finest cells first."""
    levels = [axis_levels(axis) for axis in table.axes]
    shape = tuple(len(names) for _, names in levels)
    level_index = np.zeros(table.shape, dtype=np.int64)
    for axis, ((height, _), size) in enumerate(zip(levels, shape, strict=True)):
        spread = [1] * len(shape)
        spread[axis] = height.size
        level_index = level_index * size + height.reshape(spread)
    flat, value = level_index.ravel(), np.abs(table.values).ravel().astype(np.float64)
    out = []
    for number in np.unique(flat).tolist():
        inside = flat == number
        at = np.unravel_index(number, shape)
        total = float(value[inside].sum())
        hidden = float(value[inside & pattern.suppressed].sum())
        out.append(
            LevelCounts(
                tuple(
                    f"{axis.name} {names[int(i)]}"
                    for axis, (_, names), i in zip(table.axes, levels, at, strict=True)
                ),
                int(inside.sum()),
                int((inside & pattern.primary).sum()),
                int((inside & pattern.secondary).sum()),
                hidden / total if total else 0.0,
            )
        )
    return tuple(out)


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
