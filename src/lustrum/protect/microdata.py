"""What methods for records share: combinations of codes, a canonical order, and unaffected cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import Table
from lustrum.model.arrays import Ints, Mask
from lustrum.model.records import Records
from lustrum.model.variable import TOTAL_CODE
from lustrum.numeric.structure import UNBOUNDED

_FITS = 2**62
_DENSE = 8  # values up to this many times the number of records are counted instead of sorted


def combined(records: Records, variables: Sequence[str]) -> Ints:
    """One number per record for its combination of codes; equal combinations have equal numbers."""
    out = np.zeros(len(records), dtype=np.int64)
    span = 1
    for name in variables:
        size = len(records.dataset.variable(name).codes)
        if span * size >= _FITS:
            out = numbered(out)
            span = int(out.max(initial=0)) + 1
        out = out * size + records.codes[name]
        span *= size
    return numbered(out)


def numbered(values: Ints) -> Ints:
    """The same values as 0, 1, 2, ... in ascending order, without gaps."""
    if not values.size:
        return values.astype(np.int64)
    span = int(values.max()) + 1
    if span > _DENSE * values.size + 1024:
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    present = np.zeros(span, dtype=np.bool_)
    present[values] = True
    rank: Ints = np.cumsum(present, dtype=np.int64) - 1
    return rank[values]


def canonical_order(records: Records) -> Ints:
    """The records sorted by secret key, or by record id without keys, or as given without either."""
    id_column = records.dataset.record_id
    if records.keys is not None:
        by: npt.NDArray[Any] = records.keys
    elif id_column is not None and id_column in records.ids:
        by = records.ids[id_column]
    else:
        return np.arange(len(records), dtype=np.int64)
    return np.argsort(by, kind="stable").astype(np.int64)


def variables_of(table: Table) -> frozenset[str]:
    """The variables along the axes and in the filters of a table.

    A table without a query counts as a table without filters.
    """
    query = table.provenance.get("query", {})
    return frozenset(axis.name for axis in table.axes) | frozenset(query.get("where", {}))


def exact_cells(table: Table, moved: Mapping[str, str | None]) -> Mask:
    """Which cells hold true values although the codes of some variables were changed.

    ``moved`` maps each changed variable to the level within whose categories its codes were changed, or to
    None. A cell is exact if every changed variable is summed over, or shown at that level.
    """
    query = table.provenance.get("query", {})
    if set(query.get("where", {})) & set(moved):
        return np.zeros(table.shape, dtype=np.bool_)
    asked = {a["variable"]: a for a in query.get("by", ()) if isinstance(a, Mapping)}
    mask = np.ones((), dtype=np.bool_)
    for axis in table.axes:
        whole = np.ones(len(axis), dtype=np.bool_)
        if axis.name in moved:
            level = moved[axis.name]
            at_level = level is not None and asked.get(axis.name, {}).get("level") == level
            # A filter may name codes that are finer than the level.
            if not at_level or "codes" in asked[axis.name]:
                whole = np.array([code == TOTAL_CODE for code in axis.codes], dtype=np.bool_)
        mask = mask[..., None] & whole
    return np.asarray(mask)


def anything(table: Table, exact: Mask) -> tuple[Ints, Ints]:
    """Bounds that always hold: the value where it is exact, otherwise the range of all such values."""
    least = 0 if table.kind == "count" else -UNBOUNDED
    return np.where(exact, table.values, least), np.where(exact, table.values, UNBOUNDED)
