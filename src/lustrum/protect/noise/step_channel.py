"""Channels of methods that add a whole number to each cell, drawn from a known distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from lustrum.arrays import Floats, Ints
from lustrum.model import InputError, Transitions

__all__ = ["NEGLIGIBLE", "StepChannel"]


NEGLIGIBLE = 1e-15
"""What may be left out at the two ends of an endless distribution; the rest is scaled to 1."""


class StepChannel(ABC):
    """``P(published | true)`` where a step is added to the true value, and nothing below 0 need be shown.

    Subclasses say which steps there are. With ``clamp`` whatever would be negative is shown as 0.
    """

    clamp: bool

    @abstractmethod
    def steps(self, true: int) -> tuple[int, Floats]:
        """The smallest step from a true value, and the chances of it and of those that follow."""

    @abstractmethod
    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """The smallest and largest true value that can have led to each published value."""

    @abstractmethod
    def far(self) -> float:
        """The chance to stay that values tend to as they grow."""

    def transitions(self, true: Ints) -> Transitions:
        """A row for each true value."""
        origin, published, chances = [], [], []
        for place, value in enumerate(np.asarray(true, dtype=np.int64).ravel().tolist()):
            shown, chance = self._row(value)
            origin.append(np.full(shown.size, place, dtype=np.intp))
            published.append(shown)
            chances.append(chance)
        if not origin:
            return Transitions(np.zeros(0, np.intp), np.zeros(0, np.int64), np.zeros(0))
        return Transitions(
            np.concatenate(origin), np.concatenate(published), np.concatenate(chances)
        )

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean chance to stay; where the range has no end, what it tends to."""
        if highest is None:
            return self.far()
        if highest < lowest:
            raise InputError("A range of values runs upwards; this one does not.")
        kept = []
        for value in range(lowest, highest + 1):
            shown, chance = self._row(value)
            kept.append(float(chance[shown == value].sum()))
        return float(np.mean(kept))

    def _row(self, value: int) -> tuple[Ints, Floats]:
        first, chances = self.steps(value)
        low = value + first
        if self.clamp and low < 0:
            under = min(-low, chances.size - 1)
            chances = np.concatenate(([chances[: under + 1].sum()], chances[under + 1 :]))
            low = 0
        return low + np.arange(chances.size, dtype=np.int64), chances
