"""The categories along one axis as sets of atoms, sorted into forests.

Sets that never cross (any two are disjoint or one holds the other) form a forest: each set stands
below the smallest set that holds it. One hierarchy with its totals is one forest. Where sets cross,
as with two hierarchies that do not nest, several forests together hold all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from lustrum.model.arrays import Ints, Mask
from lustrum.numeric.later import sparse
from lustrum.numeric.structure.ragged import Lists

# Odd families of many crossing groups would need as many forests as there are groups.
_MOST_FORESTS = 64


@dataclass(frozen=True, eq=False)
class Forest:
    """Sets that do not cross.

    ``sets`` are categories, the largest first; ``parent[c]`` is the smallest set of the forest that
    properly holds category ``c``, or -1; ``owner[a]`` is the smallest set that holds atom ``a``, or
    -1. ``rest[c]`` counts the atoms of ``c`` that none of its children holds: with none, ``c`` is
    the sum of its children.
    """

    sets: Ints
    parent: Ints
    owner: Ints
    rest: Ints

    @property
    def rank(self) -> int:
        """How many of the sets are linearly independent: those that are no sum of children."""
        return int(np.count_nonzero(self.rest[self.sets]))

    def children(self) -> dict[int, list[int]]:
        """The sets right below each set."""
        below: dict[int, list[int]] = {}
        for child in np.sort(self.sets).tolist():
            below.setdefault(int(self.parent[child]), []).append(child)
        return below

    def express(self, lists: Lists, target: Mask) -> tuple[Ints, Ints] | None:
        """Categories and signs that add up to a set of atoms, if sums and differences can do it.

        The part of each set outside its children is wholly in or wholly out; a set counts plus one
        where its own part is in and its parent's is out, minus one the other way round.
        """
        inside = np.bincount(self.owner[target & (self.owner >= 0)], minlength=self.parent.size)
        if np.any(self.owner[target] < 0) or np.any((inside > 0) & (inside < self.rest)):
            return None
        flags = inside > 0
        for c in self.sets[self.rest[self.sets] == 0]:
            flags[c] = bool(target[lists.row(c)].all())
        above = self.parent[self.sets]
        signs = flags[self.sets].astype(np.int64)
        signs -= np.where(above >= 0, flags[above], False).astype(np.int64)
        used = np.flatnonzero(signs)
        return self.sets[used], signs[used]


@dataclass(frozen=True, eq=False)
class Family:
    """All categories of one axis as lists of atoms.

    >>> family = Family(Lists.of([[0], [1], [0, 1]]), 2)
    >>> family.nested, family.sums
    (True, ((2, (0, 1)),))
    """

    lists: Lists
    atoms: int

    @cached_property
    def keys(self) -> tuple[bytes, ...]:
        """The atoms of each category as bytes, to find equal sets by."""
        items = np.ascontiguousarray(self.lists.items, dtype=np.int64)
        cuts = self.lists.indptr.tolist()
        return tuple(items[a:b].tobytes() for a, b in pairwise(cuts))

    @cached_property
    def first(self) -> dict[bytes, int]:
        """For each set of atoms shown, the first category that is that set."""
        positions: dict[bytes, int] = {}
        for position, key in enumerate(self.keys):
            positions.setdefault(key, position)
        return positions

    @cached_property
    def distinct(self) -> Ints:
        """The first category of each non-empty set, the largest sets first."""
        picks = np.array([c for key, c in self.first.items() if key], dtype=np.int64)
        return picks[np.argsort(-self.lists.lengths[picks], kind="stable")]

    @cached_property
    def forests(self) -> tuple[Forest, ...]:
        """Forests that together hold every distinct set; one of them where no sets cross."""
        order = self.distinct
        crossing = self._crossing
        if crossing is None:
            return (self._forest(order),)
        missing = np.ones(order.size, dtype=np.bool_)
        forests: list[Forest] = []
        while missing.any() and len(forests) < _MOST_FORESTS:
            places = np.arange(order.size)
            chosen = _without_crossing(
                np.concatenate([places[missing], places[~missing]]), crossing
            )
            forests.append(self._forest(order[chosen]))
            missing &= ~chosen
        return tuple(forests)

    @property
    def nested(self) -> bool:
        """Whether no two sets cross, so that all linear relations are totals of their children."""
        return self._crossing is None

    @cached_property
    def sums(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Every category that is a sum of others, with them: nothing for an empty category, the
        first of its equals for a repeated set, the children for a total or subtotal."""
        sums: dict[tuple[int, tuple[int, ...]], None] = {}
        for position, key in enumerate(self.keys):
            if not key:
                sums[position, ()] = None
            elif self.first[key] != position:
                sums[position, (self.first[key],)] = None
        for forest in self.forests:
            below = forest.children()
            for c in forest.sets.tolist():
                if forest.rest[c] == 0:
                    sums[c, tuple(below[c])] = None
        return tuple(sums)

    def express(self, target: Mask) -> tuple[Ints, Ints] | None:
        """The shortest way found to add up categories, with signs, to a set of atoms."""
        shown = self.first.get(np.flatnonzero(target).astype(np.int64).tobytes())
        if shown is not None:
            return np.array([shown], dtype=np.int64), np.ones(1, dtype=np.int64)
        ways = [forest.express(self.lists, target) for forest in self.forests]
        return min((w for w in ways if w is not None), key=lambda w: w[0].size, default=None)

    @cached_property
    def _crossing(self) -> Lists | None:
        """For each distinct set, the distinct sets that cross it; None where there are none."""
        sets = self.lists.take(self.distinct)
        sizes = sets.lengths
        ones = np.ones(sets.items.size, dtype=np.int32)
        member = sparse.csr_array((ones, sets.items, sets.indptr), shape=(sets.count, self.atoms))
        shared = (member @ member.T).tocoo()
        least = np.minimum(sizes[shared.row], sizes[shared.col])
        cross = (shared.data > 0) & (shared.data < least)
        if not cross.any():
            return None
        rows, others = shared.row[cross], shared.col[cross]
        order = np.lexsort((others, rows))
        starts = np.searchsorted(rows[order], np.arange(sets.count + 1))
        return Lists(starts.astype(np.int64), others[order].astype(np.int64))

    def _forest(self, sets: Ints) -> Forest:
        ordered = sets[np.argsort(-self.lists.lengths[sets], kind="stable")]
        parent = np.full(self.lists.count, -1, dtype=np.int64)
        owner = np.full(self.atoms, -1, dtype=np.int64)
        for c in ordered.tolist():
            held = self.lists.row(c)
            parent[c] = owner[held[0]]
            owner[held] = c
        rest = np.bincount(owner[owner >= 0], minlength=self.lists.count).astype(np.int64)
        return Forest(ordered, parent, owner, rest)


def _without_crossing(order: Ints, crossing: Lists) -> Mask:
    """Take sets in this order, leaving out those that cross one taken before."""
    chosen = np.zeros(order.size, dtype=np.bool_)
    blocked = np.zeros(order.size, dtype=np.bool_)
    for candidate in order.tolist():
        if not blocked[candidate]:
            chosen[candidate] = True
            blocked[crossing.row(candidate)] = True
    return chosen
