"""Atoms: the coarsest pieces of a variable from which every category asked for can be put together.

Two finest codes lie in the same atom when every category holds both or neither. An engine counts
records by atoms once; totals, subtotals, overlapping groups and filters are sums of atoms. Arrays over finest
codes are brought to categories here too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import Category
from lustrum.model.arrays import Array, Indices, Ints, Mask
from lustrum.numeric.structure.ragged import Lists, pointers
from lustrum.runtime.remembered import Remembered


@dataclass(frozen=True)
class Atoms:
    """The atoms of one variable under a list of categories.

    ``of_code[i]`` is the atom of the finest code at position ``i``, or -1 if no category holds it. List ``c``
    of ``held`` has the atoms of category ``c`` in ascending order; ``count`` is how many atoms there are.

    >>> atoms = Atoms.of(4, [Category("a", "", (0, 1)), Category("all", "", (0, 1, 2))])
    >>> atoms.of_code.tolist(), [atoms.held.row(c).tolist() for c in range(2)]
    ([0, 0, 1, -1], [[0], [0, 1]])
    """

    of_code: Ints
    count: int
    held: Lists

    @classmethod
    def of(cls, codes: int, categories: Sequence[Category]) -> Atoms:
        """The atoms of a variable with this many finest codes."""
        return cls.of_sets(codes, [c.members for c in categories])

    @classmethod
    def of_sets(cls, codes: int, sets: Sequence[Collection[int]]) -> Atoms:
        members = listed(sets)
        of_code = atom_of_codes(codes, members)
        count = int(of_code.max(initial=-1)) + 1
        return cls(of_code, count, _atoms_in(of_code, count, members))

    def regrouped(self, categories: Sequence[Category]) -> Atoms:
        """How other categories are made of these atoms; each must be a union of some."""
        members = listed([category.members for category in categories])
        return replace(self, held=_atoms_in(self.of_code, self.count, members))

    def part(self, categories: slice) -> Atoms:
        """The same atoms under some of the categories, one after the other."""
        chosen = np.arange(self.held.count, dtype=np.int64)[categories]
        return replace(self, held=self.held.take(chosen))

    def mask(self, category: int) -> Mask:
        flags = np.zeros(self.count, dtype=np.bool_)
        flags[self.held.row(category)] = True
        return flags

    def roll_up(self, array: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
        """Sum an array over atoms into one over categories, along an axis; exact for integers."""
        if self._is_every_atom:
            return array
        moved = array.swapaxes(0, axis)
        sizes = self.held.lengths
        # Most categories are a single atom: those are copied, and only the others summed.
        out = np.zeros((sizes.size, *moved.shape[1:]), dtype=array.dtype)
        single = sizes == 1
        out[single] = moved[self.held.items[self.held.indptr[:-1][single]]]
        for category in np.flatnonzero(sizes > 1).tolist():
            out[category] = moved[self.held.row(category)].sum(axis=0, dtype=array.dtype)
        return out.swapaxes(0, axis)

    @cached_property
    def _is_every_atom(self) -> bool:
        """Whether the categories are the atoms themselves, in order."""
        items = self.held.items
        return (
            bool((self.held.lengths == 1).all())
            and items.size == self.count
            and bool((items == np.arange(items.size)).all())
        )


def listed(sets: Sequence[Collection[int]]) -> Lists:
    """Sets of positions, one after the other."""
    sizes = np.fromiter(map(len, sets), dtype=np.int64, count=len(sets))
    items = np.fromiter(chain.from_iterable(sets), dtype=np.int64, count=int(sizes.sum()))
    return Lists(pointers(sizes), items)


def _atoms_in(of_code: Ints, count: int, sets: Lists) -> Lists:
    """The atoms of each set, in ascending order."""
    pairs = np.unique(sets.rows * max(count, 1) + of_code[sets.items])
    rows, items = np.divmod(pairs, max(count, 1))
    return Lists(pointers(np.bincount(rows, minlength=sets.count)), items)


def atom_of_codes(codes: int, sets: Lists) -> Ints:
    """The atom of every finest code under sets of positions, or -1 for a code in none of them.

    Codes lie in the same atom when the same sets hold them. They are told apart by the number of their sets,
    then by the first one, the second one and so on: the work grows with the sizes of the sets, not with their
    number times that of the codes.
    """
    pairs = np.unique(sets.items * max(sets.count, 1) + sets.rows)
    items, rows = np.divmod(pairs, max(sets.count, 1))
    holding = np.bincount(items, minlength=codes).astype(np.int64)
    starts = pointers(holding)
    piece = holding.copy()
    pieces = int(piece.max(initial=0)) + 1
    for position in range(pieces - 1):
        several = np.flatnonzero(holding > position)
        told = piece[several] * sets.count + rows[starts[several] + position]
        new_pieces, renamed = np.unique(told, return_inverse=True)
        piece[several] = pieces + renamed
        pieces += new_pieces.size
    of_code = np.full(codes, -1, dtype=np.int64)
    held = np.flatnonzero(holding)
    _, first, inverse = np.unique(piece[held], return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # number atoms by where they are first met
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    of_code[held] = rank[inverse]
    return of_code


def member_lists(categories: Sequence[Category]) -> tuple[Indices, Indices]:
    """The members of all categories, one after the other, and where those of each begin; none may be empty."""
    sizes = [len(category.members) for category in categories]
    flat = np.fromiter(
        chain.from_iterable(c.members for c in categories), dtype=np.intp, count=sum(sizes)
    )
    return flat, np.cumsum([0, *sizes], dtype=np.intp)[:-1]


_LISTS = Remembered[tuple[object, list[int], Indices, Indices]](
    8 << 20, lambda known: known[2].nbytes + known[3].nbytes
)
"""By the identity of categories, which are kept beside: tables of many questions have the very same ones."""


def _filled_lists(categories: Sequence[Category]) -> tuple[list[int], Indices, Indices]:
    """The categories that a code is in, and their members."""
    known = _LISTS.find(id(categories))
    if known is None or known[0] is not categories:
        filled = [index for index, category in enumerate(categories) if category.members]
        known = categories, filled, *member_lists([categories[index] for index in filled])
        if isinstance(categories, tuple):  # a list may change
            _LISTS.keep(id(categories), known)
    return known[1:]


def over_members(
    gather: np.ufunc, array: Array, axis: int, categories: Sequence[Category]
) -> Array:
    """An array over finest codes along an axis, as one over categories: what all their members give together.

    >>> both = [Category("a", "", (0, 2)), Category("b", "", (1,))]
    >>> over_members(np.add, np.array([1, 2, 4]), 0, both).tolist()
    [5, 2]
    """
    filled, flat, starts = _filled_lists(categories)
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
