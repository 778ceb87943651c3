"""Totals as the sums of published inner cells: the table is additive, and totals reveal nothing new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.model import Channel, InputError, Release, Table
from lustrum.model.arrays import Indices, Ints, Mask
from lustrum.model.status import CellStatus
from lustrum.model.table import TableAxis, inner_cells
from lustrum.protect.method import Method, released

# Which inner categories of an axis make up its other categories.

_NOBODY = frozenset({-1})  # a category without members is a part of itself and of nothing else


@dataclass(frozen=True, eq=False)
class AxisParts:
    """The inner categories of an axis, and what each category of it holds of them.

    ``inner`` holds the places of the inner categories. ``held[c]`` lists those that lie entirely in
    category ``c``, by their places in ``inner``; ``whole[c]`` is True if they make it up with every member
    once. ``disjoint`` says whether no two inner categories overlap.

    >>> from lustrum.model.hierarchy import Category
    >>> sets = {"a": (0,), "b": (1, 2), "a and b": (0, 1, 2), "all": (0, 1, 2, 3)}
    >>> parts = AxisParts.of(TableAxis("x", "x", tuple(Category(c, c, s) for c, s in sets.items())))
    >>> parts.held
    ((0,), (1,), (0, 1), (0, 1))
    >>> parts.whole.tolist()
    [True, True, True, False]
    """

    inner: Indices
    held: tuple[tuple[int, ...], ...]
    whole: Mask
    disjoint: bool

    @classmethod
    def of(cls, axis: TableAxis, inner: Sequence[int] | None = None) -> AxisParts:
        """The parts of an axis; ``inner`` may list the inner categories in another order."""
        places = np.flatnonzero(axis.inner) if inner is None else np.array(inner, dtype=np.intp)
        sets = [category.member_set or _NOBODY for category in axis.categories]
        sizes = [len(sets[index]) for index in places]
        owners: dict[int, list[int]] = {}
        for number, index in enumerate(places):
            for member in sets[index]:
                owners.setdefault(member, []).append(number)
        disjoint = all(len(numbers) == 1 for numbers in owners.values())
        held, whole = [], []
        for member_set in sets:
            met = Counter(number for member in member_set for number in owners.get(member, ()))
            inside = tuple(sorted(n for n, members in met.items() if members == sizes[n]))
            held.append(inside)
            covers = sum(sizes[n] for n in inside) == len(member_set)
            if covers and not disjoint:
                covers = len(frozenset().union(*(sets[places[n]] for n in inside))) == len(
                    member_set
                )
            whole.append(covers)
        return cls(places, tuple(held), np.array(whole, dtype=np.bool_), disjoint)


@dataclass(frozen=True)
class PublishedSums:
    """Published values, each with bounds of the true value.

    ``hidden`` marks totals that are suppressed because they would disclose a part.
    """

    values: Ints
    low: Ints
    high: Ints
    hidden: Mask | None = None

    @property
    def status(self) -> npt.NDArray[np.str_] | None:
        """The letters of the cells, or None where all are shown."""
        if self.hidden is None:
            return None
        return np.where(self.hidden, CellStatus.SECONDARY.value, CellStatus.FREE.value)


def released_sums(
    table: Table,
    method: Method,
    sums: PublishedSums,
    *,
    channel: Channel | None,
    notes: tuple[str, ...],
) -> Release:
    """A release of values that come with their bounds, and with the totals that are hidden."""
    return released(
        table,
        method,
        sums.values,
        low=sums.low,
        high=sums.high,
        status=sums.status,
        channel=channel,
        notes=notes,
    )


@dataclass(frozen=True, eq=False)
class Totals:
    """Which cells of a table are sums of its inner cells, and how, axis by axis.

    ``covered`` marks the totals whose inner cells are all in the table. ``parts[k]`` says where, along
    axis ``k``, the inner categories of each total stand.
    """

    covered: Mask
    parts: tuple[dict[int, Indices], ...]

    @classmethod
    def of(cls, axes: Sequence[TableAxis]) -> Totals:
        """Find the parts of every total along each axis."""
        parts, covered = [], np.ones((), dtype=np.bool_)
        for axis in axes:
            axis_parts = AxisParts.of(axis)
            rows = np.flatnonzero(~axis.inner).tolist()
            parts.append({row: axis_parts.inner[list(axis_parts.held[row])] for row in rows})
            covered = covered[..., None] & axis_parts.whole
        return cls(np.asarray(covered) & ~inner_cells(axes), tuple(parts))

    def need_parts(self, axes: Sequence[TableAxis]) -> None:
        """Refuse a table with a total whose parts are not all in it, regardless of its numbers.

        Adding up cannot undo what such a total reveals about the parts in the table.
        """
        if not bool((self.covered | inner_cells(axes)).all()):
            raise InputError(
                "A total can be protected only together with all of its parts; this table lacks some of them."
            )

    def added_up(self, array: Ints) -> Ints:
        """Every covered total as the sum of its inner cells; all other cells as they are."""
        out = array.copy()
        for position, totals in enumerate(self.parts):
            moved = np.moveaxis(out, position, 0)
            for row, places in totals.items():
                moved[row] = moved[places].sum(axis=0)
        return np.where(self.covered, out, array)


def added_totals(axes: Sequence[TableAxis], values: Ints, low: Ints, high: Ints) -> PublishedSums:
    """Replace every total by the sum of its inner cells, and its bounds by the sums of theirs."""
    totals = Totals.of(axes)
    totals.need_parts(axes)
    return PublishedSums(totals.added_up(values), totals.added_up(low), totals.added_up(high))
