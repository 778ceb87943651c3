"""Risk and utility as a reader can work them out: expectations under the reader's own belief.

A reader sees a release, knows the method, and holds for every cell a distribution over the counts that may be
behind it: what the release leaves open, each value weighed by how likely the channel makes the number shown.
A figure is the mean of its measure over tables that follow this belief. It depends on protected numbers and
public facts alone, so that it tells a reader nothing new.

The tables are not drawn at random. Of ``n`` cells that look alike, each gets another quantile of their common
belief, so that together they follow it closely, and each of the few tables that are looked at shifts the
quantiles. The cells are put into one order first: a question asked in another order, at a level or
by groups with the same members, or with totals, has the same figures to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from math import sqrt
from typing import Any

import numpy as np

from lustrum.audit.belief.belief import Belief
from lustrum.audit.belief.posterior import Uniform, weighted
from lustrum.model import (
    AttackerFigures,
    Channel,
    InputError,
    Measure,
    Release,
    SizeFigures,
    SumFigures,
    Table,
)
from lustrum.model.arrays import Array, Floats, Indices, Ints, Mask
from lustrum.model.plugins import load
from lustrum.numeric.arithmetic import log2
from lustrum.numeric.compiled import compiled_after
from lustrum.numeric.structure import UNBOUNDED
from lustrum.numeric.structure.ragged import distinct_columns
from lustrum.protect.population.channel import PopulationChannel
from lustrum.public.noise import SumNoise

_REACH = 64
"""How far from the published number a belief is followed; further out no method for counts is likely."""

_MOST_CELLS = 40_000
"""Cells that are looked at in all; a small table is looked at more often than a large one."""

_GOLDEN = (sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Figures:
    """What a reader expects of risk and utility; None where the release says too little to expect anything."""

    risk_before: float | None
    risk_after: float | None
    utility: float | None


def expected_figures(release: Release, measure: Any) -> Figures:
    """The mean risk before and after protection, and the mean utility, over what may be behind a release."""
    utility = _hellinger()
    many = getattr(measure, "of_many", None)
    if many is not None and release.channel is not None:
        draw_figures = _of_many(release, many, utility.of_many)
    else:
        draw_figures = list(_one_by_one(_canonical(release), measure, utility))
    if not draw_figures:
        return Figures(None, None, None)
    before, after, worth = (
        round(float(np.mean(column)), 3) for column in zip(*draw_figures, strict=True)
    )
    return Figures(before, after, worth)


@cache
def _hellinger() -> Any:
    return load("lustrum.utilities", "hellinger")()


def _one_by_one(
    release: Release, measure: Any, utility: Any
) -> Iterator[tuple[float, float, float]]:
    for table in possible_tables(release):
        try:
            yield measure.before(table), measure.after(table, release), utility.of(table, release)
        except InputError:
            continue  # nobody is left in this table, so that there is nothing to measure


def _of_many(release: Release, many: Any, utility: Any) -> list[tuple[float, float, float]]:
    """All tables at once. Such measures look at cells without their names, so that no order is needed."""
    inner = release.inner
    if not bool(release.shown[inner].all()):
        return []
    # Cells that cannot exist are left out first: a question may or may not spell them out.
    if release.structural is not None:
        inner = inner & ~release.structural
    shown = release.numbers[inner]
    possible = _possible_values(shown, *_range(release, inner, shown), release.channel)
    # Where nobody is left in a table there is nothing to measure.
    possible = possible[possible.any(axis=1)]
    if shown.size < 2 or not len(possible):
        return []
    risks = many(possible, shown, release.channel)
    return list(zip(*risks, utility(possible, shown), strict=True))


def possible_tables(release: Release) -> Iterator[Table]:
    """Tables that together follow the belief of a reader about the cells of a release."""
    if not bool(release.shown.all()):
        return
    open_cells = np.ones(release.shape, dtype=np.bool_)
    if release.structural is not None:
        open_cells &= ~release.structural
    shown = release.numbers[open_cells]
    for values in _possible_values(shown, *_range(release, open_cells, shown), release.channel):
        whole = np.zeros(release.shape, dtype=np.int64)
        whole[open_cells] = values
        yield Table(
            axes=release.axes, values=whole, unit=release.unit, structural=release.structural
        )


def _possible_values(shown: Ints, low: Ints, high: Ints, channel: Channel | None) -> Ints:
    """Counts that may stand behind numbers shown, one table a row, each value as often as it is believed."""
    turns = max(2, min(8, _MOST_CELLS // max(shown.size, 1)))
    if not shown.size:  # no cell of the question can exist
        return np.zeros((turns, 0), dtype=np.int64)
    order = np.lexsort((high, low, shown))
    if isinstance(channel, PopulationChannel):
        rows = (*channel.rows, channel.step, channel.repeats_from)
        quick = believed_counts(order, shown, low, high, *rows, turns, _GOLDEN)
        if len(quick):
            return np.asarray(quick)
    columns = np.stack([shown, low, high])[:, order]
    first = np.ones(shown.size, dtype=np.bool_)
    first[1:] = (columns[:, 1:] != columns[:, :-1]).any(axis=0)
    starts = np.flatnonzero(first)
    kind_of = np.cumsum(first) - 1
    size = np.diff(starts, append=shown.size)[kind_of]
    position = np.arange(shown.size) - starts[kind_of]
    line, values, ends, row_of, moved = _lines(columns[:, starts], channel)
    turn = (np.arange(turns) + 0.5) / turns
    shift = (turn[:, None] + np.arange(starts.size) * _GOLDEN) % 1.0
    row = row_of[kind_of]
    at = np.searchsorted(line, row + (position + shift[:, kind_of]) / size, side="left")
    counts = np.empty((turns, shown.size), dtype=np.int64)
    counts[:, order] = values[np.clip(at, ends[row], ends[row + 1] - 1)] + moved[kind_of]
    return counts


def _lines(kinds: Ints, channel: Channel | None) -> tuple[Floats, Ints, Ints, Indices, Ints]:
    """What is believed of each kind of cell, as stretches of one rising line: a number plus the quantile.

    Large numbers are believed in alike, so that they share a stretch; ``moved`` says by how much each is larger
    than the one that the stretch is about.
    """
    shift = getattr(channel, "moved_down", None)
    moved = np.zeros(kinds.shape[1], dtype=np.int64) if shift is None else shift(kinds[1])
    rows, row_of = distinct_columns(kinds - moved)
    belief = _believed(channel, rows)
    ends = belief.indptr
    line = np.cumsum(belief.probabilities)
    base = np.concatenate(([0.0], line))[ends[:-1]]
    row = np.repeat(np.arange(rows.shape[1]), np.diff(ends))
    stretched = row.astype(np.float64) + np.minimum(line - base[row], 1.0)
    return stretched, belief.values, ends, row_of, moved


def _range(release: Release, cells: Mask, shown: Ints) -> tuple[Ints, Ints]:
    """What the release leaves open for each of these cells, which can exist, as far as it is followed."""
    if release.least is not None and release.most is not None:
        low, high = release.least[cells], release.most[cells]
    elif release.channel is not None:
        low, high = release.channel.support(shown)
    else:
        low = high = shown
    low = np.clip(low, np.maximum(shown - _REACH, 0), None)
    high = np.clip(high, None, shown + _REACH)
    low, high = np.minimum(low, high), np.maximum(low, high)
    return low.astype(np.int64), high.astype(np.int64)


def _believed(channel: Channel | None, kinds: Ints) -> Belief:
    shown, low, high = (np.ascontiguousarray(column) for column in kinds)
    try:
        return weighted(low, high, Uniform(), shown, channel)
    except InputError:
        # The channel leads none of these counts to the number shown; then all are alike.
        return weighted(low, high, Uniform())


def _canonical(release: Release) -> Release:
    """The inner cells of a release, in an order that does not depend on how the question was phrased.

    Categories stand in the order of their members, and axes in that of their lengths and totals: names and
    codes differ between a level, groups with the same members, and a variable that says the same.
    """
    picks = []
    for axis in release.axes:
        inner = np.flatnonzero(axis.inner).tolist()
        members = [axis.categories[index].members for index in inner]
        order = sorted(range(len(inner)), key=members.__getitem__)
        picks.append(np.array([inner[index] for index in order], dtype=np.intp))
    part = release.take(picks)

    def rank(index: int) -> tuple[Any, ...]:
        rest = tuple(other for other in range(len(part.axes)) if other != index)
        return part.shape[index], part.numbers.sum(axis=rest).tolist(), part.axes[index].name

    turn = sorted(range(len(part.axes)), key=rank)

    def turned(array: Any) -> Any:
        return None if array is None else np.ascontiguousarray(array.transpose(turn))

    return replace(
        part,
        axes=tuple(part.axes[a] for a in turn),
        numbers=turned(part.numbers),
        status=turned(part.status),
        least=turned(part.least),
        most=turned(part.most),
        structural=turned(part.structural),
    )


# Counts that may stand behind the numbers of a protected population, in one compiled pass.
#
# It is :func:`lustrum.answer.figures.counts._possible_values` for channels of the class
# :class:`~lustrum.protect.population.channel.PopulationChannel`, whose rows repeat from some count on.


@compiled_after()
def believed_counts(  # pragma: no cover
    order: Array,
    shown: Array,
    low: Array,
    high: Array,
    first: Array,
    published: Array,
    probability: Array,
    step: int,
    repeats_from: int,
    turns: int,
    golden: float,
) -> Any:
    """One table a row; nothing where the channel leads no count of a range to the number shown.

    ``order`` sorts the cells by number and range, so that cells that look alike follow each other.
    """
    cells = shown.size
    counts = np.empty((turns, cells), dtype=np.int64)
    widest = 0
    for j in range(cells):
        widest = max(widest, high[j] - low[j] + 1)
    values = np.empty(widest, dtype=np.int64)
    line = np.empty(widest)
    length = 0
    last_shown, last_low, last_high = np.int64(-1), np.int64(-1), np.int64(-1)
    kind = -1
    begin = 0
    while begin < cells:
        j = order[begin]
        end = begin + 1
        while end < cells:
            other = order[end]
            if shown[other] != shown[j] or low[other] != low[j] or high[other] != high[j]:
                break
            end += 1
        kind += 1
        moved = max(low[j] - repeats_from, 0) // step * step
        if (
            shown[j] - moved != last_shown
            or low[j] - moved != last_low
            or high[j] - moved != last_high
        ):
            last_shown, last_low, last_high = shown[j] - moved, low[j] - moved, high[j] - moved
            length = 0
            total = 0.0
            for true in range(last_low, last_high + 1):
                row = true
                if true >= repeats_from:
                    row = repeats_from + (true - repeats_from) % step
                start = first[row]
                ahead = last_shown - (true - row) - published[start]
                if ahead < 0 or ahead % step != 0 or start + ahead // step >= first[row + 1]:
                    continue
                chance = probability[start + ahead // step]
                if chance > 0:
                    total += chance
                    values[length] = true
                    line[length] = total
                    length += 1
            if length == 0:
                return np.empty((0, cells), dtype=np.int64)
            for i in range(length):
                line[i] /= total
        size = end - begin
        for t in range(turns):
            shift = ((t + 0.5) / turns + kind * golden) % 1.0
            i = 0
            for position in range(size):
                quantile = (position + shift) / size
                while i < length - 1 and line[i] < quantile:
                    i += 1
                counts[t, order[begin + position]] = values[i] + moved
        begin = end
    return counts


# Figures beside a table of sums: what attackers can say about a largest contributor, and what a sum is worth.
#
# Risk is measured as Domingo-Ferrer, Oganian and Torra (2002) measure that of a cell: one over the entropy, in
# bits, of what an attacker believes about the largest contribution. Three attackers are looked at:
#
# - an **outsider** knows how many contributors there are at most. The largest lies between an even share of
#   the least possible sum and all of the largest possible one; every whole number between is equally
#   likely.
# - the **second largest** contributor takes its own value away, with the noise on it. What follows from the
#   release alone is the least that it can be left with; see :meth:`SumNoise.left`. In the worst case nobody
#   else is in the cell, so that this attacker says what a coalition of all others can say where the largest
#   has half of the sum or more.
# - the second largest contributor **with the direction** of the largest one's noise, where noise has one.
#
# Figures are those of the cell where an attacker can say most, and of the median cell. They depend on
# published sums, their bounds and the parameters of the method. No true number goes into them.

_DIGITS = 3
_POWERS = 10 ** np.arange(19)


def sum_figures(
    measure: Measure, sums: Release, counts: Release, noise: SumNoise, variables: int
) -> SumFigures:
    """The figures of one measure in a table; ``counts`` says how many contributors each cell can have."""
    cells = sums.inner & sums.known & (sums.numbers > 0)
    published = sums.numbers[cells].astype(np.int64)
    attackers: tuple[AttackerFigures, ...] = ()
    if published.size and sums.least is not None and sums.most is not None:
        low, high = sums.least[cells], sums.most[cells]
        most = _most(counts, cells)
        attackers = (
            *_outsider(measure, published, low, high, most),
            *_insiders(measure, published, low, noise),
        )
    return SumFigures(
        measure=measure.name,
        label=measure.label,
        unit=measure.unit,
        p=noise.p,
        attackers=attackers,
        errors=_errors(measure, published, noise, variables),
        growth=_growth(measure, published, noise, variables),
    )


def _most(counts: Release, cells: Mask) -> Ints:
    """The most contributors that each cell can have."""
    if counts.most is not None:
        return counts.most[cells]
    if counts.channel is not None:
        return counts.channel.support(counts.numbers[cells])[1]
    return np.full(int(cells.sum()), UNBOUNDED, dtype=np.int64)


def _outsider(
    measure: Measure, published: Ints, low: Ints, high: Ints, most: Ints
) -> tuple[AttackerFigures, ...]:
    bounded = high < UNBOUNDED
    if not bounded.any():
        return ()
    shown, least, largest = published[bounded], low[bounded], high[bounded]
    number = np.maximum(most[bounded], 1)
    # Some contributor has an even share or more, and one unit at least where there is a sum.
    share = np.where(number < UNBOUNDED, -(-least // np.minimum(number, UNBOUNDED)), 0)
    share = np.maximum(share, 1)
    bits = log2(np.maximum(largest - share + 1, 1).astype(np.float64))
    worst, usual = _places(bits, shown, share, largest)
    scale = 10**measure.decimals
    return (
        AttackerFigures(
            attacker="outsider",
            published=int(shown[worst]) / scale,
            left=int(shown[worst]) / scale,
            low=int(share[worst]) / scale,
            high=int(largest[worst]) / scale,
            bits=_rounded(float(bits[worst])),
            risk=_risk(float(bits[worst])),
            typical_bits=_rounded(float(bits[usual])),
            typical_risk=_risk(float(bits[usual])),
        ),
    )


def _insiders(
    measure: Measure, published: Ints, low: Ints, noise: SumNoise
) -> tuple[AttackerFigures, ...]:
    left = noise.left(published, low)
    # The entropy grows with what is left, so that the least left is where an attacker can say most.
    worst, usual = _places(left, published)
    scale = 10**measure.decimals
    out = []
    for direction in (False, True)[: 2 if noise.hides_direction else 1]:
        near, typical = (
            noise.believed(int(left[at]), int(published[at]), direction=direction)
            for at in (worst, usual)
        )
        out.append(
            AttackerFigures(
                attacker="second-largest-with-direction" if direction else "second-largest",
                published=int(published[worst]) / scale,
                left=int(left[worst]) / scale,
                low=near.low / scale,
                high=near.high / scale,
                bits=_rounded(near.bits),
                risk=_risk(near.bits),
                typical_bits=_rounded(typical.bits),
                typical_risk=_risk(typical.bits),
                within=None if typical.within is None else _rounded(typical.within),
            )
        )
    return tuple(out)


def _errors(
    measure: Measure, published: Ints, noise: SumNoise, variables: int
) -> tuple[SizeFigures, ...]:
    """Expected relative errors of the sums shown, by powers of ten."""
    scale = 10**measure.decimals
    figures: list[SizeFigures] = []
    digits = np.searchsorted(_POWERS, published // scale, side="right")
    errors = noise.error(published.astype(np.float64), variables)
    for size in np.unique(digits).tolist():
        there = errors[digits == size]
        figures.append(
            SizeFigures(
                least=0 if size == 0 else 10 ** (size - 1),
                most=10**size,
                cells=int(there.size),
                error=_rounded(float(there.mean())),
            )
        )
    return tuple(figures)


def _growth(measure: Measure, published: Ints, noise: SumNoise, variables: int) -> float | None:
    if measure.earlier is None:
        return None
    error = noise.growth_error(published.astype(np.float64), variables)
    return None if error is None else _rounded(error)


def _places(*values: Floats | Ints) -> tuple[int, int]:
    """Where the least value is and where the median; the next values decide ties, not the order of cells."""
    order = np.lexsort(values[::-1])
    return int(order[0]), int(order[(order.size - 1) // 2])


def _risk(bits: float) -> float | None:
    """One over the entropy; None where nothing is left open."""
    return None if bits <= 0 else _rounded(1 / bits)


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
