"""Bounds of published cells, narrowed through the additive relations between them.

A reader who knows an interval for each cell, from rounding, suppression or common sense, can narrow
every cell by the others in its relations. Doing so until nothing changes is quick and never wrong:
the bounds that come out contain the true values if those that went in did. They need not be the
narrowest there are; only linear or integer programming finds those.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Array, Ints
from lustrum.numeric.compiled import compiled_if_large
from lustrum.numeric.structure.ragged import Lists
from lustrum.numeric.structure.relations import Relations

_NONE = 2**62  # no bound
_FAR = 2**61  # beyond this a sum counts as unbounded, so that nothing overflows


@compiled_if_large
def _times(coefficient: int, bound: int) -> int:  # pragma: no cover
    """A coefficient times a bound, or no bound where that would be too far."""
    if bound >= _FAR or bound <= -_FAR or abs(bound) > _FAR // abs(coefficient):
        return _NONE if (bound > 0) == (coefficient > 0) else -_NONE
    return coefficient * bound


@compiled_if_large
def _sum_ends(
    begin: int, end: int, cells: Array, coefficients: Array, low: Array, high: Array
) -> Any:  # pragma: no cover
    """Least and most sum of a relation without its unbounded terms, and how many those are."""
    least, most, below, above = 0, 0, 0, 0
    for k in range(begin, end):
        c = coefficients[k]
        small = _times(c, low[cells[k]] if c > 0 else high[cells[k]])
        large = _times(c, high[cells[k]] if c > 0 else low[cells[k]])
        if small <= -_FAR:
            below += 1
        else:
            least += small
        if large >= _FAR:
            above += 1
        else:
            most += large
        if abs(least) >= _FAR or abs(most) >= _FAR:
            return 0, 0, 2, 2  # two unbounded terms leave nothing to be said
    return least, most, below, above


@compiled_if_large
def tighten(  # pragma: no cover
    indptr: Array,
    cells: Array,
    coefficients: Array,
    user_ptr: Array,
    users: Array,
    low: Array,
    high: Array,
    rounds: int,
) -> Any:
    """Narrow ``low`` and ``high`` in place; a cell in conflict or -1, and whether all is settled.

    A relation is looked at again only after a bound of one of its cells has changed.
    """
    count = indptr.size - 1
    for cell in range(low.size):
        if low[cell] > high[cell]:
            return cell, False
    waiting = np.ones(count, dtype=np.bool_)
    for _ in range(rounds):
        changed = False
        for row in range(count):
            if not waiting[row]:
                continue
            waiting[row] = False
            begin, end = indptr[row], indptr[row + 1]
            least, most, below, above = _sum_ends(begin, end, cells, coefficients, low, high)
            if below > 1 and above > 1:
                continue
            for k in range(begin, end):
                cell, c = cells[k], coefficients[k]
                small = _times(c, low[cell] if c > 0 else high[cell])
                large = _times(c, high[cell] if c > 0 else low[cell])
                # The others leave this term between minus their most and minus their least.
                new_large, new_small = large, small
                if below == 0:
                    new_large = min(large, small - least)
                elif below == 1 and small <= -_FAR:
                    new_large = min(large, -least)
                if above == 0:
                    new_small = max(small, large - most)
                elif above == 1 and large >= _FAR:
                    new_small = max(small, -most)
                if new_large == large and new_small == small:
                    continue
                new_low, new_high = low[cell], high[cell]
                size = abs(c)
                if new_large < large:
                    bound = new_large // size
                    if c > 0:
                        new_high = min(new_high, bound)
                    else:
                        new_low = max(new_low, -bound)
                if new_small > small:
                    bound = -((-new_small) // size)
                    if c > 0:
                        new_low = max(new_low, bound)
                    else:
                        new_high = min(new_high, -bound)
                if new_high >= _FAR:
                    new_high = high[cell]
                if new_low <= -_FAR:
                    new_low = low[cell]
                if new_low == low[cell] and new_high == high[cell]:
                    continue
                low[cell], high[cell] = new_low, new_high
                if new_low > new_high:
                    return cell, False
                changed = True
                for u in range(user_ptr[cell], user_ptr[cell + 1]):
                    waiting[users[u]] = True
                # Later cells of this row may use the narrower bound right away.
                least, most, below, above = _update(
                    least, most, below, above, small, large, c, new_low, new_high
                )
                if abs(least) >= _FAR or abs(most) >= _FAR:
                    break
        if not changed:
            return -1, True
    return -1, False


@compiled_if_large
def _update(  # pragma: no cover
    least: int,
    most: int,
    below: int,
    above: int,
    small: int,
    large: int,
    c: int,
    low: int,
    high: int,
) -> Any:
    """The sums of a relation after one of its terms has narrowed."""
    new_small = _times(c, low if c > 0 else high)
    new_large = _times(c, high if c > 0 else low)
    if new_small > -_FAR:
        if small <= -_FAR:
            below -= 1
            least += new_small
        else:
            least += new_small - small
    if new_large < _FAR:
        if large >= _FAR:
            above -= 1
            most += new_large
        else:
            most += new_large - large
    return least, most, below, above


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
        return self.conflict is None


def propagate(
    relations: Relations, low: npt.ArrayLike, high: npt.ArrayLike, *, rounds: int = 1000
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
