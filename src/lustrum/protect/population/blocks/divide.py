"""How a description divides a dataset into blocks, and what a block is: a dataset of its own.

``blocks = "area:region"`` names a level of a variable. If the variable is a function of another one, that one
is divided. A block has the codes of one category, all other variables as they are, and the structural zeros
that concern it. Which blocks there are, and in which order, follows from the description alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lustrum.model import Category, Dataset, Hierarchy, InputError, Level, StructuralZero, Variable
from lustrum.model.arrays import Array, Ints, Words
from lustrum.model.finest import FinestCells
from lustrum.protect.population.later import LASTING, RememberedCells
from lustrum.protect.population.search.levels import (
    ControlledLevel,
    controlled_levels,
    find_level,
    root_functions,
)
from lustrum.protect.population.search.plan import Shared, plan_shared
from lustrum.protect.population.start import cell_numbers, derived


@dataclass(frozen=True, eq=False)
class RegionBlock:
    """One block: the category that it is, and the codes that it has of the variable that is divided."""

    number: int
    code: str
    members: Ints

    def key(self, key: bytes) -> bytes:
        """The key of the block, from which all of its chance comes."""
        return derived(key, f"block {self.code}")


@dataclass(frozen=True, eq=False)
class Division:
    """The blocks of a dataset, in the order of their first codes; ``root`` is the variable that is divided."""

    dataset: Dataset
    root: str
    block_of: Ints
    blocks: tuple[RegionBlock, ...]

    @classmethod
    def of(cls, dataset: Dataset) -> Division | None:
        """The blocks that the description names; None where it names none, or all records are in one."""
        if dataset.blocks is None:
            return None
        name, _, level = dataset.blocks.partition(":")
        variable = dataset.variable(name)
        categories = variable.level(level).categories if level else variable.finest
        root, codes = root_functions(dataset)[name]
        group_of = np.empty(len(variable.codes), dtype=np.int64)
        for number, category in enumerate(categories):
            group_of[list(category.members)] = number
        numbers, first, block_of = np.unique(
            group_of[codes], return_index=True, return_inverse=True
        )
        order = np.argsort(first, kind="stable")
        rank = np.argsort(order, kind="stable")
        block_of = rank[block_of.reshape(-1)].astype(np.int64)
        if numbers.size < 2:
            return None
        blocks = tuple(
            RegionBlock(n, categories[number].code, np.flatnonzero(block_of == n))
            for n, number in enumerate(numbers[order].tolist())
        )
        return cls(dataset, root, block_of, blocks)

    @cached_property
    def levels(self) -> dict[str, tuple[ControlledLevel, ...]]:
        """The levels of all variables of the whole dataset."""
        return controlled_levels(self.dataset)

    def rows(self, cells: FinestCells) -> Ints:
        """The block in which each cell lies."""
        row = [v.name for v in cells.dataset.variables].index(self.root)
        return np.asarray(self.block_of[cells.codes[row]])

    def part(self, block: RegionBlock, cells: FinestCells, rows: Ints | None = None) -> FinestCells:
        """The cells of a block, numbered by its own codes; what is remembered of them goes with them."""
        names = [v.name for v in cells.dataset.variables]
        if self.root not in names:
            raise InputError(
                f"The earlier release has no variable {self.root!r}, by which blocks divide this one; leave "
                "the blocks out of the description, or say --never-published if that is so."
            )
        if cells.dataset.variable(self.root).codes != self.dataset.variable(self.root).codes:
            raise InputError(
                f"The codes of {self.root!r} differ from those of the earlier release; a second release needs "
                "the same ones."
            )
        here = (self.rows(cells) if rows is None else rows) == block.number
        codes = cells.codes[:, here]
        row = names.index(self.root)
        codes[row] = np.searchsorted(block.members, codes[row])
        dataset = restricted(cells.dataset, self.root, block.members)
        keys = None if cells.keys is None else cells.keys[here]
        if not isinstance(cells, RememberedCells):
            return FinestCells(dataset, codes, cells.counts[here], keys)
        lasting: Any = [
            None if a is None else a[here] for a in map(cells.__getattribute__, LASTING)
        ]
        more = dict(zip(LASTING, lasting, strict=True))
        return RememberedCells(
            dataset, codes, cells.counts[here], keys, **more, wide=cells.wide, share=cells.share
        )

    def numbers(self, block: RegionBlock, numbers: Words, cells: FinestCells) -> Words:
        """Numbers of cells of the whole as those of cells in a block; ``cells`` are those of the block."""
        held = np.isin(cell_numbers(self.dataset, self.codes(block, cells.codes)), numbers)
        return cell_numbers(cells.dataset, cells.codes[:, held])

    def codes(self, block: RegionBlock, codes: Array) -> Array:
        """Codes of a block as those of the whole."""
        row = [v.name for v in self.dataset.variables].index(self.root)
        most = max(len(v.codes) for v in self.dataset.variables)
        wide = codes.astype(np.min_scalar_type(max(most - 1, 1)))
        wide[row] = block.members[codes[row]]
        return wide

    def tables(
        self, block: RegionBlock, dataset: Dataset, tables: Sequence[Sequence[str]]
    ) -> tuple[tuple[str, ...], ...]:
        """The agency's own tables as a block has them: levels with a single group here are left out."""
        here = controlled_levels(dataset)
        found: dict[tuple[str, ...], None] = {}
        for variables in tables:
            kept, places = [], []
            for word in variables:
                level = find_level(self.levels, self.dataset, word)
                own = (
                    level.group_of[block.members] if level.variable == self.root else level.group_of
                )
                if (own != own[0]).any():
                    kept.append(word)
                    places.append(find_level(here, dataset, word).variable)
            if kept and len(set(places)) == len(places):
                found[tuple(kept)] = None
        return tuple(found)

    def shared(
        self, max_variables: int, tables: Sequence[Sequence[str]], extra_tables: int
    ) -> Shared | None:
        """The tables whose cells lie in several blocks; None where there are none."""
        plan = plan_shared(
            self.dataset, self.root, self.block_of, max_variables, tables, extra_tables
        )
        return None if plan is None else Shared(plan, self.root, np.arange(self.block_of.size))

    @cached_property
    def within(self) -> tuple[ControlledLevel, ...]:
        """The levels of the divided variable of which every group lies in one block."""
        return tuple(
            level
            for level in self.levels[self.root]
            if np.unique(np.stack([level.group_of, self.block_of]), axis=1).shape[1] == level.size
        )


def restricted(dataset: Dataset, root: str, members: Ints) -> Dataset:
    """A description with these codes of one variable alone."""
    place = np.full(len(dataset.variable(root).codes), -1, dtype=np.int64)
    place[members] = np.arange(members.size)
    zeros = []
    for zero in dataset.structural_zeros:
        if root not in zero.where:
            zeros.append(zero)
            continue
        here = place[sorted(zero.where[root])]
        if (here >= 0).any():
            where = {**zero.where, root: frozenset(here[here >= 0].tolist())}
            zeros.append(StructuralZero(zero.reason, where))
    variables = tuple(
        _variable(v, members, place) if v.name == root else v for v in dataset.variables
    )
    return Dataset(dataset.name, dataset.title, variables, structural_zeros=tuple(zeros))


def _variable(variable: Variable, members: Ints, place: Ints) -> Variable:
    chosen = members.tolist()
    hierarchies = tuple(
        Hierarchy(h.name, h.label, tuple(_level(level, place) for level in h.levels))
        for h in variable.hierarchies
    )
    codes = tuple(variable.codes[c] for c in chosen)
    return replace(
        variable,
        codes=codes,
        labels=tuple(variable.labels[c] for c in chosen),
        hierarchies=hierarchies,
        missing=variable.missing if variable.missing in codes else None,
        edges=(),
    )


def _level(level: Level, place: Ints) -> Level:
    categories = []
    for category in level.categories:
        here: Ints = place[list(category.members)]
        kept = tuple(here[here >= 0].tolist())
        if kept:
            categories.append(Category(category.code, category.label, kept, category.note))
    return replace(level, categories=tuple(categories))
