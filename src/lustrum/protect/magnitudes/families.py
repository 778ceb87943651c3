"""Which measures are protected together.

Measures that add up, and the same measure in two periods, share the directions of their contributors. A measure
with parts gets no noise of its own: it is the sum of its protected parts, so that published numbers add up. Two
independently protected copies of one number would reveal it, so relations that the description does not state
are detected and refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from lustrum.model import InputError, Measure
from lustrum.model.arrays import Ints, Mask
from lustrum.model.records import Records

_SAMPLED = 4096


@dataclass(frozen=True, eq=False)
class MeasureFamily:
    """Related measures: ``moved`` get noise; ``shown`` are published, each the sum of some of them."""

    name: str
    moved: tuple[str, ...]
    shown: tuple[str, ...]
    adds: Mask
    holding: str | None

    def added(self, moved: Ints) -> Ints:
        """The shown measures, column by column, from those that were moved."""
        return np.asarray(moved @ self.adds.T.astype(np.int64))


def families_of(measures: Sequence[Measure]) -> tuple[MeasureFamily, ...]:
    """The families of all measures, in the order of the description."""
    leader = {m.name: m.name for m in measures}

    def root(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for measure in measures:
        earlier = () if measure.earlier is None else (measure.earlier,)
        for other in (*measure.parts, *earlier):
            leader[root(other)] = root(measure.name)
    families: dict[str, list[Measure]] = {}
    for measure in measures:
        families.setdefault(root(measure.name), []).append(measure)
    return tuple(_family(members) for members in families.values())


def _family(members: Sequence[Measure]) -> MeasureFamily:
    moved = tuple(m.name for m in members if not m.parts)
    shown = tuple(m.name for m in members)
    adds = np.zeros((len(shown), len(moved)), dtype=np.bool_)
    for row, measure in enumerate(members):
        for name in measure.parts or (measure.name,):
            adds[row, moved.index(name)] = True
    return MeasureFamily(min(shown), moved, shown, adds, members[0].holding)


def check_relations(records: Records, families: Sequence[MeasureFamily]) -> None:
    """Refuse parts that do not add up, and measures that are equal or add up without being declared."""
    numbers = records.numbers
    for family in families:
        for row, name in enumerate(family.shown):
            parts = [
                m for m, is_part in zip(family.moved, family.adds[row], strict=True) if is_part
            ]
            if parts != [name] and not np.array_equal(
                sum(numbers[m] for m in parts), numbers[name]
            ):
                raise InputError(
                    f"The measure {name!r} is not the sum of its parts in every record; correct the records "
                    "or the description."
                )
    _check_unstated(numbers, families)


def _check_unstated(numbers: Mapping[str, Ints], families: Sequence[MeasureFamily]) -> None:
    names = [name for family in families for name in family.shown]
    stated = {
        (
            name,
            *sorted(
                m for m, is_part in zip(family.moved, family.adds[row], strict=True) if is_part
            ),
        )
        for family in families
        for row, name in enumerate(family.shown)
    }
    # A measure may begin where the sample ends, so whole columns decide which measures hold anything.
    filled = [name for name in names if numbers[name].any()]
    some = np.flatnonzero(np.any([numbers[n] != 0 for n in names], axis=0))[:_SAMPLED]
    drawn = {n: numbers[n][some] for n in filled}
    for name in filled:
        others = [n for n in filled if n != name]
        for parts in (*((n,) for n in others), *combinations(others, 2)):
            if (name, *sorted(parts)) in stated:
                continue
            if np.array_equal(sum(drawn[n] for n in parts), drawn[name]) and np.array_equal(
                sum(numbers[n] for n in parts), numbers[name]
            ):
                listed = " and ".join(repr(n) for n in parts)
                raise InputError(
                    f"The measure {name!r} equals {listed} in every record; say so with 'parts' in the "
                    "description, or leave it out: protected apart they would give each other away."
                )
