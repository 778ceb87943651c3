"""Figures of the confidential table, told to the public without telling the table.

Risk and utility are functions of the true counts: printed to the last digit, that of a small table would
give its counts away. They are randomly rounded to a step of the policy's, unbiased, and keyed by the people in
the table, so that asking again gives the same figure.
"""

from __future__ import annotations

import math

import numpy as np

from lustrum.model import Table
from lustrum.model.keys import cell_words

__all__ = ["public_figure"]


def public_figure(value: float, step: float, table: Table, purpose: str) -> float:
    """The value rounded up or down to a multiple of the step, right on average, within 0 and 1."""
    if table.keys is None:
        word = 0.5
    else:
        # A sum over cells of scrambled keys: the same for every order of the axes, totals or not.
        cells = cell_words(table.keys[table.inner], "report cell")
        mixed = cell_words(cells.sum(keepdims=True, dtype=np.uint64), f"report {purpose}")
        word = float(mixed[0]) / 2.0**64
    below = math.floor(value / step)
    up = word < value / step - below
    return min(1.0, max(0.0, round((below + up) * step, 10)))
