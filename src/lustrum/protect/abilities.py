"""Abilities: what a method declares about its numbers.

A policy, a server and an audit ask for abilities before they rely on them. A method that declares none is
treated with caution: :func:`abilities_of` then returns no abilities, which is right for an unknown
third-party method. :func:`~lustrum.testing.check_method` tests whether declared abilities hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from lustrum.model import Channel, Dataset, Release, Table
from lustrum.model.chance import Seed
from lustrum.model.records import Records


@dataclass(frozen=True)
class Abilities:
    """The abilities of a method with its parameters; all are False unless declared.

    - ``repeatable``: the method has no source of randomness of its own. The same table with the same record
      keys, or the same generator, gives the same numbers, so that asking again reveals nothing new.
    - ``keyed_per_cell``: with record keys, a cell's number depends on that cell's own records only. A guard
      of totals may still hide it afterwards.
    - ``one_number``: with record keys, the same people have the same number in every table, as an inner
      cell or as a total, after every guard, or no number. A policy for tables that users build themselves
      requires this.
    - ``sums_only``: the method protects sums of a measure, and no counts.
    - ``changed``: at least this share of the ones and twos of the table of all finest cells changes, as many
      ones as twos. It follows from the parameters alone, whatever the records are: a method whose effect
      depends on them states 0. A method on records counts a cell as changed where one of its people leaves it.
    - ``entropy``: at least so many bits are left about a true 1 or 2 to a reader who knows the method, from the
      parameters alone (:mod:`~lustrum.protect.entropy_left`): a change that can be turned back leaves 0.
    - ``channels``: how a single count is shown, where the parameters alone say so; several if it may be any of
      them. What two methods on counts leave together follows from these.
    - ``proof``: whatever is shown is computed from noisy tables with a stated cost of differential privacy.
      What that leaves follows from the cost, not from how many counts change.
    """

    repeatable: bool = False
    keyed_per_cell: bool = False
    one_number: bool = False
    sums_only: bool = False
    changed: float = 0.0
    entropy: float = 0.0
    channels: tuple[Channel, ...] = field(default=(), compare=False)
    proof: bool = False


NOTHING_PROMISED = Abilities()


@runtime_checkable
class KeysEmptyCells(Protocol):
    """A method that can perturb empty cells, the same way in every table, if it gets keys for them."""

    def with_zeros(self, secret: bytes, dataset: Dataset) -> Any:
        """The same method with keys for empty cells, derived from a secret."""
        ...


@runtime_checkable
class ProtectsTables(Protocol):
    """A method that works on tables."""

    def apply(self, table: Table, rng: Seed = None) -> Release:
        """Protect a table."""
        ...


@runtime_checkable
class ProtectsRecords(Protocol):
    """A method that works on records before anything is counted."""

    name: ClassVar[str]

    def apply_records(self, records: Records, rng: Seed) -> Records:
        """Protect records."""
        ...

    def publish(self, table: Table) -> Release:
        """A table counted from protected records as a release."""
        ...


@runtime_checkable
class Rehearses(Protocol):
    """A method whose real noise cannot be repeated, with repeatable noise for studies."""

    def rehearse(self, table: Table, rng: np.random.Generator) -> Release:
        """A release with repeatable noise, for studies; never publish it."""
        ...


def abilities_of(method: object) -> Abilities:
    """The abilities that a method declares, or none.

    >>> from lustrum.protect import RandomRounding
    >>> abilities_of(RandomRounding()).one_number, abilities_of(RandomRounding()).changed
    (True, 1.0)
    >>> abilities_of(object()) == NOTHING_PROMISED
    True
    """
    # Not by isinstance, which works out all that a method declares just to see whether it is there.
    declared: Abilities = getattr(method, "abilities", NOTHING_PROMISED)
    return declared


def changed_by_rounding(base: int) -> float:
    """The share of ones and twos that change where only multiples of a base are shown.

    >>> changed_by_rounding(3), changed_by_rounding(2)
    (1.0, 0.5)
    """
    return 1.0 if base > 2 else 0.5


def changed_by_leaving(share: float) -> float:
    """The share of ones and twos that change where each person leaves a cell on their own with this chance.

    >>> changed_by_leaving(0.5)
    0.625
    """
    stay = 1.0 - share
    return ((1.0 - stay) + (1.0 - stay * stay)) / 2
