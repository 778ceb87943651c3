"""The levels at which variables are controlled: each partition of the finest codes once, without repeats.

A variable that is a function of another one, such as the region of an area, is a level of that other
variable. Only public facts decide this: the description with its structural zeros, never the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lustrum.model import Dataset, InputError, Variable
from lustrum.model.arrays import Ints


@dataclass(frozen=True, eq=False)
class ControlledLevel:
    """One way to group the finest codes of a variable: ``group_of[code]``, with what it is called."""

    variable: str
    name: str | None
    group_of: Ints
    same_as: tuple[tuple[str, str | None], ...] = ()

    @cached_property
    def size(self) -> int:
        """The number of groups."""
        return int(self.group_of.max()) + 1

    @property
    def finest(self) -> bool:
        """Whether every finest code is a group of its own."""
        return self.size == self.group_of.size

    @property
    def label(self) -> str:
        """The level as it is written in the method's own tables: ``area`` or ``area:district``."""
        return self.variable if self.name is None else f"{self.variable}:{self.name}"


def dependents(dataset: Dataset, index: int) -> list[int]:
    """The places of variables that are functions of the variable at a place."""
    name = dataset.variables[index].name
    roots = root_functions(dataset)
    return [
        number
        for number, variable in enumerate(dataset.variables)
        if variable.name != name and roots[variable.name][0] == name
    ]


def root_functions(dataset: Dataset) -> dict[str, tuple[str, Ints]]:
    """For every variable its root, which is no function of another one, and its code for each of the root's."""
    parents = _parents(dataset)
    functions = {}
    for variable in dataset.variables:
        owner, codes = variable.name, np.arange(len(variable.codes))
        while owner in parents:
            owner, function = parents[owner]
            codes = codes[function]
        functions[variable.name] = (owner, codes)
    return functions


def _parents(dataset: Dataset) -> dict[str, tuple[str, Ints]]:
    """For every variable that is a function of another one, that one and the function."""
    places = {v.name: i for i, v in enumerate(dataset.variables)}
    parents: dict[str, tuple[str, Ints]] = {}
    for variable in dataset.variables:
        for other in dataset.variables:
            if other.name in parents or other.name == variable.name:
                continue
            # Of two variables that determine each other the earlier one stays.
            if len(variable.codes) > len(other.codes) or (
                len(variable.codes) == len(other.codes)
                and places[variable.name] < places[other.name]
            ):
                continue
            function = _function(dataset, variable, other)
            if function is not None:
                parents[variable.name] = (other.name, function)
                break
    return parents


def controlled_levels(dataset: Dataset) -> dict[str, tuple[ControlledLevel, ...]]:
    """The distinct levels of every variable that is not a function of another one, finest first."""
    roots = root_functions(dataset)
    levels: dict[str, list[ControlledLevel]] = {
        v.name: [] for v in dataset.variables if roots[v.name][0] == v.name
    }
    for variable in dataset.variables:
        owner, function = roots[variable.name]
        for name, group_of in _own(variable):
            level = ControlledLevel(owner, name, renumbered(group_of[function]))
            _add(levels[owner], level, variable.name)
    return {
        name: tuple(sorted(variable_levels, key=lambda level: -level.size))
        for name, variable_levels in levels.items()
        if variable_levels
    }


def _own(variable: Variable) -> list[tuple[str | None, Ints]]:
    groupings: list[tuple[str | None, Ints]] = [(None, np.arange(len(variable.codes)))]
    for level in variable.levels:
        group_of = np.empty(len(variable.codes), dtype=np.int64)
        for group, category in enumerate(level.categories):
            group_of[list(category.members)] = group
        groupings.append((level.name, group_of))
    return groupings


def _add(levels: list[ControlledLevel], level: ControlledLevel, variable: str) -> None:
    for index, known in enumerate(levels):
        if np.array_equal(known.group_of, level.group_of):
            same = (*known.same_as, (variable, level.name))
            levels[index] = ControlledLevel(known.variable, known.name, known.group_of, same)
            return
    # A level with a single group is the total, which stands in every table without the variable.
    if level.size > 1:
        names = {known.name for known in levels}
        name = level.name if variable == level.variable else level.name or variable
        if name in names:
            name = f"{variable}.{name}"
        levels.append(
            ControlledLevel(level.variable, name, level.group_of, ((variable, level.name),))
        )


def renumbered(group_of: Ints) -> Ints:
    """The same groups, numbered by their first code."""
    _, first, inverse = np.unique(group_of, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(first.size)
    return np.asarray(rank[inverse.reshape(-1)], dtype=np.int64)


def _function(dataset: Dataset, variable: Variable, other: Variable) -> Ints | None:
    """The code of ``variable`` that each code of ``other`` determines, if structural zeros leave only one."""
    both = {variable.name, other.name}
    zeros = [zero for zero in dataset.structural_zeros if set(zero.where) == both]
    if not zeros and len(variable.codes) > 1:
        return None  # nothing to lay out: areas by areas would be many
    possible = np.ones((len(other.codes), len(variable.codes)), dtype=np.bool_)
    for zero in zeros:
        rows, columns = sorted(zero.where[other.name]), sorted(zero.where[variable.name])
        possible[np.ix_(rows, columns)] = False
    if not (possible.sum(axis=1) == 1).all():
        return None
    return np.asarray(possible.argmax(axis=1), dtype=np.int64)


def find_level(
    levels: dict[str, tuple[ControlledLevel, ...]], dataset: Dataset, word: str
) -> ControlledLevel:
    """The level that an agency names as ``variable`` or ``variable:level``."""
    name, _, level = word.partition(":")
    variable = dataset.variable(name)
    if level:
        variable.level(level)
    for candidate in (one for many in levels.values() for one in many):
        if (variable.name, level or None) in candidate.same_as:
            return candidate
    raise InputError(
        f"A table to be controlled names {word!r}, which puts all records into one group; leave it out."
    )
