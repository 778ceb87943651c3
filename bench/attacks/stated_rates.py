"""Whether the public rates of errors are true: all tables are counted, size of count by size of error.

A reader's belief, and so the risk and the utility beside an answer, follows from these rates. A rate is a power
of one half that the key moved, so that it may be off by a factor of two; tables at finest levels, which are
counted here, err a little differently from those at all levels, over which rates are stated. The control states
for small counts what holds for the largest ones, as a fallback to the widest errors once did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lustrum.model.finest import FinestCells

Array = np.ndarray[Any, Any]
Rates = tuple[tuple[int, ...], ...]
FACTOR = 3.0
COMMON = 1 / 16
"""Rates above this must be true within the factor; rarer errors must not be stated as common ones."""
FEWEST = 1000
_SIZES = ("0", "below the base", "to 3 bases", "to 10 bases", "larger")


class TrueTables(Protocol):
    """True tables, and which of their cells can hold anybody."""

    def by(self, variables: tuple[str, ...]) -> Array:
        """The true table over some variables."""
        ...

    def possible(self, variables: tuple[str, ...]) -> Array:
        """Which cells of it can hold anybody."""
        ...


def beside(
    shown: FinestCells, variables: tuple[str, ...], truth: TrueTables
) -> tuple[Array, Array]:
    """The true and the shown counts of a table, over the cells that can hold anybody."""
    true, possible = truth.by(variables), truth.possible(variables)
    codes = shown.columns()
    places = np.ravel_multi_index([codes[v].astype(np.int64) for v in variables], true.shape)
    sums = np.bincount(places, weights=shown.counts, minlength=true.size).astype(np.int64)
    return true[possible], sums.reshape(true.shape)[possible]


def counted(tables: Iterable[tuple[Array, Array]], base: int) -> Array:
    """Cells by size of the true count and size of the error, over tables of true and shown counts."""
    found = np.zeros((5, 8), dtype=np.int64)
    for true, shown in tables:
        size = np.digitize(true, [1, base, 3 * base, 10 * base])
        ends = [1, *(base * k for k in (1, 2, 3, 5, 8, 13))]
        error = np.digitize(np.abs(shown - true), ends)
        np.add.at(found, (size.ravel(), error.ravel()), 1)
    return found


@dataclass(frozen=True)
class RatesReport:
    """Stated rates beside those counted, and how many are wrong; also in the control."""

    stated: Rates
    cells: Array

    @property
    def shares(self) -> Array:
        """How often counts of a size err by so much."""
        return np.asarray(self.cells / np.maximum(self.cells.sum(axis=1, keepdims=True), 1))

    def wrong(self, stated: Rates) -> int:
        """Rates that are not those of the tables, over sizes with enough cells."""
        rates = 0.5 ** np.array(stated, dtype=np.float64)
        enough = (self.cells.sum(axis=1) >= FEWEST)[:, None]
        common = self.shares >= COMMON
        off = common & ((rates > FACTOR * self.shares) | (rates < self.shares / FACTOR))
        rare = ~common & (rates > FACTOR * COMMON)
        return int((enough & (off | rare)).sum())

    @property
    def control(self) -> Rates:
        """The rates of the largest counts for all that are not 0."""
        return (self.stated[0], *([self.stated[-1]] * (len(self.stated) - 1)))

    @property
    def holds(self) -> bool:
        """No rate is wrong, and the comparison finds those of the control."""
        return not self.wrong(self.stated) and self.wrong(self.control) > 0

    def rows(self) -> Iterator[tuple[str, str]]:
        """The report, line by line."""
        rates = 0.5 ** np.array(self.stated, dtype=np.float64)
        for size, cells, shares, said in zip(_SIZES, self.cells, self.shares, rates, strict=True):
            found = ", ".join(
                f"{s:.1%} ({r:.1%})" for s, r in zip(shares[:5], said[:5], strict=True)
            )
            yield (
                f"true counts {size}, errors of 0, below 1, 2, 3 and 5 bases (stated)",
                f"{cells.sum():,} cells: {found}",
            )
        yield (
            "rates that are wrong",
            f"{self.wrong(self.stated)} (widest errors stated for all: {self.wrong(self.control)})",
        )
