"""The draws of stochastic perturbation in plain numpy: what the compiled loop is compared with."""

from __future__ import annotations

import numpy as np

from lustrum.model.arrays import Ints, Words


def plain_draw(
    values: Ints, words: Words, cap: int, base: int, first: Ints, steps: Ints, above: Words
) -> Ints:
    """One pass for each place in the longest row."""
    lowest = cap - base + 1
    rows = np.where(values <= cap, values, lowest + (values - lowest) % base)
    entry = first[rows].copy()
    last = first[rows + 1] - 1
    for _ in range(int(np.diff(first).max())):
        entry += (entry < last) & (words >= above[np.minimum(entry, last)])
    return np.asarray(values + steps[entry])
