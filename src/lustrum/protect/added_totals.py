"""Totals as the sums of published inner cells: the table is additive, and totals tell nothing new."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lustrum.model import TableAxis
from lustrum.model.table import inner_cells
from lustrum.protect.safe_totals import Published, _Reach

__all__ = ["added_totals"]

Ints = npt.NDArray[np.int64]


def added_totals(axes: Sequence[TableAxis], values: Ints, low: Ints, high: Ints) -> Published:
    """Replace every total that its inner cells cover by their sum, and its bounds by the sums of theirs.

    A total whose parts are not all in the table keeps the value and the bounds it has.
    """
    inner = inner_cells(axes)
    if inner.all():
        return Published(values, low, high)
    reach = _Reach.of(axes, inner)
    sums = (np.where(reach.covered, reach.added_up(a), a) for a in (values, low, high))
    return Published(*sums)
