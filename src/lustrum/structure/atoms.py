"""Atoms: the coarsest pieces of a variable from which every category asked for can be put together.

Two finest codes lie in the same atom when every category holds both or neither. An engine counts
records by atoms once; totals, subtotals, overlapping groups and filters are sums of atoms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import Category

__all__ = ["Atoms"]


@dataclass(frozen=True)
class Atoms:
    """The atoms of one variable under a list of categories.

    ``of_code[i]`` is the atom of the finest code at position ``i``, or -1 if no category holds it.
    ``membership[c, a]`` says whether category ``c`` holds atom ``a``.

    >>> atoms = Atoms.of(4, [Category("a", "", (0, 1)), Category("all", "", (0, 1, 2))])
    >>> atoms.of_code.tolist(), atoms.membership.astype(int).tolist()
    ([0, 0, 1, -1], [[1, 0], [1, 1]])
    """

    of_code: npt.NDArray[np.int64]
    membership: npt.NDArray[np.bool_]

    @property
    def count(self) -> int:
        """How many atoms there are."""
        return int(self.membership.shape[1])

    @classmethod
    def of(cls, codes: int, categories: Sequence[Category]) -> Atoms:
        """The atoms of a variable with so many finest codes."""
        return cls.of_sets(codes, [c.members for c in categories])

    @classmethod
    def of_sets(cls, codes: int, sets: Sequence[Iterable[int]]) -> Atoms:
        """The atoms under sets of positions."""
        held = np.zeros((len(sets), codes), dtype=np.bool_)
        for row, members in zip(held, sets, strict=True):
            row[np.fromiter(members, dtype=np.intp)] = True
        inside = np.flatnonzero(held.any(axis=0))
        of_code = np.full(codes, -1, dtype=np.int64)
        if inside.size == 0:
            return cls(of_code, np.zeros((len(sets), 0), dtype=np.bool_))
        signature = np.packbits(held[:, inside], axis=0)
        _, first, inverse = np.unique(signature, axis=1, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")  # number atoms by where they are first met
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        of_code[inside] = rank[np.ravel(inverse)]
        return cls(of_code, held[:, inside[first[order]]])

    def roll_up(self, array: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
        """Sum an array over atoms into one over categories, along an axis; exact for integers."""
        count, size = self.membership.shape
        if count == size and np.array_equal(self.membership, np.eye(size, dtype=np.bool_)):
            return array
        moved = np.moveaxis(array, axis, 0)
        out = np.zeros((count, *moved.shape[1:]), dtype=array.dtype)
        for row, held in zip(out, self.membership, strict=True):
            moved.sum(axis=0, where=held.reshape(-1, *[1] * (moved.ndim - 1)), out=row)
        return np.moveaxis(out, 0, axis)
