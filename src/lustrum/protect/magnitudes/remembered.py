"""What an agency remembers of protected sums, so that a second release keeps their noise.

Two protected values of one contribution with different noise would narrow it. So a contribution that did not
change keeps its protected value, and its owner its direction. One that changed by less than ``p`` percent, such
as a small correction, keeps its share: readers who know that it hardly changed learn nothing from the second
value. One that changed by more gets another share, or its growth would be exact. Records that were carried by
other cells stay there as long as these cells show somebody. All of it is confidential.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from lustrum.arrays import Array, Ints, Mask, Words
from lustrum.audit.contribution import candidates, certain_within
from lustrum.model import InputError
from lustrum.model.records import Records
from lustrum.protect.magnitudes.carriers import CarriedRecords, KeptPlaces
from lustrum.protect.magnitudes.factors import SHARES, Factors, amounts
from lustrum.protect.magnitudes.families import Family
from lustrum.protect.magnitudes.units import Units, identities
from lustrum.protect.population.start import cell_numbers

__all__ = ["RememberedSums", "SumsTogether", "keep_noise", "remember", "sums_together"]

_SAME = ("p", "directions", "existence")
_UNBOUNDED = 1 << 256
"""Above every product of two values."""


@dataclass(frozen=True, eq=False, repr=False)
class RememberedSums:
    """The records of a release: identity, values before and after protection, and the cell that carries each.

    ``release`` numbers the releases that continue each other. ``record`` are identities in ascending order,
    ``true`` and ``shown`` values of measures; ``carried[k]`` is the place of a record in ``record`` and
    ``cell[:, k]`` the codes of the cell that carries this piece of it.
    """

    method: Mapping[str, Any]
    release: int
    record: Words
    true: Mapping[str, Ints]
    shown: Mapping[str, Ints]
    home: Array
    carried: Ints
    cell: Array

    def __repr__(self) -> str:
        return "RememberedSums(hidden)"

    def require_same_method(self, method: Mapping[str, Any]) -> None:
        """Refuse a method whose noise would reveal something beside that of this release."""
        for name in _SAME:
            if self.method.get(name) != method.get(name):
                raise InputError(
                    f"The earlier sums were made with {name} = {self.method.get(name)!r}, and the policy now "
                    f"says {method.get(name)!r}; keep it, or draw all numbers anew with --fresh."
                )

    def find(self, identity: Words) -> tuple[Ints, Mask]:
        """The place of every record in this memory, and whether it is in it at all."""
        if not self.record.size:
            return np.zeros(identity.size, dtype=np.int64), np.zeros(identity.size, dtype=np.bool_)
        place = np.minimum(np.searchsorted(self.record, identity), self.record.size - 1)
        return place.astype(np.int64), np.asarray(self.record[place] == identity)

    def kept_places(self, records: Records, made: Mapping[str, Ints]) -> KeptPlaces:
        """Which cells carried the records whose codes and protected values are the same as before."""
        place, known = self.find(identities(records, None)[1])
        codes = np.stack([records.codes[v.name] for v in records.dataset.variables])
        if not self.record.size or self.home.shape[0] != codes.shape[0]:
            return KeptPlaces.nothing()
        same = known & (self.home[:, place] == codes).all(axis=0)
        for name, values in made.items():
            same &= self.shown[name][place] == values if name in self.shown else np.zeros_like(same)
        back = np.full(self.record.size, -1, dtype=np.int64)
        back[place[same]] = np.flatnonzero(same)
        rows = back[self.carried] >= 0
        cells = cell_numbers(records.dataset, self.cell[:, rows])
        return KeptPlaces(back[self.carried[rows]], cells)


def remember(
    records: Records,
    made: Mapping[str, Ints],
    carried: CarriedRecords,
    method: Mapping[str, Any],
    release: int,
) -> RememberedSums:
    """What to remember of a release."""
    own = identities(records, None)[1]
    order = np.argsort(own, kind="stable")
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    codes = np.stack([records.codes[v.name] for v in records.dataset.variables])
    return RememberedSums(
        dict(method),
        release,
        own[order],
        {n: records.numbers[n][order].astype(np.int64) for n in made},
        {n: values[order] for n, values in made.items()},
        codes[:, order],
        back[carried.record],
        carried.codes,
    )


def keep_noise(
    units: Units,
    family: Family,
    order: Ints,
    records: Records,
    factors: Factors,
    before: RememberedSums,
    p: Fraction,
) -> Mask:
    """Give remembered records their earlier noise, in place; returns which owners keep their direction.

    ``order`` is how the records of the units were sorted.
    """
    place, known = before.find(identities(records, None)[1][order])
    if not before.record.size:
        return np.zeros(units.sign.size, dtype=np.bool_)
    moved = [(k, name) for k, name in enumerate(family.moved) if name in before.true]
    pull = np.zeros(units.sign.size)
    for k, name in moved:
        noise = (before.shown[name] - before.true[name])[place] * units.side[:, k]
        noise = np.where(known & (before.true[name][place] * units.side[:, k] > 0), noise, 0)
        pull += np.bincount(units.owner, weights=noise, minlength=units.sign.size)
    locked = np.asarray(pull != 0)
    units.sign[locked] = np.where(pull[locked] > 0, 1, -1)
    for k, name in moved:
        true = records.numbers[name][order].astype(np.int64)
        old, shown = before.true[name][place], before.shown[name][place]
        amount = np.abs(shown - old)
        same_way = (shown - old) * units.sign[units.owner] * units.side[:, k] > 0
        usable = known & same_way & (old * units.side[:, k] > 0)
        unchanged = usable & (true == old)
        size, was = np.abs(true), np.abs(old)
        near = np.abs(true - old).astype(np.float64) <= float(p) * was
        small = usable & ~unchanged & near
        share = (amount.astype(np.float64) / np.maximum(was, 1) * SHARES).astype(np.int64)
        least, most = factors.amounts(size)
        kept = amounts(size, np.clip(share, factors.low, factors.high))
        kept = np.minimum(np.maximum(kept, least), most)
        for array in (units.low, units.high, units.amount):
            array[unchanged, k] = amount[unchanged]
            array[small, k] = kept[small]
    return locked


@dataclass(frozen=True)
class SumsTogether:
    """What two releases of one measure reveal together about single contributions.

    - ``unchanged`` kept their value and show the same number, so that the second release adds nothing.
    - ``changed`` have another value. ``certain`` counts the contributions that a reader of both is certain of
      within ``p`` percent, if the reader knows everything else and the factor by which the contribution
      changed.
    - ``other`` did not change but show another number.
    """

    measure: str
    unchanged: int
    changed: int
    other: int
    certain: int

    def to_mapping(self) -> dict[str, Any]:
        """The figures as plain values."""
        return dict(vars(self))


def sums_together(
    before: RememberedSums, after: RememberedSums, measure: str, factors: Factors, share: Fraction
) -> SumsTogether:
    """Combine the values that both releases leave open, for every contribution that is in both."""
    if not before.record.size:
        return SumsTogether(measure, 0, 0, 0, 0)
    place, known = before.find(after.record)
    old, shown_before = before.true[measure][place], before.shown[measure][place]
    new, shown = after.true[measure], after.shown[measure]
    both = known & (old * np.sign(new) > 0)
    unchanged = both & (old == new)
    other = unchanged & (shown != shown_before)
    judged = np.flatnonzero(both & ~(unchanged & ~other))
    low, high = _reach(shown[judged], factors)
    was_low, was_high = _reach(shown_before[judged], factors)
    # Whole numbers throughout: everything is multiplied by the old value, so that no fraction is needed.
    was, now = (np.abs(v[judged]).astype(object) for v in (old, new))
    least = np.full(judged.size, _UNBOUNDED, dtype=object)
    most = np.full(judged.size, -1, dtype=object)
    for s in (0, 1):
        for t in (0, 1):
            # What the first release leaves open, in terms of the second value.
            start = np.maximum(low[s] * was, was_low[t] * now)
            stop = np.minimum(high[s] * was, was_high[t] * now)
            left = start <= stop
            # The outer ends of what is left; the others decide where a pair of directions leaves nothing.
            least = np.where(left, np.minimum(least, start), least)
            most = np.where(left, np.maximum(most, stop), most)
    sure = int(certain_within(least, most, share).sum())
    return SumsTogether(
        measure,
        int((unchanged & ~other).sum()),
        int((both & ~unchanged).sum()),
        int(other.sum()),
        sure,
    )


def _reach(shown: Ints, factors: Factors) -> tuple[list[Array], list[Array]]:
    """The ends of the true values behind shown ones, for those that went up and for those that went down."""
    size = np.abs(shown).astype(object)
    ends = [candidates(size, factors.least, factors.most, side) for side in ("up", "down")]
    return [e[0] for e in ends], [e[1] for e in ends]
