"""What a reader puts in the place of a suppressed cell, before a release is compared with its table.

A utility measure compares numbers, and a suppressed cell shows none. Which number a reader would take
is an assumption, so it is never made silently: a measure without a rule refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np

from lustrum.model import InputError, Release, TableAxis
from lustrum.model.arrays import Floats, Mask
from lustrum.model.errors import choices
from lustrum.model.parameters import DeclaredSpec, parameter

# The inner cells of a table as one dense block, and where their totals stand.

Grid = tuple[Any, ...]


def inner_grid(axes: Sequence[TableAxis]) -> Grid:
    """An index of the inner cells, which form a block: a cell is inner if it is so on every axis."""
    return np.ix_(*(np.flatnonzero(axis.inner) for axis in axes)) if axes else ()


def total_position(axis: TableAxis) -> int | None:
    """Where the sum of all inner categories of an axis stands, if it is there.

    >>> total_position(TableAxis.plain("sex", ["1", "2"])) is None
    True
    """
    inner = [
        c.member_set for c, is_inner in zip(axis.categories, axis.inner, strict=True) if is_inner
    ]
    union = frozenset[int]().union(*inner)
    if sum(map(len, inner)) != len(union):
        return None
    for position, category in enumerate(axis.categories):
        if not axis.inner[position] and category.member_set == union:
            return position
    return None


def margin_grid(axes: Sequence[TableAxis], summed: Sequence[int]) -> Grid | None:
    """An index of the totals over the given axes, one wide along each of them; None if one has none."""
    picks = []
    for position, axis in enumerate(axes):
        if position not in summed:
            picks.append(np.flatnonzero(axis.inner))
            continue
        total = total_position(axis)
        if total is None:
            return None
        picks.append(np.array([total]))
    return np.ix_(*picks) if picks else ()


def axis_position(axes: Sequence[TableAxis], name: str) -> int:
    names = [axis.name for axis in axes]
    if name not in names:
        raise InputError(f"The table has no axis {name!r}; {choices(name, names)}.")
    return names.index(name)


Rule = Literal["none", "zero", "midpoint", "proportional"]

_ROUNDS = 200


@dataclass(frozen=True)
class Impute(DeclaredSpec):
    """The rule for suppressed inner cells.

    - ``"none"``: there must not be any.
    - ``"zero"``: they count as 0.
    - ``"midpoint"``: the middle of the public bounds that the release states for the cell.
    - ``"proportional"``: what the shown totals leave, after the shown inner cells are taken off, is spread
      over the suppressed cells in proportion to these remainders, by iterative proportional fitting
      from equal values. Totals over whole axes are used, subtotals are not. Where totals contradict
      each other the fit stops after a fixed number of rounds.

    The value that a release may still hold behind a suppressed cell is never looked at.
    """

    group: ClassVar[str] = ""
    what: ClassVar[str] = "Imputation"

    rule: Rule = parameter("none", "What stands in the place of suppressed cells.")

    def fill(self, release: Release, structural: Mask | None = None) -> Floats:
        """The inner block of the release in its stored units, with every suppressed cell filled."""
        grid = inner_grid(release.axes)
        block = release.numbers[grid].astype(np.float64)
        hidden = ~release.shown[grid]
        if not hidden.any():
            return block
        if self.rule == "none":
            raise InputError(
                "The release has suppressed cells; say with 'impute' what stands in their place."
            )
        block[hidden] = 0.0
        if self.rule == "midpoint":
            if release.least is None or release.most is None:
                raise InputError(
                    "The release states no bounds, of which the midpoint of a suppressed cell is taken."
                )
            low, high = release.least[grid], release.most[grid]
            middle = low + (high.astype(np.float64) - low) / 2
            block[hidden] = middle[hidden]
        if self.rule == "proportional":
            free = hidden if structural is None else hidden & ~structural[grid]
            block += spread(block, free, _margins(release))
        return block


def suppressed_cells() -> Any:
    """The parameter of every measure for suppressed cells; without a rule they are refused."""
    return parameter(
        Impute(),
        "What stands in the place of suppressed cells.",
        brief=True,
        read=lambda rule: Impute(rule) if isinstance(rule, str) else rule,  # type: ignore[arg-type]
        write=lambda impute: impute.rule,
    )


def spread(block: Floats, free: Mask, margins: Sequence[tuple[tuple[int, ...], Floats]]) -> Floats:
    """Fill free cells so that the sums over axes are met, as evenly as that allows.

    Each margin names the axes summed over and gives the totals, NaN where unknown. The result is 0
    wherever a cell is not free.

    >>> spread(np.zeros((1, 2)), np.array([[True, True]]), [((1,), np.array([[6.0]]))])
    array([[3., 3.]])
    """
    rest = [(axes, total - block.sum(axis=axes, keepdims=True)) for axes, total in margins]
    covered = np.zeros(block.shape, dtype=np.bool_)
    for _, left in rest:
        covered |= ~np.isnan(left)
    if (free & ~covered).any():
        raise InputError(
            "A suppressed cell stands below no total that is shown, so nothing says what is left for it."
        )
    cells = free.astype(np.float64)
    for _ in range(_ROUNDS):
        before = cells
        for axes, left in rest:
            now = cells.sum(axis=axes, keepdims=True)
            usable = ~np.isnan(left) & (now > 0)
            factor = np.where(usable, np.maximum(left, 0.0) / np.where(usable, now, 1.0), 1.0)
            cells = cells * factor
        if np.allclose(cells, before, rtol=1e-10, atol=1e-12):
            break
    return cells


def _margins(release: Release) -> list[tuple[tuple[int, ...], Floats]]:
    axes: tuple[TableAxis, ...] = release.axes
    margins = []
    for number in range(1, len(axes) + 1):
        for summed in combinations(range(len(axes)), number):
            grid = margin_grid(axes, summed)
            if grid is not None:
                shown = release.shown[grid]
                margins.append((summed, np.where(shown, release.numbers[grid], np.nan)))
    return margins
