"""The channel of Markov perturbation: exact for one cell of one square, simulated for any cell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lustrum.audit import MarkovSquare
from lustrum.model import InputError, Table
from lustrum.model.arrays import Floats, Ints
from lustrum.model.channel import ObservedChannel
from lustrum.numeric.distributions import binomial, convolved
from lustrum.protect.totals.inner_table import InnerTable

if TYPE_CHECKING:
    from lustrum.protect.markov.spec import MarkovPerturbation


@dataclass(frozen=True)
class StationarySquare(MarkovSquare):
    """The first cell of a 2 x 2 square after one elementary step that leaves its mean as it is.

    If the margins bound a cell w by c and d, then ``w - c`` people can move out and ``d - w`` can move in.
    With s the smaller of the two numbers,

        ``M = c + Binom(w - c, 1 - theta s / (w - c)) + Binom(d - w, theta s / (d - w))``,

    so that as many move in as out on average and ``E M = w``. Where all of one column can move this is
    the formula of Duncan, Fienberg, Krishnan, Padman and Roehrig (2001); elsewhere theirs, which
    compares with all of the column, has a small bias. With the rule ``unit`` the cell goes one up
    or one down, each with probability theta, and stays if one of them is closed.

    >>> square = StationarySquare(row=15, column=18, total=115, theta=0.05)
    >>> bool(np.allclose(square.matrix @ np.arange(16), np.arange(16)))
    True
    """

    rule: str = "people"

    @cached_property
    def matrix(self) -> Floats:
        """``P(published | true)`` over ``least .. most``."""
        size = self.most - self.least + 1
        out = np.zeros((size, size))
        for leave in range(size):
            enter = size - 1 - leave
            movers = min(leave, enter)
            if movers == 0:
                out[leave, leave] = 1.0
            elif self.rule == "unit":
                out[leave, leave - 1 : leave + 2] = self.theta, 1 - 2 * self.theta, self.theta
            else:
                share = self.theta * movers
                stayers = binomial(np.arange(leave + 1), leave, 1 - share / leave)
                comers = binomial(np.arange(enter + 1), enter, share / enter)
                out[leave] = convolved(stayers, comers)
        return out

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """A cell at a bound stays; others can take any value, or a neighbouring one by the rule ``unit``."""
        shown = np.asarray(published, dtype=np.int64)
        reach = 1 if self.rule == "unit" else self.most - self.least
        low, high = np.maximum(shown - reach, self.least), np.minimum(shown + reach, self.most)
        low = np.where((shown > self.least) & (low == self.least), self.least + 1, low)
        high = np.where((shown < self.most) & (high == self.most), self.most - 1, high)
        return np.minimum(low, shown), np.maximum(high, shown)


def simulated_channel(
    table: Table, spec: MarkovPerturbation, draws: int, rng: np.random.Generator
) -> ObservedChannel:
    """The channel of a table's inner cells, from this many perturbations of it.

    It is made from confidential counts and is for the agency only.
    """
    if type(draws) is not int or draws < 1:
        raise InputError(f"A simulated channel needs one draw or more, not {draws!r}.")
    inner = InnerTable.of(table.axes, "Markov perturbation")
    counts = inner.counts(table)
    perturbed = spec.perturbations(inner, counts, draws, rng)
    return ObservedChannel(np.broadcast_to(counts, (draws, *counts.shape)), perturbed)
