"""What a method can promise beyond its numbers, declared by the method itself.

A policy, a server and an audit ask for promises before they rely on them. A method that declares nothing
promises nothing: :func:`abilities_of` then gives the cautious answer, which is the right one for a method
that nobody here has read. :func:`~lustrum.testing.check_method` tries whether declared abilities hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from lustrum.model import Dataset, Release, Table
from lustrum.model.chance import Seed
from lustrum.model.records import Records

__all__ = [
    "NOTHING_PROMISED",
    "Abilities",
    "DeclaresAbilities",
    "KeysEmptyCells",
    "ProtectsRecords",
    "ProtectsTables",
    "Rehearses",
    "abilities_of",
]


@dataclass(frozen=True)
class Abilities:
    """Promises of a method with its parameters; none is made unless it is declared.

    - ``repeatable``: the method has no chance of its own. The same table with the same record keys, or the same
      generator, gives the same numbers, so that asking again reveals nothing new.
    - ``keyed_per_cell``: with record keys a cell's number depends on that cell's own records alone, whatever
      else is in the table. A guard of totals may still hide it afterwards.
    - ``one_number``: with record keys a population shows one number in every table that shows it, as an inner
      cell and as a total, after every guard, or none at all. A policy for tables that people make themselves
      asks for it.
    - ``sums_only``: the method protects sums of a measure, and no counts.
    """

    repeatable: bool = False
    keyed_per_cell: bool = False
    one_number: bool = False
    sums_only: bool = False


NOTHING_PROMISED = Abilities()


@runtime_checkable
class DeclaresAbilities(Protocol):
    """A method that says what it promises; the promises may depend on its parameters."""

    @property
    def abilities(self) -> Abilities:
        """What the method promises."""
        ...


@runtime_checkable
class KeysEmptyCells(Protocol):
    """A method that perturbs empty cells too, alike in every table, if it gets keys for them."""

    def with_zeros(self, secret: bytes, dataset: Dataset) -> Any:
        """The same method with keys for empty cells, which follow from a secret."""
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
    """A method whose real draws cannot be repeated, and that has others for studies."""

    def rehearse(self, table: Table, rng: np.random.Generator) -> Release:
        """The same release with noise that can be repeated; never to publish."""
        ...


def abilities_of(method: object) -> Abilities:
    """What a method declares, or nothing.

    >>> from lustrum.protect import RandomRounding
    >>> abilities_of(RandomRounding())
    Abilities(repeatable=True, keyed_per_cell=True, one_number=True, sums_only=False)
    >>> abilities_of(object()) == NOTHING_PROMISED
    True
    """
    return method.abilities if isinstance(method, DeclaresAbilities) else NOTHING_PROMISED
