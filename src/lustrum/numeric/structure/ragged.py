"""Lists of lists in two flat arrays, the outer product that crosses the axes of a table, and different numbers.

A category is a list of atoms; a cell is a list of inner cells, the outer product of the lists of
its categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Array, Indices, Ints

# Entries handled at once: few enough for the processor's cache to hold the positions.
_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class Lists:
    """List ``i`` is ``items[indptr[i]:indptr[i + 1]]``; with weights, or each item counting once.

    >>> Lists.of([[0, 1], [2]]).lengths.tolist()
    [2, 1]
    """

    indptr: Ints
    items: npt.NDArray[Any]
    weights: Ints | None = None

    @classmethod
    def of(
        cls, rows: Sequence[Sequence[int]], weights: Sequence[Sequence[int]] | None = None
    ) -> Lists:
        sizes = np.fromiter((len(r) for r in rows), dtype=np.int64, count=len(rows))
        flat = np.array([i for r in rows for i in r], dtype=np.int64)
        weight = None if weights is None else np.array([w for r in weights for w in r], np.int64)
        return cls(pointers(sizes), flat, weight)

    @classmethod
    def singles(cls, count: int) -> Lists:
        return cls(np.arange(count + 1, dtype=np.int64), np.arange(count, dtype=np.int64))

    @classmethod
    def everything(cls, count: int) -> Lists:
        """One list of all numbers below ``count``."""
        return cls(np.array([0, count], dtype=np.int64), np.arange(count, dtype=np.int64))

    @property
    def count(self) -> int:
        return self.indptr.size - 1

    @property
    def lengths(self) -> Ints:
        return np.diff(self.indptr)

    @property
    def rows(self) -> Ints:
        return np.repeat(np.arange(self.count, dtype=np.int64), self.lengths)

    def is_singles(self, count: int) -> bool:
        """Whether these are exactly the lists [0], [1], ... below ``count``."""
        return (
            self.weights is None
            and self.count == self.items.size == count
            and bool(np.all(self.items == np.arange(count)))
            and bool(np.all(self.lengths == 1))
        )

    def row(self, index: int) -> npt.NDArray[Any]:
        return self.items[self.indptr[index] : self.indptr[index + 1]]

    def scaled(self, stride: int) -> Lists:
        """Every item times a stride, so that an outer product adds up to flat positions."""
        return replace(self, items=self.items.astype(np.int64) * stride)

    def take(self, index: Ints) -> Lists:
        """The lists at these positions, in this order."""
        lengths = self.lengths[index]
        indptr = pointers(lengths)
        source = np.repeat(self.indptr[index] - indptr[:-1], lengths)
        source += np.arange(source.size)
        weights = None if self.weights is None else self.weights[source]
        return Lists(indptr, self.items[source], weights)

    def transposed(self, count: int) -> Lists:
        """For each item below ``count``, the lists that hold it; weights are dropped."""
        order = np.argsort(self.items, kind="stable")
        sizes = np.bincount(self.items, minlength=count).astype(np.int64)
        return Lists(pointers(sizes), self.rows[order])

    def beside(self, other: Lists) -> Lists:
        """List ``i`` of both, one after the other."""
        sizes, more = self.lengths, other.lengths
        indptr = pointers(sizes + more)
        items = np.empty(indptr[-1], dtype=np.int64)
        weights = np.ones(indptr[-1], dtype=np.int64)
        for lists, start in ((self, indptr[:-1]), (other, indptr[:-1] + sizes)):
            target = np.repeat(start - lists.indptr[:-1], lists.lengths)
            target += np.arange(target.size)
            items[target] = lists.items
            if lists.weights is not None:
                weights[target] = lists.weights
        return Lists(indptr, items, weights)


def pointers(sizes: npt.ArrayLike) -> Ints:
    """Where each list begins, and where the last ends."""
    sizes = np.asarray(sizes, dtype=np.int64)
    indptr = np.zeros(sizes.size + 1, dtype=np.int64)
    np.cumsum(sizes, out=indptr[1:])
    return indptr


def outer(left: Lists, right: Lists, out: npt.NDArray[Any] | None = None) -> Lists:
    """List ``(i, j)`` holds the sum of every item of left ``i`` and every item of right ``j``.

    The items keep the order of left first, then right, so that sorted lists of scaled items give
    sorted lists. Weights multiply. ``out`` takes the items where the caller has the room for them.

    >>> crossed = outer(Lists.of([[0], [0, 10]]), Lists.of([[1, 2], [3]]))
    >>> [crossed.row(i).tolist() for i in range(4)]
    [[1, 2], [3], [1, 2, 11, 12], [3, 13]]
    """
    sizes, widths = left.lengths, right.lengths
    indptr = pointers(np.multiply.outer(sizes, widths).ravel())
    items = np.empty(indptr[-1], dtype=np.int64) if out is None else out
    weighted = left.weights is not None or right.weights is not None
    weights = np.ones(indptr[-1], dtype=np.int64) if weighted else None
    if items.size == 0:
        return Lists(indptr, items, weights)
    starts = indptr[:-1].reshape(left.count, right.count) - right.indptr[:-1]
    column, ramp = right.rows, np.arange(right.items.size, dtype=np.int64)
    rows = left.rows
    local = np.arange(left.items.size, dtype=np.int64) - left.indptr[rows]
    step = max(1, _CHUNK // right.items.size)
    right_items = right.items.astype(items.dtype, copy=False)
    left_items = left.items.astype(items.dtype, copy=False)
    for begin in range(0, left.items.size, step):
        part = slice(begin, begin + step)
        target = (starts[rows[part]] + np.multiply.outer(local[part], widths))[:, column] + ramp
        items[target] = np.add.outer(left_items[part], right_items)
        if weights is not None:
            left_weights = _weights(left)[part]
            weights[target] = np.multiply.outer(left_weights, _weights(right))
    return Lists(indptr, items, weights)


def _weights(lists: Lists) -> Ints:
    return np.ones(lists.items.size, dtype=np.int64) if lists.weights is None else lists.weights


_CLOSE = 8
"""How many times as far apart as there are numbers the least and the greatest may be for counting."""


def distinct(numbers: Array) -> tuple[Array, Indices]:
    """As :func:`numpy.unique` with its inverse, but without sorting where whole numbers lie close together.

    >>> values, place = distinct(np.array([7, 5, 7, 9]))
    >>> values.tolist(), place.tolist()
    ([5, 7, 9], [1, 0, 1, 2])
    """
    flat = numbers.ravel()
    if flat.size and flat.dtype == np.int64:
        least, greatest = int(flat.min()), int(flat.max())
        if greatest - least < _CLOSE * flat.size:
            above = flat - least
            met = np.zeros(greatest - least + 1, dtype=np.bool_)
            met[above] = True
            rank = np.cumsum(met, dtype=np.intp) - 1
            return np.flatnonzero(met) + least, rank[above].reshape(numbers.shape)
    values, inverse = np.unique(flat, return_inverse=True)
    return values, inverse.reshape(numbers.shape)


def distinct_columns(columns: Ints) -> tuple[Ints, Indices]:
    """The different columns of a matrix, sorted by their first number, then by the next, and where each stands.

    >>> values, place = distinct_columns(np.array([[2, 1, 2], [0, 5, 0]]))
    >>> values.tolist(), place.tolist()
    ([[1, 2], [5, 0]], [1, 0, 1])
    """
    order = np.lexsort(columns[::-1])
    ranked = columns[:, order]
    new = np.ones(order.size, dtype=np.bool_)
    new[1:] = (ranked[:, 1:] != ranked[:, :-1]).any(axis=0)
    inverse = np.empty(order.size, dtype=np.intp)
    inverse[order] = np.cumsum(new) - 1
    return ranked[:, new], inverse


def connected_parts(nodes: int, one: Any, other: Any) -> Ints:
    """The part of each node where edges join ``one`` and ``other``; parts are numbered by their first nodes.

    Nodes take the smallest number that they can reach: first along edges, then by way of the node so numbered.

    >>> connected_parts(5, np.array([0, 4]), np.array([2, 3]))
    array([0, 1, 0, 2, 2])
    """
    label = np.arange(nodes)
    one, other = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
    while True:
        ends = label[one], label[other]
        apart = ends[0] != ends[1]
        if not apart.any():
            return np.unique(label, return_inverse=True)[1].astype(np.int64)
        one, other = ends[0][apart], ends[1][apart]
        np.minimum.at(label, np.maximum(one, other), np.minimum(one, other))
        while not np.array_equal(further := label[label], label):
            label = further
