"""The outcome of secondary suppression: a pattern, what it costs, how good it is, and whether it is safe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.model.arrays import Ints, Mask


@dataclass(frozen=True, eq=False, repr=False)
class AuditedCells:
    """What an outsider can work out about the primary cells, by an audit that does not depend on the algorithm.

    What ``low[i]`` and ``high[i]`` say about cell ``cells[i]`` depends on how they were found:

    ===========  ============================================================================================
    ``sharp``    exactly the values from ``low`` to ``high`` cannot be ruled out
    ``shown``    at least these: tables that agree with everything published reach both ends. The range that
                 an outsider is left with may be wider, so these ends are no bounds
    neither      at most these: the bounds hold, but the range may be narrower, so nothing is protected by them
    ===========  ============================================================================================

    ``attackers`` counts the attackers beside the outsider that were tried.
    """

    cells: Ints
    low: Ints
    high: Ints
    sharp: Mask
    shown: Mask
    attackers: int = 0

    def __repr__(self) -> str:
        sharp, shown = int(self.sharp.sum()), int(self.shown.sum())
        return f"AuditedCells({self.cells.size} cells, {sharp} sharp, {shown} shown)"


@dataclass(frozen=True)
class Unprotectable:
    """A primary cell that no pattern protects, why, and what would help."""

    cell: int
    name: str
    attacker: str
    because: tuple[int, ...]
    reason: str
    help: str

    def __str__(self) -> str:
        return f"{self.reason} {self.help}"


@dataclass(frozen=True, eq=False)
class Changes:
    """How a pattern differs from that of the last period, in cell numbers."""

    kept: Ints
    added: Ints
    dropped: Ints

    @classmethod
    def between(cls, before: Mask, now: Mask) -> Changes:
        return cls(
            kept=np.flatnonzero(now & before),
            added=np.flatnonzero(now & ~before),
            dropped=np.flatnonzero(~now & before),
        )

    def __repr__(self) -> str:
        return (
            f"Changes({self.kept.size} kept, {self.added.size} added, {self.dropped.size} dropped)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Pattern:
    """Which cells are suppressed, and what is proven about it.

    ``cost`` is that of the secondary cells. No pattern that protects all cells costs less than
    ``lower_bound``, in the same costs; ``gap`` is what that leaves open, as a share of the cost. ``why``
    says how the ``algorithm`` was chosen, and ``steps`` counts the attacks and programs it took. ``safe``
    holds only if the audit found every level kept, for every attacker. ``unprotectable`` explains the cells
    that no pattern protects; such a pattern is never safe.
    """

    suppressed: Mask
    primary: Mask
    secondary: Mask
    cost: float
    lower_bound: float
    algorithm: str
    why: str
    steps: int
    safe: bool
    audited: AuditedCells | None = None
    unprotectable: tuple[Unprotectable, ...] = ()
    changes: Changes | None = None

    def __post_init__(self) -> None:
        for name in ("suppressed", "primary", "secondary"):
            array = getattr(self, name).view()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        verdict = "safe" if self.safe else "not safe"
        return (
            f"Pattern({int(self.secondary.sum())} secondary cells, gap {self.gap:.1%}, {verdict}, "
            f"by {self.algorithm})"
        )

    @property
    def gap(self) -> float:
        """The share of its cost by which the pattern may exceed the cheapest one; 0 if it is proven best."""
        if self.cost <= self.lower_bound:
            return 0.0
        return float((self.cost - self.lower_bound) / self.cost)

    @property
    def optimal(self) -> bool:
        return self.safe and is_least(self.cost, self.lower_bound)


def is_least(cost: float, bound: float) -> bool:
    """Whether a cost is proven to be the least, up to rounding errors of sums of discounted costs."""
    return cost <= bound * (1 + 1e-9) + 1e-9
