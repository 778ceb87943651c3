"""Which inner categories of an axis make up its other categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Mask
from lustrum.model.table import TableAxis

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

    inner: npt.NDArray[np.intp]
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
