"""Weight classes: groups of respondents, each large enough that its mean weight reveals no single weight.

Respondents are divided by one variable after the other, in an order that the agency names. A division is
kept if every part is large enough. Smaller parts are joined with each other, and with the smallest large
part if they are still too small. Sizes are protected numbers of respondents: which cells share a class is
public, and must not depend on who answered. True respondents are put into these classes afterwards.

Under a keyed method a weighted count is the protected count times the mean weight of the classes that the cell
is about, so that it tells no more than the unweighted one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lustrum.model import Category, InputError
from lustrum.model.arrays import Array, Floats, Ints, Words
from lustrum.numeric.structure import TableLayout
from lustrum.numeric.structure.atoms import over_members
from lustrum.protect.weighted.means import class_noise, filled_means, limited_weights


def weight_classes(codes: Array, sizes: Ints, order: list[int], least: int) -> Ints:
    """The class of each cell, numbered from 0.

    ``codes[v]`` are the codes of the cells, ``sizes`` how many respondents each shows, ``order`` the
    variables to divide by, ``least`` the fewest respondents of a class.

    >>> codes = np.array([[0, 0, 1, 1], [0, 1, 0, 1]])
    >>> weight_classes(codes, np.array([6, 7, 2, 3]), [0, 1], 5).tolist()
    [0, 1, 2, 2]
    """
    if least < 1:
        raise InputError(f"A weight class needs at least 1 respondent, not {least!r}.")
    if int(sizes.sum()) < least:
        raise InputError(
            "The survey has fewer respondents than a weight class needs; choose a smaller 'class_size'."
        )
    classes = np.full(codes.shape[1], -1, dtype=np.int64)
    waiting = [(np.arange(codes.shape[1], dtype=np.int64), 0)]
    number = 0
    while waiting:
        cells, depth = waiting.pop()
        parts = _divided(codes, sizes, cells, order, depth, least)
        if parts is None:
            classes[cells] = number
            number += 1
        else:
            # The last part is divided first, so that classes are numbered in the order of their codes.
            waiting.extend(reversed(parts))
    return classes


def _divided(
    codes: Array, sizes: Ints, cells: Ints, order: list[int], depth: int, least: int
) -> list[tuple[Ints, int]] | None:
    """The parts of a group, with the depth at which to continue; None if it is not divided."""
    while depth < len(order):
        cell_codes = codes[order[depth], cells]
        depth += 1
        groups = [cells[cell_codes == code] for code in np.unique(cell_codes)]
        held = [int(sizes[group].sum()) for group in groups]
        large = [i for i, size in enumerate(held) if size >= least]
        small = [i for i, size in enumerate(held) if size < least]
        if not large or len(groups) == 1:
            continue
        if not small:
            return [(group, depth) for group in groups]
        rest = np.sort(np.concatenate([groups[i] for i in small]))
        if sum(held[i] for i in small) >= least:
            return [*((groups[i], depth) for i in large), (rest, len(order))]
        if len(large) == 1:
            continue
        nearest = min(large, key=lambda i: (held[i], i))
        joined = np.sort(np.concatenate([groups[nearest], rest]))
        others = [(groups[i], depth) for i in large if i != nearest]
        return [*others, (joined, len(order))]
    return None


def classes_of(codes: Array, group: Ints, order: list[int], records: Array) -> Ints:
    """The class of every record: that of the cell with its codes, or of the nearest cell that is shown.

    The nearest cell has the same codes of the first variables of ``order``, of as many as possible, and then
    the next larger code, or the largest.

    >>> codes = np.array([[0, 0, 1, 1], [0, 2, 0, 1]])
    >>> classes_of(codes, np.array([0, 1, 2, 3]), [0, 1], np.array([[0, 0, 1], [2, 1, 5]])).tolist()
    [1, 1, 3]
    """
    shown = np.zeros(codes.shape[1], dtype=np.int64)
    nearest = np.zeros(records.shape[1], dtype=np.int64)
    for variable in order:
        cell_codes, theirs = codes[variable].astype(np.int64), records[variable].astype(np.int64)
        width = int(max(cell_codes.max(initial=0), theirs.max(initial=0))) + 1
        keys, key_index = np.unique(shown * width + cell_codes, return_inverse=True)
        at = np.searchsorted(keys, nearest * width + theirs)
        inside = np.minimum(at, keys.size - 1)
        # Behind the last cell that shares the codes so far comes another's; the one before is nearest.
        nearest = np.where((at < keys.size) & (keys[inside] // width == nearest), inside, at - 1)
        shown = np.asarray(key_index).ravel().astype(np.int64)
    first = np.unique(shown, return_index=True)[1]
    return np.asarray(group[first[nearest]])


_MOST = 100_000
"""Combinations of class variables."""


@dataclass(frozen=True, eq=False)
class MeanWeights:
    """Of every combination of the class variables its mean weight and its protected number. Public.

    Weights are in units of ``10**-decimals``.
    """

    variables: tuple[str, ...]
    weights: Ints
    numbers: Ints
    decimals: int = 0

    def weighted(self, layout: TableLayout, counts: Ints) -> Ints:
        """Protected counts times the mean weights of their classes, in units of ``10**-decimals``."""
        above = self._summed(layout, self.weights * self.numbers)
        below = self._summed(layout, self.numbers)
        # A class that shows nobody has the mean weight of all.
        every = int((self.weights * self.numbers).sum()), int(self.numbers.sum())
        top = np.where(below > 0, above, every[0] if every[1] else 10**self.decimals).astype(object)
        bottom = np.where(below > 0, below, every[1] or 1).astype(object)
        estimates = (2 * counts.astype(object) * top + bottom) // (2 * bottom)
        return np.asarray(estimates).astype(np.int64)

    def _summed(self, layout: TableLayout, values: Ints) -> Ints:
        """The values of all classes that each cell of a table is about, in a shape that fits the table."""
        sums = values
        for index, name in enumerate(self.variables):
            categories = self._categories(layout, name, values.shape[index])
            sums = over_members(np.add, sums, index, categories)
        # Class variables in the order of the axes; the others have one entry, and so have other axes.
        on_axes = [axis.name for axis in layout.axes if axis.name in self.variables]
        order = [self.variables.index(name) for name in on_axes]
        rest = [k for k in range(len(self.variables)) if k not in order]
        shape = [len(axis) if axis.name in on_axes else 1 for axis in layout.axes]
        return np.asarray(np.transpose(sums, [*order, *rest]).reshape(shape))

    @staticmethod
    def _categories(layout: TableLayout, name: str, size: int) -> Sequence[Category]:
        """The categories of a class variable's axis, or of its filter; one of all codes without either."""
        axis = next((a for a in (*layout.axes, *layout.filters) if a.name == name), None)
        return (Category("", "", tuple(range(size))),) if axis is None else axis.categories


def class_weights(
    codes: Sequence[Array],
    numbers: Ints,
    weights: Floats,
    keys: Words,
    *,
    class_size: int,
    noise: float,
    decimals: int,
    secret: bytes,
) -> Ints:
    """The mean weight of every combination of class variables, in units of ``10**-decimals``.

    ``numbers`` are the protected numbers of respondents of all combinations. Those that show fewer than
    ``class_size`` share a weight with others, empty ones too. Which ones share it follows from protected
    numbers alone. Means are those of at least ``class_size`` respondents
    (:mod:`lustrum.protect.weighted.means`), moved by noise of at most ``noise`` that ``secret`` and the record
    keys draw.
    """
    shape, size = numbers.shape, numbers.size
    combination = np.ravel_multi_index(tuple(np.asarray(c, dtype=np.int64) for c in codes), shape)
    every = np.stack(np.unravel_index(np.arange(size), shape))
    group = weight_classes(every, numbers.ravel(), list(range(len(shape))), class_size)
    count = int(group.max()) + 1
    limited = limited_weights(group[combination], weights, count, class_size)
    mean = filled_means(group[combination], limited, count, class_size)
    moved = mean * (1.0 + noise * class_noise(secret, "weights", group[combination], keys, count))
    shared = np.maximum(np.rint(moved * float(10**decimals)), 1).astype(np.int64)
    return np.asarray(shared[group].reshape(shape))


def checked_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The number of codes of all class variables, unless they have too many combinations."""
    size = int(np.prod([float(n) for n in shape]))
    if size > _MOST:
        raise InputError(
            f"The classes of weights have {size:,} combinations; name variables with at most {_MOST:,}."
        )
    return shape
