"""The table-level entropy risk of Shlomo, Antal and Elliot (2015), before and after protection.

Four terms, each from 0 to 1, over the inner cells of a table of counts. Structural zeros are left out, which
is our choice: what everybody knows to be empty tells nobody anything.

- *zeros*: the share of empty cells, ``|A| / K``; after protection
  ``(|A| / K) ** (|A or B| / |A and B|)`` with ``B`` the published zeros (section 4.2), and 0 where the two
  share no cell.
- *small* and *large*: ``1 - H / log K`` (equation 2) over the cells with counts of at most ``split``
  (zeros included) and over the others, each with its own ``N`` and ``K``. After protection
  every published value ``j`` is replaced by ``sum_i i n_i p_ij / n'_j``, and the term is multiplied by the
  mean probability that a value of its part stays what it is.
- *size*: ``(1 + log sqrt N) / sqrt N``, the third term of equation 3; protection leaves it alone.

The risk is their weighted sum, or their L2 norm over ``sqrt 4`` when no weights are wanted.

It lies between 0 and 1, and an empty cell more never lowers it. A large count alone in its part has only the
weight of that part: a thousand people who all share one cell are *not* reported as a high risk, as the measure
without a split, :func:`~lustrum.risk.r1.r1`, does.

The paper also asks (property e) that protection always lowers the risk. **It does not always**: an entropy term
can rise; the page on risk shows how. A term never rises whose value before was at least the mean probability to
stay, and without a split none ever rises if every value is published exactly as often as the channel makes one
expect. ``shared="expected"`` and ``parts="true"``, the defaults of :class:`EntropyRisk`, bring the measure near
to that; they look at true counts, so the figure is the agency's own. The paper's form is
:class:`PaperEntropyRisk`, by name ``table-entropy-2015``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import Channel, InputError, Release, Table
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.model.channel import ObservedChannel
from lustrum.model.parameters import parameter
from lustrum.model.release import check_release
from lustrum.model.table import check_table
from lustrum.numeric.arithmetic import log
from lustrum.risk.batch import terms_of_many
from lustrum.risk.counts import as_counts, check_scale
from lustrum.risk.entropy import share_to_power, size_of
from lustrum.risk.measure import RiskSpec

Shared = Literal["observed", "expected"]
Parts = Literal["published", "true"]


@dataclass(frozen=True)
class RiskTerms:
    """The four terms, each from 0 (no risk) to 1."""

    zeros: float
    small: float
    large: float
    size: float

    def as_tuple(self) -> tuple[float, float, float, float]:
        return self.zeros, self.small, self.large, self.size


@dataclass(frozen=True)
class EntropyRisk(RiskSpec):
    """The measure with its parameters; higher is riskier, from 0 to 1.

    The defaults of ``parts`` and ``shared`` keep the risk from rising after protection;
    :class:`PaperEntropyRisk` has the paper's.

    >>> risk = EntropyRisk()
    >>> uniform, lonely = Table.from_counts([[50, 50], [50, 50]]), Table.from_counts([[1, 0], [0, 0]])
    >>> risk.before(uniform) < 0.1 < 0.7 < risk.before(lonely)
    True
    """

    name: ClassVar[str] = "table-entropy"
    measures_releases: ClassVar[bool] = True
    weights: tuple[float, float, float, float] | Literal["l2"] = parameter(
        (0.1, 0.7, 0.1, 0.1),
        "Weights of zeros, small counts, large counts and size, which add up to 1; or their L2 norm.",
        least=0,
    )
    split: int = parameter(6, "The largest small count.", least=1)
    parts: Parts = parameter(
        "true", "Whose values separate small from large counts after protection."
    )
    shared: Shared = parameter(
        "expected",
        "By which cells the people behind a published value are divided: those that show it, or as many as "
        "are expected to.",
    )

    def check_together(self) -> None:
        """The weights add up."""
        if self.weights != "l2" and abs(sum(self.weights) - 1) > 1e-9:
            raise InputError(
                "The weights of the entropy risk must be four numbers of 0 or more that add up to 1 "
                "(zeros, small, large, size)."
            )

    def before(self, table: Table) -> float:
        return self.combine(self.terms_before(table))

    def after(self, table: Table, release: Release) -> float:
        return self.combine(self.terms_after(table, release))

    def combine(self, terms: RiskTerms) -> float:
        """The weighted sum, or the L2 norm over the square root of the number of terms."""
        return float(self._combined(tuple(np.array(term) for term in terms.as_tuple())))

    def of_many(self, tables: Ints, published: Ints, channel: Channel) -> tuple[Floats, Floats]:
        """The risk before and after of tables, one a row, that may stand behind the same published numbers.

        Every table has two cells or more and somebody in it.
        """
        terms = terms_of_many(tables, published, channel, self.split, self.parts, self.shared)
        return self._combined(terms.before), self._combined(terms.after)

    def _combined(self, terms: tuple[Floats, ...]) -> Floats:
        values = np.stack(terms, axis=-1)
        if self.weights == "l2":
            return np.asarray(np.sqrt((values**2).sum(axis=-1) / values.shape[-1]))
        return np.asarray((values * np.array(self.weights)).sum(axis=-1))

    def terms_before(self, table: Table) -> RiskTerms:
        check_table(table, f"The risk measure {self.name!r}")
        return self.terms_of_counts(table.values[_cells(table)])

    def terms_after(self, table: Table, release: Release) -> RiskTerms:
        """The four terms after protection.

        A release without a channel, because what a cell shows depends on the rest of its table, is judged
        by what became of the values of this very table.
        """
        check_table(table, f"The risk measure {self.name!r}")
        check_release(release, f"The risk measure {self.name!r}")
        if release.shape != table.shape:
            raise InputError("The release and its table have different shapes; they must be equal.")
        cells = _cells(table)
        if not release.shown[cells].all():
            raise InputError(
                "The release has suppressed cells; the entropy risk is for methods that show all."
            )
        true, published = table.values[cells], release.numbers[cells]
        channel = release.channel or ObservedChannel(true, published)
        return self.terms_of_published(true, published, channel)

    def terms_of_counts(self, counts: npt.ArrayLike) -> RiskTerms:
        """The four terms of plain counts (equation 3, its entropy term split).

        >>> terms = EntropyRisk().terms_of_counts([0, 0, 1, 2, 4, 0, 12, 31, 50, 20])
        >>> [round(term, 4) for term in terms.as_tuple()]
        [0.3, 0.4666, 0.0909, 0.3098]
        """
        F = whole_counts(counts)
        is_small = np.less_equal(F, self.split)
        return RiskTerms(
            zeros=float((F == 0).mean()),
            small=entropy_term(F[is_small]),
            large=entropy_term(F[~is_small]),
            size=size_term(int(F.sum())),
        )

    def terms_of_published(
        self, counts: npt.ArrayLike, published: npt.ArrayLike, channel: Channel
    ) -> RiskTerms:
        """The four terms of plain counts that a channel has published as others (section 4.2)."""
        F = whole_counts(counts)
        G = np.asarray(published).ravel()
        if G.shape != F.shape:
            raise InputError("The published and the true counts differ in number; they must not.")
        G = G.astype(np.int64)
        expected = expected_behind(F, G, channel, self.shared)
        is_small = (G if self.parts == "published" else F) <= self.split
        return RiskTerms(
            zeros=zeros_term(F == 0, G == 0),
            small=entropy_term(expected[is_small]) * channel.stay(0, self.split),
            large=entropy_term(expected[~is_small]) * channel.stay(self.split + 1, None),
            size=size_term(int(F.sum())),
        )


@dataclass(frozen=True)
class PaperEntropyRisk(EntropyRisk):
    """The measure as it is printed in the paper; protection can raise it."""

    name: ClassVar[str] = "table-entropy-2015"
    parts: Parts = parameter(
        "published", "Whose values separate small from large counts after protection."
    )
    shared: Shared = parameter(
        "observed",
        "By which cells the people behind a published value are divided: those that show it, or as many as "
        "are expected to.",
    )


def entropy_term(values: npt.ArrayLike) -> float:
    """``1 - H / log K`` of a part of a table (equation 2).

    A part without people carries no risk of this kind. A part of one cell has no scale, as
    ``log 1 = 0``; everybody in the part is certainly in that cell, hence 1.

    >>> entropy_term([5, 5, 5, 5]), entropy_term([7, 0, 0]), entropy_term([])
    (0.0, 1.0, 0.0)
    """
    array = np.asarray(values, dtype=np.float64).ravel()
    if not np.isfinite(array).all() or (array < 0).any():
        raise InputError(
            "An entropy is of numbers of 0 or more; NaN, infinity or less is among them."
        )
    total = float(array.sum())
    if array.size == 0 or total <= 0:
        return 0.0
    if array.size == 1:
        return 1.0
    share = array[array > 0] / total
    entropy = float(-(share * log(share)).sum())
    return min(1.0, max(0.0, 1.0 - entropy / float(log(array.size))))


def size_term(people: int) -> float:
    """``-(1 / sqrt N) log(1 / (e sqrt N))``, which is 1 for one person and falls towards 0.

    >>> size_term(1), round(size_term(100), 4)
    (1.0, 0.3303)
    """
    if people < 1:
        raise InputError(
            "A table without anybody in it has no entropy; it needs at least one person."
        )
    return float(size_of(people))


def zeros_term(before: Mask, after: Mask) -> float:
    """``(|A| / K) ** (|A or B| / |A and B|)``: never more than the share of true zeros.

    >>> round(zeros_term(np.arange(10) < 1, np.arange(10) < 2), 12)
    0.01
    """
    both = int((before & after).sum())
    if both == 0:
        return 0.0
    return float(share_to_power(before.mean(), (before | after).sum() / both))


def expected_behind(
    counts: Ints, published: Ints, channel: Channel, shared: Shared = "observed"
) -> Floats:
    """For each published cell, the mean true total behind the cells published with its value.

    ``sum_i i n_i p_ij / n'_j`` with ``n'_j`` the cells that show ``j`` (section 4.2), or, shared by
    expectation, ``sum_i i n_i p_ij / sum_i n_i p_ij``: what a reader who knows how often each true value
    occurs expects behind ``j``. Where the channel leads nobody to ``j``, the first is 0, and for the
    second nothing is known but ``j`` itself.

    >>> from lustrum.protect import ConventionalRounding
    >>> table = Table.from_counts([1, 2, 3])
    >>> release = ConventionalRounding(base=3).apply(table)
    >>> expected_behind(table.values, release.published, release.channel).tolist()
    [1.0, 2.5, 2.5]
    """
    true, frequency = np.unique(counts, return_counts=True)
    values, inverse, seen = np.unique(published, return_inverse=True, return_counts=True)
    rows = channel.transitions(true)
    column = np.minimum(np.searchsorted(values, rows.published), values.size - 1)
    cells = np.where(
        values[column] == rows.published, frequency[rows.origin] * rows.probability, 0.0
    )
    people = np.bincount(column, weights=cells * true[rows.origin], minlength=values.size)
    if shared == "observed":
        return np.asarray((people / seen)[inverse.ravel()], dtype=np.float64)
    shown = np.bincount(column, weights=cells, minlength=values.size)
    known = shown > 0
    mean = np.where(known, people / np.where(known, shown, 1.0), values)
    return np.asarray(mean[inverse.ravel()], dtype=np.float64)


def whole_counts(counts: npt.ArrayLike) -> Ints:
    """Counts as a flat array of integers with an entropy scale, or one sentence about why not."""
    flat = as_counts(counts).ravel()
    check_scale(flat)
    return flat


def _cells(table: Table) -> Mask:
    """The cells that are measured: inner ones that can hold somebody."""
    if table.kind != "count" or table.decimals:
        raise InputError("The entropy risk is for tables of whole counts.")
    return table.inner if table.structural is None else table.inner & ~table.structural
