"""No protection of the table: for open data, or records that are protected already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lustrum.model import Release, Table, Transitions
from lustrum.model.arrays import Ints
from lustrum.model.chance import Seed
from lustrum.protect.abilities import Abilities
from lustrum.protect.method import TABULAR, Stage, checked_input, released


@dataclass(frozen=True)
class IdentityChannel:
    """The channel that publishes true values."""

    def transitions(self, true: Ints) -> Transitions:
        """One entry for each value: itself."""
        rows = np.arange(true.size, dtype=np.intp)
        return Transitions(rows, np.asarray(true, dtype=np.int64), np.ones(true.size))

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        return np.asarray(published), np.asarray(published)

    def stay(self, lowest: int, highest: int | None) -> float:
        return 1.0


@dataclass(frozen=True)
class Unchanged:
    """Publishes every table as it was counted.

    >>> Unchanged().apply(Table.from_counts([3, 1])).published.tolist()
    [3, 1]
    """

    name: ClassVar[str] = "none"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
    abilities: ClassVar[Abilities] = Abilities(
        repeatable=True, keyed_per_cell=True, one_number=True
    )

    def apply(self, table: Table, rng: Seed = None) -> Release:
        rng = checked_input(table, rng)
        return released(
            table,
            self,
            table.values,
            channel=IdentityChannel(),
            low=table.values,
            high=table.values,
        )

    def to_mapping(self) -> dict[str, Any]:
        return {"method": self.name}
