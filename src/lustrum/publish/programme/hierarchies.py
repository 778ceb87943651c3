"""Groups of codes that a programme takes from a file, such as a tree of tau-ARGUS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lustrum.model import Category, Dataset, Hierarchy, InputError, Variable
from lustrum.model.errors import choices
from lustrum.publish.programme.spec import PreparedSet
from lustrum.readers.hierarchy_files import Groups


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
