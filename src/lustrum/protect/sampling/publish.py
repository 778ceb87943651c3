"""What a table from a sample tells of the population."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lustrum.model import Channel, InputError, Table
from lustrum.structure import UNBOUNDED

__all__ = ["check_fraction", "sampled_bounds"]

Ints = npt.NDArray[np.int64]


def check_fraction(fraction: float) -> None:
    """Refuse what is no sampling fraction."""
    if isinstance(fraction, bool) or not 0 < fraction <= 1:
        raise InputError(f"A sampling fraction is above 0 and at most 1, not {fraction!r}.")


def sampled_bounds(table: Table, values: Ints, channel: Channel | None) -> tuple[Ints, Ints]:
    """A count is at least that of the sample; a sum of amounts or weights can be anything."""
    if table.kind != "count" or table.decimals:
        least = 0 if table.kind == "count" else -UNBOUNDED
        return np.full(table.shape, least), np.full(table.shape, UNBOUNDED)
    if channel is not None:
        return channel.support(values)
    return values, np.full(table.shape, UNBOUNDED)
