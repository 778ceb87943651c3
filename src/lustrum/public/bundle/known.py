"""What exact totals that are public elsewhere say of the cells of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lustrum.model import Category, Dataset
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.numeric.structure import Atoms
from lustrum.numeric.structure.atoms import listed
from lustrum.numeric.structure.ragged import Lists, pointers
from lustrum.protect.population.readers import KnownTotals

Axes = Sequence[tuple[str, Sequence[Category]]]


def most_by_totals(
    dataset: Dataset, totals: KnownTotals, axes: Axes, passing: Mapping[str, frozenset[int]]
) -> tuple[Ints, Mask]:
    """The most that each cell can hold by some totals, and which cells are exactly that.

    A cell holds at most the totals of all groups that it overlaps, and exactly those where it is made of
    whole groups: no filter, and no other variable, takes a part of them away.
    """
    known = totals.axes(dataset)
    names = [name for name, _ in known]
    most = np.array(totals.values, dtype=np.int64).reshape([len(groups) for _, groups in known])
    exact = np.ones((), dtype=np.bool_)
    on_axis = dict(axes)
    for index, (name, groups) in enumerate(known):
        size = len(dataset.variable(name).codes)
        passes = np.ones(size, dtype=np.bool_)
        if name in passing:
            passes[:] = False
            passes[list(passing[name])] = True
        shown = on_axis.get(name, (Category("_T", "", tuple(range(size))),))
        touched, whole = _touched(size, groups, shown, passes)
        most = touched.roll_up(most, index)
        exact = exact[..., None] & whole
    for name, codes in passing.items():
        if name not in names and len(codes) < len(dataset.variable(name).codes):
            exact = exact & False
    # Lay the known variables along the axes of the table; others have one cell there.
    shape = [len(categories) if name in names else 1 for name, categories in axes]
    shown_axes = [index for index, name in enumerate(names) if name in on_axis]
    dropped = tuple(index for index in range(len(names)) if index not in shown_axes)
    there = [n for n, _ in axes]
    order = np.argsort([there.index(names[index]) for index in shown_axes], kind="stable")
    full = tuple(len(categories) for _, categories in axes)

    def laid(array: Array) -> Array:
        small = array.squeeze(axis=dropped).transpose(order) if shown_axes else array.squeeze()
        return np.broadcast_to(small.reshape(shape), full)

    covers = np.ones(full, dtype=np.bool_)
    for index, (name, categories) in enumerate(axes):
        if name not in names:
            size = len(dataset.variable(name).codes)
            total = np.array([len(c.members) == size for c in categories])
            covers &= total.reshape([-1 if p == index else 1 for p in range(len(axes))])
    return np.asarray(laid(most), dtype=np.int64), np.asarray(laid(exact) & covers, dtype=np.bool_)


def _touched(
    codes: int, groups: Sequence[Category], shown: Sequence[Category], passes: Mask
) -> tuple[Atoms, Mask]:
    """The groups that each category overlaps among those who pass, and whether it holds them whole."""
    group_of = np.full(codes, -1, dtype=np.int64)
    group_lists = listed([group.members for group in groups])
    group_of[group_lists.items] = group_lists.rows
    members = listed([category.members for category in shown])
    passing = passes[members.items]
    pairs, held = np.unique(
        members.rows[passing] * len(groups) + group_of[members.items[passing]], return_counts=True
    )
    rows, group_index = np.divmod(pairs, len(groups))
    whole = np.ones(len(shown), dtype=np.bool_)
    whole[rows[held < group_lists.lengths[group_index]]] = False
    lists = Lists(pointers(np.bincount(rows, minlength=len(shown))), group_index)
    return Atoms(group_of, len(groups), lists), whole
