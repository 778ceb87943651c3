"""An engine over a database beside the kernel over the same records in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.model import TableQuery
from lustrum.tabulate import FrameEngine
from lustrum.tabulate.finest import finest_cells
from lustrum.tabulate.remote import IbisEngine
from tabulate.worlds import SECRET, World

KINDS: list[dict[str, str]] = [
    {},
    {"weight": "weight"},
    {"measure": "turnover"},
    {"measure": "debt"},
    {"measure": "turnover", "weight": "weight"},
]
RANKS = 3


def same(one: Any, other: Any) -> bool:
    return (one is None and other is None) or np.array_equal(one, other)


def compare(world: World, engine: IbisEngine, query: TableQuery, unfiltered: bool) -> None:
    """Counts, sums of keys, sums, contributors and the largest contributions."""
    plain = FrameEngine(world.arrow(), world.dataset, SECRET)
    ranks = RANKS if query.measure is not None else 0
    ours = engine.cube(query, unfiltered=unfiltered, ranks=ranks)
    theirs = plain.cube(query, unfiltered=unfiltered, ranks=ranks)
    for name in ("counts", "keys", "sums", "contributors"):
        assert same(getattr(ours, name), getattr(theirs, name)), (name, query)
    assert (ours.contributions is None) == (theirs.contributions is None)
    if ours.contributions is not None and theirs.contributions is not None:
        for name in ("value", "holding", "weight"):
            one, other = (getattr(c, name) for c in (ours.contributions, theirs.contributions))
            assert same(one, other), (name, query)
    if unfiltered:
        assert same(ours.unfiltered().values, theirs.unfiltered().values)
    assert same(ours.shown().values, theirs.shown().values)


def compare_finest(world: World, engine: IbisEngine) -> None:
    found = engine.finest_cells()
    expected = finest_cells(FrameEngine(world.arrow(), world.dataset, SECRET))
    for name in ("codes", "counts", "keys"):
        assert same(getattr(found, name), getattr(expected, name)), name
