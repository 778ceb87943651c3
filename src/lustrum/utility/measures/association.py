"""What becomes of relations between variables: association, ranks, areas and conditional shares.

Chi-square and Cramér's V need two variables. In a table of more, two axes can be chosen, and the others are
summed over; without a choice the first axis stands against all others together, each combination of these being
one column.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats
from lustrum.model.errors import choices
from lustrum.model.parameters import parameter
from lustrum.utility.impute import Impute, axis_position, suppressed_cells
from lustrum.utility.measure import Better, UtilitySpec, as_pair, compare


@dataclass(frozen=True)
class ChiSquareChange(UtilitySpec):
    """``|X2(G) - X2(F)|``; from 0 up, lower is better.

    >>> ChiSquareChange(axes=("sex", "age")).better
    'lower'
    """

    name: ClassVar[str] = "chi-square-change"
    axes: tuple[str, str] | None = parameter(
        None, "The two variables; a table of two needs no names."
    )
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        original, published = _two_way(table, release, self.axes, self.impute)
        return abs(chi_square(published) - chi_square(original))


@dataclass(frozen=True)
class CramersVChange(UtilitySpec):
    """``|V(G) - V(F)|``; from 0 to 1, lower is better."""

    name: ClassVar[str] = "cramers-v-change"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    axes: tuple[str, str] | None = parameter(
        None, "The two variables; a table of two needs no names."
    )
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The change that a release makes to Cramér's V."""
        original, published = _two_way(table, release, self.axes, self.impute)
        return abs(cramers_v(published) - cramers_v(original))


def chi_square(counts: npt.ArrayLike) -> float:
    """``sum (F - E)**2 / E`` with ``E`` the counts under independence; empty rows and columns are dropped.

    >>> chi_square([[10, 0], [0, 10]]), chi_square([[1, 2], [2, 4]])
    (20.0, 0.0)
    """
    array = _filled(counts)
    total = array.sum()
    expected = array.sum(axis=1, keepdims=True) * array.sum(axis=0, keepdims=True) / total
    return float(((array - expected) ** 2 / expected).sum())


def cramers_v(counts: npt.ArrayLike) -> float:
    """``sqrt(X2 / (N (min(rows, columns) - 1)))`` over rows and columns with anybody in them.

    From 0, independent, to 1, one variable tells the other.

    >>> cramers_v([[10, 0], [0, 10]])
    1.0
    """
    array = _filled(counts)
    smaller = min(array.shape)
    if smaller < 2:
        raise InputError("Cramér's V needs two populated rows and two populated columns.")
    return min(1.0, float(np.sqrt(chi_square(array) / (array.sum() * (smaller - 1)))))


def _filled(counts: npt.ArrayLike) -> Floats:
    array = np.asarray(counts, dtype=np.float64)
    if array.ndim != 2:
        raise InputError("A chi-square statistic is of a two-way table.")
    if not np.isfinite(array).all() or (array < 0).any():
        raise InputError("A chi-square statistic is of counts of 0 or more.")
    array = array[array.sum(axis=1) > 0][:, array.sum(axis=0) > 0]
    if not array.size:
        raise InputError("A table without anybody in it has no chi-square statistic.")
    return np.asarray(array)


def _two_way(
    table: Table, release: Release, axes: tuple[str, str] | None, impute: Impute
) -> tuple[Floats, Floats]:
    pair = compare(table, release, impute)
    if len(table.axes) < 2:
        raise InputError("Association needs a table of two variables or more.")
    if axes is None:
        rows = pair.original.shape[0]
        return pair.original.reshape(rows, -1), pair.published.reshape(rows, -1)
    if axes[0] == axes[1]:
        raise InputError("Association is between two different axes.")
    row, column = (axis_position(table.axes, name) for name in axes)
    others = tuple(a for a in range(len(table.axes)) if a not in (row, column))
    original, published = pair.original.sum(axis=others), pair.published.sum(axis=others)
    return (original, published) if row < column else (original.T, published.T)


# Whether large cells stay large: Spearman's rank correlation between true and published cells.


@dataclass(frozen=True)
class RankCorrelation(UtilitySpec):
    """Spearman's correlation over the inner cells; from -1 to 1, higher is better."""

    name: ClassVar[str] = "rank-correlation"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    better: ClassVar[Better] = "higher"
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        return rank_correlation(*compare(table, release, self.impute).cells)


def rank_correlation(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """The product-moment correlation of average ranks, which is right with ties too.

    >>> rank_correlation([1, 2, 3], [10, 20, 30]), rank_correlation([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    F, G = as_pair(original, published)
    ranks = [average_ranks(x.ravel()) for x in (F, G)]
    first, second = (r - r.mean() for r in ranks)
    scale = float(np.sqrt((first**2).sum() * (second**2).sum()))
    if scale == 0:
        raise InputError("Cells that are all equal have no ranks to correlate.")
    return min(1.0, max(-1.0, float((first * second).sum()) / scale))


def average_ranks(values: Floats) -> Floats:
    """Ranks from 1, equal values sharing the mean of the ranks that they take up.

    >>> average_ranks(np.array([5.0, 1.0, 5.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, inverse, number = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(number)
    return np.asarray((last - (number - 1) / 2)[inverse.ravel()], dtype=np.float64)


# Differences between areas: how much the variance of a proportion across areas changes.
#
# Perturbation tends to blur areas into each other, or to add differences that are not there. For one category
# of a variable, its share in each area is taken, and the variance of these shares over the areas.


@dataclass(frozen=True)
class BetweenVarianceChange(UtilitySpec):
    """``|ratio - 1|`` with the variance after over that before; from 0 up, lower is better.

    ``area`` is the axis whose categories are compared, ``variable`` and ``category`` what is counted there.
    All other axes are summed over. :func:`between_variance_ratio` gives the ratio itself: below 1
    the areas look more alike than they are, above 1 less.
    """

    name: ClassVar[str] = "between-variance-change"
    area: str = parameter(MISSING, "The variable whose categories are the areas.")
    variable: str = parameter(MISSING, "The variable whose shares are compared between areas.")
    category: str = parameter(MISSING, "The category of that variable.")
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        pair = compare(table, release, self.impute)
        area, variable = (axis_position(table.axes, n) for n in (self.area, self.variable))
        if area == variable:
            raise InputError("The areas and the variable counted in them must be different axes.")
        axis = table.axes[variable]
        codes = [c for c, is_inner in zip(axis.codes, axis.inner, strict=True) if is_inner]
        if self.category not in codes:
            raise InputError(
                f"The axis {self.variable!r} has no inner category {self.category!r}; "
                f"{choices(self.category, codes)}."
            )
        index = codes.index(self.category)
        others = tuple(a for a in range(len(table.axes)) if a != area)
        whole = tuple(x.sum(axis=others) for x in (pair.original, pair.published))
        part = tuple(
            np.take(x, [index], axis=variable).sum(axis=others)
            for x in (pair.original, pair.published)
        )
        return abs(between_variance_ratio(part[0], whole[0], part[1], whole[1]) - 1.0)


def between_variance(part: npt.ArrayLike, whole: npt.ArrayLike) -> float:
    """``sum (p_a - mean p)**2 / (A - 1)`` of the shares ``p_a = part_a / whole_a`` over the ``A`` areas.

    Areas without anybody have no share and are left out.

    >>> between_variance([1, 3, 0], [4, 4, 0])
    0.125
    """
    counted, total = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    if counted.shape != total.shape:
        raise InputError("Parts and wholes must be of the same areas.")
    populated = total > 0
    if np.count_nonzero(populated) < 2:
        raise InputError("A variance between areas needs two areas with somebody in them.")
    return float(np.var(counted[populated] / total[populated], ddof=1))


def between_variance_ratio(
    part: npt.ArrayLike,
    whole: npt.ArrayLike,
    published_part: npt.ArrayLike,
    published_whole: npt.ArrayLike,
) -> float:
    """The variance between areas as published over the true one.

    >>> between_variance_ratio([1, 3], [4, 4], [2, 2], [4, 4])
    0.0
    """
    true = between_variance(part, whole)
    if true == 0:
        raise InputError("The areas do not differ, so there is no variance to compare with.")
    return between_variance(published_part, published_whole) / true


# The error of conditional probabilities: what a reader would say of one variable, given others.

Summary = Literal["mean", "largest"]


@dataclass(frozen=True)
class ConditionalError(UtilitySpec):
    """The mean or largest ``|P(v | g) - Q(v | g)|`` of a variable given others; lower is better, 0 to 1.

    ``given`` names the axes that are known, by default all but the variable; the rest is summed over.
    """

    name: ClassVar[str] = "conditional-error"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    variable: str = parameter(MISSING, "The variable whose probabilities are compared.")
    given: tuple[str, ...] | None = parameter(
        None, "The variables that are given; by default all others of the table."
    )
    summary: Summary = parameter("mean", "The mean or the largest error.")
    impute: Impute = suppressed_cells()

    def check_together(self) -> None:
        """No variable is given and asked for at once."""
        if self.given is not None and self.variable in self.given:
            raise InputError("A variable cannot be given and asked for at once.")

    def of(self, table: Table, release: Release) -> float:
        pair = compare(table, release, self.impute)
        asked = axis_position(table.axes, self.variable)
        names = [a.name for a in table.axes if a.name != self.variable]
        given_axes = {
            axis_position(table.axes, n) for n in (names if self.given is None else self.given)
        }
        others = tuple(a for a in range(len(table.axes)) if a != asked and a not in given_axes)
        along = asked - sum(a < asked for a in others)
        errors = conditional_errors(
            pair.original.sum(axis=others), pair.published.sum(axis=others), along
        )
        return float(errors.mean() if self.summary == "mean" else errors.max())


def conditional_errors(original: npt.ArrayLike, published: npt.ArrayLike, axis: int) -> Floats:
    """``|P - Q|`` along an axis, for every combination of the others that has anybody in it.

    Where nobody is published although there is somebody, the published probabilities count as 0.

    >>> conditional_errors([[1, 1], [0, 0]], [[3, 1], [0, 2]], axis=1).tolist()
    [0.25, 0.25]
    """
    F, G = as_pair(original, published, signed=False)
    lines = np.moveaxis(F, axis, -1).reshape(-1, F.shape[axis])
    shown = np.moveaxis(G, axis, -1).reshape(-1, F.shape[axis])
    populated = lines.sum(axis=1) > 0
    if not populated.any():
        raise InputError("A table without anybody in it has no conditional probabilities.")
    lines, shown = lines[populated], shown[populated]
    total = shown.sum(axis=1, keepdims=True)
    share = np.where(total > 0, shown / np.where(total > 0, total, 1.0), 0.0)
    return np.asarray(np.abs(lines / lines.sum(axis=1, keepdims=True) - share).ravel())
