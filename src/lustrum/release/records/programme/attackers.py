"""Contributors as attackers on linked tables: what a holding knows of all cells that it contributes to."""

from __future__ import annotations

import numpy as np

from lustrum.arrays import Ints, Mask
from lustrum.model import InputError
from lustrum.protect.suppression import ContributorView
from lustrum.release.records.programme.system import Part, System

__all__ = ["joint_views"]


_OPEN = np.iinfo(np.int64).max // 4


def joint_views(
    system: System, sensitive: Mask, *, alone_only: bool
) -> tuple[ContributorView, ...]:
    """One attacker for each holding that is alone in a cell, or large in a sensitive one.

    A holding knows its contributions to all tables of the system. A cell that holds nobody else it knows
    exactly, of any other that it is not below its own contribution. With ``alone_only`` there are only those
    that are alone somewhere.
    """
    cells, names, parts, alone = [], [], [], []
    for part, span in zip(system.parts, system.spans, strict=True):
        value, holding, only = _ranked(part, alone_only)
        place, rank = np.nonzero((holding >= 0) & part.true.inner.ravel()[:, None])
        cells.append(place + span.start)
        names.append(holding[place, rank])
        parts.append(value[place, rank] * system.scale(part))
        alone.append(only[place])
    cell, name = np.concatenate(cells), np.concatenate(names)
    amount, single = np.concatenate(parts), np.concatenate(alone)
    if alone_only:
        # What such an attacker contributes to cells that it shares with others is not asked about.
        picks = np.flatnonzero(single)
        cell, name, amount, single = cell[picks], name[picks], amount[picks], single[picks]
    wanted = single if alone_only else single | sensitive[cell]
    floor = 0 if bool((system.values >= 0).all()) else -_OPEN
    views = []
    for number, one in enumerate(np.unique(name[wanted]).tolist()):
        at = np.flatnonzero(name == one)
        mine, true = cell[at], system.values[cell[at]]
        # Where values can be negative, one's own contribution bounds nothing.
        least = np.maximum(amount[at], 0) if floor == 0 else np.full(at.size, floor)
        low = np.where(single[at], true, least)
        high = np.where(single[at], true, _OPEN)
        views.append(ContributorView(f"holding {number + 1}", mine.astype(np.int64), low, high))
    return tuple(views)


def _ranked(part: Part, alone_only: bool) -> tuple[Ints, Ints, Mask]:
    """The largest contributions of each cell, their holdings, and where a holding is alone."""
    table = part.true
    if table.contributions is not None:
        ranks = table.contributions.value.shape[-1]
        value = table.contributions.value.reshape(-1, ranks)
        holding = table.contributions.holding.reshape(-1, ranks)
        count = table.contributors
        alone = (holding >= 0).sum(axis=1) == 1 if count is None else count.ravel() == 1
        return value, holding, np.asarray(alone)
    if not alone_only or table.contributors is None:
        raise InputError(
            "The attacker 'holdings' needs contributions, which counts have none of; use 'singletons'."
        )
    alone = np.asarray(table.contributors.ravel() == 1)
    value = table.values.reshape(-1, 1)
    # Nobody knows who is alone where; each counts as another person.
    holding = np.where(alone, np.arange(value.size) + _FIRST, -1).reshape(-1, 1)
    return value, holding, alone


_FIRST = 1 << 62
