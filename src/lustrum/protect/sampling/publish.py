"""Releases of tables that were counted from a sample."""

from __future__ import annotations

import numpy as np

from lustrum.model import Channel, Release, Table
from lustrum.model.arrays import Ints
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.method import RecordMethod, released


def sample_release(
    table: Table, method: RecordMethod, values: Ints, channel: Channel | None, note: str
) -> Release:
    """A release of sample numbers, with bounds; ``channel`` is that of the sampling."""
    counted = table.kind == "count" and not table.decimals
    low, high = _bounds(table, values, channel)
    return released(
        table,
        method,
        values,
        low=low,
        high=high,
        channel=channel if counted else None,
        notes=(note,),
    )


def _bounds(table: Table, values: Ints, channel: Channel | None) -> tuple[Ints, Ints]:
    """A count is at least that of the sample; a sum of amounts or weights can be anything."""
    if table.kind != "count" or table.decimals:
        least = 0 if table.kind == "count" else -UNBOUNDED
        return np.full(table.shape, least), np.full(table.shape, UNBOUNDED)
    if channel is not None:
        return channel.support(values)
    return values, np.full(table.shape, UNBOUNDED)
