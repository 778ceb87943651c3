"""Controlled perturbation: the number of cells that take each step is the expected one.

The paper computes the expected numbers and draws the cells without replacement (Shlomo, Antal and Elliot
2015, section 3.3). Here the cells of a row of the matrix get words that are spread evenly over their range
in random order. Every word is uniform, so each cell changes with exactly the probabilities of its
row, and the number of cells of a row that take each step is the expected one, rounded up or down.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Ints, Words
from lustrum.model.channel import MatrixChannel
from lustrum.protect.additive.apportion import apportioned, spread_words


def controlled_words(
    rows: Ints, random_words: Words, shift_of: Callable[[npt.NDArray[np.intp]], int]
) -> Words:
    """Evenly spread words in place of independent ones.

    ``rows`` says to which group each cell belongs, ``random_words`` put the cells of a group in order, and
    ``shift_of`` gives one more uniform word for the cells of a group.
    """
    out = np.empty(random_words.shape, dtype=np.uint64)
    order = np.argsort(random_words, kind="stable")
    order = order[np.argsort(rows[order], kind="stable")]
    bounds = np.flatnonzero(np.diff(rows[order])) + 1
    for cells in np.split(order, bounds):
        if cells.size:
            out[cells] = spread_words(np.arange(cells.size), cells.size, shift_of(cells))
    return out


def total_kept(values: Ints, perturbed: Ints, channel: MatrixChannel) -> Ints:
    """Undo the change of the total, by adjusting the cells above the cap in proportion to their size.

    A cell above the cap stays above it. If these cells cannot absorb the whole change, the total is kept as
    nearly as possible.
    """
    out = perturbed.copy()
    large = np.flatnonzero(out > channel.cap)
    excess = int(perturbed.sum() - values.sum())
    if not large.size or not excess:
        return out
    if excess < 0:
        out[large] += apportioned(-excess, out[large])
        return out
    while excess > 0:
        room = out[large] - channel.cap - 1
        giving = large[room > 0]
        if not giving.size:
            break
        cut = np.minimum(apportioned(excess, out[giving]), room[room > 0])
        out[giving] -= cut
        excess -= int(cut.sum())
    return out
