"""A table as a population of its own, for methods that protect the finest cells once.

The inner cells of the table stand for the finest cells of a dataset. Totals are then sums of protected cells,
as every answer from a protected population is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.model import Dataset, Release, Table, Variable
from lustrum.model.finest import FinestCells
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.method import released, whole_counts
from lustrum.protect.totals.inner_table import InnerTable


def protects_populations(method: Any) -> bool:
    """Whether a method protects the finest cells of a population, and not a table."""
    return "population" in getattr(method, "stages", ())


def released_population(method: Any, table: Table, rng: np.random.Generator) -> Release:
    """What a method for populations publishes of a table whose inner cells are all there is.

    The release has no channel: what a cell shows depends on the others. Its bounds are those that everybody may
    know of finest cells, added up.
    """
    whole_counts(table, "A protected population")
    inner = InnerTable.of(table.axes, "A protected population")
    counts = inner.counts(table)
    possible = inner.possible(table)
    dataset = Dataset(
        name="table",
        title="table",
        variables=tuple(
            Variable(name, name, codes, codes)
            for name, codes in (
                (name, tuple(str(i) for i in range(size)))
                for name, size in zip(inner.names, inner.shape, strict=True)
            )
        ),
    )
    where = np.nonzero(counts)
    cells = FinestCells(dataset, np.stack(where), counts[where])
    shown = np.zeros(inner.shape, dtype=np.int64)
    protected = method.protect(cells, rng.bytes(32)).cells
    shown[tuple(protected.codes.astype(np.intp))] = protected.counts
    low, high = method.support.bounds(shown)
    if possible is not None:
        # A cell that cannot hold anybody is 0, whatever the search was allowed to show there.
        shown, low, high = (np.where(possible, a, 0) for a in (shown, low, high))
    return released(
        table,
        method,
        inner.added_up(shown),
        low=inner.added_up(low),
        high=np.minimum(inner.added_up(high), UNBOUNDED),
    )
