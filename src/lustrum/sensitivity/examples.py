"""Small magnitude tables written out by contributor, for examples, tests and teaching."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lustrum.model import Contributions, Table, TableAxis


def table_of(
    cells: Sequence[Sequence[int]],
    ranks: int | None = None,
    weights: Sequence[Sequence[int]] | None = None,
    weight_decimals: int = 0,
) -> Table:
    """A row of cells, each given by its contributions; holdings are numbered within each cell.

    ``ranks`` largest contributions are kept, or all. ``weights`` are whole numbers in units of
    ``10**-weight_decimals``.

    >>> table_of([[59, 40, 1], [61, 20, 19]]).values.tolist()
    [100, 100]
    """
    longest = max((len(c) for c in cells), default=0)
    rank_count = max(longest, 1) if ranks is None else ranks
    value = np.zeros((len(cells), rank_count), dtype=np.int64)
    holding = np.full((len(cells), rank_count), -1, dtype=np.int64)
    weight = np.zeros((len(cells), rank_count))
    totals = np.zeros(len(cells), dtype=np.int64)
    for row, cell in enumerate(cells):
        cell_weights = [1] * len(cell) if weights is None else list(weights[row])
        totals[row] = sum(x * w for x, w in zip(cell, cell_weights, strict=True))
        order = sorted(range(len(cell)), key=lambda i: (-abs(cell[i]), i))[:rank_count]
        for rank, i in enumerate(order):
            value[row, rank], holding[row, rank], weight[row, rank] = cell[i], i, cell_weights[i]
    return Table(
        axes=(TableAxis.plain("cell", [str(i + 1) for i in range(len(cells))]),),
        values=totals,
        kind="magnitude",
        contributors=np.array([len(c) for c in cells], dtype=np.int64),
        contributions=Contributions(
            value, holding, None if weights is None else weight, weight_decimals
        ),
    )
