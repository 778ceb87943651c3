"""Noise that hides a contribution from readers who know between which values it lies.

Readers know the class of a firm, and after a second release what the first one leaves open. Both are intervals
of sizes. A protected value is *hidden* if no number is certainly within ``p`` percent of all sizes in the
interval that can show it. Values that are not hidden are never shown, whoever would show them: so a hidden one
leaves as much open as it would without this rule.

Some variables are classes of a measure, such as size classes of employees. Everybody who reads a table by size
class knows between which numbers the employees of a firm lie. A variable is taken for classes of a measure if
its ``edges`` hold for every record, or if the values of its categories lie in intervals that do not overlap,
and that cannot be chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import comb, factorial

import numpy as np

from lustrum.audit.contribution import candidates, certain_within
from lustrum.model import InputError, Measure, Variable
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.model.records import Records
from lustrum.protect.magnitudes.factors import Factors
from lustrum.protect.magnitudes.units import MeasureFamily, Units

UP, DOWN = 0, 1
_UNITS = 4
"""By how many units rounding can move a size that a shown one leaves open."""
Ends = tuple[Array, Array]


@dataclass(frozen=True, eq=False, repr=False)
class Known:
    """Between which sizes every contribution lies for readers, if it went up and if it went down.

    The arrays have the shape (2, records, shown measures). Readers who know by how much a contribution has
    changed ask for its size before as well: ``grown`` is that change. Those who know another value of its owner
    know which way it went: ``directed`` says of which contributions. Confidential.
    """

    least: Ints
    most: Ints
    grown: Ints
    directed: Mask

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
        directed: Mask,
    ) -> Known:
        """What readers know of some measures, in an order of records; nothing where it is ``given`` away."""
        least, most = (
            np.stack([ends[m][end][:, order] for m in measures], axis=2) for end in (0, 1)
        )
        least[:, given], most[:, given] = 0, OPEN
        return cls(least, most, grown, directed)

    def take(self, rows: Array) -> Known:
        """Some of the records."""
        ends = self.least[:, rows], self.most[:, rows]
        return Known(*ends, self.grown[rows], self.directed[rows])


def left_open(shown: Array, factors: Factors, known: Ends, way: int) -> Ends:
    """The least and the largest size that a shown size leaves open; the first is above where there is none."""
    least, most = candidates(shown, factors.least, factors.most, "up" if way == UP else "down")
    if way == DOWN:
        least = np.where(np.asarray(shown == 0) & np.asarray(known[0] <= 0), 0, least)
    return np.maximum(least, known[0]), np.minimum(most, known[1])


def is_hidden(shown: Array, known: Known, factors: Factors, share: Fraction, up: Mask) -> Mask:
    """Whether readers are certain of no size behind a shown one; ``up`` says whether it is the larger."""
    ends = [left_open(shown, factors, (known.least[w], known.most[w]), w) for w in (UP, DOWN)]
    some = [np.asarray(least <= most).astype(np.bool_) for least, most in ends]
    some = [some[UP] & (up | ~known.directed), some[DOWN] & ~(up & known.directed)]
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


def near_ends(sizes: Ints, known: Ends, order: Ints, given: Mask, factors: Factors) -> Mask:
    """Contributions of which some shown size could be seen through: those near an end of what is known.

    ``order`` says which row of what is ``known`` is whose; nothing is known where it is ``given``.
    """
    wide = (1.0 + float(factors.most)) / (1.0 - float(factors.most))
    least = np.where(given, 0, known[0].max(axis=0)[order])
    most = np.where(given, OPEN, known[1].min(axis=0)[order])
    below, above = least > sizes / wide - _UNITS, most < sizes * wide + _UNITS
    return np.asarray((sizes > 0) & (below & (least > 0) | above))


def hide(
    units: Units,
    values: Ints,
    family: MeasureFamily,
    factors: Factors,
    share: Fraction,
    known: Sequence[Known],
    chosen: Mask,
    exempt: Mask,
    attempts: Iterable[Ints],
    fixed: Mask,
) -> Mask:
    """Choose amounts that hide contributions in both directions; returns which owners keep their direction.

    ``values`` are those of the shown measures, ``chosen[i, k]`` says whether the amount of record ``i`` in
    measure ``k`` may be drawn again, and ``attempts`` are amounts of all records from which the first is taken
    that hides from as many readers as possible, beginning with the first; ``known`` says what each of them
    knows of the records with a chosen value. ``fixed`` owners keep their direction, so that amounts need to
    hide in this one only. Where no amount does in both directions, one that does in one of them is taken, and
    its owner keeps that direction. Nothing is asked of ``exempt`` values, which are as open as their parts.
    Owners of whom some reader knows the direction keep that of the key if amounts hide in it.
    """
    rows = np.flatnonzero(chosen.any(axis=1))
    by_way = [_Found.nothing(units.amount[rows]) for _ in (UP, DOWN)]
    from_first = [_Found.nothing(units.amount[rows]) for _ in known]
    waiting = np.arange(rows.size)
    told = np.any([k.directed.any(axis=1) for k in known], axis=0)
    keep_direction = fixed.copy()
    keep_direction[units.owner[rows[told]]] = True
    for amount in chain([units.amount.copy()], attempts):
        if not waiting.size:
            break
        at = rows[waiting]
        tried = np.where(chosen[at], amount[at], units.amount[at])
        size = np.abs(values[at])
        added = family.added(units.side[at] * tried) * np.sign(values[at])
        hides = [
            [
                (
                    is_hidden(
                        size + sign * added, k.take(waiting), factors, share, sign * added > 0
                    )
                    | (size == 0)
                    | exempt[at]
                ).all(axis=1)
                for k in known
            ]
            for sign in (1, -1)
        ]
        owner = units.owner[at]
        for way in (UP, DOWN):
            by_way[way].add(waiting, hides[way][0], tried)
        done = np.ones(at.size, dtype=np.bool_)
        for found, up, down in zip(from_first, hides[UP], hides[DOWN], strict=True):
            own_way = np.where(units.sign[owner] > 0, up, down)
            done &= up & down | keep_direction[owner] & own_way
            found.add(waiting, done, tried)
        waiting = waiting[~done]
    for found in from_first:
        units.amount[rows[found.there]] = found.amount[found.there]
    waiting = waiting[~from_first[0].there[waiting]]
    waiting = waiting[~fixed[units.owner[rows[waiting]]]]
    one = waiting[by_way[UP].there[waiting] | by_way[DOWN].there[waiting]]
    _one_way(units, rows, one, by_way)
    for array in (units.low, units.high):
        array[chosen] = units.amount[chosen]
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


OPEN = 1 << 62
"""Beyond every value."""
_SMALL = 1 << 12


def certain_below(factors: Factors, share: Fraction) -> int:
    """Where a reader knows which way contributions went, whole units give away none of this size or more.

    >>> from lustrum.protect.magnitudes.factors import needed_factors
    >>> certain_below(needed_factors(Fraction(1, 20), "known"), Fraction(1, 20))
    44
    """
    shown = np.arange(_SMALL)
    anything = np.zeros_like(shown), np.full(shown.shape, OPEN)
    last = 0
    for way in (UP, DOWN):
        least, most = left_open(shown, factors, anything, way)
        last = max(last, *most[certain_within(least, most, share)], 0)
    return int(last) + 1 if last < _SMALL // 2 else OPEN


_CHANCE = 10**9
"""Categories that would be in order less than once in so many random ones are classes."""
_COUNTED = 400


@dataclass(frozen=True, eq=False, repr=False)
class KnownClasses:
    """The classes of every measure, and between which values the class of each record lies. Confidential.

    ``variables`` maps a measure to the variables that are classes of it, ``ends`` to the least and the largest
    value of every record's classes.
    """

    variables: Mapping[str, tuple[str, ...]]
    ends: Mapping[str, tuple[Ints, Ints]]

    def __repr__(self) -> str:
        return f"KnownClasses({dict(self.variables)!r})"

    def sizes(self, measure: str, values: Ints) -> tuple[Ints, Ints]:
        """The least and the largest size that readers leave open beforehand, given the sign of each value."""
        if measure not in self.ends:
            nothing, everything = (np.broadcast_to(np.int64(n), values.shape) for n in (0, OPEN))
            return nothing, everything
        low, high = self.ends[measure]
        least = np.where(values < 0, np.maximum(-high, 0), np.maximum(low, 0))
        return least, np.where(values < 0, -low, high)

    def given_away(self, measure: str, values: Ints, share: Fraction) -> Mask:
        """Values that their class alone gives away within a share; a value of 0 is shown in any case."""
        least, most = self.sizes(measure, values)
        return np.asarray((values != 0) & certain_within(np.maximum(least, 1), most, share))


def known_classes(records: Records, measures: Iterable[str]) -> KnownClasses:
    """Find the variables that are classes of a measure."""
    variables: dict[str, tuple[str, ...]] = {}
    ends: dict[str, tuple[Ints, Ints]] = {}
    for name in measures:
        measure, values = records.dataset.measure(name), records.numbers[name].astype(np.int64)
        for variable in records.dataset.variables:
            codes = records.codes[variable.name].astype(np.int64)
            class_ends = _by_edges(variable, measure, codes, values)
            if class_ends is None:
                class_ends = _by_order(len(variable.codes), codes, values)
            if class_ends is None:
                continue
            low, high = (end[codes] for end in class_ends)
            if name in ends:
                low, high = np.maximum(low, ends[name][0]), np.minimum(high, ends[name][1])
            ends[name] = low, high
            variables[name] = (*variables.get(name, ()), variable.name)
    return KnownClasses(variables, ends)


def refuse_narrow(
    records: Records, classes: KnownClasses, share: Fraction, public: tuple[str, ...]
) -> None:
    """Refuse classes that give values away by themselves, unless the policy says that they are public."""
    for name, variables in classes.variables.items():
        if set(variables) <= set(public):
            continue
        if classes.given_away(name, records.numbers[name].astype(np.int64), share).any():
            named = " and ".join(repr(v) for v in variables if v not in public)
            raise InputError(
                f"A class of {named} is so narrow that it gives away {name!r} within "
                f"{float(100 * share):g} percent, whatever the sums show; join it with the next class, "
                f"leave out the measure, or say with public_classes that everybody knows {named}."
            )


def _by_edges(
    variable: Variable, measure: Measure, codes: Ints, values: Ints
) -> tuple[Ints, Ints] | None:
    """The ends of every class by the description, if they hold for all records."""
    if not variable.edges or not codes.size:
        return None
    whole = [-((-Fraction(str(e)) * 10**measure.decimals) // 1) for e in variable.edges]
    if len(whole) == len(variable.codes):
        whole.append(OPEN + 1)
    if max(abs(end) for end in whole[:-1]) > OPEN:
        return None
    low = np.array(whole[:-1], dtype=np.int64)
    high = np.array([min(end, OPEN + 1) - 1 for end in whole[1:]], dtype=np.int64)
    if not bool(((low[codes] <= values) & (values <= high[codes])).all()):
        return None
    return low, high


def _by_order(count: int, codes: Ints, values: Ints) -> tuple[Ints, Ints] | None:
    """The ends of every class by the records, if their categories are in order, and not by chance.

    The lowest class is open below and the highest above.
    """
    if not codes.size:
        return None
    least = np.full(count, OPEN)
    most = np.full(count, -OPEN)
    np.minimum.at(least, codes, values)
    np.maximum.at(most, codes, values)
    held = np.flatnonzero(least <= most)
    held = held[np.argsort(least[held], kind="stable")]
    if held.size < 2 or bool((most[held[:-1]] >= least[held[1:]]).any()):
        return None
    distinct = np.unique(np.stack([codes, values]), axis=1)[0]
    sizes = np.bincount(distinct, minlength=count)[held]
    n = int(sizes.sum())
    few = min(n - int(sizes.max()), n // 2, _COUNTED)
    if comb(n, few) < _CHANCE * factorial(min(held.size, _COUNTED)):
        return None
    least[held[0]] = 0 if least[held[0]] >= 0 else -OPEN
    most[held[-1]] = OPEN
    return least, most
