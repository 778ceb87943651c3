"""Variables that are classes of a measure, such as size classes of employees: what readers know beforehand.

Everybody who reads a table by size class knows between which numbers the employees of a firm lie. A variable is
taken for classes of a measure if its ``edges`` hold for every record, or if the values of its categories lie in
intervals that do not overlap, and that cannot be chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial

import numpy as np

from lustrum.audit.contribution import certain_within
from lustrum.model import InputError, Measure, Variable
from lustrum.model.arrays import Ints, Mask
from lustrum.model.records import Records

OPEN = 1 << 62
"""Beyond every value."""
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
            return np.zeros(values.shape, dtype=np.int64), np.full(values.shape, OPEN)
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
