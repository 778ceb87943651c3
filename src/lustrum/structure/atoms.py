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

__all__ = ["Atoms", "atom_of_codes"]


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
        """The atoms of a variable with this many finest codes."""
        return cls.of_sets(codes, [c.members for c in categories])

    @classmethod
    def of_sets(cls, codes: int, sets: Sequence[Iterable[int]]) -> Atoms:
        """The atoms under sets of positions."""
        listed = [np.fromiter(members, dtype=np.int64) for members in sets]
        of_code = atom_of_codes(codes, listed)
        membership = np.zeros((len(listed), int(of_code.max(initial=-1)) + 1), dtype=np.bool_)
        for row, members in zip(membership, listed, strict=True):
            row[of_code[members]] = True
        return cls(of_code, membership)

    def roll_up(self, array: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
        """Sum an array over atoms into one over categories, along an axis; exact for integers."""
        moved = np.moveaxis(array, axis, 0)
        sizes = np.count_nonzero(self.membership, axis=1)
        first = (
            self.membership.argmax(axis=1) if self.count else np.zeros(sizes.size, dtype=np.intp)
        )
        # Most categories are a single atom: those are copied, and only the others summed.
        out = np.zeros((sizes.size, *moved.shape[1:]), dtype=array.dtype)
        single = sizes == 1
        out[single] = moved[first[single]]
        for category in np.flatnonzero(sizes > 1):
            out[category] = moved[self.membership[category]].sum(axis=0, dtype=array.dtype)
        return np.moveaxis(out, 0, axis)


def atom_of_codes(codes: int, sets: Iterable[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """The atom of every finest code under sets of positions, or -1 for a code in none of them.

    Each set splits the pieces found so far into what lies inside it and what does not; so the work
    grows with the sizes of the sets, not with their number times that of the codes.
    """
    piece = np.zeros(codes, dtype=np.int64)
    pieces = 1
    for members in sets:
        if members.size == 1:  # the usual case: a piece of its own
            piece[members] = pieces
            pieces += 1
            continue
        inside, renamed = np.unique(piece[members], return_inverse=True)
        piece[members] = pieces + renamed
        pieces += inside.size
    of_code = np.full(codes, -1, dtype=np.int64)
    held = np.flatnonzero(piece)
    _, first, inverse = np.unique(piece[held], return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # number atoms by where they are first met
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    of_code[held] = rank[inverse]
    return of_code
