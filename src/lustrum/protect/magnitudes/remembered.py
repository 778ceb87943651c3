"""What an agency remembers of protected sums, so that a second release keeps their noise.

Two protected values of one contribution with different noise would narrow it. So a contribution that did not
change keeps its protected value, and its owner its direction. One that changed, by however little, gets another
share: with the same share, readers who know by how much it changed would know the share, and with it the value.
The new share is drawn so that readers of all releases who know by which factor it changed are not certain
within ``p`` percent; ``reach`` remembers what the releases so far leave open. Records that were carried by
other cells stay there as long as these cells show somebody. All of it is confidential.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from lustrum.arrays import Array, Ints, Mask, Words
from lustrum.audit.contribution import candidates, certain_within
from lustrum.model import InputError
from lustrum.model.records import Records
from lustrum.protect.magnitudes.carriers import CarriedRecords, KeptPlaces
from lustrum.protect.magnitudes.classes import OPEN, KnownClasses
from lustrum.protect.magnitudes.factors import SHARES, Factors, amounts
from lustrum.protect.magnitudes.families import MeasureFamily
from lustrum.protect.magnitudes.hidden import DOWN, UP, left_open
from lustrum.protect.magnitudes.units import Units, identities
from lustrum.protect.population.start import cell_numbers

_SAME = ("p", "directions", "existence")
_UNBOUNDED = 1 << 256
"""Above every product of two values."""


@dataclass(frozen=True, eq=False, repr=False)
class RememberedSums:
    """The records of a release: identity, values before and after protection, and the cell that carries each.

    ``release`` numbers the releases that continue each other. ``record`` are identities in ascending order,
    ``true`` and ``shown`` values of measures; ``carried[k]`` is the place of a record in ``record`` and
    ``cell[:, k]`` the codes of the cell that carries this piece of it. ``reach`` has, for every measure, the
    least and the largest size that all releases so far leave open if the contribution went up, and if it went
    down.
    """

    method: Mapping[str, Any]
    release: int
    record: Words
    true: Mapping[str, Ints]
    shown: Mapping[str, Ints]
    home: Array
    carried: Ints
    cell: Array
    reach: Mapping[str, Ints] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "RememberedSums(hidden)"

    def require_same_method(self, method: Mapping[str, Any]) -> None:
        """Refuse a method whose noise would reveal something beside that of this release."""
        for name in _SAME:
            if self.method.get(name) != method.get(name):
                raise InputError(
                    f"The earlier sums were made with {name} = {self.method.get(name)!r}, and the policy now "
                    f"says {method.get(name)!r}; keep it, or say --never-published if that is so."
                )

    def find(self, identity: Words) -> tuple[Ints, Mask]:
        """The place of every record in this memory, and whether it is in it at all."""
        if not self.record.size:
            return np.zeros(identity.size, dtype=np.int64), np.zeros(identity.size, dtype=np.bool_)
        place = np.minimum(np.searchsorted(self.record, identity), self.record.size - 1)
        return place.astype(np.int64), np.asarray(self.record[place] == identity)

    def grown(self, records: Records, measure: str) -> Ints:
        """By how much every contribution is larger than it was; 0 for those that are not remembered."""
        values = records.numbers[measure].astype(np.int64)
        if measure not in self.true:
            return np.zeros_like(values)
        place, there = self.find(identities(records, None)[1])
        if not there.any():
            return np.zeros_like(values)
        old = self.true[measure][place]
        both = there & (old * np.sign(values) > 0)
        return np.where(both, np.abs(values) - np.abs(old), 0)

    def reach_of(self, measure: str, factors: Factors) -> Ints:
        """What this release and those before it leave open; earlier versions remember the numbers alone."""
        if measure in self.reach:
            return self.reach[measure]
        size = np.abs(self.shown[measure])
        anything = np.zeros_like(size), np.full(size.shape, OPEN)
        return _stacked(left_open(size, factors, anything, way) for way in (UP, DOWN))

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
    reach: Mapping[str, Ints],
) -> RememberedSums:
    """What to remember of a release; ``reach`` is in the order of the records."""
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
        {n: ends[:, order] for n, ends in reach.items()},
    )


Change = Literal["factor", "difference"]
"""What readers may know of a change: by which factor, or by how much."""


def known_before(
    classes: KnownClasses,
    records: Records,
    measure: str,
    before: RememberedSums | None,
    factors: Factors,
    change: Change,
) -> tuple[Ints, Ints]:
    """Between which sizes readers know each contribution before they see the new release, by direction.

    They know its classes, what earlier releases leave open, and how it has changed since.
    """
    values = records.numbers[measure].astype(np.int64)
    ends = classes.sizes(measure, values)
    least, most = (np.stack([end, end]).astype(np.int64) for end in ends)
    if before is None or measure not in before.true or not before.record.size:
        return least, most
    place, there = before.find(identities(records, None)[1])
    old = before.true[measure][place]
    rows = np.flatnonzero(there & (old * np.sign(values) > 0) & (old != values))
    reach = before.reach_of(measure, factors)[:, place[rows]].astype(object)
    was, now = (np.abs(v[rows]).astype(object) for v in (old, values))
    for way in (UP, DOWN):
        low, high = reach[2 * way], reach[2 * way + 1]
        if change == "factor":
            low, high = -(-low * now // was), high * now // was
        else:
            low, high = low + now - was, high + now - was
        least[way, rows] = np.maximum(least[way, rows], np.clip(low, -OPEN, OPEN))
        most[way, rows] = np.minimum(most[way, rows], np.clip(high, -OPEN, OPEN))
    same = np.flatnonzero(there & (old == values) & (values != 0))
    reach = before.reach_of(measure, factors)[:, place[same]]
    for way in (UP, DOWN):
        least[way, same], most[way, same] = reach[2 * way], reach[2 * way + 1]
    return least, most


def reach_after(shown: Ints, known: tuple[Ints, Ints], factors: Factors) -> Ints:
    """What a shown contribution leaves open of what was known before."""
    size = np.abs(shown)
    return _stacked(
        left_open(size, factors, (known[0][way], known[1][way]), way) for way in (UP, DOWN)
    )


def _stacked(ends: Iterable[tuple[Array, Array]]) -> Ints:
    return np.stack([np.clip(end, -1, OPEN).astype(np.int64) for pair in ends for end in pair])


@dataclass(frozen=True, eq=False, repr=False)
class KeptNoise:
    """Which owners keep their direction, and which contributions of theirs changed or stayed as they were.

    ``amount`` is what the earlier shares make of all contributions. Confidential.
    """

    owners: Mask
    changed: Mask
    unchanged: Mask
    amount: Ints

    def __repr__(self) -> str:
        return "KeptNoise(hidden)"

    @classmethod
    def nothing(cls, units: Units) -> KeptNoise:
        """No earlier release."""
        none = np.zeros(units.amount.shape, dtype=np.bool_)
        return cls(np.zeros(units.sign.size, dtype=np.bool_), none, none.copy(), units.amount)


def keep_noise(
    units: Units,
    family: MeasureFamily,
    order: Ints,
    records: Records,
    factors: Factors,
    before: RememberedSums | None,
) -> KeptNoise:
    """Give remembered owners their direction and unchanged contributions their noise, in place.

    ``order`` is how the records of the units were sorted.
    """
    kept = KeptNoise.nothing(units)
    if before is None or not before.record.size:
        return kept
    place, known = before.find(identities(records, None)[1][order])
    moved = [(k, name) for k, name in enumerate(family.moved) if name in before.true]
    pull = np.zeros(units.sign.size)
    for k, name in moved:
        noise = (before.shown[name] - before.true[name])[place] * units.side[:, k]
        noise = np.where(known & (before.true[name][place] * units.side[:, k] > 0), noise, 0)
        pull += np.bincount(units.owner, weights=noise, minlength=units.sign.size)
        kept.owners[units.owner[noise != 0]] = True
    units.sign[pull != 0] = np.where(pull[pull != 0] > 0, 1, -1)
    kept = replace(kept, amount=units.amount.copy())
    for k, name in moved:
        true = records.numbers[name][order].astype(np.int64)
        old, shown = before.true[name][place], before.shown[name][place]
        amount = np.abs(shown - old)
        way = (shown - old) * units.sign[units.owner] * units.side[:, k]
        usable = known & (way != 0) & (old * units.side[:, k] > 0)
        kept.unchanged[:, k] = usable & (true == old)
        kept.changed[:, k] = usable & (true != old)
        # A contribution that went against its owner does so again.
        alone = kept.unchanged[:, k] & (way < 0)
        units.side[alone, k] = -units.side[alone, k]
        for array in (units.low, units.high, units.amount):
            array[kept.unchanged[:, k], k] = amount[kept.unchanged[:, k]]
        share = (amount.astype(np.float64) / np.maximum(np.abs(old), 1) * SHARES).astype(np.int64)
        again = amounts(np.abs(true), np.clip(share, factors.low, factors.high))
        kept.amount[:, k] = np.where(kept.changed[:, k], again, units.amount[:, k])
    return kept


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
    if after.release > before.release:
        # One that continues the other keeps directions, and remembers what both leave open.
        certain = int(_sure(after.reach_of(measure, factors)[:, judged], share).sum())
        return SumsTogether(
            measure,
            int((unchanged & ~other).sum()),
            int((both & ~unchanged).sum()),
            int(other.sum()),
            certain,
        )
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


def _sure(reach: Ints, share: Fraction) -> Mask:
    """Where the sizes that are left open in both directions together are certain within a share."""
    some = reach[::2] <= reach[1::2]
    least = np.where(some, reach[::2], OPEN).min(axis=0)
    most = np.where(some, reach[1::2], -1).max(axis=0)
    return certain_within(least, most, share)


def _reach(shown: Ints, factors: Factors) -> tuple[list[Array], list[Array]]:
    """The ends of the true values behind shown ones, for those that went up and for those that went down."""
    size = np.abs(shown).astype(object)
    ends = [candidates(size, factors.least, factors.most, side) for side in ("up", "down")]
    return [e[0] for e in ends], [e[1] for e in ends]
