"""Bounds of published cells, narrowed through the additive relations between them.

A reader who knows an interval for each cell, from rounding, suppression or common sense, can narrow
every cell by the others in its relations. Doing so until nothing changes is quick and never wrong:
the bounds that come out contain the true values if those that went in did. They need not be the
narrowest there are; only linear or integer programming finds those.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.numeric.structure.ragged import Lists
from lustrum.numeric.structure.relations import Relations

UNBOUNDED = 2**62
"""No upper bound; its negative is no lower bound. Any bound beyond 2**61 counts as none."""

_LARGEST = 2**61


@dataclass(frozen=True, eq=False)
class Intervals:
    """Whole-number bounds of every published cell; unpacks as ``low, high``.

    ``conflict`` is a cell for which no value is left, so that the bounds contradict each other, or
    None. ``settled`` says whether nothing changed any more when the narrowing ended.
    """

    low: Ints
    high: Ints
    conflict: int | None
    settled: bool

    def __iter__(self) -> Iterator[Ints]:
        return iter((self.low, self.high))

    def __repr__(self) -> str:
        state = "consistent" if self.consistent else f"no value left for cell {self.conflict}"
        return f"Intervals({self.low.size} cells, {state})"

    @property
    def consistent(self) -> bool:
        """Whether no cell is left without a value."""
        return self.conflict is None


def propagate(
    relations: Relations,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    *,
    rounds: int = 1000,
) -> Intervals:
    """Narrow the bounds of whole-number cells by every relation until nothing changes.

    In a relation, each cell lies between the least and the most that the others leave for it.
    Bounds may be infinite: as float infinity, or as plus or minus :data:`UNBOUNDED`, the way they
    come back. Fractional bounds are drawn in to whole numbers. After this many ``rounds`` over the
    relations, or at the first contradiction, the narrowing stops with the bounds it has.

    >>> from lustrum.model import Category, TableAxis
    >>> from lustrum.numeric.structure import Structure
    >>> cats = (Category("a", "", (0,)), Category("b", "", (1,)), Category("all", "", (0, 1)))
    >>> relations = Structure.of_tables([[TableAxis("x", "", cats)]]).relations
    >>> low, high = propagate(relations, [2, 0, 0], [np.inf, 9, 5])
    >>> low.tolist(), high.tolist()
    ([2, 0, 2], [5, 3, 5])
    >>> propagate(relations, [4, 3, 0], [9, 9, 5])
    Intervals(3 cells, no value left for cell 2)
    """
    from lustrum.numeric.structure.kernels import tighten

    least = _whole(low, relations.width, np.ceil)
    most = _whole(high, relations.width, np.floor)
    lists = Lists(relations.indptr, relations.cells)
    users = lists.transposed(relations.width)
    conflict, settled = tighten(
        relations.indptr,
        relations.cells,
        relations.coefficients,
        users.indptr,
        users.items,
        least,
        most,
        int(rounds),
    )
    for array in (least, most):
        array.setflags(write=False)
    return Intervals(least, most, None if conflict < 0 else int(conflict), bool(settled))


def _whole(bounds: npt.ArrayLike, width: int, rounding: np.ufunc) -> Ints:
    given = np.asarray(bounds)
    if given.size != width:
        raise InputError(f"There are {width} published cells, but {given.size} bounds were given.")
    given = given.ravel()
    if given.dtype.kind == "f":
        if np.isnan(given).any():
            raise InputError("A bound is not a number; give minus or plus infinity for no bound.")
        given = np.clip(rounding(given), -float(UNBOUNDED), float(UNBOUNDED))
    elif given.dtype.kind not in "iu":
        raise InputError("Bounds must be numbers.")
    elif given.dtype.kind == "u":
        given = np.minimum(given, np.uint64(UNBOUNDED))
    whole = given.astype(np.int64)
    whole[whole >= _LARGEST] = UNBOUNDED
    whole[whole <= -_LARGEST] = -UNBOUNDED
    return whole
