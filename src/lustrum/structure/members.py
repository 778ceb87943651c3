"""Categories as positions of finest codes, and arrays over codes brought to categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from lustrum.arrays import Array
from lustrum.model import Category


def member_lists(
    categories: Sequence[Category],
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The members of all categories, one after the other, and where those of each begin; none may be empty."""
    sizes = [len(category.members) for category in categories]
    flat = np.fromiter(
        chain.from_iterable(c.members for c in categories), dtype=np.intp, count=sum(sizes)
    )
    return flat, np.cumsum([0, *sizes], dtype=np.intp)[:-1]


def over_members(
    gather: np.ufunc, array: Array, axis: int, categories: Sequence[Category]
) -> Array:
    """An array over finest codes along an axis, as one over categories: what all their members give together.

    >>> both = [Category("a", "", (0, 2)), Category("b", "", (1,))]
    >>> over_members(np.add, np.array([1, 2, 4]), 0, both).tolist()
    [5, 2]
    """
    filled = [index for index, category in enumerate(categories) if category.members]
    flat, starts = member_lists([categories[index] for index in filled])
    taken = array.take(flat, axis=axis)
    # A category of one code each: nothing is to be put together.
    if flat.size != starts.size:
        taken = np.asarray(gather.reduceat(taken, starts, axis=axis))
    if len(filled) == len(categories):
        return taken
    # Nothing comes of a category that no code is in.
    shape = (*taken.shape[:axis], len(categories), *taken.shape[axis + 1 :])
    whole = np.full(shape, gather.identity, dtype=taken.dtype)
    np.moveaxis(whole, axis, 0)[filled] = np.moveaxis(taken, axis, 0)
    return whole


def along_axes(
    gather: np.ufunc,
    array: Array,
    names: Sequence[str],
    axes: Sequence[tuple[str, Sequence[Category]]],
    passing: Mapping[str, frozenset[int]],
) -> Array:
    """An array over the finest codes of some variables, arranged along the axes of a table.

    Each variable stands on an axis, where its categories put codes together, or lets some codes pass, or both.
    An axis of another variable has length 1.
    """
    places = {name: index for index, (name, _) in enumerate(axes)}
    # Variables that are only selected by come first: what is left is small.
    for at in reversed(range(len(names))):
        if names[at] not in places:
            chosen = array.take(sorted(passing[names[at]]), axis=at)
            array = np.asarray(gather.reduce(chosen, axis=at))
    there = [name for name in names if name in places]
    for at, name in enumerate(there):
        if name in passing:
            passes = np.zeros(array.shape[at], dtype=np.bool_)
            passes[list(passing[name])] = True
            passes = passes.reshape(-1, *[1] * (array.ndim - at - 1))
            array = np.where(passes, array, array.dtype.type(0))
        array = over_members(gather, array, at, axes[places[name]][1])
    targets = [places[name] for name in there]
    shape = [len(axes[index][1]) if index in targets else 1 for index in range(len(axes))]
    return array.transpose(np.argsort(targets, kind="stable")).reshape(shape) if targets else array
