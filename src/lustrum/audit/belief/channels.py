"""The channel of the Markov perturbed square."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lustrum.model import InputError, Transitions
from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.distributions import binomial, convolved


@dataclass(frozen=True)
class MarkovSquare:
    """One cell of a 2 x 2 square after Markov perturbation, which keeps all margins of the square.

    Let w be the true value and c the least value that the margins allow. Each of the w - c people above c
    leaves the cell with probability theta. Each person of the same column who could still enter does so
    with probability
    ``q = theta r / (1 - r)``, ``r = w / column``. Hence

        ``M = c + Binom(w - c, 1 - theta) + Binom(most - w, q)``

    (Duncan, Fienberg, Krishnan, Padman and Roehrig 2001, section 4). The agency cannot choose a theta above
    ``(1 - r) / r``, so a reader who knows theta can rule out such a w.

    >>> square = MarkovSquare(row=15, column=18, total=115, theta=0.05)
    >>> found = square.transitions(np.array([3]))
    >>> round(float(found.probability[found.published == 3].sum()), 4)
    0.7746
    """

    row: int
    column: int
    total: int
    theta: float

    def __post_init__(self) -> None:
        if not 0 <= self.theta <= 1:
            raise InputError(f"The parameter theta is {self.theta}; it must lie between 0 and 1.")
        if not 0 <= max(self.row, self.column) <= self.total or min(self.row, self.column) < 0:
            raise InputError(
                "The row and column totals of a square lie between 0 and its grand total."
            )

    @property
    def least(self) -> int:
        """The smallest value that the margins allow."""
        return max(0, self.row + self.column - self.total)

    @property
    def most(self) -> int:
        """The largest value that the margins allow."""
        return min(self.row, self.column)

    @cached_property
    def matrix(self) -> Floats:
        """``P(published | true)`` over ``least .. most``; a row of zeros where theta rules w out."""
        size = self.most - self.least + 1
        out = np.zeros((size, size))
        for stay in range(size):
            enter = self._enter(stay + self.least, size - 1 - stay)
            if enter is None:
                continue
            stayers = binomial(np.arange(stay + 1), stay, 1.0 - self.theta)
            comers = binomial(np.arange(size - stay), size - 1 - stay, enter)
            out[stay] = convolved(stayers, comers)
        return out

    def _enter(self, true: int, movers: int) -> float | None:
        """The probability to enter the cell, or None where theta is too large."""
        if movers == 0:
            return 0.0
        enter = self.theta * true / (self.column - true)
        return enter if enter <= 1.0 else None

    def transitions(self, true: Ints) -> Transitions:
        """The rows of these true values."""
        rows = np.asarray(true, dtype=np.int64) - self.least
        if bool(((rows < 0) | (rows > self.most - self.least)).any()):
            raise InputError("A true value is outside what the margins of the square allow.")
        origin, column = np.nonzero(self.matrix[rows])
        return Transitions(
            origin, column.astype(np.int64) + self.least, self.matrix[rows[origin], column]
        )

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """All values that the margins allow."""
        shape = np.shape(published)
        return np.full(shape, self.least, np.int64), np.full(shape, self.most, np.int64)

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean probability over the range that a value stays as it is."""
        end = None if highest is None else highest + 1 - self.least
        part = np.diagonal(self.matrix)[max(lowest - self.least, 0) : end]
        if part.size == 0:
            raise InputError("The square has no values in that range.")
        return float(part.mean())
