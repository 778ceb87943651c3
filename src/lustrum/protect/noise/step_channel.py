"""Channels of methods that add a whole number to each cell, drawn from a known distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from lustrum.model import InputError, Transitions
from lustrum.model.arrays import Floats, Ints

NEGLIGIBLE = 1e-15
"""What may be left out at the two ends of an endless distribution; the rest is scaled to 1."""


class StepChannel(ABC):
    """``P(published | true)`` of a method that adds a step to the true value.

    Subclasses define the steps. With ``clamp``, negative values are shown as 0.
    """

    clamp: bool

    @abstractmethod
    def steps(self, true: int) -> tuple[int, Floats]:
        """The smallest step from a true value, and the probabilities of it and of the following steps."""

    @abstractmethod
    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """The smallest and largest true value that can have led to each published value."""

    @abstractmethod
    def far(self) -> float:
        """The limit of the chance to stay for large values."""

    def transitions(self, true: Ints) -> Transitions:
        """A row for each true value."""
        origin, published, chances = [], [], []
        for index, value in enumerate(np.asarray(true, dtype=np.int64).ravel().tolist()):
            shown, chance = self._row(value)
            origin.append(np.full(shown.size, index, dtype=np.intp))
            published.append(shown)
            chances.append(chance)
        if not origin:
            return Transitions(np.zeros(0, np.intp), np.zeros(0, np.int64), np.zeros(0))
        return Transitions(
            np.concatenate(origin), np.concatenate(published), np.concatenate(chances)
        )

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean chance to stay; for an infinite range, its limit."""
        if highest is None:
            return self.far()
        if highest < lowest:
            raise InputError("The highest value of a range must not be below its lowest.")
        stay_chances = []
        for value in range(lowest, highest + 1):
            shown, chance = self._row(value)
            stay_chances.append(float(chance[shown == value].sum()))
        return float(np.mean(stay_chances))

    def _row(self, value: int) -> tuple[Ints, Floats]:
        first, chances = self.steps(value)
        low = value + first
        if self.clamp and low < 0:
            under = min(-low, chances.size - 1)
            chances = np.concatenate(([chances[: under + 1].sum()], chances[under + 1 :]))
            low = 0
        return low + np.arange(chances.size, dtype=np.int64), chances
