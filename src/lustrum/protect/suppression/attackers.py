"""Attackers that are contributors themselves, from the contributions to each cell.

A sole contributor knows its cell, and one that is alone in several cells (a multi-singleton) knows all of
them. A coalition knows what its members know together.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from lustrum.model import Contributions, InputError, Table
from lustrum.model.arrays import Ints
from lustrum.protect.suppression.problem import ContributorView
from lustrum.sensitivity import Background, Rule
from lustrum.sensitivity.background import NOTHING


def singleton_views(
    values: npt.ArrayLike, singletons: npt.ArrayLike, holdings: npt.ArrayLike | None = None
) -> tuple[ContributorView, ...]:
    """One attacker for each cell with a sole contributor, or for each holding that is one.

    ``holdings`` names the sole contributor of each cell (-1 for none); cells of one holding are known together.

    >>> [v.cells.tolist() for v in singleton_views([4, 7, 9], [True, False, True])]
    [[0], [2]]
    >>> [v.cells.tolist() for v in singleton_views([4, 7, 9], [True, False, True], [5, -1, 5])]
    [[0, 2]]
    """
    value = np.asarray(values, dtype=np.int64).ravel()
    cells = np.flatnonzero(np.asarray(singletons, dtype=np.bool_).ravel())
    if holdings is None:
        groups = [np.array([c]) for c in cells.tolist()]
    else:
        holder = np.asarray(holdings, dtype=np.int64).ravel()
        if holder.size != value.size:
            raise InputError(
                f"There are {value.size} cells, but {holder.size} holdings were given."
            )
        groups = [cells[holder[cells] == h] for h in np.unique(holder[cells])]
    return tuple(
        ContributorView(f"sole contributor {i + 1}", group, value[group], value[group])
        for i, group in enumerate(groups)
    )


def coalition(name: str, members: Iterable[ContributorView]) -> ContributorView:
    """Contributors who pool what they know; if several know a cell, the narrowest bounds count.

    A cell needs the lowest level that it needs against any of them, none if they know it exactly.
    """
    views = tuple(members)
    if not views:
        raise InputError("A coalition needs at least one member.")
    cells = np.unique(np.concatenate([v.cells for v in views]))
    low = np.full(cells.size, np.iinfo(np.int64).min // 4)
    high = np.full(cells.size, np.iinfo(np.int64).max // 4)
    levels = np.full((3, cells.size), np.iinfo(np.int64).max // 4)
    for view in views:
        index = np.searchsorted(cells, view.cells)
        np.maximum.at(low, index, view.low)
        np.minimum.at(high, index, view.high)
        levels[:, index] = np.minimum(levels[:, index], 0 if view.levels is None else view.levels)
    levels[:, low == high] = 0
    return ContributorView(name, cells, low, high, levels=levels if levels.any() else None)


class RuleOnUnions:
    """A sensitivity rule for sums of cells, from the largest contributions of each.

    The contributions of a holding to several cells are added up. Only ranks that the table has are seen, as
    for any cell. ``background`` names who waived protection, and who asked for it.
    """

    def __init__(self, table: Table, rule: Rule, background: Background = NOTHING) -> None:
        contributions = _contributions(table)
        self.table, self.rule, self.background = table, rule, background
        self._ranks = contributions.value.shape[-1]
        self._value = contributions.value.reshape(-1, self._ranks)
        self._holding = contributions.holding.reshape(-1, self._ranks)
        self._known: dict[bytes, bool] = {}

    def reveals(self, cells: Ints) -> bool:
        """Whether publishing the sum of these cells would break the rule."""
        key = np.sort(cells).tobytes()
        if key not in self._known:
            self._known[key] = self._judge(cells)
        return self._known[key]

    def _judge(self, cells: Ints) -> bool:
        holding, value = self._holding[cells].ravel(), self._value[cells].ravel()
        held = holding >= 0
        names, holding_index = np.unique(holding[held], return_inverse=True)
        sums = np.zeros(names.size, dtype=np.int64)
        np.add.at(sums, holding_index, value[held])
        order = np.argsort(-np.abs(sums), kind="stable")[: self._ranks]
        ranked = np.zeros(self._ranks, dtype=np.int64)
        who = np.full(self._ranks, -1, dtype=np.int64)
        ranked[: order.size], who[: order.size] = sums[order], names[order]
        total = int(self.table.values.ravel()[cells].sum())
        count = self.table.contributors
        number = names.size
        if count is not None:
            # A holding that is seen in several cells is one contributor.
            number += int(count.ravel()[cells].sum()) - int(held.sum())
        one = Table(
            axes=(),
            values=np.array(total, dtype=np.int64),
            kind=self.table.kind,
            decimals=self.table.decimals,
            contributors=np.array(max(number, names.size), dtype=np.int64),
            contributions=Contributions(ranked, who),
        )
        return bool(self.rule.judge(one, self.background).mask.any())


def _contributions(table: Table) -> Contributions:
    if table.contributions is None:
        raise InputError(
            "Attackers that are holdings need the largest contributions of every cell."
        )
    return table.contributions
