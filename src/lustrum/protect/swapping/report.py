"""What record swapping did: for the agency only."""

from __future__ import annotations

from dataclasses import dataclass

from lustrum.model.arrays import Ints
from lustrum.model.records import Records


@dataclass(frozen=True, eq=False, repr=False)
class SwapReport:
    """The pairs that traded places, and the households without a partner.

    With this report the swap can be undone, so it is never part of a release, and its ``repr`` shows
    nothing.

    ``pairs`` holds the household ids of partners, or record ids (positions without any) where each record
    moves on its own. The household that looked for a partner is named first. ``profile`` is the position of
    the profile in which the two are alike. ``wanted`` pairs make up the rate; ``unsafe`` counts the households
    at risk, ``unsafe_left`` those of them that have not moved.
    """

    units: int
    wanted: int
    pairs: Ints
    profile: Ints
    unsafe: int = 0
    unsafe_left: int = 0

    def __repr__(self) -> str:
        return "SwapReport(hidden)"

    @property
    def missing(self) -> int:
        """The number of pairs that the rate requires and that could not be made."""
        return max(self.wanted - len(self.pairs), 0)

    @property
    def rate(self) -> float:
        """The share of households that moved."""
        return 2 * len(self.pairs) / self.units if self.units else 0.0


@dataclass(frozen=True, eq=False)
class Swapped:
    """Records after swapping, with the agency's own report."""

    records: Records
    report: SwapReport
