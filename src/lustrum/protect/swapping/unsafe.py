"""Who is at risk: people whose combination of traits is rare where they live."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lustrum.model.arrays import Ints
from lustrum.model.records import Records
from lustrum.protect.microdata import combined, numbered


def sizes_of_groups(groups: Ints, weights: Ints | None = None) -> Ints:
    """For each record how many share its group, or the sum of their weights."""
    if not groups.size:
        return np.zeros(0, dtype=np.int64)
    if weights is None:
        return np.bincount(groups)[groups]
    # Sums of whole numbers by halves of 32 bits: floats hold each of them exactly.
    low = np.bincount(groups, weights=(weights & 0xFFFFFFFF).astype(np.float64))
    high = np.bincount(groups, weights=(weights >> 32).astype(np.float64))
    return (low.astype(np.int64) + (high.astype(np.int64) << 32))[groups]


def rarest(
    records: Records,
    combinations: Sequence[Sequence[str]],
    area: Ints,
    weight: str | None = None,
) -> Ints:
    """For each record the smallest group that it falls into, over all combinations of variables.

    A group is everybody of the same ``area`` with the same codes. Below ``k`` it violates k-anonymity
    (Samarati and Sweeney 1998). In a sample the weights say how many of the population a group stands for.
    """
    weights = None if weight is None else records.numbers[weight]
    places = int(area.max(initial=0)) + 1
    out = np.full(len(records), np.iinfo(np.int64).max)
    for combination in combinations:
        groups = numbered(combined(records, combination) * places + area)
        out = np.minimum(out, sizes_of_groups(groups, weights))
    return out
