"""The additive relations between published cells: which cells are sums of which others.

Along one axis, a category that is made up of other shown categories is their sum, whatever the
other axes say. Two tables over one population agree on every margin that both can form, shown or
not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask, Sparse
from lustrum.numeric.later import sparse
from lustrum.numeric.structure.build import published_values
from lustrum.numeric.structure.families import Family, Forest
from lustrum.numeric.structure.layout import StructureFields
from lustrum.numeric.structure.ragged import Lists, connected_parts, outer, pointers

# Relations between two tables: the margins that both can form, shown or not.


@dataclass(frozen=True, eq=False)
class _Common:
    """Sets of atoms that two families can both form; list ``i`` of each side says how."""

    one: Lists
    other: Lists


def linked_relations(structure: StructureFields, one: int, other: int) -> Lists:
    """Weighted cells of two tables that add up to 0: what one shows less what the other shows.

    What both can form is, variable by variable, what both can form of that variable; so the
    relations are all combinations of common sets of the variables.
    """
    families = structure.families
    common = [_common(a, b) for a, b in zip(families[one], families[other], strict=True)]
    first = _crossed([p.one for p in common], structure.strides(one), int(structure.offsets[one]))
    second = _crossed(
        [p.other for p in common], structure.strides(other), int(structure.offsets[other])
    )
    assert second.weights is not None
    return first.beside(Lists(second.indptr, second.items, -second.weights))


def _crossed(lists: list[Lists], strides: tuple[int, ...], offset: int) -> Lists:
    crossed = Lists.of([[offset]], [[1]])
    for one, stride in zip(lists, strides, strict=True):
        crossed = outer(crossed, one.scaled(stride))
    return crossed


def _common(one: Family, other: Family) -> _Common:
    """The sets both show, and the smallest sets that both can form."""
    pairs: list[tuple[tuple[Ints, Ints], tuple[Ints, Ints]]] = []
    unit = np.ones(1, dtype=np.int64)
    shown: set[bytes] = set()
    for key, position in one.first.items():
        if key and key in other.first:
            shown.add(key)
            pairs.append(((np.array([position]), unit), (np.array([other.first[key]]), unit)))
    for target in _joins(one, other):
        key = np.flatnonzero(target).astype(np.int64).tobytes()
        if key in shown:
            continue
        shown.add(key)
        left, right = one.express(target), other.express(target)
        assert left is not None  # a union of whole parts can be formed
        assert right is not None
        if not _same_sum(one, left, other, right):
            pairs.append((left, right))
    return _Common(_weighted([p[0] for p in pairs]), _weighted([p[1] for p in pairs]))


def _same_sum(
    one: Family, left: tuple[Ints, Ints], other: Family, right: tuple[Ints, Ints]
) -> bool:
    """Whether both sides add up the same shown sets, which follows from these being equal."""
    first = {one.keys[c]: int(s) for c, s in zip(*left, strict=True)}
    second = {other.keys[c]: int(s) for c, s in zip(*right, strict=True)}
    return first == second


def _weighted(sides: list[tuple[Ints, Ints]]) -> Lists:
    return Lists.of([s[0].tolist() for s in sides], [s[1].tolist() for s in sides])


def _joins(one: Family, other: Family) -> list[Mask]:
    return [
        target
        for forest in one.forests
        for partner in other.forests
        for target in _join(forest, partner)
    ]


def _join(one: Forest, other: Forest) -> list[Mask]:
    """The smallest sets of atoms that are unions of whole parts in both forests.

    The part of a set is what its children leave over. Parts that share an atom must go together;
    where one forest holds an atom that the other does not, the two cannot agree.
    """
    left, right = one.owner, other.owner
    width = one.parent.size
    held = (left >= 0) & (right >= 0)
    label = connected_parts(width + other.parent.size, left[held], width + right[held])
    group = np.full(left.size, -1, dtype=np.int64)
    group[left >= 0] = label[left[left >= 0]]
    group[(left < 0) & (right >= 0)] = label[width + right[(left < 0) & (right >= 0)]]
    unmatched = np.unique(group[(left >= 0) ^ (right >= 0)])
    return [group == g for g in np.setdiff1d(group[held], unmatched).tolist()]


@dataclass(frozen=True, eq=False)
class AdditiveRelations:
    """Relations as suppression software reads them: every total is the sum of its parts.

    Relation ``i`` says that cell ``totals[i]`` is the sum of ``parts[indptr[i]:indptr[i + 1]]``.
    Cells numbered from ``published`` to ``cells - 1`` are shown nowhere: each stands for a margin
    that two tables share and neither shows.
    """

    totals: Ints
    indptr: Ints
    parts: Ints
    published: int
    cells: int

    def __repr__(self) -> str:
        return f"AdditiveRelations({self.totals.size} relations, {self.cells} cells)"


@dataclass(frozen=True, eq=False)
class Relations:
    """Linear relations that hold between published cells whatever the inner cells are.

    Relation ``i`` adds up ``coefficients`` times ``cells`` from ``indptr[i]`` to ``indptr[i + 1]``
    to 0. Where it says that one cell is the sum of others, that cell is ``totals[i]`` and stands
    first with coefficient -1; where no single cell is a total, ``totals[i]`` is -1.

    >>> from lustrum.model import Category, TableAxis
    >>> from lustrum.numeric.structure import Structure
    >>> cats = (Category("a", "", (0,)), Category("b", "", (1,)), Category("all", "", (0, 1)))
    >>> relations = Structure.of_tables([[TableAxis("x", "", cats)]]).relations
    >>> relations, relations.matrix.toarray().tolist()
    (Relations(1 between 3 published cells), [[1, 1, -1]])
    """

    width: int
    totals: Ints
    indptr: Ints
    cells: Ints
    coefficients: Ints

    def __repr__(self) -> str:
        return f"Relations({self.count} between {self.width} published cells)"

    @property
    def count(self) -> int:
        """How many relations there are; not all need be independent."""
        return self.indptr.size - 1

    @cached_property
    def matrix(self) -> Sparse:
        """The sparse matrix R with ``R @ published == 0``."""
        csr = sparse.csr_array(
            (self.coefficients, self.cells, self.indptr), shape=(self.count, self.width), copy=True
        )
        csr.sort_indices()
        return csr

    @cached_property
    def additive(self) -> AdditiveRelations:
        """The same relations as totals and parts, with unseen cells where there is no total."""
        if np.any(np.abs(self.coefficients) != 1):
            raise InputError(
                "A relation counts a cell more than once, so it cannot be written as a total and "
                "its parts; use the plain relations of the structure instead of the complete ones."
            )
        rows = np.repeat(np.arange(self.count, dtype=np.int64), np.diff(self.indptr))
        open_rows = np.flatnonzero(self.totals < 0)
        unseen = np.full(self.count, -1, dtype=np.int64)
        unseen[open_rows] = self.width + np.arange(open_rows.size)
        positive = self.coefficients > 0
        left = np.bincount(rows[positive], minlength=self.count)
        other = ~positive & (self.totals[rows] < 0)
        right = np.bincount(rows[other], minlength=self.count)[open_rows]
        return AdditiveRelations(
            totals=np.concatenate(
                [np.where(self.totals < 0, unseen, self.totals), unseen[open_rows]]
            ),
            indptr=pointers(np.concatenate([left, right])),
            parts=np.concatenate([self.cells[positive], self.cells[other]]),
            published=self.width,
            cells=self.width + open_rows.size,
        )

    @classmethod
    def of(cls, lists: Lists, width: int) -> Relations:
        """Sort out which cell is the total in each row of weighted cells that adds up to 0."""
        weights = np.ones(lists.items.size, np.int64) if lists.weights is None else lists.weights
        rows = lists.rows
        plus = np.bincount(rows[weights > 0], minlength=lists.count)
        minus = lists.lengths - plus
        # A lone cell on its side is the total, provided that it counts once.
        lone = np.where(minus == 1, -1, np.where(plus == 1, 1, 0))
        is_total = weights == lone[rows]
        total_entries = np.flatnonzero(is_total)
        totals = np.full(lists.count, -1, dtype=np.int64)
        totals[rows[total_entries]] = lists.items[total_entries]
        total_position = np.full(lists.count, -1, dtype=np.int64)
        total_position[rows[total_entries]] = total_entries
        # The total moves to the front, and what stood before it one place back.
        target = np.arange(rows.size, dtype=np.int64)
        target += target < total_position[rows]
        target[total_entries] = lists.indptr[rows[total_entries]]
        cells, coefficients = np.empty_like(target), np.empty_like(target)
        cells[target] = lists.items
        coefficients[target] = weights * np.where(lone == 1, -1, 1)[rows]
        return cls(width, totals, lists.indptr, cells, coefficients)


def relations_of(structure: StructureFields) -> Relations:
    """All relations that the shape of the tables gives.

    They are complete (every linear relation follows from them) for a table whose categories nest
    along each axis, and for several tables whose categories of each variable come from one
    hierarchy, margins of a cube among them. Groups that overlap in odd ways can obey more; see
    :func:`lustrum.numeric.structure.incidence.complete_relations`. A structure with fewer inner cells also
    has the relations that empty cells are 0.
    """
    families = structure.families
    blocks = [
        across_table(structure, table, axis, sums_along(family))
        for table, table_families in enumerate(families)
        for axis, family in enumerate(table_families)
    ]
    pairs = combinations(range(len(families)), 2)
    blocks.extend(linked_relations(structure, one, other) for one, other in pairs)
    if structure.columns is not None:
        blocks.append(_empty_cells(structure))
    return Relations.of(stacked(blocks), structure.rows)


def sums_along(family: Family) -> Lists:
    """The sums of a family as weighted categories that add up to 0."""
    return Lists.of(
        [(total, *parts) for total, parts in family.sums],
        [(-1, *([1] * len(parts))) for _, parts in family.sums],
    )


def across_table(structure: StructureFields, table: int, axis: int, single: Lists) -> Lists:
    """Relations along one axis, crossed with all categories of the other axes of the table."""
    stride, offset = structure.strides(table)[axis], int(structure.offsets[table])
    size = int(structure.offsets[table + 1]) - offset
    if stride == 0 or single.count == 0 or size == 0:
        return Lists.of([], [])
    block = stride * structure.memberships(table)[axis].count
    corner = np.add.outer(np.arange(0, size, block), np.arange(stride)).ravel() + offset
    items = np.add.outer(corner, single.items * stride).ravel()
    assert single.weights is not None
    return Lists(
        pointers(np.tile(single.lengths, corner.size)), items, np.tile(single.weights, corner.size)
    )


def _empty_cells(structure: StructureFields) -> Lists:
    held = published_values(structure, np.ones(structure.inner, dtype=np.int64))
    empty = np.flatnonzero(np.concatenate([h.ravel() for h in held]) == 0)
    return Lists(np.arange(empty.size + 1), empty, np.full(empty.size, -1, dtype=np.int64))


def stacked(blocks: Iterable[Lists]) -> Lists:
    """Weighted lists one below the other."""
    nonempty = [b for b in blocks if b.count]
    if not nonempty:
        return Lists.of([], [])
    return Lists(
        pointers(np.concatenate([b.lengths for b in nonempty])),
        np.concatenate([b.items for b in nonempty]),
        np.concatenate(
            [np.ones(b.items.size, np.int64) if b.weights is None else b.weights for b in nonempty]
        ),
    )
