"""Who contributes most to a cell: exact for totals, overlapping groups and holdings.

The largest of a total are not found among the largest of its parts when one owner has a little in
each part, so the contributions of an owner are added up per published cell before they are ranked. Most owners
have a single record. These are ranked by cells of atoms and joined from there; the records of the others
come sorted by owner, so that a cell remembers one owner at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lustrum.model import Contributions
from lustrum.model.arrays import Array, Floats, Indices, Ints, Mask, Whole
from lustrum.numeric.compiled import compiled
from lustrum.numeric.counting.kernel import empty_rows, rank_several
from lustrum.numeric.counting.plan import Plan


class Owners(NamedTuple):
    """Records by their owners: those who are all that their owner has, and the others sorted by owner.

    ``alone`` marks the first.
    """

    single: Indices
    several: Indices
    alone: Mask

    @classmethod
    def of(cls, owner: Ints) -> Owners:
        """Sort the records of several records' owners; ``owner`` says whose each record is."""
        order = np.argsort(owner, kind="stable")
        ranked = owner[order]
        new = np.ones(owner.size + 1, dtype=np.bool_)
        new[1:-1] = ranked[1:] != ranked[:-1]
        alone = new[:-1] & new[1:]
        single = np.sort(order[alone])
        mask = np.zeros(owner.size, dtype=np.bool_)
        mask[single] = True
        return cls(single, order[~alone], mask)


def rank_contributions(
    plan: Plan,
    index: Ints,
    owner: Ints,
    value: Ints,
    weight: Ints | None,
    ranks: int,
    weight_decimals: int,
    owners: Owners | None = None,
) -> tuple[Ints, Contributions]:
    """The number of contributors of each shown cell, and the largest contributions.

    ``index`` is the cell of atoms of each record, negative outside of the table, ``owner`` who it belongs to.
    Owners are ranked by the absolute size of what they contribute, ties by their number, so that the order is
    the same everywhere. ``owners`` is the owners' order, if somebody has worked it out already.
    """
    shape = tuple(len(axis.shown) for axis in plan.axes)
    owner_order = Owners.of(owner) if owners is None else owners

    def taken(rows: Indices) -> tuple[Ints, Ints, Ints, Ints]:
        if rows.size == index.size and not owner_order.several.size:
            return index, owner, value, index[:0] if weight is None else weight
        weights = index[:0] if weight is None else weight[rows]
        return index[rows], owner[rows], value[rows], weights

    alone = _Ranked.empty(plan.size, ranks, weight is not None)
    _rank_single(*taken(owner_order.single), plan.size, *alone)
    ranked = _rolled_up(alone, plan)
    if owner_order.several.size:
        several = _Ranked.empty(int(np.prod(shape, dtype=np.int64)), ranks, weight is not None)
        state = np.zeros((several.contributors.size, 5), dtype=np.int64)
        _rank_several(*taken(owner_order.several), *_categories(plan), state, *several)
        ranked = _merged(ranked, several)
    return ranked.contributors.reshape(shape), Contributions(
        ranked.values.reshape(*shape, ranks),
        ranked.owners.reshape(*shape, ranks),
        None if weight is None else ranked.weights.reshape(*shape, ranks),
        weight_decimals,
    )


def several_rows(plan: Plan, index: Ints, owner: Ints, value: Ints) -> Ints:
    """Rows of shown cells with the owners of several records, whose records come sorted by owner."""
    rows = empty_rows(int(np.prod([len(axis.shown) for axis in plan.axes], dtype=np.int64)))
    rank_several(index, owner, value, *_categories(plan), rows)
    return rows


def rank_two(
    plan: Plan, rows: Ints, several: Ints | None, ranks: int
) -> tuple[Ints, Contributions]:
    """Contributors of shown cells from rows of :mod:`~lustrum.numeric.counting.kernel`.

    ``rows`` are those of atoms with the owners of one record, ``several`` those of shown cells with the others.
    """
    shape = tuple(len(axis.shown) for axis in plan.axes)
    ranked = _rolled_up(_of_rows(rows[: plan.size]), plan)
    if several is not None:
        ranked = _merged(ranked, _of_rows(several))
    return ranked.contributors.reshape(shape), Contributions(
        np.ascontiguousarray(ranked.values[:, :ranks]).reshape(*shape, ranks),
        np.ascontiguousarray(ranked.owners[:, :ranks]).reshape(*shape, ranks),
        None,
        0,
    )


def _of_rows(rows: Ints) -> _Ranked:
    return _Ranked(
        np.ascontiguousarray(rows[:, 3]),
        np.ascontiguousarray(rows[:, 4::2]),
        np.ascontiguousarray(rows[:, 5::2]),
        np.zeros((rows.shape[0], 0)),
    )


class _Ranked(NamedTuple):
    """The largest contributions of cells, and how many contributors these have."""

    contributors: Ints
    values: Ints
    owners: Ints
    weights: Floats

    @classmethod
    def empty(cls, cells: int, ranks: int, weighted: bool) -> _Ranked:
        return cls(
            np.zeros(cells, dtype=np.int64),
            np.zeros((cells, ranks), dtype=np.int64),
            np.full((cells, ranks), -1, dtype=np.int64),
            np.zeros((cells, ranks if weighted else 0)),
        )


def _rolled_up(ranked: _Ranked, plan: Plan) -> _Ranked:
    """From cells of atoms to shown cells, where nobody has anything in two cells of atoms."""
    shape = [axis.atoms.count for axis in plan.axes]
    for position, axis in enumerate(plan.axes):
        held = axis.shown_atoms.held
        outer = int(np.prod(shape[:position], dtype=np.int64))
        inner = int(np.prod(shape[position + 1 :], dtype=np.int64))
        cells = outer * held.count * inner
        out = _Ranked.empty(cells, ranked.values.shape[1], ranked.weights.shape[1] > 0)
        _roll_up(outer, shape[position], inner, held.indptr, held.items, *ranked, *out)
        ranked = out
        shape[position] = held.count
    return ranked


def _merged(one: _Ranked, other: _Ranked) -> _Ranked:
    """The largest over two rankings that share no owner."""
    ranks = one.values.shape[1]
    values, owners, weights = (
        np.concatenate([getattr(one, name), getattr(other, name)], axis=1)
        for name in ("values", "owners", "weights")
    )
    # Places that nobody fills come last; of equal contributions the owner with the smaller number is first.
    order = np.lexsort((owners, -np.abs(values), owners < 0), axis=1)[:, :ranks]
    return _Ranked(
        one.contributors + other.contributors,
        np.take_along_axis(values, order, axis=1),
        np.take_along_axis(owners, order, axis=1),
        np.take_along_axis(weights, order, axis=1) if weights.size else weights,
    )


def _categories(plan: Plan) -> tuple[Ints, Ints, Ints, Ints]:
    """For every atom of every axis, the shown categories that hold it, one list after the other.

    ``first[a, k]`` is where the list of atom ``k`` of axis ``a`` begins; it ends where the next one begins.
    """
    most = max((axis.atoms.count for axis in plan.axes), default=0)
    first = np.zeros((len(plan.axes), most + 1), dtype=np.int64)
    lists: list[Ints] = []
    start = 0
    for row, axis in zip(first, plan.axes, strict=True):
        holders = axis.shown_atoms.held.transposed(axis.atoms.count)
        lists.append(holders.items)
        ends = start + holders.indptr
        row[: ends.size] = ends
        row[ends.size :] = ends[-1]
        start = int(ends[-1])
    counts = np.array([axis.atoms.count for axis in plan.axes], dtype=np.int64)
    shown = np.array([len(axis.shown) for axis in plan.axes], dtype=np.int64)
    return first, np.concatenate([*lists, np.empty(0, dtype=np.int64)]), counts, shown


@compiled
def _insert(
    cell: Whole,
    value: Whole,
    owner: Whole,
    weight: float,
    filled: Whole,
    values: Array,
    owners: Array,
    weights: Array,
) -> None:  # pragma: no cover
    """Put a contribution among the largest of a cell, of which ``filled`` are there."""
    ranks = values.shape[1]
    weighted = weights.shape[1] > 0
    size = abs(value)
    rank = min(filled, ranks)
    while rank > 0:
        other = abs(values[cell, rank - 1])
        if other > size or (other == size and owners[cell, rank - 1] < owner):
            break
        rank -= 1
    if rank < ranks:
        for k in range(ranks - 1, rank, -1):
            values[cell, k] = values[cell, k - 1]
            owners[cell, k] = owners[cell, k - 1]
            if weighted:
                weights[cell, k] = weights[cell, k - 1]
        values[cell, rank] = value
        owners[cell, rank] = owner
        if weighted:
            weights[cell, rank] = weight


@compiled
def _rank_single(
    index: Array,
    owner: Array,
    value: Array,
    weight: Array,
    size: int,
    contributors: Array,
    values: Array,
    owners: Array,
    weights: Array,
) -> None:  # pragma: no cover
    """Records that are all that their owner has: each stands in one cell of atoms."""
    ranks = values.shape[1]
    weighted = weight.size > 0
    for i in range(index.size):
        cell = index[i]
        if cell < 0 or cell >= size:
            continue
        filled = contributors[cell]
        contributors[cell] = filled + 1
        # Most are too small to be ranked, and a call costs more than all the rest.
        if filled < ranks or abs(value[i]) >= abs(values[cell, ranks - 1]):
            owner_weight = np.float64(weight[i]) if weighted else 0.0
            _insert(cell, value[i], owner[i], owner_weight, filled, values, owners, weights)


@compiled
def _roll_up(
    outer: int,
    atoms: int,
    inner: int,
    first: Array,
    listed: Array,
    contributors: Array,
    values: Array,
    owners: Array,
    weights: Array,
    out_contributors: Array,
    out_values: Array,
    out_owners: Array,
    out_weights: Array,
) -> None:  # pragma: no cover
    """Join atoms of one axis to categories."""
    ranks = values.shape[1]
    weighted = weights.shape[1] > 0
    categories = first.size - 1
    for o in range(outer):
        for c in range(categories):
            for k in range(first[c], first[c + 1]):
                for n in range(inner):
                    source = (o * atoms + listed[k]) * inner + n
                    cell = (o * categories + c) * inner + n
                    filled = out_contributors[cell]
                    for r in range(min(contributors[source], ranks)):
                        owner_weight = weights[source, r] if weighted else 0.0
                        _insert(
                            cell,
                            values[source, r],
                            owners[source, r],
                            owner_weight,
                            filled,
                            out_values,
                            out_owners,
                            out_weights,
                        )
                        filled += 1
                    out_contributors[cell] += contributors[source]


@compiled
def _close(
    cell: Whole, state: Array, contributors: Array, values: Array, owners: Array, weights: Array
) -> None:  # pragma: no cover
    """Rank the owner that a cell remembers."""
    if state[cell, 3] > 0:
        mean_weight = state[cell, 2] / state[cell, 3]
        filled = contributors[cell]
        _insert(cell, state[cell, 1], state[cell, 0], mean_weight, filled, values, owners, weights)
        contributors[cell] += 1


@compiled
def _rank_several(
    index: Array,
    owner: Array,
    value: Array,
    weight: Array,
    first: Array,
    listed: Array,
    atoms: Array,
    shown: Array,
    state: Array,
    contributors: Array,
    values: Array,
    owners: Array,
    weights: Array,
) -> None:  # pragma: no cover
    """Records sorted by owner; ``state`` holds the owner of a cell, its sum, its weights and its records."""
    axes = atoms.size
    at = np.empty(max(axes, 1), dtype=np.int64)
    begin = np.empty(max(axes, 1), dtype=np.int64)
    end = np.empty(max(axes, 1), dtype=np.int64)
    weighted = weight.size > 0
    ranks = values.shape[1]
    for i in range(index.size):
        rest = index[i]
        if rest < 0:
            continue
        empty = False
        for a in range(axes - 1, -1, -1):
            above = rest // atoms[a]
            atom = rest - above * atoms[a]
            rest = above
            begin[a] = first[a, atom]
            end[a] = first[a, atom + 1]
            at[a] = begin[a]
            empty = empty or begin[a] == end[a]
        if rest != 0 or empty:
            continue  # fails a filter, or stands in no category that is shown
        while True:
            cell = 0
            for a in range(axes):
                cell = cell * shown[a] + listed[at[a]]
            if state[cell, 3] == 0 or state[cell, 0] != owner[i]:
                # As above: owners come in ascending order, so that one of the same size stays below.
                if contributors[cell] >= ranks and (
                    abs(state[cell, 1]) <= abs(values[cell, ranks - 1])
                ):
                    contributors[cell] += 1
                else:
                    _close(cell, state, contributors, values, owners, weights)
                state[cell, 0] = owner[i]
                state[cell, 1] = 0
                state[cell, 2] = 0
                state[cell, 3] = 0
            state[cell, 1] += value[i]
            state[cell, 2] += weight[i] if weighted else 1
            state[cell, 3] += 1
            a = axes - 1
            while a >= 0:
                at[a] += 1
                if at[a] < end[a]:
                    break
                at[a] = begin[a]
                a -= 1
            if a < 0:
                break
    for cell in range(state.shape[0]):
        _close(cell, state, contributors, values, owners, weights)
