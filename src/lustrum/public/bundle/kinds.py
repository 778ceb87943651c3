"""The kind of a question, however it is phrased: by how many variables, and whether the search controls it.

A variable that is a function of another one, such as the region of an area, says something of that other one.
What a question fixes of each such *root* is a set of its codes for every cell: axes, levels, groups and filters
together. All codes fix nothing. The codes of one category of a level are controlled; other sets are the
reader's own groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from lustrum.model import Category, Dataset
from lustrum.model.arrays import Ints
from lustrum.protect.population.search.levels import controlled_levels, root_functions
from lustrum.runtime.remembered import Remembered

Codes = frozenset[int]

_MOST_CODES = 1 << 20


def _groups(group_of: Ints, size: int) -> Iterator[Codes]:
    """The codes of every group, in time that grows with the codes and not with the groups."""
    order = np.argsort(group_of, kind="stable")
    ends = np.searchsorted(group_of[order], np.arange(size + 1)).tolist()
    codes = order.tolist()
    return (frozenset(codes[first:last]) for first, last in pairwise(ends))


@dataclass(frozen=True)
class Kind:
    """How many variables a question crosses, at least 1, and whether it has groups of its own."""

    variables: int
    own_groups: bool


@dataclass(frozen=True, eq=False)
class Kinds:
    """The groups of codes that tables at published levels have; worked out once for a dataset."""

    functions: Mapping[str, tuple[str, Ints]]
    controlled: Mapping[str, frozenset[Codes]]

    @classmethod
    def of(cls, dataset: Dataset) -> Kinds:
        """Lay out the controlled levels of a dataset."""
        return cls(
            root_functions(dataset),
            {
                root: frozenset(
                    codes for level in levels for codes in _groups(level.group_of, level.size)
                )
                for root, levels in controlled_levels(dataset).items()
            },
        )

    def kind(
        self, axes: Sequence[tuple[str, Sequence[Category]]], passing: Mapping[str, frozenset[int]]
    ) -> Kind:
        """The kind of a table with these categories, of the codes that pass its filters."""
        filters: dict[str, list[Codes]] = {}
        for name, codes in passing.items():
            root, members = self._root(name, codes)
            filters.setdefault(root, []).append(members)
        along: dict[str, list[list[Codes]]] = {root: [] for root in filters}
        for name, categories in axes:
            root = self.functions[name][0]
            code_sets = [self._root(name, category.member_set)[1] for category in categories]
            along.setdefault(root, []).append(code_sets)
        variables, own_groups = 0, False
        for root, lists in along.items():
            if root not in self.controlled:  # a single code
                continue
            every = self._every[root]
            within = every.intersection(*filters[root]) if root in filters else every
            sets = {within.intersection(*chosen) for chosen in product(*map(set, lists))}
            sets -= {frozenset(), every}
            variables += bool(sets)
            own_groups = own_groups or not sets <= self.controlled[root]
        return Kind(max(variables, 1), own_groups)

    @cached_property
    def _every(self) -> Mapping[str, Codes]:
        return {root: frozenset(range(self.functions[root][1].size)) for root in self.controlled}

    def _root(self, name: str, codes: frozenset[int]) -> tuple[str, Codes]:
        """The codes of the root that have one of these codes of a variable."""
        root, function = self.functions[name]
        if root == name:
            return root, codes
        return root, self._known.get(
            (name, codes),
            lambda: frozenset(np.flatnonzero(np.isin(function, list(codes))).tolist()),
        )

    @cached_property
    def _known(self) -> Remembered[Codes]:
        """The codes of roots, by those of the variables that are functions of them."""
        return Remembered(_MOST_CODES, len)
