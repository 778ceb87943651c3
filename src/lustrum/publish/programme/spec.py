"""What a programme of prepared tables says, as frozen values, and groups of codes from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from lustrum.model import Category, Dataset, Hierarchy, InputError, TableQuery, Variable
from lustrum.model.errors import choices
from lustrum.readers.hierarchy_files import Groups
from lustrum.sensitivity import Rule

COUNT = "count"
"""The name of the response that counts records; every other response is a measure."""

USUAL_FORMATS = ("csv", "json-stat", "xlsx", "parquet")
METHODS = ("suppression", "controlled-rounding", "controlled-adjustment")
Unshown = Literal["differences", "all", "nothing"]


@dataclass(frozen=True)
class Source:
    """Where the numbers come from: a dataset of the data folder, a file of records, or a public bundle."""

    dataset: str | None = None
    file: Path | None = None
    description: Path | None = None
    bundle: Path | None = None
    secret: Path | None = None
    waivers: Path | None = None
    requests: Path | None = None
    beside: Path | None = None


@dataclass(frozen=True)
class RuleFor:
    """A sensitivity rule, and the responses it judges; all that it can judge where none is named."""

    rule: Rule
    responses: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProgrammeTable:
    """One table: what it shows, who is counted, and the responses shown of every cell.

    ``frozen`` names cells that must be published and ``never`` cells that must not, each by its codes of
    some variables; a variable that is left out stands for all its codes. ``trees`` are groups of codes that
    stand in a file, by variable.
    """

    name: str
    title: str
    query: TableQuery
    responses: tuple[str, ...]
    frozen: tuple[Mapping[str, str], ...] = ()
    never: tuple[Mapping[str, str], ...] = ()
    trees: Mapping[str, Groups] = field(default_factory=dict)


@dataclass(frozen=True)
class PreparedSet:
    """Tables that are protected together, because a reader sees them together."""

    name: str
    title: str
    method: Mapping[str, Any]
    rules: tuple[RuleFor, ...]
    tables: tuple[ProgrammeTable, ...]
    relations: tuple[str, ...] = ()
    unshown: Unshown = "differences"


@dataclass(frozen=True)
class Programme:
    """Everything that one run makes."""

    name: str
    title: str
    period: str
    notes: tuple[str, ...]
    source: Source
    sets: tuple[PreparedSet, ...]
    formats: tuple[str, ...] = USUAL_FORMATS
    plain_status: bool = True
    publish_rules: bool = False
    certificate: bool = True
    previous: Path | None = None


def regrouped(sets: Iterable[PreparedSet], dataset: Dataset) -> Dataset:
    """The dataset whose variables also know the groups of all files that tables name."""
    variables = {variable.name: variable for variable in dataset.variables}
    for table_set in sets:
        for table in table_set.tables:
            for name, groups in table.trees.items():
                try:
                    variables[name] = _with_groups(variables[name], groups)
                except InputError as error:
                    raise InputError(f"Table {table.name!r}: {error}") from None
    return replace(dataset, variables=tuple(variables.values()))


def tree_codes(variable: Variable, groups: Groups) -> tuple[str, ...]:
    """All codes along an axis: each group before its parts, then the codes that no group holds."""
    parts = {part for group_parts in groups.values() for part in group_parts}
    codes: dict[str, None] = {}
    waiting = [group for group in reversed(groups) if group not in parts]
    while waiting:
        code = waiting.pop()
        if code not in codes:
            codes[code] = None
            waiting += reversed(groups.get(code, ()))
    held = {p for code in codes for p in variable.category(code).members}
    codes.update(dict.fromkeys(c.code for c in variable.finest if c.members[0] not in held))
    return tuple(codes)


def _with_groups(variable: Variable, groups: Groups) -> Variable:
    """The variable with the groups that it does not have yet, in as many hierarchies as nest."""
    members = _members(variable, groups)
    new: dict[str, Category] = {}
    for code, places in members.items():
        if not variable.holds(code):
            new[code] = Category(code, code, tuple(sorted(places)))
        elif variable.category(code).member_set != places:
            raise InputError(
                f"{variable.name!r} has a code {code!r} already, which holds other codes than the group of "
                "that name in the file; give the group another name."
            )
    ladders: list[list[Category]] = []
    for group in sorted(new.values(), key=lambda one: len(one.members)):
        fitting = (
            ladder for ladder in ladders if all(_nest(group, other_group) for other_group in ladder)
        )
        ladder = next(fitting, None)
        if ladder is None:
            ladders.append([group])
        else:
            ladder.append(group)
    hierarchies = [*variable.hierarchies]
    for ladder in ladders:
        name = _free(f"file {len(hierarchies) + 1}", variable)
        hierarchies.append(_hierarchy(name, ladder, variable))
    return replace(variable, hierarchies=tuple(hierarchies))


def _members(variable: Variable, groups: Groups) -> Mapping[str, frozenset[int]]:
    """The finest codes of each group, by their positions."""
    members: dict[str, frozenset[int]] = {}

    def places(code: str) -> frozenset[int]:
        if code not in groups:
            if not variable.holds(code):
                known = [*variable.codes, *groups]
                raise InputError(
                    f"the hierarchy of {variable.name!r} names {code!r}, which is no code of it; "
                    f"{choices(code, known)}."
                )
            return variable.category(code).member_set
        if code not in members:
            members[code] = frozenset().union(*(places(part) for part in groups[code]))
        return members[code]

    for group in groups:
        places(group)
    return members


def _nest(one: Category, other: Category) -> bool:
    a, b = one.member_set, other.member_set
    return a < b or b < a or not a & b


def _hierarchy(name: str, ladder: list[Category], variable: Variable) -> Hierarchy:
    """Groups that nest, from the smallest, as levels: each above those it holds."""
    rank: dict[str, int] = {}
    for group in ladder:
        inside = [
            rank[other_group.code]
            for other_group in ladder
            if other_group.member_set < group.member_set
        ]
        rank[group.code] = 1 + max(inside, default=0)
    levels = []
    for height in range(1, max(rank.values()) + 1):
        groups = [
            {"code": g.code, "label": g.label, "members": [variable.codes[m] for m in g.members]}
            for g in ladder
            if rank[g.code] == height
        ]
        levels.append((f"{name}, level {height}", f"{name}, level {height}", groups))
    return Hierarchy.build(name, name, variable.finest, levels, f"Variable {variable.name!r}")


def _free(name: str, variable: Variable) -> str:
    taken = {hierarchy.name for hierarchy in variable.hierarchies}
    return name if name not in taken else _free(name + "+", variable)
