"""Channels given by a transition matrix: how a random method turns true counts into published ones.

A matrix ``P`` for the values 0 to ``L`` has ``P[i, j] = P(published j | true i)``. Counts above the cap ``L``
need rows too. With ``residue_base = b`` the last ``b`` rows repeat: a count above the cap moves by the same
steps, with the same probabilities, as the one among the last ``b`` values that differs from it by a
multiple of ``b``. That is the layout of Shlomo, Antal and Elliot (2015), Table 3, with ``b = 5``; with
``b = 1`` all counts above the cap move alike, as in their section 3.3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Floats, Indices, Ints
from lustrum.model.errors import InputError
from lustrum.model.release import Channel, Transitions

_ROUNDING_ERROR = 1e-9
_WIDE = 100_000
_NO_BOUND = 2**62


@dataclass(frozen=True, eq=False)
class MatrixChannel:
    """A transition matrix for the values from 0 up, with rows above the cap if wanted.

    Without ``residue_base`` a count above the cap is an error, as nothing says what becomes of it. The last
    value of a square matrix cannot move up. With more columns than rows it may reach ``L + 1`` and more, so
    that all counts above can move up and down alike (``residue_base=1``).

    >>> flip = MatrixChannel([[0.75, 0.25], [0.25, 0.75]])
    >>> flip
    MatrixChannel(values 0 to 1)
    >>> flip.stay(0, 1)
    0.75
    >>> coin = MatrixChannel([[1.0, 0.0, 0.0], [0.25, 0.5, 0.25]], residue_base=1)
    >>> coin.transitions(np.array([7])).published.tolist()
    [6, 7, 8]
    >>> [bound.tolist() for bound in coin.support(np.array([0, 2]))]
    [[0, 1], [1, 3]]
    """

    matrix: Floats
    residue_base: int | None = None

    def __init__(self, matrix: npt.ArrayLike, residue_base: int | None = None) -> None:
        object.__setattr__(self, "matrix", _checked(matrix))
        object.__setattr__(self, "residue_base", residue_base)
        if residue_base is not None and (
            type(residue_base) is not int or not 1 <= residue_base <= len(self.matrix)
        ):
            raise InputError(
                f"The residue base of a matrix for {len(self.matrix)} values must be a whole number "
                f"from 1 to {len(self.matrix)}, not {residue_base!r}."
            )

    def __repr__(self) -> str:
        tail = (
            "" if self.residue_base is None else f", above by residue to base {self.residue_base}"
        )
        return f"MatrixChannel(values 0 to {self.cap}{tail})"

    @property
    def cap(self) -> int:
        """The largest value with a row of its own, ``L``."""
        return len(self.matrix) - 1

    def transitions(self, true: Ints) -> Transitions:
        """The entries above 0 of each row; counts above the cap move by the steps of their class."""
        rows = self.rows_of(true)
        first, published, probability = self._entries
        origin, entry = row_entries(first[rows], np.diff(first)[rows])
        shift = np.asarray(true, dtype=np.int64) - rows
        return Transitions(origin, published[entry] + shift[origin], probability[entry])

    def probabilities(self, true: Ints, published: Ints) -> Floats:
        """How likely each of these true values is published as the value beside it."""
        rows = self.rows_of(true)
        column = published - (true - rows)
        inside = (column >= 0) & (column < self.matrix.shape[1])
        return np.where(inside, self.matrix[rows, np.where(inside, column, 0)], 0.0)

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """The least and the most behind each published value; low above high where nothing is."""
        published = np.asarray(published, dtype=np.int64)
        none = published + 1, published - 1
        low = np.full(published.shape, np.iinfo(np.int64).max)
        high = np.full(published.shape, -1, dtype=np.int64)
        least, most = self._origins
        known = (published >= 0) & (published < least.size)
        index = np.where(known, published, 0)
        low = np.where(known, least[index], low)
        high = np.where(known, most[index], high)
        for row, step in self._steps_above:
            true = published - step
            fits = (true > self.cap) & (self._class_of(true) == row)
            low = np.where(fits, np.minimum(low, true), low)
            high = np.where(fits, np.maximum(high, true), high)
        reached = high >= 0
        return np.where(reached, low, none[0]), np.where(reached, high, none[1])

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean of the diagonal over the values of a range.

        Without a highest value it is the mean over the rest of the matrix, as printed, and over the
        repeated rows alone where the range begins above the cap. A range without any row gives 1:
        nothing is known to move there.
        """
        if lowest < 0 or (highest is not None and highest < lowest):
            raise InputError("A range of values runs from 0 or more upwards; this one does not.")
        diagonal = np.diagonal(self.matrix)
        if highest is None:
            highest = self.cap if lowest <= self.cap else lowest + (self.residue_base or 1) - 1
        if self.residue_base is None:
            highest = min(highest, self.cap)
        values = np.arange(lowest, highest + 1)
        return float(diagonal[self.rows_of(values)].mean()) if values.size else 1.0

    def rows_of(self, true: Ints) -> Ints:
        """Which row of the matrix tells what becomes of each true value."""
        true = np.asarray(true, dtype=np.int64)
        if true.size and int(true.min()) < 0:
            raise InputError("A transition matrix is for counts of 0 or more.")
        if self.residue_base is None and true.size and int(true.max()) > self.cap:
            raise InputError(
                f"The transition matrix ends at {self.cap}, and a count is larger; "
                "give a residue base for the counts above."
            )
        return np.where(true <= self.cap, true, self._class_of(true))

    def _class_of(self, true: Ints) -> Ints:
        base = self.residue_base or 1
        lowest = self.cap - base + 1
        return lowest + (true - lowest) % base

    @cached_property
    def _entries(self) -> tuple[Ints, Ints, Floats]:
        row, column = np.nonzero(self.matrix)
        first = np.searchsorted(row, np.arange(len(self.matrix) + 1)).astype(np.int64)
        return first, column.astype(np.int64), self.matrix[row, column]

    @cached_property
    def _origins(self) -> tuple[Ints, Ints]:
        """For each published value of the matrix, its first and last row (-1 without any)."""
        reaches = self.matrix > 0
        some = reaches.any(axis=0)
        least = np.where(some, reaches.argmax(axis=0), np.iinfo(np.int64).max)
        most = np.where(some, self.cap - reaches[::-1].argmax(axis=0), -1)
        return least.astype(np.int64), most.astype(np.int64)

    @cached_property
    def _steps_above(self) -> tuple[tuple[int, int], ...]:
        """What repeats above the cap: the row of a class, and the step that it can take."""
        if self.residue_base is None:
            return ()
        row, column = np.nonzero(self.matrix)
        repeated = row > self.cap - self.residue_base
        return tuple(
            (int(r), int(c - r)) for r, c in zip(row[repeated], column[repeated], strict=True)
        )


@dataclass(frozen=True)
class ComposedChannel:
    """One channel after another: what the second makes of what the first has made.

    >>> flip = MatrixChannel([[0.75, 0.25], [0.25, 0.75]])
    >>> ComposedChannel(flip, flip).stay(0, 1)
    0.625
    """

    first: Channel
    second: Channel

    def transitions(self, true: Ints) -> Transitions:
        """The product of the two matrices, row by row."""
        true = np.asarray(true, dtype=np.int64)
        once = self.first.transitions(true)
        middle, inverse = np.unique(once.published, return_inverse=True)
        twice = self.second.transitions(middle)
        order = np.argsort(twice.origin, kind="stable")
        starts = np.searchsorted(twice.origin[order], np.arange(middle.size + 1))
        step, entry = row_entries(starts[inverse], np.diff(starts)[inverse])
        origin = once.origin[step]
        published = twice.published[order][entry]
        chance = once.probability[step] * twice.probability[order][entry]
        pairs, slot = np.unique(np.stack([origin, published], axis=1), axis=0, return_inverse=True)
        total = np.bincount(slot.ravel(), weights=chance, minlength=len(pairs)).astype(np.float64)
        return Transitions(pairs[:, 0].astype(np.intp), pairs[:, 1], total)

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """The hull of what can be behind anything that can be behind a published value.

        Where the second channel leaves nearly everything open, so does this: 0 and no bound.
        """
        shown, inverse = np.unique(np.asarray(published, dtype=np.int64), return_inverse=True)
        lows, highs = self.second.support(shown)
        least, most = shown + 1, shown - 1
        for i, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True)):
            if high - low > _WIDE:
                least[i], most[i] = 0, _NO_BOUND
            elif low <= high:
                below, above = self.first.support(np.arange(low, high + 1, dtype=np.int64))
                some = below <= above
                if some.any():
                    least[i], most[i] = below[some].min(), above[some].max()
        shape = np.shape(published)
        return least[inverse].reshape(shape), most[inverse].reshape(shape)

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean of the diagonal over a range; without a highest value over 50 values."""
        last = lowest + 49 if highest is None else highest
        true = np.arange(lowest, last + 1, dtype=np.int64)
        rows = self.transitions(true)
        stays = rows.published == true[rows.origin]
        return float(rows.probability[stays].sum() / true.size)


class ObservedChannel:
    """What became of the values of one table: ``P[i, j]`` is the share of cells of ``i`` that show ``j``.

    It stands in for the channel of a method whose outcome for a cell depends on the rest of the table. It
    is made from confidential values: it stays with the agency and never goes into a release.

    >>> ObservedChannel([1, 1, 2], [0, 3, 3]).stay(0, 2)
    0.0
    """

    def __init__(self, true: npt.ArrayLike, published: npt.ArrayLike) -> None:
        pairs = np.stack([np.asarray(a, dtype=np.int64).ravel() for a in (true, published)], axis=1)
        self._pairs, self._cells = np.unique(pairs, axis=0, return_counts=True)

    def __repr__(self) -> str:
        return "ObservedChannel(hidden)"

    def transitions(self, true: Ints) -> Transitions:
        """The shares of each row; a value that the table did not hold has no entry."""
        true = np.asarray(true, dtype=np.int64)
        first = np.searchsorted(self._pairs[:, 0], true, side="left")
        length = np.searchsorted(self._pairs[:, 0], true, side="right") - first
        origin, entry = row_entries(first, length)
        cells = self._cells[entry].astype(np.float64)
        total = np.bincount(origin, weights=cells, minlength=true.size)
        return Transitions(origin, self._pairs[entry, 1], cells / total[origin])

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """The least and the most behind each published value; low above high where nothing is."""
        published = np.asarray(published, dtype=np.int64)
        order = np.lexsort((self._pairs[:, 0], self._pairs[:, 1]))
        true, shown = self._pairs[order].T
        first = np.searchsorted(shown, published, side="left")
        last = np.searchsorted(shown, published, side="right") - 1
        observed = first <= last
        at = np.minimum(first, shown.size - 1)
        return (
            np.where(observed, true[at], published + 1),
            np.where(observed, true[np.maximum(last, 0)], published - 1),
        )

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean, over the values of a range that occur, of the share that stays; 1 if none does."""
        true, shown = self._pairs.T
        inside = (true >= lowest) & (true <= (np.inf if highest is None else highest))
        values = np.unique(true[inside])
        if not values.size:
            return 1.0
        index = np.searchsorted(values, true[inside])
        cells = self._cells[inside].astype(np.float64)
        unchanged = np.bincount(
            index, cells * (true[inside] == shown[inside]), minlength=values.size
        )
        return float((unchanged / np.bincount(index, cells, minlength=values.size)).mean())


def row_entries(first: npt.ArrayLike, length: Ints) -> tuple[Indices, Ints]:
    """The entries of rows laid end to end: of which row each is, and its place.

    Row ``i`` has the ``length[i]`` entries that begin at place ``first[i]``.

    >>> [part.tolist() for part in row_entries([5, 0], np.array([2, 3]))]
    [[0, 0, 1, 1, 1], [5, 6, 0, 1, 2]]
    """
    row = np.repeat(np.arange(length.size, dtype=np.intp), length)
    within = np.arange(row.size) - np.repeat(np.cumsum(length) - length, length)
    return row, np.repeat(np.asarray(first, dtype=np.int64), length) + within


def swapping_channel(rate: float, values: int) -> MatrixChannel:
    """What record swapping does to a cell, as Shlomo, Antal and Elliot (2015, section 4.2) assume.

    Each of the values ``0, 1, ..., values - 1`` stays with probability ``1 - rate`` and becomes each of the
    others with the same probability; larger counts move as the largest of these does. The paper
    speaks of the swap rate on the diagonal and then multiplies by 0.9 for swapping one record in ten: the
    diagonal holds what stays.

    >>> swapping_channel(0.1, 3).matrix.round(3).tolist()
    [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]]
    """
    if not 0 <= rate <= 1:
        raise InputError(f"A swap rate is a share from 0 to 1, not {rate!r}.")
    if type(values) is not int or values < 2:
        raise InputError(f"Swapping needs a whole number of values, 2 or more, not {values!r}.")
    matrix = np.full((values, values), rate / (values - 1))
    np.fill_diagonal(matrix, 1.0 - rate)
    return MatrixChannel(matrix, residue_base=1)


def _checked(matrix: npt.ArrayLike) -> Floats:
    array = np.array(matrix, dtype=np.float64)
    if array.ndim != 2 or not array.size or array.shape[1] < array.shape[0]:
        raise InputError(
            "A transition matrix has one row per value and a column for every row, or more."
        )
    if not np.isfinite(array).all() or (array < 0).any() or (array > 1 + _ROUNDING_ERROR).any():
        raise InputError("A transition matrix holds probabilities: numbers from 0 to 1.")
    wrong = np.flatnonzero(np.abs(array.sum(axis=1) - 1) > _ROUNDING_ERROR)
    if wrong.size:
        total = float(array[wrong[0]].sum())
        raise InputError(
            f"Row {int(wrong[0])} of the transition matrix adds up to {total:.6g}; "
            "every row must add up to 1."
        )
    array.setflags(write=False)
    return array


def _shlomo_2015() -> MatrixChannel:
    """Zeros stay; 1 and 2 stay half of the time and else spread evenly over 1 to 5; all others stay with
    0.9 and else go to one of six neighbours. The window of seven lies around the value, pushed up so
    that nothing becomes 0 and down so that the last class, printed as residue 5, ends the matrix."""
    values = 16
    matrix = np.zeros((values, values))
    matrix[0, 0] = 1.0
    for value in (1, 2):
        matrix[value, 1:6] = 1 / 8
        matrix[value, value] = 1 / 2
    for value in range(3, values):
        first = min(max(value - 3, 1), values - 7)
        matrix[value, first : first + 7] = 1 / 60
        matrix[value, value] = 9 / 10
    return MatrixChannel(matrix, residue_base=5)


SHLOMO_2015 = _shlomo_2015()
"""The perturbation matrix of Shlomo, Antal and Elliot (2015), Table 3.

Rows 0 to 10 are counts, rows 11 to 15 the residues 1 to 5 to base 5 of larger counts. The table prints
1/60 as 0.0167, so that the printed rows miss 1 by 0.0002; these add up.
"""


# Channels of methods that add a whole number to each cell, drawn from a known distribution.

NEGLIGIBLE = 1e-15
"""What may be left out at the two ends of an endless distribution; the rest is scaled to 1."""


class StepChannel(ABC):
    """``P(published | true)`` of a method that adds a step to the true value.

    Subclasses define the steps. With ``clamp``, negative values are shown as 0.
    """

    clamp: bool

    @abstractmethod
    def steps(self, true: int) -> tuple[int, Floats]:
        """The smallest step from a true value, and the probabilities of it and of the following steps."""

    @abstractmethod
    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """The smallest and largest true value that can have led to each published value."""

    @abstractmethod
    def far(self) -> float:
        """The limit of the chance to stay for large values."""

    def transitions(self, true: Ints) -> Transitions:
        origin, published, chances = [], [], []
        for index, value in enumerate(np.asarray(true, dtype=np.int64).ravel().tolist()):
            shown, chance = self._row(value)
            origin.append(np.full(shown.size, index, dtype=np.intp))
            published.append(shown)
            chances.append(chance)
        if not origin:
            return Transitions(np.zeros(0, np.intp), np.zeros(0, np.int64), np.zeros(0))
        return Transitions(
            np.concatenate(origin), np.concatenate(published), np.concatenate(chances)
        )

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean chance to stay; for an infinite range, its limit."""
        if highest is None:
            return self.far()
        if highest < lowest:
            raise InputError("The highest value of a range must not be below its lowest.")
        stay_chances = []
        for value in range(lowest, highest + 1):
            shown, chance = self._row(value)
            stay_chances.append(float(chance[shown == value].sum()))
        return float(np.mean(stay_chances))

    def _row(self, value: int) -> tuple[Ints, Floats]:
        first, chances = self.steps(value)
        low = value + first
        if self.clamp and low < 0:
            under = min(-low, chances.size - 1)
            chances = np.concatenate(([chances[: under + 1].sum()], chances[under + 1 :]))
            low = 0
        return low + np.arange(chances.size, dtype=np.int64), chances
