"""Counts that may stand behind the numbers of a protected population, in one compiled pass.

It is :func:`lustrum.answer.figures.counts._possible_values` for channels of the class
:class:`~lustrum.protect.population.channel.PopulationChannel`, whose rows repeat from some count on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.numeric.compiled import compiled


@compiled
def believed_counts(  # pragma: no cover
    order: Any,
    shown: Any,
    low: Any,
    high: Any,
    first: Any,
    published: Any,
    probability: Any,
    step: int,
    repeats_from: int,
    turns: int,
    golden: float,
) -> Any:
    """One table a row; nothing where the channel leads no count of a range to the number shown.

    ``order`` sorts the cells by number and range, so that cells that look alike follow each other.
    """
    cells = shown.size
    counts = np.empty((turns, cells), dtype=np.int64)
    widest = 0
    for j in range(cells):
        widest = max(widest, high[j] - low[j] + 1)
    values = np.empty(widest, dtype=np.int64)
    line = np.empty(widest)
    length = 0
    last_shown, last_low, last_high = np.int64(-1), np.int64(-1), np.int64(-1)
    kind = -1
    begin = 0
    while begin < cells:
        j = order[begin]
        end = begin + 1
        while end < cells:
            other = order[end]
            if shown[other] != shown[j] or low[other] != low[j] or high[other] != high[j]:
                break
            end += 1
        kind += 1
        moved = max(low[j] - repeats_from, 0) // step * step
        if (
            shown[j] - moved != last_shown
            or low[j] - moved != last_low
            or high[j] - moved != last_high
        ):
            last_shown, last_low, last_high = shown[j] - moved, low[j] - moved, high[j] - moved
            length = 0
            total = 0.0
            for true in range(last_low, last_high + 1):
                row = true
                if true >= repeats_from:
                    row = repeats_from + (true - repeats_from) % step
                start = first[row]
                ahead = last_shown - (true - row) - published[start]
                if ahead < 0 or ahead % step != 0 or start + ahead // step >= first[row + 1]:
                    continue
                chance = probability[start + ahead // step]
                if chance > 0:
                    total += chance
                    values[length] = true
                    line[length] = total
                    length += 1
            if length == 0:
                return np.empty((0, cells), dtype=np.int64)
            for i in range(length):
                line[i] /= total
        size = end - begin
        for t in range(turns):
            shift = ((t + 0.5) / turns + kind * golden) % 1.0
            i = 0
            for position in range(size):
                quantile = (position + shift) / size
                while i < length - 1 and line[i] < quantile:
                    i += 1
                counts[t, order[begin + position]] = values[i] + moved
        begin = end
    return counts
