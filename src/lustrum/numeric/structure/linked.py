"""Relations between two tables: the margins that both can form, shown or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.model.arrays import Ints, Mask
from lustrum.numeric.structure.connected import connected_parts
from lustrum.numeric.structure.families import Family, Forest
from lustrum.numeric.structure.fields import StructureFields
from lustrum.numeric.structure.ragged import Lists, outer


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
