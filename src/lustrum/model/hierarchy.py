"""Hierarchies over the finest codes of a variable.

A hierarchy is a ladder of levels from fine to coarse. Each level groups the finest codes; a code that
a level leaves alone stays itself there, so that trees whose branches end at different depths
fit too. Levels of one hierarchy nest; two hierarchies of one variable need not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lustrum.model.arrays import Ints
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
        return frozenset(c.code for c in self.categories)

    @cached_property
    def groups(self) -> tuple[Category, ...]:
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
        places = {c.code: index for index, c in enumerate(finest)}
        return cls.of_codes(name, label, places, levels, where, lambda: finest)

    @classmethod
    def of_codes(
        cls,
        name: str,
        label: str,
        places: Mapping[str, int],
        levels: Sequence[tuple[str, str, Sequence[Mapping[str, object]]]],
        where: str,
        finest: Callable[[], Sequence[Category]],
    ) -> Hierarchy:
        """The same from finest codes with their positions, in their order.

        Their categories are made only for levels that leave codes alone: there may be hundreds of thousands.
        """
        # The rung below: the positions of every category, and the categories once they are made.
        below: dict[str, Ints] | None = None
        known: dict[str, Category] | None = None
        built: list[Level] = []
        for level_name, level_label, groups in levels:
            context = f"{where}, level {level_name!r}"
            rung, group_of = _resolve_level(groups, below, places, context)
            alone = _left_alone(below, places, group_of, context)
            if known is None and alone:
                known = {c.code: c for c in finest()}
            ungrouped = [] if known is None else [known[code] for code in alone]
            categories = sorted([*rung, *ungrouped], key=lambda c: c.members[0])
            built.append(Level(level_name, level_label, tuple(categories), frozenset(alone)))
            known = {c.code: c for c in categories}
            below = {c.code: np.array(c.members, dtype=np.int64) for c in known.values()}
        return cls(name, label, tuple(built))


def _left_alone(
    below: Mapping[str, Ints] | None, places: Mapping[str, int], group_of: Ints, context: str
) -> list[str]:
    """The codes of the rung below that no group of a level holds; a group holds whole categories."""
    if below is None:
        if (group_of >= 0).all():
            return []
        return [code for code, group in zip(places, group_of.tolist(), strict=True) if group < 0]
    alone = []
    for code, positions in below.items():
        groups = group_of[positions]
        if (groups != groups[0]).any():
            raise DescriptionError(
                f"{context}: a group cuts through a category of the level below; "
                "every group must hold whole categories."
            )
        if groups[0] < 0:
            alone.append(code)
    return alone


def _resolve_level(
    groups: Sequence[Mapping[str, object]],
    below: Mapping[str, Ints] | None,
    places: Mapping[str, int],
    context: str,
) -> tuple[list[Category], Ints]:
    """The groups of a level, and the number of the group that holds each position; -1 where none does."""
    rung: list[Category] = []
    group_of = np.full(len(places), -1, dtype=np.int64)
    for number, group in enumerate(groups):
        code, label, members = group.get("code"), group.get("label"), group.get("members")
        if not isinstance(code, str) or not isinstance(members, (list, tuple)) or not members:
            raise DescriptionError(
                f"{context}: each group needs a text 'code' and a non-empty list 'members'."
            )
        try:
            positions = _positions(members, below, places)
        except KeyError:
            every = places if below is None else {**places, **dict.fromkeys(below, 0)}
            member = next(m for m in members if str(m) not in every)
            raise DescriptionError(
                f"{context}, group {code!r}: member {member!r} is neither a category of the level "
                f"below nor a finest code; {choices(str(member), places if below is None else below)}."
            ) from None
        taken = positions[group_of[positions] >= 0]
        if taken.size:
            other = rung[int(group_of[taken[0]])].code
            raise DescriptionError(
                f"{context}: groups {other!r} and {code!r} share a category; "
                "the groups of a level must not overlap."
            )
        group_of[positions] = number
        rung.append(Category(code, _named(label, code), tuple(positions.tolist())))
    return rung, group_of


def _positions(
    members: Sequence[object], below: Mapping[str, Ints] | None, places: Mapping[str, int]
) -> Ints:
    """The positions of categories of the rung below, or of finest codes, in ascending order."""
    names = map(str, members)
    if below is None:
        positions = np.fromiter(map(places.__getitem__, names), dtype=np.int64, count=len(members))
    else:
        positions = np.concatenate([below[n] if n in below else [places[n]] for n in names])
    # Most members are listed in the order of their codes.
    return positions if (positions[1:] > positions[:-1]).all() else np.unique(positions)


def _named(label: object, code: str) -> str:
    return label if isinstance(label, str) and label else str(label or code)
