"""Rules about groups of people: k-disclosure, and disclosure of a group by few populated cells.

K-disclosure: a coalition of ``k`` people learns an attribute of everybody else in their group.

A group of ``N`` people is published with ``x > 0`` of them in a cell. If ``N - x <= k``, the ``k`` others
know, or can pool, who they are, and so learn that the rest of the group is in that cell; with
``k = 0`` anybody learns it from the table alone, and with ``k = 1`` anyone outside the cell does::

    x > 0  and  N - x <= k                        (Lupp and Langsrud 2021; GaussSuppression, k-disclosure)
    lower level = k + 1 - (N - x)

It generalises the group attribute disclosure that Antal, Shlomo and Elliot 2014 measure by zeros in
rows and columns. Groups are the lines of the table along every axis, and each of its subtotals;
cells are the categories along them, subtotals again included, which are what
Lupp and Langsrud call meaningful combinations. ``together`` also looks at that many of the largest cells
of a line as if they were one. With the level less one, the smallest value that the interval leaves
for ``x`` is still within ``k`` of ``N``. Nothing is learned where the rest of a group is
impossible anyway (structural zeros).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lustrum.model import CellStatus, InputError, Reason, Table, TableAxis
from lustrum.model.arrays import Indices, Ints, Mask
from lustrum.model.parameters import parameter
from lustrum.model.table import check_table
from lustrum.sensitivity.result import Finding, Sensitivity
from lustrum.sensitivity.rule import NOTHING, Background, RuleSpec, exact

# The lines of a table of counts: its cells along one axis, all else held fixed.
#
# A line belongs to a group of people that somebody may know to be theirs; the cells along it are what
# the table tells of them. Lines run through margins too, and through every subtotal of an axis.


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


@dataclass(frozen=True)
class KDisclosure(RuleSpec):
    """Sensitive if all but ``k`` of a group are in the cell.

    >>> table = Table.from_counts([[6, 0], [5, 1], [2, 2]], names=["status", "hours"])
    >>> KDisclosure(k=0).judge(table).mask.tolist()
    [[True, False], [False, False], [False, False]]
    >>> KDisclosure(k=1).judge(table).mask.tolist()
    [[True, False], [True, False], [False, True]]
    """

    name: ClassVar[str] = "k-disclosure"
    k: int = parameter(
        1, "A group is disclosed if at most this many of its people are elsewhere.", least=0
    )
    together: int = parameter(1, "How many people share what they know.", least=1, most=100)

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """Judge the cells along every line."""
        check_table(table, f"The rule {self.name!r}")
        counts = counts_of(table, self.name)
        possible = open_cells(table)
        lower = np.zeros(table.shape, dtype=np.int64)
        for position, axis in enumerate(table.axes):
            # Views with the axis in front: what is written there is written to the table.
            line_counts, needed = np.moveaxis(counts, position, 0), np.moveaxis(lower, position, 0)
            room = np.moveaxis(possible, position, 0)
            for family in families(axis):
                self._one_by_one(family, line_counts, room, needed)
                for number in range(2, self.together + 1):
                    self._joined(family, number, line_counts, room, needed)
        reason = Reason(
            self.name,
            "nearly all of a group are in this cell",
            "Merge categories, so that the group spreads over more cells.",
        )
        finding = Finding(reason, CellStatus.CONCENTRATED, lower > 0)
        return Sensitivity.of(
            table,
            self.to_mapping(),
            [finding],
            np.minimum(lower, counts),
            np.zeros(table.shape, dtype=np.int64),
        )

    def _one_by_one(self, family: PeopleAlong, line_counts: Ints, room: Mask, needed: Ints) -> None:
        group = _group(family, line_counts)
        everywhere = np.count_nonzero(room[family.distinct], axis=0)
        for child, held in zip(family.children, family.within, strict=True):
            elsewhere = everywhere > np.count_nonzero(room[held], axis=0)
            if not family.complete:
                elsewhere = np.ones_like(elsewhere)
            short = self.k + 1 - (group - line_counts[child])
            hit = (line_counts[child] > 0) & (short > 0) & elsewhere
            needed[child] = np.maximum(needed[child], np.where(hit, short, 0))

    def _joined(
        self, family: PeopleAlong, number: int, line_counts: Ints, room: Mask, needed: Ints
    ) -> None:
        if family.distinct.size < number:
            return
        cells = line_counts[family.inner]
        in_order = -np.sort(-line_counts[family.distinct], axis=0)
        short = self.k + 1 - (_group(family, line_counts) - in_order[:number].sum(axis=0))
        least = in_order[number - 1]
        hit = (least > 0) & (short > 0)
        chosen = (cells >= least) & hit
        if family.complete:
            chosen &= (room[family.inner] & ~chosen).any(axis=0)
        needed[family.inner] = np.maximum(needed[family.inner], np.where(chosen, short, 0))


def _group(family: PeopleAlong, line_counts: Ints) -> Ints:
    return np.asarray(line_counts[family.total].sum(axis=0))


class _LineRule(RuleSpec):
    """A rule about the populated and the empty inner cells of each line, of those that could hold somebody."""

    text: ClassVar[str]
    advice: ClassVar[str]

    def lines(self, table: Table) -> tuple[Mask, ...]:
        """For each axis the lines along it that are sensitive, with that axis of length 1."""
        return tuple(levels > 0 for levels in self._levels(table))

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """Judge the cells along every line."""
        check_table(table, f"The rule {self.name!r}")
        reason = Reason(self.name, self.text, self.advice)
        return judge_lines(table, self._levels(table), reason, self.to_mapping())

    def _levels(self, table: Table) -> list[Ints]:
        """The level of each line; 0 where it is safe."""
        counts, possible = counts_of(table, self.name), open_cells(table)
        out = []
        for axis in range(len(table.axes)):
            inner = along(table, axis, distinct(table.axes[axis]))
            filled = np.count_nonzero((counts > 0) & inner, axis=axis, keepdims=True)
            empty = np.count_nonzero((counts == 0) & possible & inner, axis=axis, keepdims=True)
            out.append(self._lacking(np.asarray(filled), np.asarray(empty)))
        return out

    def _lacking(self, filled: Ints, empty: Ints) -> Ints:
        """The level of lines with so many populated and so many empty cells."""
        raise NotImplementedError


# Group disclosure: a row or column whose people are all in one or two cells.
#
# Of a line with zeros everywhere but in a few cells anybody learns that every one of its people is in these,
# without knowing who is who (Hundepool et al. 2024, section 5.2; with two cells, one of them small, it is
# what they call within-group disclosure)::
#
#     1 <= populated cells <= populated, and some cell of the line is empty that need not be
#     lower level = populated + 1 - populated cells
#
# The level lets so many people of a cell be elsewhere that the line could have one populated cell too many
# for the rule.


@dataclass(frozen=True)
class GroupDisclosure(_LineRule):
    """Sensitive if all people of a line are in at most ``populated`` cells.

    The mask marks the populated cells of such lines; :meth:`lines` gives the lines themselves.

    >>> table = Table.from_counts([[6, 0, 0], [5, 1, 0], [2, 2, 1]], names=["status", "hours"])
    >>> GroupDisclosure(populated=1).judge(table).mask.tolist()
    [[True, False, False], [False, False, False], [False, False, True]]
    """

    name: ClassVar[str] = "group-disclosure"
    text: ClassVar[str] = "all of a group are in a few cells"
    advice: ClassVar[str] = "Merge categories, so that the group spreads over more cells."
    populated: int = parameter(
        2, "A line with at most this many populated cells discloses its group.", least=1
    )

    def _lacking(self, filled: Ints, empty: Ints) -> Ints:
        """How many populated cells a line lacks to be safe."""
        disclosing = (filled >= 1) & (filled <= self.populated) & (empty > 0)
        return np.where(disclosing, self.populated + 1 - filled, 0)


# Sparsity: too many empty cells along a line.
#
# Zeros rule things out for everybody in a line, so a line most of whose cells are empty tells much about its
# people (Hundepool et al. 2024, section 5.2; Antal, Shlomo and Elliot 2014 make the share of
# zeros a term of their risk measure)::
#
#     empty cells > max_share * cells that could hold somebody
#     lower level = least number of empty cells that would have to fill
#
# Only the inner cells of a line count, and only those that could hold somebody. A line without anybody is not
# sensitive: there is nobody to learn about.


@dataclass(frozen=True)
class Sparsity(_LineRule):
    """Sensitive if more than ``max_share`` of a line's cells are empty.

    The mask marks the populated cells of such lines; :meth:`lines` gives the lines themselves.

    >>> table = Table.from_counts([[4, 0, 0], [5, 1, 3], [2, 2, 1]], names=["area", "faith"])
    >>> Sparsity(max_share=0.5).judge(table).mask.tolist()
    [[True, False, False], [False, False, False], [False, False, False]]
    """

    name: ClassVar[str] = "sparsity"
    text: ClassVar[str] = "most cells of a group are empty"
    advice: ClassVar[str] = "Merge categories, so that fewer cells are empty."
    max_share: float = parameter(0.5, "The largest share of empty cells.", least=0, below=1)

    def _lacking(self, filled: Ints, empty: Ints) -> Ints:
        """How many empty cells a line has too many."""
        share = exact(self.max_share)
        cells = (filled + empty).astype(object)  # a share may have more digits than 64 bits hold
        allowed = (cells * share.numerator // share.denominator).astype(np.int64)
        return np.where(filled > 0, np.maximum(empty - allowed, 0), 0)
