"""The table-level entropy risk of Shlomo, Antal and Elliot (2015), before and after protection.

Four terms, each from 0 to 1, over the inner cells of a table of counts (structural zeros left out: what
everybody knows to be empty tells nobody anything):

- *zeros*: the share of empty cells, ``|A| / K``; after protection
  ``(|A| / K) ** (|A or B| / |A and B|)`` with ``B`` the published zeros (section 4.2).
- *small* and *large*: ``1 - H / log K`` (equation 2) over the cells with counts of at most ``split``
  (zeros included) and over the others, each with its own ``N`` and ``K``. After protection
  every published value ``j`` is replaced by ``sum_i i n_i p_ij / n'_j``, and the term is multiplied by the
  mean probability that a value stays what it is.
- *size*: ``(1 + log sqrt N) / sqrt N``, the third term of equation 3.

The risk is their weighted sum, or their L2 norm over ``sqrt 4`` when no weights are wanted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import Channel, InputError, Release, Table

__all__ = ["EntropyRisk", "RiskTerms", "entropy_term", "size_term"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RiskTerms:
    """The four terms, each from 0 (no risk) to 1."""

    zeros: float
    small: float
    large: float
    size: float

    def as_tuple(self) -> tuple[float, float, float, float]:
        """In the order of the weights."""
        return self.zeros, self.small, self.large, self.size


@dataclass(frozen=True)
class EntropyRisk:
    """The measure with its parameters; higher is riskier, from 0 to 1.

    >>> risk = EntropyRisk()
    >>> uniform, lonely = Table.from_counts([[50, 50], [50, 50]]), Table.from_counts([[1, 0], [0, 0]])
    >>> risk.before(uniform) < 0.1 < 0.7 < risk.before(lonely)
    True
    """

    name: ClassVar[str] = "table-entropy"
    weights: tuple[float, float, float, float] | None = (0.1, 0.7, 0.1, 0.1)
    split: int = 6

    def __post_init__(self) -> None:
        if self.split < 1:
            raise InputError(
                f"The split between small and large counts is {self.split}; it must be 1 or more."
            )
        if self.weights is None:
            return
        count = len(tuple(self.weights))
        if count != 4 or min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-9:
            raise InputError(
                "The weights of the entropy risk must be four numbers of 0 or more that add up to 1 "
                "(zeros, small, large, size)."
            )

    def before(self, table: Table) -> float:
        """The risk of publishing the table as it is."""
        return self.combine(self.terms_before(table))

    def after(self, table: Table, release: Release) -> float:
        """The risk of the release."""
        return self.combine(self.terms_after(table, release))

    def combine(self, terms: RiskTerms) -> float:
        """The weighted sum, or the L2 norm over the square root of the number of terms."""
        values = np.array(terms.as_tuple())
        if self.weights is None:
            return float(np.sqrt((values**2).sum() / values.size))
        return float(values @ np.array(self.weights))

    def terms_before(self, table: Table) -> RiskTerms:
        """The four terms of the original table."""
        counts = table.values[_cells(table)]
        is_small = counts <= self.split
        return RiskTerms(
            zeros=float((counts == 0).mean()),
            small=entropy_term(counts[is_small].astype(np.float64)),
            large=entropy_term(counts[~is_small].astype(np.float64)),
            size=size_term(int(counts.sum())),
        )

    def terms_after(self, table: Table, release: Release) -> RiskTerms:
        """The four terms after protection by a random method whose channel is known."""
        cells = _cells(table)
        counts = table.values[cells]
        if release.shape != table.shape:
            raise InputError("The release and its table have different shapes; they must be equal.")
        if release.channel is None:
            raise InputError("The release has no channel, which this risk measure needs.")
        published = release.published[cells]
        expected = _expected(counts, published, release.channel)
        is_small = published <= self.split
        stay = release.channel.stay
        return RiskTerms(
            zeros=_zeros_after(counts == 0, published == 0),
            small=entropy_term(expected[is_small]) * stay(0, self.split),
            large=entropy_term(expected[~is_small]) * stay(self.split + 1, None),
            size=size_term(int(counts.sum())),
        )

    def to_mapping(self) -> dict[str, Any]:
        """The measure in the words of a policy file."""
        weights = "l2" if self.weights is None else list(self.weights)
        return {"measure": self.name, "weights": weights, "split": self.split}


def entropy_term(values: Floats) -> float:
    """``1 - H / log K`` of a part of a table (equation 2).

    A part without people carries no risk of this kind; a part of one cell is certain, hence 1.
    """
    total = float(values.sum())
    if values.size == 0 or total <= 0:
        return 0.0
    if values.size == 1:
        return 1.0
    share = values[values > 0] / total
    entropy = float(-(share * np.log(share)).sum())
    return min(1.0, max(0.0, 1.0 - entropy / float(np.log(values.size))))


def size_term(people: int) -> float:
    """``-(1 / sqrt N) log(1 / (e sqrt N))``, which is 1 for one person and falls towards 0."""
    root = float(np.sqrt(people))
    return (1.0 + float(np.log(root))) / root


def _zeros_after(before: npt.NDArray[np.bool_], after: npt.NDArray[np.bool_]) -> float:
    both = int((before & after).sum())
    if both == 0:
        return 0.0
    return float(before.mean() ** ((before | after).sum() / both))


def _expected(counts: Ints, published: Ints, channel: Channel) -> Floats:
    """For each published cell, the mean true total behind the cells published with its value."""
    true, frequency = np.unique(counts, return_counts=True)
    rows = channel.transitions(true)
    values, inverse, seen = np.unique(published, return_inverse=True, return_counts=True)
    place = np.searchsorted(values, rows.published)
    hit = (place < values.size) & (values[np.minimum(place, values.size - 1)] == rows.published)
    mass = (true * frequency)[rows.origin] * rows.probability
    total = np.bincount(place[hit], weights=mass[hit], minlength=values.size)
    return np.asarray((total / seen)[inverse], dtype=np.float64)


def _cells(table: Table) -> npt.NDArray[np.bool_]:
    """The cells that are measured: inner ones that can hold somebody."""
    if table.kind != "count" or table.decimals:
        raise InputError("The entropy risk is for tables of whole counts.")
    cells = table.inner if table.structural is None else table.inner & ~table.structural
    if np.count_nonzero(cells) < 2:
        raise InputError("A table of one cell has no entropy scale; it needs two cells or more.")
    if not table.values[cells].any():
        raise InputError(
            "A table without anybody in it has no entropy; it needs at least one person."
        )
    return cells
