"""What a recoding loses, in bits for each unit of the table.

A unit (a person, a euro) drawn at random from the table lies in inner cell ``x`` with probability ``p(x)``. A
reader of the recoded table learns only the block ``f(x)``. What is lost is the conditional entropy, by which
Willenborg and de Waal (2001) measure the loss of information::

    H(X | f(X)) = sum over x of p(x) log2( P(f(x)) / p(x) )

It is 0 where nothing is merged, grows with every merge, and is at most ``H(X)``. Suppressed cells count as
one block: all that is certainly known of a unit in one of them is that it lies in one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import Table
from lustrum.model.arrays import Floats
from lustrum.numeric.arithmetic import log2
from lustrum.protect.redesign.ways import State

MeasureWord = Literal["entropy", "cells"]


class Loss:
    """The loss of recodings of one table; ``entropy`` in bits, or the number of inner ``cells`` lost."""

    def __init__(self, table: Table, measure: MeasureWord = "entropy") -> None:
        self.measure = measure
        self._inner = [np.flatnonzero(axis.inner) for axis in table.axes]
        sizes = np.abs(table.values[np.ix_(*self._inner)]).astype(np.float64)
        total = float(sizes.sum())
        self._share = sizes / total if total else sizes

    @property
    def most(self) -> float:
        """The entropy of the table, or the number of its inner cells."""
        return float(self._share.size) if self.measure == "cells" else _entropy(self._share)

    def of(self, states: Sequence[State], suppressed: npt.NDArray[np.bool_] | None = None) -> float:
        """What is lost by merging, and by not showing some cells of the merged table.

        >>> loss = Loss(Table.from_counts([1, 1, 2]))
        >>> loss.most, loss.of([((0, 1), (2,))])
        (1.5, 0.5)
        """
        blocks = self._share
        for axis, (state, inner) in enumerate(zip(states, self._inner, strict=True)):
            at = {int(i): k for k, i in enumerate(inner)}
            moved = np.moveaxis(blocks, axis, 0)
            rows = [moved[[at[i] for i in block]].sum(axis=0) for block in state]
            blocks = np.moveaxis(np.stack(rows), 0, axis)
        hidden = np.zeros(blocks.shape, np.bool_) if suppressed is None else suppressed
        if self.measure == "cells":
            return float(self._share.size - blocks.size + np.count_nonzero(hidden))
        shown = np.append(blocks[~hidden], blocks[hidden].sum())
        return max(0.0, _entropy(self._share) - _entropy(shown))


def _entropy(shares: Floats) -> float:
    filled = shares[shares > 0]
    return float(-(filled * log2(filled)).sum()) + 0.0
