"""Who attacks: an outsider, a contributor, or several who share what they know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from lustrum.audit.knowledge.facts import CellRef, Knowledge
from lustrum.model import InputError


@dataclass(frozen=True)
class OwnContributions:
    """The attackers' own contributions: to named cells, or to every cell that is asked about."""

    named: Mapping[int, int] = field(default_factory=dict, repr=False)
    anywhere: int = field(default=0, repr=False)


@runtime_checkable
class Attacker(Protocol):
    """An attacker, who may know contributions of their own."""

    def contributions(self, known: Knowledge) -> OwnContributions:
        """The attacker's contribution to each cell."""
        ...


@dataclass(frozen=True)
class Outsider:
    """Knows what is published and nothing more."""

    def contributions(self, known: Knowledge) -> OwnContributions:
        """Nothing."""
        return OwnContributions()


@dataclass(frozen=True)
class Insider:
    """Contributes to a cell and knows how much, so that only the rest of the cell is uncertain.

    The contribution is in units of ``10**-decimals``. Without a cell, each cell is judged as if the insider
    contributed to it (Domingo-Ferrer, Oganian and Torra 2002, section 4.4).

    >>> Insider(contribution=400)
    Insider()
    """

    contribution: int = field(repr=False)
    cell: CellRef | None = None

    def __post_init__(self) -> None:
        try:
            whole = int(self.contribution) == self.contribution
        except (TypeError, ValueError, OverflowError):
            whole = False
        if not whole or isinstance(self.contribution, bool):
            raise InputError("A contribution must be a whole number, in units of the last decimal.")
        if self.contribution < 0:
            raise InputError("A contribution must be 0 or more.")

    def __repr__(self) -> str:
        return "Insider()" if self.cell is None else f"Insider(cell={self.cell!r})"

    def contributions(self, known: Knowledge) -> OwnContributions:
        """The contribution to its cell."""
        if self.cell is None:
            return OwnContributions(anywhere=int(self.contribution))
        return OwnContributions(named={known.cell(self.cell): int(self.contribution)})


@dataclass(frozen=True)
class Coalition:
    """Several contributors who pool what they know."""

    members: tuple[Insider, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        if not self.members:
            raise InputError("A coalition needs at least one member.")

    def contributions(self, known: Knowledge) -> OwnContributions:
        """The sum of the members' contributions to each cell."""
        named: dict[int, int] = {}
        anywhere = 0
        for member in self.members:
            contributions = member.contributions(known)
            anywhere += contributions.anywhere
            for cell, contribution in contributions.named.items():
                named[cell] = named.get(cell, 0) + contribution
        return OwnContributions(named, anywhere)
