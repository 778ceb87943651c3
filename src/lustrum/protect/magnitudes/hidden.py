"""Noise that hides a contribution from readers who know between which values it lies.

Readers know the class of a firm, and after a second release what the first one leaves open. Both are intervals
of sizes. A protected value is *hidden* if no number is certainly within ``p`` percent of all sizes in the
interval that can show it. Values that are not hidden are never shown, whoever would show them: so a hidden one
leaves as much open as it would without this rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

import numpy as np

from lustrum.audit.contribution import candidates, certain_within
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.protect.magnitudes.classes import OPEN
from lustrum.protect.magnitudes.factors import Factors
from lustrum.protect.magnitudes.families import MeasureFamily
from lustrum.protect.magnitudes.units import Units

UP, DOWN = 0, 1
_UNITS = 4
"""By how many units rounding can move a size that a shown one leaves open."""
Ends = tuple[Array, Array]


@dataclass(frozen=True, eq=False, repr=False)
class Known:
    """Between which sizes every contribution lies for readers, if it went up and if it went down.

    The arrays have the shape (2, records, shown measures). Readers who know by how much a contribution has
    changed ask for its size before as well: ``grown`` is that change. Confidential.
    """

    least: Ints
    most: Ints
    grown: Ints

    def __repr__(self) -> str:
        return "Known(hidden)"

    @classmethod
    def of(
        cls,
        ends: Mapping[str, tuple[Ints, Ints]],
        measures: Sequence[str],
        order: Ints,
        given: Mask,
        grown: Ints,
    ) -> Known:
        """What readers know of some measures, in an order of records; nothing where it is ``given`` away."""
        least, most = (
            np.stack([ends[m][end][:, order] for m in measures], axis=2) for end in (0, 1)
        )
        least[:, given], most[:, given] = 0, OPEN
        return cls(least, most, grown)

    def take(self, rows: Array) -> Known:
        """Some of the records."""
        return Known(self.least[:, rows], self.most[:, rows], self.grown[rows])


def left_open(shown: Array, factors: Factors, known: Ends, way: int) -> Ends:
    """The least and the largest size that a shown size leaves open; the first is above where there is none."""
    least, most = candidates(shown, factors.least, factors.most, "up" if way == UP else "down")
    if way == DOWN:
        least = np.where(np.asarray(shown == 0) & np.asarray(known[0] <= 0), 0, least)
    return np.maximum(least, known[0]), np.minimum(most, known[1])


def is_hidden(shown: Array, known: Known, factors: Factors, share: Fraction) -> Mask:
    """Whether readers who do not know the direction are certain of no size behind a shown one."""
    ends = [left_open(shown, factors, (known.least[w], known.most[w]), w) for w in (UP, DOWN)]
    some = [np.asarray(least <= most).astype(np.bool_) for least, most in ends]
    top, bottom = 1 << 70, -1
    least = np.minimum(
        np.where(some[UP], ends[UP][0], top), np.where(some[DOWN], ends[DOWN][0], top)
    )
    most = np.maximum(
        np.where(some[UP], ends[UP][1], bottom), np.where(some[DOWN], ends[DOWN][1], bottom)
    )
    certain = certain_within(least, most, share)
    certain |= certain_within(least - known.grown, most - known.grown, share)
    return (some[UP] | some[DOWN]) & ~certain


def near_ends(sizes: Ints, known: Known, factors: Factors) -> Mask:
    """Contributions of which some shown size could be seen through: those near an end of what is known."""
    wide = (1.0 + float(factors.most)) / (1.0 - float(factors.most))
    below = known.least.max(axis=0) > sizes / wide - _UNITS
    above = known.most.min(axis=0) < sizes * wide + _UNITS
    return np.asarray((sizes > 0) & (below & (known.least.max(axis=0) > 0) | above))


def hide(
    units: Units,
    values: Ints,
    family: MeasureFamily,
    factors: Factors,
    share: Fraction,
    known: Sequence[Known],
    chosen: Mask,
    attempts: Iterable[Ints],
    fixed: Mask,
) -> Mask:
    """Choose amounts that hide contributions in both directions; returns which owners keep their direction.

    ``values`` are those of the shown measures, ``chosen[i, k]`` says whether the amount of record ``i`` in
    measure ``k`` may be drawn again, and ``attempts`` are amounts of all records from which the first is taken
    that hides from all readers, or else from the first of them; ``known`` says what each of them knows.
    ``fixed`` owners keep their direction, so that amounts need to hide in this one only. Where no amount does
    in both directions, one that does in one of them is taken, and its owner keeps that direction.
    """
    rows = np.flatnonzero(chosen.any(axis=1))
    by_way = [_Found.nothing(units.amount[rows]) for _ in (UP, DOWN)]
    from_first = _Found.nothing(units.amount[rows])
    waiting = np.arange(rows.size)
    for amount in chain([units.amount.copy()], attempts):
        if not waiting.size:
            break
        at = rows[waiting]
        tried = np.where(chosen[at], amount[at], units.amount[at])
        size = np.abs(values[at])
        added = family.added(units.side[at] * tried) * np.sign(values[at])
        hides = [
            [
                (is_hidden(size + sign * added, k.take(at), factors, share) | (size == 0)).all(
                    axis=1
                )
                for k in known
            ]
            for sign in (1, -1)
        ]
        owner = units.owner[at]
        for way in (UP, DOWN):
            by_way[way].add(waiting, hides[way][0], tried)
        enough = []
        for up, down in zip(hides[UP], hides[DOWN], strict=True):
            own_way = np.where(units.sign[owner] > 0, up, down)
            enough.append(up & down | fixed[owner] & own_way)
        from_first.add(waiting, enough[0], tried)
        done = np.logical_and.reduce(enough)
        units.amount[at[done]] = tried[done]
        waiting = waiting[~done]
    there = from_first.there[waiting]
    units.amount[rows[waiting[there]]] = from_first.amount[waiting[there]]
    waiting = waiting[~there]
    waiting = waiting[~fixed[units.owner[rows[waiting]]]]
    one = waiting[by_way[UP].there[waiting] | by_way[DOWN].there[waiting]]
    _one_way(units, rows, one, by_way)
    for array in (units.low, units.high):
        array[chosen] = units.amount[chosen]
    keep_direction = fixed.copy()
    keep_direction[units.owner[rows[one]]] = True
    return keep_direction


@dataclass(frozen=True, eq=False, repr=False)
class _Found:
    """The first amounts that hide records in one direction."""

    amount: Ints
    there: Mask

    @classmethod
    def nothing(cls, amount: Ints) -> _Found:
        return cls(amount.copy(), np.zeros(amount.shape[0], dtype=np.bool_))

    def add(self, rows: Ints, good: Mask, tried: Ints) -> None:
        new = good & ~self.there[rows]
        self.amount[rows[new]] = tried[new]
        self.there[rows[new]] = True


def _one_way(units: Units, rows: Ints, one: Ints, by_way: list[_Found]) -> None:
    """Give records the amount of a direction in which it hides them, and turn their owners.

    An owner with records that need different directions follows the first of them; the others turn alone.
    """
    settled: set[int] = set()
    for k in one:
        row = rows[k]
        owner = int(units.owner[row])
        way = UP if units.sign[owner] > 0 else DOWN
        if not by_way[way].there[k]:
            way = 1 - way
            if owner in settled:
                units.side[row] = -units.side[row]
            else:
                units.sign[owner] = -units.sign[owner]
        settled.add(owner)
        units.amount[row] = by_way[way].amount[k]
