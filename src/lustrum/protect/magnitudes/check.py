"""The audit of protected magnitudes, contributor by contributor, over all tables up to some variables.

It starts from the records and what was made of them, and shares no bookkeeping with the search. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from lustrum.audit.contribution import candidates, certain_within
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.model.records import Records
from lustrum.protect.magnitudes.carriers import CarriedRecords, piece_values
from lustrum.protect.magnitudes.factors import SHARES, Factors
from lustrum.protect.magnitudes.hidden import KnownClasses, known_classes
from lustrum.protect.magnitudes.kernels import (
    FIRST,
    FIRST_NOISE,
    HOLDER,
    NOISE,
    PIECES,
    RECORDS,
    SECOND,
    SECOND_NOISE,
    TOTAL,
    rank_noise,
)
from lustrum.protect.magnitudes.units import identities
from lustrum.protect.population.search.layout import plan_tables


@dataclass(frozen=True)
class ContributorAudit:
    """What attackers can know about the largest contributor of every cell.

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

    @property
    def safe(self) -> bool:
        """Whether nothing was found that must not be."""
        breaches = self.unprotected + self.certain + self.outside + self.certain_with_class
        return breaches == 0


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
) -> ContributorAudit:
    """Audit one measure of a register for which ``protected`` holds the value of every record.

    If other cells ``carried`` records, a cell is audited by what it carries: the attackers know everything that
    it carries except one contribution, which is more than anybody knows.
    """
    plan = plan_tables(records.dataset, max_variables, tables)
    owners, record_ids = identities(records, records.dataset.measure(measure).holding)
    true = records.numbers[measure].astype(np.int64)
    classes = known_classes(records, [measure])
    with_class, by_class = with_classes(records, classes, measure, protected, factors, share)
    every = np.stack([records.codes[v.name] for v in records.dataset.variables])
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
        true, protected = (
            piece_values(true[carried.record], piece, pieces),
            carried.values[measure],
        )
    order = np.lexsort((record_ids, owners))
    owner = np.unique(owners[order], return_inverse=True)[1].ravel().astype(np.int64)
    true = true[order]
    noise = protected[order] - true
    codes = np.ascontiguousarray(every[plan.rows()].T[order].astype(np.uint32))
    rankings = np.zeros((plan.cells, HOLDER + 1), dtype=np.int64)
    rankings[:, HOLDER] = -1
    rank_noise(plan.layout, codes, owner, true, noise, cut[order], rankings)
    parts = max(len(records.dataset.measure(measure).parts), 1)
    judged = _judged(measure, factors, share, rankings[rankings[:, FIRST] > 0], parts)
    return replace(judged, certain_with_class=with_class, by_class=by_class)


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

    one, noise = exact(FIRST), exact(FIRST_NOISE)
    rest = exact(TOTAL) - one - exact(SECOND)
    lacking = one * top - rest * bottom
    sensitive = (lacking > 0).astype(np.bool_)
    without = np.abs(exact(NOISE) - exact(SECOND_NOISE)) * bottom
    unprotected = sensitive & (without < lacking).astype(np.bool_)
    estimate = np.abs(exact(NOISE) + rest) * bottom
    near = sensitive & (estimate <= one * top).astype(np.bool_)
    published = one + noise
    up, down = (candidates(published, factors.least, factors.most, side) for side in ("up", "down"))
    moved = (noise != 0).astype(np.bool_)
    # Amounts are rounded up for each record and each part, small ones to two units.
    most_noise = one * factors.high + 2 * parts * exact(RECORDS) * SHARES
    size = np.abs(noise) * SHARES
    outside = moved & ((size < one * factors.low) | (size > most_noise)).astype(np.bool_)
    # Nothing above 0 can have gone up to 1: then only what has gone down is left.
    least = np.where((up[0] <= up[1]).astype(np.bool_), up[0], down[0])
    least = np.where(published == 0, 0, least)  # a published 0 may be true
    most = np.maximum(up[1], down[1])
    certain = certain_within(least, most, share) & moved
    upwards = (noise > 0).astype(np.bool_)
    by_side = np.where(upwards, certain_within(*up, share), certain_within(*down, share)) & moved
    # A contribution that did not move at all is known to everybody, since all others have moved. A piece may
    # stay as it is where the record moved, and nobody can tell: it says less than the whole protected record.
    still = ~moved & (rankings[:, PIECES] == 0)
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
