"""The audit of protected magnitudes, contributor by contributor, over all tables up to some variables.

It starts from the records and what was made of them, and shares no bookkeeping with the search. Confidential.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from lustrum.audit.contribution import candidates, certain_within
from lustrum.model import InputError
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.model.records import Records
from lustrum.protect.magnitudes.carriers import CarriedRecords, piece_values
from lustrum.protect.magnitudes.factors import SHARES, Factors, needed_factors
from lustrum.protect.magnitudes.hidden import (
    DOWN,
    OPEN,
    UP,
    KnownClasses,
    certain_below,
    known_classes,
    left_open,
)
from lustrum.protect.magnitudes.kernels import (
    COUNT,
    CUT,
    ENDS,
    FIRST,
    HOLDER,
    LARGEST,
    MOVED,
    NET,
    NOISE,
    RUNNER_UP,
    SECOND,
    SIZE,
    TOTAL,
    VALUE,
    rank_noise,
)
from lustrum.protect.magnitudes.units import families_of, identities
from lustrum.protect.population.search.plan import plan_tables


@dataclass(frozen=True)
class ContributorAudit:
    """What attackers can know about the largest contributor of every cell, and about values of one owner.

    - ``cells``: cells with a contribution; ``sensitive``: those that the p% rule calls sensitive, by true
      values.
    - ``unprotected``: cells in which the second largest contributor, who subtracts its own protected
      contribution, comes nearer to the largest than the p% rule allows.
    - ``certain``: cells in which the largest is certain within p percent to a coalition of all others;
      ``certain_with_direction``: the same if they know the direction too. ``from_units`` is the least
      contribution above which there are no such cells.
    - ``outside``: cells whose largest contribution changed by less or more than everybody may know.
    - ``certain_with_class``: contributions that are certain within p percent to somebody who knows everything
      else and the classes that are variables of the dataset; ``by_class`` are those that their class gives away
      by itself, whatever is shown.
    - ``close_by_chance``: sensitive cells in which the published sum less the true second largest is within p
      percent of the largest. Nobody can know which these are.
    - ``several``: contributions of owners that have another value in the same family of measures; ``one_known``
      are those of them that are certain within p percent to somebody who knows another value of their owner,
      ``earlier_known`` to somebody who knows that of the period before, and ``record_known`` to somebody who
      knows that of another record of a holding. Each of these readers knows which way the owner went, and the
      class. ``known_large`` are those of ``small_units`` or more, below which whole units give a direction more
      weight.
    - ``growth``: contributions whose ratio to the period before is certain within p percent to everybody.
    """

    measure: str
    cells: int
    sensitive: int
    unprotected: int
    certain: int
    certain_with_direction: int
    from_units: int
    outside: int
    close_by_chance: int
    certain_with_class: int = 0
    by_class: int = 0
    several: int = 0
    one_known: int = 0
    earlier_known: int = 0
    record_known: int = 0
    known_large: int = 0
    small_units: int = 0
    growth: int = 0

    @property
    def safe(self) -> bool:
        """Whether nothing was found that must not be."""
        breaches = self.unprotected + self.certain + self.outside + self.certain_with_class
        return breaches + self.known_large + self.growth == 0


def audit_contributors(
    records: Records,
    protected: Ints,
    measure: str,
    factors: Factors,
    share: Fraction,
    *,
    max_variables: int = 3,
    tables: tuple[tuple[str, ...], ...] = (),
    carried: CarriedRecords | None = None,
    others: Mapping[str, Ints] = MappingProxyType({}),
) -> ContributorAudit:
    """Audit one measure of a register for which ``protected`` holds the value of every record.

    If other cells ``carried`` records, a cell is audited by what it carries: the attackers know everything that
    it carries except one contribution, which is more than anybody knows. ``others`` are the protected values of
    the other measures, which readers see beside this one: its parts, and the period before.
    """
    plan = plan_tables(records.dataset, max_variables, tables)
    described = records.dataset.measure(measure)
    owners, record_ids = identities(records, described.holding)
    values = _OwnedValues(records, {**others, measure: protected}, measure, factors)
    classes = known_classes(records, [measure])
    with_class, by_class = with_classes(
        records, classes, measure, protected, factors, share, values.size == np.abs(values.true)
    )
    readers = _other_values_known(values, classes, share)
    true, size = records.numbers[measure].astype(np.int64), values.size
    every = np.stack([records.codes[v.name] for v in records.dataset.variables])
    ends = list(values.ends)
    del values  # a register may have so many contributors that two copies do not fit
    cut = np.zeros(true.size, dtype=np.int64)
    if carried is not None:
        owners, record_ids, every = (
            owners[carried.record],
            record_ids[carried.record],
            carried.codes,
        )
        pieces = np.bincount(carried.record)[carried.record]
        cut = (pieces > 1).astype(np.int64)
        first = np.searchsorted(carried.record, carried.record)
        piece = np.arange(carried.record.size) - first
        true, size, *ends = (
            piece_values(whole[carried.record], piece, pieces) for whole in (true, size, *ends)
        )
        protected = carried.values[measure]
    order = np.lexsort((record_ids, owners))
    owner = np.unique(owners[order], return_inverse=True)[1].ravel().astype(np.int64)
    columns = [true, protected - true, size, np.ones_like(true), cut, *ends]
    owned = np.empty((order.size, len(columns)), dtype=np.int64)
    for number, column in enumerate(columns):
        owned[:, number] = column[order]
    del columns, true, size, ends, cut
    codes = np.ascontiguousarray(every[plan.rows()].T[order].astype(np.uint32))
    rankings = np.zeros((plan.cells, HOLDER + 1), dtype=np.int64)
    rankings[:, HOLDER] = -1
    rank_noise(plan.layout, codes, owner, owned, rankings)
    parts = max(len(described.parts), 1)
    judged = [
        _judged(measure, factors, share, some[some[:, FIRST] > 0], parts)
        for some in np.array_split(rankings, len(rankings) // _AT_ONCE + 1)
    ]
    counts = {f.name: sum(getattr(one, f.name) for one in judged) for f in fields(judged[0])[1:]}
    counts["from_units"] = max(one.from_units for one in judged)
    counts |= {"certain_with_class": with_class, "by_class": by_class, **readers}
    return ContributorAudit(measure, **counts)


_AT_ONCE = 1 << 16
"""Of so many cells figures are exact numbers of any size at the same time."""
_WAYS = (slice(0, 2), slice(2, 4))
_OTHER = {0: _WAYS[1], 2: _WAYS[0]}
_LITTLE = 1 << 12
"""What shows so much can have gone both ways."""


class _OwnedValues:
    """Values of a measure, and what is left open of each if the noise of its owner adds or takes away.

    ``ends`` has the least and the largest value for the one direction and for the other; where one of them is
    impossible for some value of the owner, both are those of the other. All values that an owner can have in
    one direction can be combined: see :mod:`lustrum.protect.magnitudes.factors`.
    """

    def __init__(
        self, records: Records, shown: Mapping[str, Ints], measure: str, factors: Factors
    ) -> None:
        self.records, self.shown, self.measure, self.factors = records, shown, measure, factors
        parts = records.dataset.measure(measure).parts
        self.names = parts if parts and all(name in shown for name in parts) else (measure,)
        self.family = next(f for f in families_of(records.dataset.measures) if measure in f.shown)
        owners = identities(records, self.family.holding)[0]
        self.owner = np.unique(owners, return_inverse=True)[1].ravel()
        self.true = records.numbers[measure].astype(np.int64)
        sizes = np.abs([records.numbers[name].astype(np.int64) for name in self.names])
        self.size = sizes.sum(axis=0)
        self.smallest = np.where(sizes > 0, sizes, OPEN).min(axis=0)
        self.ends = np.sum(
            [self._ends(name, np.arange(len(records))) for name in self.names], axis=0
        )
        for here, never in zip(_WAYS, self._never(), strict=True):
            self.ends[here] = np.where(never, self.ends[_OTHER[here.start]], self.ends[here])

    def of(self, measure: str) -> _OwnedValues | None:
        """The same of another measure, if its protected values are known."""
        if measure not in self.shown:
            return None
        return _OwnedValues(self.records, self.shown, measure, self.factors)

    def of_owner(self, held: Mask | Ints) -> Ints:
        """The sum of all records of an owner, for each of them."""
        sums = np.bincount(self.owner, weights=held, minlength=1)[self.owner]
        return np.asarray(sums).astype(np.int64)

    def _never(self) -> list[Mask]:
        """For each direction, the records of owners that cannot have moved so: some value shows too little."""
        empty = np.zeros((2, len(self.records)), dtype=np.bool_)
        for name in (n for n in self.family.moved if n in self.shown):
            rows = np.flatnonzero(np.abs(self.shown[name]) < _LITTLE)
            ends = self._ends(name, rows)
            empty[:, rows] |= ends[::2] > ends[1::2]
        return [self.of_owner(one) > 0 for one in empty]

    def _ends(self, name: str, rows: Ints) -> Ints:
        true, shown = self.records.numbers[name][rows].astype(np.int64), self.shown[name][rows]
        sizes, place = np.unique(np.abs(shown), return_inverse=True)
        anything = np.zeros_like(sizes), np.full(sizes.shape, OPEN)
        by_size = (np.stack(left_open(sizes, self.factors, anything, w)) for w in (UP, DOWN))
        up, down = (ends.astype(np.int64)[:, place.ravel()] for ends in by_size)
        added = np.where(shown > 0, up, -down[::-1])
        taken = np.where(shown < 0, -up[::-1], down)
        # A waiver leaves a value as it is, and everybody may know.
        return np.where(shown == true, true, np.concatenate([added, taken]))


def _sizes(least: Ints, most: Ints) -> tuple[Ints, Ints]:
    """The sizes of what is left open between two values; from 0 where the sign is open."""
    small = np.where((least <= 0) & (most >= 0), 0, np.minimum(np.abs(least), np.abs(most)))
    return small, np.maximum(np.abs(least), np.abs(most))


def _other_values_known(
    values: _OwnedValues, classes: KnownClasses, share: Fraction
) -> dict[str, Any]:
    """Contributions that are certain to somebody who knows another value of their owner, and growth."""
    records, true = values.records, values.true
    described = records.dataset.measure(values.measure)
    noise = values.shown[values.measure] - true
    moved = (true != 0) & (noise != 0)
    filled = np.sum([records.numbers[name] != 0 for name in values.family.moved], axis=0)
    several = moved & (
        values.of_owner(filled) > np.sum([records.numbers[n] != 0 for n in values.names], axis=0)
    )
    least, most = _sizes(*np.where(noise > 0, values.ends[:2], values.ends[2:]))
    first, last = classes.sizes(values.measure, true)
    sure = certain_within(np.maximum(least, first), np.minimum(most, last), share)
    sure &= several & ~classes.given_away(values.measure, true, share)
    small = _small_units(share)
    earlier = None if described.earlier is None else values.of(described.earlier)
    before = np.zeros_like(moved) if earlier is None else earlier.true != 0
    return {
        "several": int(several.sum()),
        "one_known": int(sure.sum()),
        "earlier_known": int((sure & before).sum()),
        "record_known": int((sure & (values.of_owner(true != 0) > 1)).sum()),
        "known_large": int((sure & (values.smallest >= small)).sum()),
        "small_units": small,
        "growth": 0 if earlier is None else _certain_growth(values, earlier, share),
    }


def _small_units(share: Fraction) -> int:
    """The size from which on whole units do not matter, with the factors that promise so."""
    try:
        return certain_below(needed_factors(share, "known"), share)
    except InputError:  # no factors are so wide
        return 1


def _certain_growth(now: _OwnedValues, before: _OwnedValues, share: Fraction) -> int:
    """Contributions whose ratio to the one before is certain within a share, in both directions together."""
    rows = np.flatnonzero((now.true != 0) & (before.true != 0))
    rows = rows[(now.shown[now.measure] != now.true)[rows]]
    ratios = []
    for way in _WAYS:
        ends = (end for values in (now, before) for end in _sizes(*values.ends[way][:, rows]))
        ratios.append([end.astype(object) for end in ends])
    top, bottom = share.denominator + share.numerator, share.denominator - share.numerator
    # One number is near all ratios: (1 - p) of each is at most (1 + p) of each other, and none is open.
    certain = np.ones(rows.size, dtype=np.bool_)
    for _, most, low, _ in ratios:
        for least, _, _, high in ratios:
            certain &= ((low > 0) & (bottom * most * high <= top * least * low)).astype(np.bool_)
    return int(certain.sum())


def with_classes(
    records: Records,
    classes: KnownClasses,
    measure: str,
    protected: Ints,
    factors: Factors,
    share: Fraction,
    judged: Mask | None = None,
) -> tuple[int, int]:
    """How many contributions their class and what is shown give away, and how many their class alone.

    Only ``judged`` ones count among the first.
    """
    if measure not in classes.ends:
        return 0, 0
    true = records.numbers[measure].astype(np.int64)
    first, last = classes.sizes(measure, true)
    alone = classes.given_away(measure, true, share)
    shown = np.abs(protected)
    least, most = np.full(true.size, 1 << 70, dtype=object), np.full(true.size, -1, dtype=object)
    for side in ("up", "down"):
        low, high = candidates(shown, factors.least, factors.most, side)
        low, high = np.maximum(low, first), np.minimum(high, last)
        left = np.asarray(low <= high).astype(np.bool_)
        least = np.where(left, np.minimum(least, low), least)
        most = np.where(left, np.maximum(most, high), most)
    least = np.where((shown == 0) & (first <= 0), 0, least)
    certain = certain_within(least, most, share) & (true != 0) & (protected != true)
    certain &= ~alone if judged is None else ~alone & judged
    return int(certain.sum()), int(alone.sum())


def _judged(
    measure: str, factors: Factors, share: Fraction, rankings: Ints, parts: int
) -> ContributorAudit:
    top, bottom = share.numerator, share.denominator

    def exact(column: int) -> Array:
        return rankings[:, column].astype(object)

    one, value, noise = exact(FIRST), exact(LARGEST + VALUE), exact(LARGEST + MOVED)
    lacking = one * top - (exact(TOTAL) - one - exact(SECOND)) * bottom
    sensitive = (lacking > 0).astype(np.bool_)
    without = np.abs(exact(NOISE) - exact(RUNNER_UP + MOVED)) * bottom
    unprotected = sensitive & (without < lacking).astype(np.bool_)
    estimate = np.abs(exact(NET) + exact(NOISE) - exact(RUNNER_UP + VALUE) - value) * bottom
    near = sensitive & (estimate <= one * top).astype(np.bool_)
    moved = (noise != 0).astype(np.bool_)
    # Amounts are rounded up for each record and each part, small ones to two units.
    gross = exact(LARGEST + SIZE)
    most_noise = gross * factors.high + 2 * parts * exact(LARGEST + COUNT) * SHARES
    size = np.abs(noise) * SHARES
    outside = moved & ((size < gross * factors.low) | (size > most_noise)).astype(np.bool_)
    # Noise that makes the contribution larger counts as positive, whatever its sign.
    upwards = (noise * value > 0).astype(np.bool_)
    published = np.where((value < 0).astype(np.bool_), -value - noise, value + noise)
    up, down = (candidates(published, factors.least, factors.most, side) for side in ("up", "down"))
    # Nothing above 0 can have gone up to 1: then only what has gone down is left.
    least = np.where((up[0] <= up[1]).astype(np.bool_), up[0], down[0])
    least = np.where(published == 0, 0, least)  # a published 0 may be true
    most = np.maximum(up[1], down[1])
    certain = certain_within(least, most, share)
    by_side = np.where(upwards, certain_within(*up, share), certain_within(*down, share))
    # Of gains and losses everybody may see each: the least and the most that they leave together.
    net = (gross != one).astype(np.bool_)
    ends = rankings[:, LARGEST + ENDS : LARGEST + ENDS + 4].T
    added, taken = (certain_within(*_sizes(*ends[way]), share) for way in _WAYS)
    either = _sizes(np.minimum(ends[0], ends[2]), np.maximum(ends[1], ends[3]))
    certain = np.where(net, certain_within(*either, share), certain) & moved
    by_side = np.where(net, np.where((noise > 0).astype(np.bool_), added, taken), by_side) & moved
    # A contribution that did not move at all is known to everybody, since all others have moved. A piece may
    # stay as it is where the record moved, and nobody can tell: it says less than the whole protected record.
    still = ~moved & (rankings[:, LARGEST + CUT] == 0)
    return ContributorAudit(
        measure=measure,
        cells=len(rankings),
        sensitive=int(sensitive.sum()),
        unprotected=int((unprotected | (still & sensitive)).sum()),
        certain=int((certain | still).sum()),
        certain_with_direction=int((by_side | still).sum()),
        from_units=int(max(one[by_side], default=0)) + 1,
        outside=int(outside.sum()),
        close_by_chance=int(near.sum()),
    )
