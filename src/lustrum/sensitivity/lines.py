"""The lines of a table of counts: its cells along one axis, all else held fixed.

A line belongs to a group of people that somebody may know to be theirs; the cells along it are what
the table tells of them. Lines run through margins too, and through every subtotal of an axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lustrum.model import CellStatus, InputError, Reason, Table, TableAxis
from lustrum.model.arrays import Indices, Ints, Mask
from lustrum.sensitivity.result import Finding, Sensitivity


@dataclass(frozen=True, eq=False, repr=False)
class PeopleAlong:
    """A group of people along an axis, and the categories that tell where they are.

    ``total`` are the places that add up to the group: its own category, or the largest ones of an axis
    without a total. ``inner`` are the children that hold no others, ``distinct`` the same without
    repetition; ``complete`` says whether these make up the whole group. ``within`` gives for each
    child which of ``distinct`` it holds.
    """

    total: Indices
    children: Indices
    inner: Indices
    distinct: Indices
    complete: bool
    within: tuple[Indices, ...]


def families(axis: TableAxis) -> list[PeopleAlong]:
    """Every total and subtotal of an axis with what it holds; the line itself if it has no total."""
    sets = [c.member_set for c in axis.categories]
    all_families = []
    for subtotal in np.flatnonzero(~axis.minimal):
        whole = sets[subtotal]
        held = [i for i, s in enumerate(sets) if s and s < whole]
        all_families.append(_family(axis, [int(subtotal)], whole, held))
    holders = [sets[i] for i in np.flatnonzero(~axis.minimal)]
    tops = [i for i, s in enumerate(sets) if s and not any(s < other for other in holders)]
    tops = _first_of_each(tops, sets)
    everything = frozenset[int]().union(*sets)
    if len(tops) > 1 and sum(len(sets[i]) for i in tops) == len(everything):
        held = [i for i, s in enumerate(sets) if s]
        all_families.append(_family(axis, tops, everything, held))
    return [family for family in all_families if family.children.size]


def _family(
    axis: TableAxis, total: list[int], whole: frozenset[int], held: list[int]
) -> PeopleAlong:
    sets = [c.member_set for c in axis.categories]
    inner = [i for i in held if axis.minimal[i]]
    once = _first_of_each(inner, sets)
    first = {sets[i]: i for i in once}
    within = (
        [first[sets[c]]] if axis.minimal[c] else [i for i in once if sets[i] < sets[c]]
        for c in held
    )
    covered = frozenset[int]().union(*(sets[i] for i in once))
    return PeopleAlong(
        total=np.array(total, dtype=np.intp),
        children=np.array(held, dtype=np.intp),
        inner=np.array(inner, dtype=np.intp),
        distinct=np.array(once, dtype=np.intp),
        complete=covered == whole,
        within=tuple(np.array(w, dtype=np.intp) for w in within),
    )


def _first_of_each(places: Sequence[int], sets: Sequence[frozenset[int]]) -> list[int]:
    """One place for each set of codes: a subtotal of one code repeats that code."""
    first: dict[frozenset[int], int] = {}
    for position in places:
        first.setdefault(sets[position], position)
    return list(first.values())


def along(table: Table, axis: int, flags: Mask) -> Mask:
    """Flags along an axis, in a shape that spreads over the table."""
    return flags.reshape(-1, *[1] * (len(table.axes) - axis - 1))


def distinct(axis: TableAxis) -> Mask:
    """The inner categories of an axis, each set of codes once."""
    sets = [c.member_set for c in axis.categories]
    flags = np.zeros(len(axis), dtype=np.bool_)
    flags[_first_of_each([i for i in range(len(axis)) if sets[i] and axis.minimal[i]], sets)] = True
    return flags


def spread(table: Table, lines: Sequence[Ints]) -> Ints:
    """Numbers of the lines along each axis, given to the populated inner cells on them: the largest."""
    out = np.zeros(table.shape, dtype=np.int64)
    for axis, numbers in enumerate(lines):
        out = np.maximum(out, np.where(along(table, axis, table.axes[axis].minimal), numbers, 0))
    return np.where(table.values > 0, out, 0)


def judge_lines(
    table: Table, lacking: Sequence[Ints], reason: Reason, rule: Mapping[str, Any]
) -> Sensitivity:
    """Mark the populated cells of the lines that lack something, with that number as lower level."""
    lower = spread(table, lacking)
    finding = Finding(reason, CellStatus.CONCENTRATED, lower > 0)
    none = np.zeros(table.shape, dtype=np.int64)
    return Sensitivity.of(table, rule, [finding], np.minimum(lower, table.values), none)


def counts_of(table: Table, rule: str) -> Ints:
    """The counts of a table that a rule about people can read."""
    if table.kind != "count" or table.decimals:
        raise InputError(f"The rule {rule!r} is for tables of whole counts.")
    return table.values


def open_cells(table: Table) -> Mask:
    """The cells that could hold somebody."""
    if table.structural is None:
        return np.ones(table.shape, dtype=np.bool_)
    return ~table.structural
