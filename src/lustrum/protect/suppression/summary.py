"""A pattern in figures: how many cells of each level of the hierarchy are suppressed, and what that costs.

These figures come from true values and are confidential.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.model import Table, TableAxis
from lustrum.model.arrays import Ints
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
