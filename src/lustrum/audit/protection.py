"""Protection intervals: how uncertain readers must stay about a true value, for an agency's own audits.

A suppressed value a with protection levels l and u is safe if its feasible range reaches down to ``a - l``
and up to ``a + u`` (Fischetti and Salazar 2000). The input holds true values; the output is a verdict only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask


class ProtectionVerdict(StrEnum):
    """Whether the feasible range of a cell holds its protection interval."""

    NOT_ASKED = ""
    ENOUGH = "enough"
    TOO_NARROW = "too narrow"
    UNKNOWN = "not known"


@dataclass(frozen=True, eq=False, repr=False)
class Protection:
    """The interval from ``low`` to ``high`` that the feasible range of each protected cell must hold.

    It is made from true values, so its representation shows none of them.

    >>> wanted = Protection.of([40, 7], lower=[4, 1], upper=[4, 1], needed=[True, False])
    >>> wanted.verdict((0,), 36.0, 44.0, sharp=True), wanted.verdict((0,), 37.0, 50.0, sharp=True)
    (<ProtectionVerdict.ENOUGH: 'enough'>, <ProtectionVerdict.TOO_NARROW: 'too narrow'>)
    """

    true: Ints
    low: Ints
    high: Ints
    needed: Mask

    def __repr__(self) -> str:
        return f"Protection({' x '.join(map(str, self.needed.shape))} cells)"

    @classmethod
    def of(
        cls,
        true: npt.ArrayLike,
        lower: npt.ArrayLike,
        upper: npt.ArrayLike,
        needed: npt.ArrayLike | None = None,
    ) -> Protection:
        """From true values and levels, in the units of the table; ``needed`` leaves out other cells."""
        value = np.asarray(true, dtype=np.int64)
        below, above = (np.asarray(level, dtype=np.int64) for level in (lower, upper))
        mask = np.ones(value.shape, np.bool_) if needed is None else np.asarray(needed, np.bool_)
        if not value.shape == below.shape == above.shape == mask.shape:
            raise InputError(
                "True values and protection levels must have the shape of their table."
            )
        if bool((mask & ((below < 0) | (above < 0))).any()):
            raise InputError("A protection level is negative; it must be 0 or more.")
        return cls(value, value - below, value + above, mask)

    @classmethod
    def within(
        cls, true: npt.ArrayLike, percent: float, needed: npt.ArrayLike | None = None
    ) -> Protection:
        """From true values that nobody may estimate more closely than this many percent, up or down."""
        if not 0 <= percent < np.inf:
            raise InputError(f"Protection cannot be {percent} percent; give 0 or more.")
        value = np.asarray(true, dtype=np.int64)
        level = np.ceil(np.abs(value) * (percent / 100.0) - 1e-9).astype(np.int64)
        return cls.of(value, level, level, needed)

    def fits(self, position: tuple[int, ...], low: float, high: float) -> bool:
        """Whether a range holds the true value, as it must if the tables belong together."""
        return bool(low <= self.true[position] <= high)

    def verdict(
        self, position: tuple[int, ...], low: float, high: float, *, sharp: bool
    ) -> ProtectionVerdict:
        """Whether a range is wide enough; a range that is not sharp may be narrower than it looks."""
        if not self.needed[position]:
            return ProtectionVerdict.NOT_ASKED
        if low > self.low[position] or high < self.high[position]:
            return ProtectionVerdict.TOO_NARROW
        return ProtectionVerdict.ENOUGH if sharp else ProtectionVerdict.UNKNOWN
