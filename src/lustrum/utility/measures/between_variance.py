"""Differences between areas: how much the variance of a proportion across areas changes.

Perturbation tends to blur areas into each other, or to add differences that are not there. For one
category of a variable, its share in each area is taken, and the variance of these shares over the areas.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.errors import choices
from lustrum.model.parameters import parameter
from lustrum.utility.blocks import axis_position
from lustrum.utility.compare import Better, UtilitySpec, compare
from lustrum.utility.impute import Impute, suppressed_cells


@dataclass(frozen=True)
class BetweenVarianceChange(UtilitySpec):
    """``|ratio - 1|`` with the variance after over that before; from 0 up, lower is better.

    ``area`` is the axis whose categories are compared, ``variable`` and ``category`` what is counted there.
    All other axes are summed over. :func:`between_variance_ratio` gives the ratio itself: below 1
    the areas look more alike than they are, above 1 less.
    """

    name: ClassVar[str] = "between-variance-change"
    range: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    better: ClassVar[Better] = "lower"
    area: str = parameter(MISSING, "The variable whose categories are the areas.")
    variable: str = parameter(MISSING, "The variable whose shares are compared between areas.")
    category: str = parameter(MISSING, "The category of that variable.")
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The change that a release makes to the variance between areas."""
        pair = compare(table, release, self.impute)
        area, variable = (axis_position(table.axes, n) for n in (self.area, self.variable))
        if area == variable:
            raise InputError("The areas and the variable counted in them must be different axes.")
        axis = table.axes[variable]
        codes = [c for c, is_inner in zip(axis.codes, axis.inner, strict=True) if is_inner]
        if self.category not in codes:
            raise InputError(
                f"The axis {self.variable!r} has no inner category {self.category!r}; "
                f"{choices(self.category, codes)}."
            )
        index = codes.index(self.category)
        others = tuple(a for a in range(len(table.axes)) if a != area)
        whole = tuple(x.sum(axis=others) for x in (pair.original, pair.published))
        part = tuple(
            np.take(x, [index], axis=variable).sum(axis=others)
            for x in (pair.original, pair.published)
        )
        return abs(between_variance_ratio(part[0], whole[0], part[1], whole[1]) - 1.0)


def between_variance(part: npt.ArrayLike, whole: npt.ArrayLike) -> float:
    """``sum (p_a - mean p)**2 / (A - 1)`` of the shares ``p_a = part_a / whole_a`` over the ``A`` areas.

    Areas without anybody have no share and are left out.

    >>> between_variance([1, 3, 0], [4, 4, 0])
    0.125
    """
    counted, total = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    if counted.shape != total.shape:
        raise InputError("Parts and wholes must be of the same areas.")
    populated = total > 0
    if np.count_nonzero(populated) < 2:
        raise InputError("A variance between areas needs two areas with somebody in them.")
    return float(np.var(counted[populated] / total[populated], ddof=1))


def between_variance_ratio(
    part: npt.ArrayLike,
    whole: npt.ArrayLike,
    published_part: npt.ArrayLike,
    published_whole: npt.ArrayLike,
) -> float:
    """The variance between areas as published over the true one.

    >>> between_variance_ratio([1, 3], [4, 4], [2, 2], [4, 4])
    0.0
    """
    true = between_variance(part, whole)
    if true == 0:
        raise InputError("The areas do not differ, so there is no variance to compare with.")
    return between_variance(published_part, published_whole) / true
