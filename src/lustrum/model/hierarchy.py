"""Hierarchies over the finest codes of a variable.

A hierarchy is a ladder of levels from fine to coarse. Each level groups the finest codes; a code that
a level leaves alone stays itself there, so that trees whose branches end at different depths
fit too. Levels of one hierarchy nest; two hierarchies of one variable need not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lustrum.model.errors import DescriptionError, choices


@dataclass(frozen=True)
class Category:
    """A named set of finest codes, kept as their positions in ascending order.

    ``note`` says what an own group holds, since nobody can look its name up.
    """

    code: str
    label: str
    members: tuple[int, ...]
    note: str = field(default="", compare=False)

    @cached_property
    def member_set(self) -> frozenset[int]:
        """The positions as a set."""
        return frozenset(self.members)


@dataclass(frozen=True)
class Level:
    """One rung of a hierarchy: categories that partition the finest codes."""

    name: str
    label: str
    categories: tuple[Category, ...]
    kept_codes: frozenset[str] = frozenset()

    @cached_property
    def codes(self) -> frozenset[str]:
        """The codes of all categories."""
        return frozenset(c.code for c in self.categories)

    @cached_property
    def groups(self) -> tuple[Category, ...]:
        """The categories with a code of their own (not a finest code left alone)."""
        return tuple(c for c in self.categories if c.code not in self.kept_codes)


@dataclass(frozen=True)
class Hierarchy:
    """A ladder of levels, fine to coarse, above the finest codes."""

    name: str
    label: str
    levels: tuple[Level, ...]

    @classmethod
    def build(
        cls,
        name: str,
        label: str,
        finest: Sequence[Category],
        levels: Sequence[tuple[str, str, Sequence[Mapping[str, object]]]],
        where: str,
    ) -> Hierarchy:
        """Check and resolve levels whose groups list codes of the rung below or finest codes."""
        below: dict[str, Category] = {c.code: c for c in finest}
        base = below
        built: list[Level] = []
        for level_name, level_label, groups in levels:
            place = f"{where}, level {level_name!r}"
            rung, group_of = _resolve_level(groups, below, base, place)
            kept = []
            cut = False
            for category in below.values():
                members = category.members
                group = group_of.get(members[0])
                # Most categories of a long list have one member.
                if len(members) > 1 and any(group_of.get(p) != group for p in members):
                    cut = True
                elif group is None:
                    kept.append(category)
            if cut:
                raise DescriptionError(
                    f"{place}: a group cuts through a category of the level below; "
                    "every group must hold whole categories."
                )
            categories = sorted([*rung, *kept], key=lambda c: c.members[0])
            built.append(
                Level(level_name, level_label, tuple(categories), frozenset(c.code for c in kept))
            )
            below = {c.code: c for c in categories}
        return cls(name, label, tuple(built))


def _resolve_level(
    groups: Sequence[Mapping[str, object]],
    below: Mapping[str, Category],
    base: Mapping[str, Category],
    place: str,
) -> tuple[list[Category], dict[int, int]]:
    """The groups of a level, and the number of the group that holds each position."""
    rung: list[Category] = []
    owner: dict[int, int] = {}
    for number, group in enumerate(groups):
        code, label, members = group.get("code"), group.get("label"), group.get("members")
        if not isinstance(code, str) or not isinstance(members, (list, tuple)) or not members:
            raise DescriptionError(
                f"{place}: each group needs a text 'code' and a non-empty list 'members'."
            )
        found = [below.get(name) or base.get(name) for name in map(str, members)]
        if not all(found):
            member = next(m for m, known in zip(members, found, strict=True) if known is None)
            raise DescriptionError(
                f"{place}, group {code!r}: member {member!r} is neither a category of the level "
                f"below nor a finest code; {choices(str(member), below)}."
            )
        positions = {p for category in found if category is not None for p in category.members}
        if not owner.keys().isdisjoint(positions):
            other = rung[next(owner[p] for p in sorted(positions) if p in owner)].code
            raise DescriptionError(
                f"{place}: groups {other!r} and {code!r} share a category; "
                "the groups of a level must not overlap."
            )
        owner.update(dict.fromkeys(positions, number))
        rung.append(Category(code, _named(label, code), tuple(sorted(positions))))
    return rung, owner


def _named(label: object, code: str) -> str:
    return label if isinstance(label, str) and label else str(label or code)
