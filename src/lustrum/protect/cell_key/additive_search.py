"""The search for an additive table near a perturbed one, by single units, where no program is solved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lustrum.model import TableAxis
from lustrum.model.arrays import Ints
from lustrum.model.table import inner_cells
from lustrum.numeric.compiled import compiled
from lustrum.numeric.structure import Structure
from lustrum.protect.totals.axis_parts import AxisParts


def is_partition(axes: Sequence[TableAxis]) -> bool:
    """Whether every category is a union of inner ones, so that inner cells determine the whole table."""
    return all(p.disjoint and bool(p.whole.all()) for p in map(AxisParts.of, axes))


def inner_places(axes: Sequence[TableAxis], structure: Structure) -> Ints:
    """The published place of each inner cell, in the order of the structure's columns."""
    matrix = structure.matrix
    places = np.flatnonzero(inner_cells(axes).ravel())
    columns = matrix[places].indices
    out = np.empty(structure.inner, dtype=np.int64)
    out[columns] = places
    return out


@compiled
def descend(  # pragma: no cover
    indptr: Any,
    rows: Any,
    inner: Any,
    y: Any,
    weights: Any,
    fixed: Any,
    shift: int,
    heavy: float,
    z: Any,
) -> None:
    """Change inner cells one unit at a time while that helps; ends where no single step does."""
    changed = True
    while changed:
        changed = False
        for j in range(inner.size):
            cell = inner[j]
            if fixed[cell]:
                continue
            for step in (1, -1):
                while True:
                    after = z[cell] + step
                    if after < 0 or abs(after - y[cell]) > shift:
                        break
                    gain = 0.0
                    for k in range(indptr[j], indptr[j + 1]):
                        r = rows[k]
                        old, new = abs(z[r] - y[r]), abs(z[r] + step - y[r])
                        gain += weights[r] * (new - old)
                        gain += heavy * (max(new - shift, 0) - max(old - shift, 0))
                    if gain >= -1e-9:
                        break
                    for k in range(indptr[j], indptr[j + 1]):
                        z[rows[k]] += step
                    changed = True
