"""What an agency remembers of protected sums, so that a second release keeps their noise.

Two protected values of one contribution with different noise would narrow it. So a contribution that did not
change keeps its protected value, and its owner its direction. One that changed, by however little, gets another
share: with the same share, readers who know by how much it changed would know the share, and with it the value.
The new share is drawn so that readers of all releases who know by which factor it changed are not certain
within ``p`` percent; ``reach`` remembers what the releases so far leave open. A contribution that a release
leaves out, because its record is gone, has no value or one of the other sign, or its measure is not published,
is *resting*: it is remembered as it was last shown, for the release in which it comes back. A direction is that
of the noise: a gain that becomes a loss moves as it did before. Records that were carried by other cells stay
there as long as these cells show somebody. All of it is confidential.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any, Literal

import numpy as np

from lustrum.audit.contribution import candidates, certain_within
from lustrum.model import InputError
from lustrum.model.arrays import Array, Ints, Mask, Words
from lustrum.model.records import Records
from lustrum.protect.magnitudes.carriers import CarriedRecords, KeptPlaces
from lustrum.protect.magnitudes.factors import VERSION, Factors
from lustrum.protect.magnitudes.hidden import DOWN, OPEN, UP, KnownClasses, left_open
from lustrum.protect.magnitudes.units import MeasureFamily, Units, identities
from lustrum.protect.population.start import cell_numbers, find

_SAME = ("p", "directions", "existence")
_UNBOUNDED = 1 << 256
"""Above every product of two values."""


@dataclass(frozen=True, eq=False, repr=False)
class LastShown:
    """Contributions to one measure, as they were last shown, in ascending order of records. Confidential.

    ``reach`` has a row each for the least and the largest size that is left open if they went up, and if they
    went down.
    """

    record: Words
    true: Ints
    shown: Ints
    reach: Ints

    def __repr__(self) -> str:
        return "LastShown(hidden)"

    def take(self, rows: Array) -> LastShown:
        return LastShown(self.record[rows], self.true[rows], self.shown[rows], self.reach[:, rows])


@dataclass(frozen=True, eq=False, repr=False)
class RememberedSums:
    """The records of a release: identity, values before and after protection, and the cell that carries each.

    ``release`` numbers the releases that continue each other. ``record`` are identities in ascending order,
    ``true`` and ``shown`` values of measures; ``carried[k]`` is the place of a record in ``record`` and
    ``cell[:, k]`` the codes of the cell that carries this piece of it. ``reach`` has, for every measure, the
    least and the largest size that all releases so far leave open if the contribution went up, and if it went
    down. ``resting`` are contributions of earlier releases that this one leaves out, by measure. ``version`` is
    that of the method; see :data:`lustrum.protect.magnitudes.factors.VERSION`.
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
    resting: Mapping[str, LastShown] = field(default_factory=dict)
    version: int = VERSION

    def __repr__(self) -> str:
        return "RememberedSums(hidden)"

    def require_own_shares(self, records: Records, family: MeasureFamily) -> None:
        """Refuse to go on from gains and losses that the first version of the method showed by one share."""
        names = [name for name in family.moved if name in self.true]
        if self.version >= VERSION or not names:
            return
        owners, record_ids = identities(records, family.holding)
        owner_of = dict(zip(record_ids.tolist(), owners.tolist(), strict=True))
        both = []
        for side in (1, -1):
            moved = [(self.true[n] * side > 0) & (self.shown[n] != self.true[n]) for n in names]
            held = self.record[np.any(moved, axis=0)].tolist()
            both.append({owner_of.get(one, ("gone", one)) for one in held})
        if both[0] & both[1]:
            raise InputError(
                f"The earlier sums show {len(both[0] & both[1]):,} owners with gains and losses of "
                f"{' and '.join(map(repr, names))} by one factor each, so that their ratios are exact, and no "
                "further release can hide them. Leave these measures out of the policy, or say "
                "--never-published if that release never went out."
            )

    def require_same_method(self, method: Mapping[str, Any]) -> None:
        """Refuse a method whose noise would reveal something beside that of this release."""
        for name in _SAME:
            if self.method.get(name) != method.get(name):
                raise InputError(
                    f"The earlier sums were made with {name} = {self.method.get(name)!r}, and the policy now "
                    f"says {method.get(name)!r}; keep it, or say --never-published if that is so."
                )

    def require_same_numbers(
        self, records: Records, protected: Mapping[str, Ints], factors: Factors
    ) -> None:
        """Refuse to show another number of a contribution that did not change and was shown with noise.

        That would come of a measure that was published by itself and is the sum of parts now: parts have noise
        of their own.
        """
        record_ids = identities(records, None)[1]
        for name, shown in protected.items():
            true = records.numbers[name].astype(np.int64)
            last = self.last(name, record_ids, np.sign(true), factors)
            hidden = (last.true != 0) & (last.true == true) & (last.shown != last.true)
            if bool((hidden & (shown != last.shown)).any()):
                raise InputError(
                    f"Sums of {name!r} would show other numbers than in an earlier release where nothing "
                    "changed, and both together would reveal contributions; describe its parts as they were "
                    "then, or say --never-published if that is so."
                )

    def contributions(self, measure: str, factors: Factors) -> list[LastShown]:
        """Contributions of this release and resting ones; a record has one of each sign at most."""
        shown_or_resting = [self.resting[measure]] if measure in self.resting else []
        if measure in self.true:
            reach = self.reach_of(measure, factors)
            now = LastShown(self.record, self.true[measure], self.shown[measure], reach)
            shown_or_resting.append(now.take(now.true != 0))
        return shown_or_resting

    def last(self, measure: str, records: Words, sides: Ints, factors: Factors) -> LastShown:
        """The last contribution of every record with the sign that it has now; 0 where there is none."""
        none = np.zeros(records.size, dtype=np.int64)
        last = LastShown(records, none, none.copy(), np.zeros((4, records.size), dtype=np.int64))
        for held in self.contributions(measure, factors):
            for side in (1, -1):
                of_side = held.take(np.sign(held.true) == side)
                index, there = find(of_side.record, records)
                rows = np.flatnonzero(there & (sides == side))
                last.true[rows] = of_side.true[index[rows]]
                last.shown[rows] = of_side.shown[index[rows]]
                last.reach[:, rows] = of_side.reach[:, index[rows]]
        return last

    def grown(self, records: Records, measure: str, factors: Factors) -> Ints:
        """By how much every contribution is larger than it was; 0 for those that are not remembered."""
        values = records.numbers[measure].astype(np.int64)
        last = self.last(measure, identities(records, None)[1], np.sign(values), factors)
        return np.where(last.true != 0, np.abs(values) - np.abs(last.true), 0)

    def reach_of(self, measure: str, factors: Factors) -> Ints:
        """What this release and those before it leave open; earlier versions remember the numbers alone."""
        if measure in self.reach:
            return self.reach[measure]
        size = np.abs(self.shown[measure])
        anything = np.zeros_like(size), np.full(size.shape, OPEN)
        return _stacked(left_open(size, factors, anything, way) for way in (UP, DOWN))

    def kept_places(self, records: Records, protected_values: Mapping[str, Ints]) -> KeptPlaces:
        """Which cells carried the records whose codes and protected values are the same as before."""
        index, known = find(self.record, identities(records, None)[1])
        codes = np.stack([records.codes[v.name] for v in records.dataset.variables])
        if not self.record.size or self.home.shape[0] != codes.shape[0]:
            return KeptPlaces.nothing()
        same = known & (self.home[:, index] == codes).all(axis=0)
        for name, values in protected_values.items():
            same &= self.shown[name][index] == values if name in self.shown else np.zeros_like(same)
        back = np.full(self.record.size, -1, dtype=np.int64)
        back[index[same]] = np.flatnonzero(same)
        rows = back[self.carried] >= 0
        cells = cell_numbers(records.dataset, self.cell[:, rows])
        return KeptPlaces(back[self.carried[rows]], cells)


def remember(
    records: Records,
    protected_values: Mapping[str, Ints],
    carried: CarriedRecords,
    method: Mapping[str, Any],
    release: int,
    reach: Mapping[str, Ints],
    resting: Mapping[str, LastShown],
) -> RememberedSums:
    """What to remember of a release; ``reach`` is in the order of the records."""
    record_ids = identities(records, None)[1]
    order = np.argsort(record_ids, kind="stable")
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    codes = np.stack([records.codes[v.name] for v in records.dataset.variables])
    return RememberedSums(
        dict(method),
        release,
        record_ids[order],
        {n: records.numbers[n][order].astype(np.int64) for n in protected_values},
        {n: values[order] for n, values in protected_values.items()},
        codes[:, order],
        back[carried.record],
        carried.codes,
        {n: ends[:, order] for n, ends in reach.items()},
        resting,
    )


def left_out(
    before: RememberedSums | None, records: Records, measures: Iterable[str], factors: Factors
) -> dict[str, LastShown]:
    """The contributions of earlier releases that a release of these measures does not show, by measure."""
    if before is None:
        return {}
    record_ids = identities(records, None)[1]
    order = np.argsort(record_ids, kind="stable")
    shown = {n: records.numbers[n][order].astype(np.int64) for n in measures}
    resting: dict[str, LastShown] = {}
    for name in sorted({*before.true, *before.resting}):
        parts = []
        for held in before.contributions(name, factors):
            index, there = find(record_ids[order], held.record)
            if name in shown and record_ids.size:
                there &= np.sign(shown[name][index]) == np.sign(held.true)
            else:
                there = np.zeros_like(there)
            parts.append(held.take(~there))
        joined = LastShown(
            np.concatenate([part.record for part in parts]),
            np.concatenate([part.true for part in parts]),
            np.concatenate([part.shown for part in parts]),
            np.concatenate([part.reach for part in parts], axis=1),
        )
        if joined.record.size:
            resting[name] = joined.take(np.lexsort((joined.true, joined.record)))
    return resting


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
    sizes = classes.sizes(measure, values)
    least, most = (np.broadcast_to(end, (2, values.size)) for end in sizes)
    if before is None:
        return least, most
    least, most = least.astype(np.int64), most.astype(np.int64)
    last = before.last(measure, identities(records, None)[1], np.sign(values), factors)
    ends = last.reach.copy()
    held = last.true != 0
    rows = np.flatnonzero(held & (last.true != values))
    was, now = (np.abs(v[rows]).astype(object) for v in (last.true, values))
    low, high = (ends[end::2, rows].astype(object) for end in (0, 1))
    if change == "factor":
        low, high = -(-low * now // was), high * now // was
    else:
        low, high = low + now - was, high + now - was
    ends[::2, rows], ends[1::2, rows] = (np.clip(end, -OPEN, OPEN) for end in (low, high))
    least[:, held] = np.maximum(least[:, held], ends[::2, held])
    most[:, held] = np.minimum(most[:, held], ends[1::2, held])
    return least, most


def reach_after(shown: Ints, known: tuple[Ints, Ints], factors: Factors, nets: Mask) -> Ints:
    """What a shown contribution leaves open of what was known before; ``nets`` are as open as their parts."""
    size = np.abs(shown)
    reach = _stacked(
        left_open(size, factors, (known[0][way], known[1][way]), way) for way in (UP, DOWN)
    )
    return np.where(nets, np.array([[0], [OPEN]] * 2).reshape(4, 1), reach)


def _stacked(ends: Iterable[tuple[Array, Array]]) -> Ints:
    return np.stack([np.clip(end, -1, OPEN).astype(np.int64) for pair in ends for end in pair])


@dataclass(frozen=True, eq=False, repr=False)
class KeptNoise:
    """Which owners keep their direction, and which contributions of theirs changed or stayed as they were.

    Confidential.
    """

    owners: Mask
    changed: Mask
    unchanged: Mask

    def __repr__(self) -> str:
        return "KeptNoise(hidden)"

    @classmethod
    def nothing(cls, units: Units) -> KeptNoise:
        """No earlier release."""
        none = np.zeros(units.amount.shape, dtype=np.bool_)
        return cls(np.zeros(units.sign.size, dtype=np.bool_), none, none.copy())


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
    kept_noise = KeptNoise.nothing(units)
    if before is None:
        return kept_noise
    record_ids = identities(records, None)[1][order]
    pull = np.zeros(units.sign.size)
    for name, side in product(family.moved, (1, -1)):
        last = before.last(name, record_ids, np.full(order.size, side), factors)
        noise = last.shown - last.true
        pull += np.bincount(units.owner, weights=noise, minlength=units.sign.size)
        kept_noise.owners[units.owner[noise != 0]] = True
    units.sign[pull != 0] = np.where(pull[pull != 0] > 0, 1, -1)
    for k, name in enumerate(family.moved):
        true = records.numbers[name][order].astype(np.int64)
        last = before.last(name, record_ids, np.sign(true), factors)
        old, amount = last.true, np.abs(last.shown - last.true)
        way = (last.shown - old) * units.sign[units.owner]
        kept_noise.unchanged[:, k] = (way != 0) & (true == old)
        kept_noise.changed[:, k] = (way != 0) & (true != old)
        # A contribution that went against its owner does so again, also where it changed.
        units.side[way < 0, k] = -1
        for array in (units.low, units.high, units.amount):
            array[kept_noise.unchanged[:, k], k] = amount[kept_noise.unchanged[:, k]]
    return kept_noise


@dataclass(frozen=True)
class SumsTogether:
    """What a release of one measure and those before it reveal together about single contributions.

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
        return dict(vars(self))


def sums_together(
    before: RememberedSums, after: RememberedSums, measure: str, factors: Factors, share: Fraction
) -> SumsTogether:
    """Combine the values that both releases leave open, for every contribution that is in both.

    One that the first of them leaves out counts as it was last shown before.
    """
    new, shown = after.true[measure], after.shown[measure]
    last = before.last(measure, after.record, np.sign(new), factors)
    old, shown_before = last.true, last.shown
    both = old != 0
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
