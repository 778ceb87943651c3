"""Who contributes most to a cell: exact for totals, overlapping groups and holdings.

The largest of a total are not found among the largest of its parts when one owner has a little in
each part, so the contributions of an owner are added up per published cell before they are ranked.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lustrum.arrays import Ints
from lustrum.model import Contributions
from lustrum.tabulate.plan import Plan

__all__ = ["rank_contributions"]


def rank_contributions(
    plan: Plan,
    index: Ints,
    owner: Ints,
    value: Ints,
    weight: Ints | None,
    ranks: int,
    weight_decimals: int,
) -> tuple[Ints, Contributions]:
    """The number of contributors of each shown cell, and the largest contributions.

    ``index`` is the cell of atoms of each record, ``owner`` who it belongs to. Owners are ranked by
    the absolute size of what they contribute, ties by their number, so that the order is the same
    everywhere.
    """
    shape = tuple(len(axis.shown) for axis in plan.axes)
    size = int(np.prod(shape, dtype=np.int64))
    atom, person, amount, weighted, records = _by_owner(index, owner, value, weight)
    cell, source = _spread(plan, atom)
    order = np.lexsort((person[source], cell))
    cell, source = cell[order], source[order]
    new = np.ones(cell.size, dtype=np.bool_)
    new[1:] = (cell[1:] != cell[:-1]) | (person[source[1:]] != person[source[:-1]])
    starts = np.flatnonzero(new)
    cell, owners = cell[starts], person[source[starts]]

    def summed(array: Ints) -> Ints:
        return np.add.reduceat(array[source], starts) if starts.size else array[:0]

    amounts, weights, parts = summed(amount), summed(weighted), summed(records)
    contributors = np.bincount(cell, minlength=size).astype(np.int64)
    order = np.lexsort((owners, -np.abs(amounts), cell))
    cell, owners, amounts = cell[order], owners[order], amounts[order]
    rank = np.arange(cell.size) - np.concatenate(([0], np.cumsum(contributors)[:-1]))[cell]
    top = rank < ranks
    out_value = np.zeros((size, ranks), dtype=np.int64)
    out_owner = np.full((size, ranks), -1, dtype=np.int64)
    out_value[cell[top], rank[top]] = amounts[top]
    out_owner[cell[top], rank[top]] = owners[top]
    out_weight = None
    if weight is not None:
        out_weight = np.zeros((size, ranks))
        out_weight[cell[top], rank[top]] = (weights[order] / parts[order])[top]
        out_weight = out_weight.reshape(*shape, ranks)
    return contributors.reshape(shape), Contributions(
        out_value.reshape(*shape, ranks),
        out_owner.reshape(*shape, ranks),
        out_weight,
        weight_decimals,
    )


def _by_owner(
    index: Ints, owner: Ints, value: Ints, weight: Ints | None
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Add up what each owner has in each cell of atoms."""
    inside = index >= 0
    index, owner, value = index[inside], owner[inside], value[inside]
    ones = np.ones(index.size, dtype=np.int64)
    weights = ones if weight is None else weight[inside]
    order = np.lexsort((owner, index))
    index, owner = index[order], owner[order]
    if index.size == 0:
        return index, owner, value, weights, ones
    new = np.ones(index.size, dtype=np.bool_)
    new[1:] = (index[1:] != index[:-1]) | (owner[1:] != owner[:-1])
    starts = np.flatnonzero(new)
    sums = [np.add.reduceat(array[order], starts) for array in (value, weights, ones)]
    return index[starts], owner[starts], sums[0], sums[1], sums[2]


def _spread(plan: Plan, atom: Ints) -> tuple[Ints, npt.NDArray[np.intp]]:
    """Every shown cell that holds each cell of atoms: pairs of a shown cell and a position in ``atom``."""
    source = np.arange(atom.size)
    cell = np.zeros(atom.size, dtype=np.int64)
    rest = plan.size
    for axis in plan.axes:
        rest //= max(axis.atoms.count, 1)
        along = (atom[source] // rest) % max(axis.atoms.count, 1)
        held = axis.shown_atoms.membership
        categories, atoms = np.nonzero(held)
        order = np.argsort(atoms, kind="stable")
        categories = categories[order]
        per_atom = held.sum(axis=0)
        first = np.concatenate(([0], np.cumsum(per_atom)))
        times = per_atom[along]
        offset = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        picked = categories[np.repeat(first[along], times) + offset]
        cell = np.repeat(cell, times) * len(axis.shown) + picked
        source = np.repeat(source, times)
    return cell, source
