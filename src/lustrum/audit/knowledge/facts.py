"""What a reader knows about hidden cells: linear facts, bounds, and the domain of values.

Facts are public, or belong to an assumed attacker; they hold no true value of a hidden cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask, Sparse
from lustrum.model.errors import check_known
from lustrum.numeric.later import sparse
from lustrum.numeric.structure import UNBOUNDED, Structure

CellRef: TypeAlias = "int | str | Sequence[str] | Mapping[str, str]"
"""A cell by number, by name, or by its codes in the first table."""

_EXACT = 2**53  # whole numbers up to this are exact in a solver's arithmetic


class ContradictionError(InputError):
    """Facts that no table can satisfy together."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """All cells x with ``fact_low <= matrix @ x <= fact_high`` and ``low <= x <= high``.

    A fact whose two ends are equal is an equation. Values are whole numbers in units of
    ``10**-decimals``, the discrete domain that Domingo-Ferrer, Oganian and Torra (2002, note 1)
    assume; without ``whole`` they are real numbers. :data:`~lustrum.numeric.structure.UNBOUNDED` stands for
    no bound. Cells have names; those that come from tables also have a structure.

    >>> known = Knowledge.of(["x", "y"]).fact({"x": 1, "y": 1}, 7, 7).bound("y", high=5)
    >>> known
    Knowledge(2 cells, 1 fact, whole numbers)
    """

    names: Sequence[str]
    low: Ints
    high: Ints
    matrix: Sparse
    fact_low: Ints
    fact_high: Ints
    decimals: int = 0
    whole: bool = True
    structure: Structure | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", _tidy(self.matrix))
        facts, cells = self.matrix.shape
        sizes = {"low": cells, "high": cells, "fact_low": facts, "fact_high": facts}
        for name, size in sizes.items():
            array = np.array(getattr(self, name), dtype=np.int64)
            if array.shape != (size,):
                raise InputError(
                    f"Knowledge of {cells} cells and {facts} facts got '{name}' of shape "
                    f"{array.shape}; it must be ({size},)."
                )
            if bool(((np.abs(array) > _EXACT) & (np.abs(array) < UNBOUNDED)).any()):
                raise InputError(
                    "A bound is beyond 2**53, where audits are no longer exact; use fewer decimals."
                )
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if len(self.names) != cells:
            raise InputError(f"There are {cells} cells but {len(self.names)} names.")
        if bool((self.low > self.high).any()):
            cell = int(np.flatnonzero(self.low > self.high)[0])
            raise ContradictionError(
                f"The published cells contradict each other: no value is left for {self.names[cell]}."
            )
        if bool((self.fact_low > self.fact_high).any()):
            raise ContradictionError("A fact has a lower end above its upper end.")

    def __repr__(self) -> str:
        facts = self.matrix.shape[0]
        domain = "real numbers" if not self.whole else "whole numbers"
        if self.whole and self.decimals:
            domain = "1 decimal" if self.decimals == 1 else f"{self.decimals} decimals"
        cells = f"{len(self)} cell{'s' * (len(self) != 1)}"
        return f"Knowledge({cells}, {facts} fact{'s' * (facts != 1)}, {domain})"

    def __len__(self) -> int:
        return int(self.low.size)

    @classmethod
    def of(cls, names: Iterable[str], *, low: int = 0, decimals: int = 0) -> Knowledge:
        """Cells of which only a lower bound is known; by default, that they are not negative."""
        named = tuple(names)
        return cls(
            names=named,
            low=np.full(len(named), low, dtype=np.int64),
            high=np.full(len(named), UNBOUNDED, dtype=np.int64),
            matrix=sparse.csr_array((0, len(named)), dtype=np.int64),
            fact_low=np.zeros(0, dtype=np.int64),
            fact_high=np.zeros(0, dtype=np.int64),
            decimals=decimals,
        )

    def cell(self, ref: CellRef) -> int:
        if isinstance(ref, (int, np.integer)):
            if not 0 <= ref < len(self):
                raise InputError(f"There is no cell {ref}; there are {len(self)}, from 0 on.")
            return int(ref)
        if isinstance(ref, str):
            check_known((ref,), self.names, "There is no cell")
            return self.names.index(ref)
        if self.structure is None:
            raise InputError(
                "These cells do not come from a table, so they have no codes; use names."
            )
        return self.structure.cell(0, ref)

    def table(self, index: int) -> slice:
        """The places of the cells of a table among all cells."""
        if self.structure is None or not 0 <= index < len(self.structure.tables):
            raise InputError(f"There is no table {index} behind these cells.")
        first, last = self.structure.offsets[index : index + 2]
        return slice(int(first), int(last))

    def bound(self, ref: CellRef, low: int | None = None, high: int | None = None) -> Knowledge:
        """The same knowledge with another bound for one cell."""
        cell = self.cell(ref)
        lows, highs = self.low.copy(), self.high.copy()
        if low is not None:
            lows[cell] = max(lows[cell], low)
        if high is not None:
            highs[cell] = min(highs[cell], high)
        return replace(self, low=lows, high=highs)

    def within(self, low: npt.ArrayLike, high: npt.ArrayLike) -> Knowledge:
        """The same knowledge with prior bounds for all cells."""
        lows = np.maximum(self.low, np.asarray(low, dtype=np.int64))
        return replace(self, low=lows, high=np.minimum(self.high, np.asarray(high, dtype=np.int64)))

    def estimated(
        self, values: npt.ArrayLike, percent: float, cells: Iterable[CellRef] | None = None
    ) -> Knowledge:
        """The same knowledge of a reader who could already estimate cells to within this many percent.

        This is the prior knowledge of the pq-rule (Domingo-Ferrer, Oganian and Torra 2002, section 2):
        value v is known to lie between ``v (1 - q/100)`` and ``v (1 + q/100)``. The values are those
        of all cells, or of the cells named.
        """
        if not 0 <= percent < np.inf:
            raise InputError(f"An estimate cannot be within {percent} percent; give 0 or more.")
        picks = np.arange(len(self)) if cells is None else np.array([self.cell(c) for c in cells])
        about = np.asarray(values, dtype=np.int64)
        if about.shape != picks.shape:
            raise InputError(
                f"{picks.size} cells are estimated, but {about.size} values were given."
            )
        # Bounds are rounded towards the value; the small term keeps 20 percent of 5 at 1.
        reach = np.floor(np.abs(about) * (percent / 100.0) + 1e-9).astype(np.int64)
        lows, highs = self.low.copy(), self.high.copy()
        lows[picks] = np.maximum(lows[picks], about - reach)
        highs[picks] = np.minimum(highs[picks], about + reach)
        return replace(self, low=lows, high=highs)

    def zero(self, cells: Iterable[CellRef] | Mask) -> Knowledge:
        """The same knowledge with structural zeros: these cells hold nobody."""
        if isinstance(cells, np.ndarray) and cells.dtype == np.bool_:
            if cells.size != len(self):
                raise InputError(f"The mask has {cells.size} entries; there are {len(self)} cells.")
            picks = np.flatnonzero(cells.ravel())
        else:
            picks = np.array([self.cell(c) for c in cells], dtype=np.intp)
        lows, highs = self.low.copy(), self.high.copy()
        lows[picks] = np.maximum(lows[picks], 0)
        highs[picks] = np.minimum(highs[picks], 0)
        return replace(self, low=lows, high=highs)

    def fact(
        self, weights: Mapping[str, int], low: int = -UNBOUNDED, high: int = UNBOUNDED
    ) -> Knowledge:
        """The same knowledge with another fact: a weighted sum of cells lies between two ends."""
        row = np.zeros((1, len(self)), dtype=np.int64)
        for name, weight in weights.items():
            if weight != int(weight):
                raise InputError(f"The weight of {name!r} in a fact must be a whole number.")
            row[0, self.cell(name)] += int(weight)
        return replace(
            self,
            matrix=sparse.vstack([self.matrix, sparse.csr_array(row)]),
            fact_low=np.append(self.fact_low, low),
            fact_high=np.append(self.fact_high, high),
        )

    def relaxed(self) -> Knowledge:
        """The same facts about real numbers, as linear programming treats them."""
        return replace(self, whole=False)


def _tidy(matrix: Sparse) -> Sparse:
    """A matrix whose entries are what its facts say: one for a cell of a fact, and none that is 0.

    A cell with a weight of 0 would count as tied to the fact, and two entries for one cell as two facts.
    """
    rows = sparse.csr_array(matrix)
    if rows.has_canonical_format and bool(rows.data.all()):
        return rows
    rows = rows.copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows
