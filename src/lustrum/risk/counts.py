"""What the table-level measures are given: whole counts of the inner cells that can hold somebody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table, TableAxis
from lustrum.model.arrays import Indices, Ints, Mask


class NotMeasurableError(InputError):
    """A table has no entropy scale: fewer than two cells, or nobody in it."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The inner cells of a table in their own shape, and which of them can hold somebody.

    >>> cells_of([[3, 0], [1, 2]]).measured
    array([3, 0, 1, 2])
    """

    counts: Ints
    possible: Mask
    names: tuple[str, ...]

    @property
    def measured(self) -> Ints:
        return self.counts[self.possible]

    @property
    def total(self) -> int:
        return int(self.counts.sum())


CountsLike: TypeAlias = Table | Cells | npt.ArrayLike
"""A table, its cells, or an array-like of counts of any dimension."""


def as_counts(values: npt.ArrayLike, what: str = "table") -> Ints:
    """An array of whole numbers of 0 or more, or one sentence about why it is none.

    >>> as_counts([1.0, 2.0])
    array([1, 2])
    """
    try:
        raw = np.asarray(values)
    except ValueError:
        raise InputError(
            f"The {what} is ragged; counts must form an array of equal rows."
        ) from None
    if raw.size == 0:
        raise NotMeasurableError(f"The {what} is empty; it needs two cells or more.")
    if raw.dtype.kind not in "iuf":
        raise InputError(f"The {what} must be an array of whole numbers.")
    if raw.dtype.kind == "f" and not np.all(np.isfinite(raw) & (raw == np.floor(raw))):
        raise InputError(
            f"The {what} holds a fraction, infinity or NaN; counts must be whole numbers."
        )
    if raw.min() < 0:
        raise InputError(f"The {what} holds a negative value; counts are 0 or more.")
    if raw.max() >= 2**62:
        raise InputError(f"The {what} holds a number too large to be a count of people.")
    return raw.astype(np.int64, copy=False)


def cells_of(source: CountsLike | Release, what: str = "table") -> Cells:
    """The cells of a table, a release or an array-like; totals and subtotals are left out."""
    if isinstance(source, Cells):
        return source
    if isinstance(source, Table):
        if source.kind != "count" or source.decimals:
            raise InputError(f"The {what} must hold whole counts, not magnitudes or fractions.")
        grid = _inner(source.axes)
        structural = None if source.structural is None else source.structural[grid]
        return _cells(source.values[grid], structural, [a.name for a in source.axes], what)
    if isinstance(source, Release):
        if not source.shown[source.inner].all():
            raise InputError(
                f"The {what} has suppressed cells, whose values this risk measure needs."
            )
        grid = _inner(source.axes)
        return _cells(source.numbers[grid], None, [a.name for a in source.axes], what)
    counts = as_counts(source, what)
    return _cells(counts, None, [f"v{i + 1}" for i in range(counts.ndim)], what)


def same_cells(first: Cells, second: Cells, names: str) -> None:
    """Refuse two tables of different shapes."""
    if first.counts.shape != second.counts.shape:
        raise InputError(f"The {names} have different shapes; they must be equal.")


def check_scale(counts: Ints, what: str = "table") -> None:
    """Refuse cells without an entropy scale: fewer than two of them, or nobody in any."""
    if counts.shape[-1] < 2:
        raise NotMeasurableError(
            f"The {what} has fewer than two cells; an entropy scale needs two or more."
        )
    if not np.all(counts.any(axis=-1)):
        raise NotMeasurableError(
            f"The {what} has nobody in it; an entropy needs at least one person."
        )


def check_weights(weights: Sequence[float]) -> tuple[float, float, float]:
    """Three numbers of 0 or more that add up to 1."""
    try:
        given = tuple(float(w) for w in weights)
    except (TypeError, ValueError):
        given = ()
    if len(given) != 3 or not min(given) >= 0 or not abs(sum(given) - 1) <= 1e-9:
        raise InputError(
            "The weights must be three numbers of 0 or more that add up to 1 (zeros, entropy, size)."
        )
    return given


def check_size(sample: Cells, people: int) -> int:
    if not _whole(people):
        raise InputError("The population size must be a whole number.")
    if sample.total == 0:
        raise NotMeasurableError("The sample has nobody in it; it needs at least one person.")
    if sample.total > people:
        raise InputError(
            "The sample is larger than the population; the sampling fraction must be above 0 and "
            "at most 1."
        )
    return int(people)


def check_draws(draws: int) -> int:
    """A whole number of draws, at least one."""
    if not _whole(draws) or draws < 1:
        raise InputError("The number of draws must be a whole number of 1 or more.")
    return int(draws)


def _whole(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _inner(axes: Sequence[TableAxis]) -> tuple[Indices, ...]:
    return np.ix_(*(np.flatnonzero(axis.inner) for axis in axes))


def _cells(counts: Ints, structural: Mask | None, names: Sequence[str], what: str) -> Cells:
    if counts.size == 0:
        raise NotMeasurableError(f"The {what} is empty; it needs two cells or more.")
    if counts.min() < 0:
        raise InputError(f"The {what} holds a negative value; counts are 0 or more.")
    possible = np.ones(counts.shape, dtype=np.bool_) if structural is None else ~structural
    if np.any(counts[~possible]):
        raise InputError(
            f"The {what} holds people in a cell marked as impossible; such a cell must be 0."
        )
    return Cells(counts, possible, tuple(names))
