"""How counts made of many finest cells err, as a channel for a reader's belief.

The error of a sum has no closed form: a search made it. The public report states its typical size for
counts of one kind, and a reader who knows no more takes it for normal on the numbers that can be shown. The
bounds of a release say what is certain; this channel says what is likely.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.arrays import Ints
from lustrum.model import InputError, Transitions
from lustrum.model.channel import row_entries

__all__ = ["PopulationChannel"]

_NO_BOUND = 2**62


@dataclass(frozen=True)
class PopulationChannel:
    """``P(published | true)`` of counts whose error is about ``error`` (root mean square), in steps.

    >>> channel = PopulationChannel(step=3, error=2.0)
    >>> rows = channel.transitions(np.array([4]))
    >>> int(rows.published[rows.probability.argmax()])
    3
    """

    step: int
    error: float

    def __post_init__(self) -> None:
        if type(self.step) is not int or self.step < 1:
            raise InputError(f"The step of a channel must be a whole number, not {self.step!r}.")
        if not self.error > 0:
            raise InputError("The typical error of a channel must be above 0.")

    @property
    def reach(self) -> int:
        """How far from the true count a published one can be before its chance is taken for nothing."""
        return int(np.ceil(7 * self.error)) + self.step

    def transitions(self, true: Ints) -> Transitions:
        """A normal shape on the multiples of the step around each true count, none below 0."""
        true = np.asarray(true, dtype=np.int64)
        first = np.maximum(-(-(true - self.reach) // self.step), 0)
        last = (true + self.reach) // self.step
        origin, multiple = row_entries(first, last - first + 1)
        published = multiple * self.step
        distance = (published - true[origin]) / self.error
        chance = np.exp(-0.5 * distance * distance)
        total = np.bincount(origin, weights=chance, minlength=true.size)
        return Transitions(origin, published, chance / total[origin])

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """Nothing is certain from the number alone; the bounds of a release say more."""
        published = np.asarray(published, dtype=np.int64)
        return np.zeros_like(published), np.full_like(published, _NO_BOUND)

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean chance that a count of a range is shown as it is; without an end over 50 values."""
        last = lowest + 49 if highest is None else highest
        true = np.arange(lowest, last + 1, dtype=np.int64)
        rows = self.transitions(true)
        stays = rows.published == true[rows.origin]
        return float(rows.probability[stays].sum() / true.size)
