"""The inner cells of a table and what its totals are made of, for methods that change inner cells only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.table import TableAxis

__all__ = ["Inner"]

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Inner:
    """The block of inner cells of a table, and for every axis which inner categories each category holds."""

    def __init__(self, axes: Sequence[TableAxis]) -> None:
        self.axes = tuple(axes)
        self.positions = [np.flatnonzero(axis.inner) for axis in self.axes]
        self.holds = [_holds(axis, at) for axis, at in zip(self.axes, self.positions, strict=True)]

    @property
    def shape(self) -> tuple[int, ...]:
        """Inner categories along each axis."""
        return tuple(at.size for at in self.positions)

    def of(self, values: npt.NDArray[np.int64]) -> Ints:
        """The inner cells of an array of the table's shape, as a block of their own."""
        block = values[np.ix_(*self.positions)] if self.positions else values
        return np.array(block, dtype=np.int64, order="C")

    def mask(self, values: Mask) -> Mask:
        """The same for marks."""
        block = values[np.ix_(*self.positions)] if self.positions else values
        return np.array(block, dtype=np.bool_, order="C")

    def roll_up(self, block: Ints) -> Ints:
        """An array of the table's shape: every cell the sum of the inner cells that it holds."""
        out = block
        for axis, matrix in enumerate(self.holds):
            out = np.moveaxis(np.tensordot(matrix.astype(np.int64), out, axes=(1, axis)), 0, axis)
        return np.ascontiguousarray(out)

    @property
    def covering(self) -> list[Mask]:
        """For every axis which categories hold all inner ones: totals of what is shown."""
        return [np.asarray(matrix.all(axis=1)) for matrix in self.holds]

    def need_parts(self, method: str) -> None:
        """Refuse a table with a total that its inner cells do not add up to."""
        for axis, at in zip(self.axes, self.positions, strict=True):
            inside = set().union(*(axis.categories[i].member_set for i in at))
            if any(not category.member_set <= inside for category in axis.categories):
                raise InputError(
                    f"{method} needs all parts of every total; {axis.name!r} shows a total and only "
                    "some of its parts."
                )


def _holds(axis: TableAxis, inner: npt.NDArray[np.intp]) -> Mask:
    owner: dict[int, int] = {}
    for column, position in enumerate(inner):
        for member in axis.categories[position].members:
            if owner.setdefault(member, column) != column:
                raise InputError(
                    f"Two categories of {axis.name!r} overlap; the method needs categories that do not."
                )
    sizes = np.array([len(axis.categories[i].members) for i in inner], dtype=np.int64)
    out = np.zeros((len(axis), inner.size), dtype=np.bool_)
    for row, category in enumerate(axis.categories):
        columns = [owner[m] for m in category.members if m in owner]
        out[row] = np.bincount(np.array(columns, dtype=np.int64), minlength=inner.size) == sizes
    return out
