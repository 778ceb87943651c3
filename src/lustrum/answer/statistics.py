"""Statistics from protected numbers: each quantity is a release, and all else is worked out from these.

Nothing here has seen a true number. What can be known of a mean, a ratio, a share or a growth follows from what
can be known of its parts: the ends of the quotient of two intervals, rounded outwards. Everything is computed
in whole numbers, so that every machine gives the same digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import (
    Category,
    DescribedStatistic,
    InputError,
    Quantity,
    Release,
    Statistic,
    TableAxis,
    TableQuery,
)
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.model.status import CellStatus
from lustrum.model.text import say
from lustrum.model.variable import TOTAL_CODE
from lustrum.numeric.structure import UNBOUNDED

Rounding = Literal["near", "down", "up"]

AXIS = "statistic"
_FITS = 2**62


def quantities(query: TableQuery) -> tuple[Quantity, ...]:
    """The protected numbers that a question takes; how many there are comes first, for the rules."""
    required = [Quantity()]
    for statistic in query.asked:
        needed = statistic.quantities(query.weight)
        required += [Quantity(period=q.period) for q in needed if q.period is not None]
        required += needed
    return tuple(dict.fromkeys(required))


def share_totals(query: TableQuery) -> tuple[str, ...]:
    """The variables along which shares need a total."""
    wanted: set[str] = set()
    for statistic in query.asked:
        if statistic.kind == "share":
            wanted |= {a.variable for a in query.by if statistic.of != a.variable}
    return tuple(a.variable for a in query.by if a.variable in wanted)


def compose(
    query: TableQuery,
    parts: Mapping[Quantity, Release],
    described: Sequence[DescribedStatistic],
    edges: Mapping[str, tuple[float, ...]] | None = None,
    estimated: Mapping[Statistic, Release] | None = None,
) -> Release:
    """The table that was asked for, from the releases of its quantities, which all have the same axes.

    ``estimated`` holds standard errors and grades of weighted statistics that are worked out.
    """
    counted = parts[Quantity()]
    asked = query.asked
    if asked == (Statistic(),) and query.weight is None:
        return counted
    columns = [
        _with_errors(
            _column(statistic, description, query, parts, edges or {}),
            (estimated or {}).get(statistic),
        )
        for statistic, description in zip(asked, described, strict=True)
    ]
    picks = [
        np.array(
            [i for i, c in enumerate(axis.categories) if query_axis.total or c.code != TOTAL_CODE]
        )
        for axis, query_axis in zip(counted.axes, query.by, strict=True)
    ]
    needed = [parts[q] for s in asked for q in s.quantities(query.weight)]
    notes = tuple(dict.fromkeys(note for part in needed for note in part.notes))
    if any(statistic.derived for statistic in asked):
        notes = (
            *notes,
            say(
                "Means, ratios, shares, growth and quantiles are worked out from protected numbers, so they "
                "carry the uncertainty of these."
            ),
        )
    if len(columns) == 1:
        only, margin = columns[0], None if asked[0].derived else needed[0].margin
        whole = replace(
            counted,
            numbers=only.numbers,
            status=only.status,
            least=only.least,
            most=only.most,
            undefined=only.undefined,
            decimals=only.decimals,
            unit=described[0].unit,
            method=_method(needed),
            channel=None if asked[0].derived else needed[0].channel,
            notes=notes,
            label=described[0].label,
            additive=not asked[0].derived,
            errors=only.errors,
            grades=only.grades,
            margins=only.margins if margin is None else None,
            margin=margin,
        )
        return whole.take(picks)
    most = max(column.decimals for column in columns)
    scaled = [column.scaled(most) for column in columns]
    bounded = any(column.least is not None for column in scaled)
    with_errors = any(column.errors is not None for column in scaled)
    shape = counted.shape
    whole = Release(
        axes=(*counted.axes, _axis(described, query)),
        numbers=np.stack([c.numbers for c in scaled], axis=-1),
        status=np.stack([c.status for c in scaled], axis=-1),
        method=_method(needed),
        least=np.stack([_end(c.least, -UNBOUNDED, shape) for c in scaled], -1) if bounded else None,
        most=np.stack([_end(c.most, UNBOUNDED, shape) for c in scaled], -1) if bounded else None,
        decimals=most,
        notes=notes,
        structural=None
        if counted.structural is None
        else np.repeat(counted.structural[..., None], len(columns), axis=-1),
        undefined=np.stack([_no(c.undefined, shape) for c in scaled], axis=-1),
        statistics=tuple(
            replace(description, decimals=column.decimals)
            for description, column in zip(described, columns, strict=True)
        ),
        label=say("Statistic"),
        additive=False,
        errors=np.stack([_none(c.errors, shape) for c in scaled], -1) if with_errors else None,
        grades=np.stack([_ungraded(c.grades, shape) for c in scaled], -1) if with_errors else None,
        margins=np.stack([_none(c.margins, shape) for c in scaled], -1)
        if any(column.margins is not None for column in scaled)
        else None,
    )
    return whole.take([*picks, np.arange(len(columns))])


def _with_errors(column: _StatisticColumn, estimated: Release | None) -> _StatisticColumn:
    """A column with standard errors and grades, which a number that does not exist has none of."""
    if estimated is None or estimated.errors is None or estimated.grades is None:
        return column
    exists = ~_no(column.undefined, column.numbers.shape)
    return replace(
        column,
        errors=np.where(exists, estimated.errors, -1),
        grades=np.where(exists, estimated.grades, ""),
    )


def _none(errors: Ints | None, shape: tuple[int, ...]) -> Ints:
    """The standard errors or margins of a column, -1 where it has none."""
    return np.full(shape, -1, dtype=np.int64) if errors is None else np.maximum(errors, -1)


def _ungraded(grades: npt.NDArray[np.str_] | None, shape: tuple[int, ...]) -> npt.NDArray[np.str_]:
    return np.full(shape, "", dtype="<U10") if grades is None else grades


def _axis(described: Sequence[DescribedStatistic], query: TableQuery) -> TableAxis:
    taken = {axis.variable for axis in query.by}
    name = AXIS
    while name in taken:
        name = f"_{name}"
    return TableAxis(
        name,
        say("Statistic"),
        tuple(Category(s.code, _with_unit(s), (i,)) for i, s in enumerate(described)),
    )


def _with_unit(statistic: DescribedStatistic) -> str:
    """What stands above a column: the unit too, unless the name says it."""
    if not statistic.unit or statistic.code == "count":
        return statistic.label
    return say("{label} ({unit})", label=statistic.label, unit=statistic.unit)


def _method(needed: Sequence[Release]) -> dict[str, Any]:
    """The words of the methods: those of the first part, and of the others where they differ."""
    said = dict(needed[0].method)
    others = [dict(part.method) for part in needed[1:] if dict(part.method) != said]
    unique = [method for i, method in enumerate(others) if method not in others[:i]]
    return said | ({"beside": unique} if unique else {})


@dataclass(frozen=True, eq=False)
class _StatisticColumn:
    """One statistic over all cells."""

    numbers: Ints
    status: npt.NDArray[np.str_]
    decimals: int
    least: Ints | None = None
    most: Ints | None = None
    undefined: Mask | None = None
    errors: Ints | None = None
    grades: npt.NDArray[np.str_] | None = None
    margins: Ints | None = None

    def scaled(self, decimals: int) -> _StatisticColumn:
        factor = 10 ** (decimals - self.decimals)
        if factor == 1:
            return self
        return replace(
            self,
            decimals=decimals,
            numbers=_times(self.numbers, factor),
            least=None if self.least is None else _times(self.least, factor),
            most=None if self.most is None else _times(self.most, factor),
            errors=None if self.errors is None else _times(self.errors, factor),
            margins=None if self.margins is None else _times(self.margins, factor),
        )


def _column(
    statistic: Statistic,
    description: DescribedStatistic,
    query: TableQuery,
    parts: Mapping[Quantity, Release],
    edges: Mapping[str, tuple[float, ...]],
) -> _StatisticColumn:
    needed = statistic.quantities(query.weight)
    if statistic.variable is not None:
        at = 0.5 if statistic.at is None else statistic.at
        counted, histogram = parts[Quantity()], parts[needed[0]]
        quantiles = quantile(histogram, edges[statistic.variable], at, description.decimals)
        values, exists, least, most = quantiles
        hidden = ~histogram.shown.all(axis=-1)
        status = np.where(hidden, CellStatus.NOT_FOR_PUBLICATION.value, counted.status)
        return _StatisticColumn(
            values, status, description.decimals, least, most, ~exists & ~hidden
        )
    over = parts[needed[0]]
    if not statistic.derived:
        return _StatisticColumn(
            over.numbers,
            over.status,
            over.decimals,
            over.least,
            over.most,
            over.undefined,
            over.errors,
            over.grades,
            over.error_margins,
        )
    under = _base(over, statistic) if statistic.kind == "share" else parts[needed[1]]
    return _quotient(over, under, statistic, description)


def _base(over: Release, statistic: Statistic) -> Release:
    """Of each cell the total that it is a share of, in the shape of the table."""
    picks = []
    for axis in over.axes:
        whole = axis.codes.index(TOTAL_CODE) if axis.name != statistic.of else None
        places = np.arange(len(axis))
        picks.append(places if whole is None else np.full(len(axis), whole))
    return over.take(picks)


def _quotient(
    over: Release, under: Release, statistic: Statistic, description: DescribedStatistic
) -> _StatisticColumn:
    percent = 2 if description.unit == "%" else 0
    shift = description.decimals + percent + under.decimals - over.decimals
    up, down = 10 ** max(shift, 0), 10 ** max(-shift, 0)
    shown = over.shown & under.shown
    a, b = np.where(shown, over.numbers, 0), np.where(shown, under.numbers, 0)
    positive = statistic.kind in ("share", "growth", "mean")
    undefined = shown & ((b <= 0) if positive else (b == 0))
    exists = shown & ~undefined
    published = _divided(np.where(exists, a, 0), np.where(exists, b, 1), up, down, "near")
    status = np.where(over.shown, under.status, over.status)
    low, high = _ends(over, under, exists, up, down)
    one = 100 * 10**description.decimals
    if statistic.kind == "share" and statistic.measure is None and low is not None:
        # A part of a count is never larger than the whole.
        assert high is not None
        low, high = np.maximum(low, 0), np.where(exists, np.minimum(high, one), high)
    if statistic.kind == "growth":
        published = np.where(exists, published - one, 0)
        if low is not None and high is not None:
            low = np.where(low <= -UNBOUNDED, low, low - one)
            high = np.where(high >= UNBOUNDED, high, high - one)
    margins = None
    m, n = over.error_margins, under.error_margins
    if m is not None and n is not None:
        far = quotient_margin(over.numbers, under.numbers, m, n)
        stated = (m >= 0) & (n >= 0)
        # A figure is rounded to its last decimal, which is half a unit more; a true share is from 0 to 100.
        far = np.ceil(10.0**shift * far + 0.5)
        if statistic.kind == "share":
            far = np.minimum(far, np.maximum(published, one - published))
        margins = np.where(exists & stated & (far < _FITS), far, -1).astype(np.int64)
    return _StatisticColumn(
        published, status, description.decimals, low, high, undefined, margins=margins
    )


def quotient_margin(
    over: npt.ArrayLike, under: npt.ArrayLike, margin: npt.ArrayLike, under_margin: npt.ArrayLike
) -> Floats:
    """How far ``over / under`` can be off where both are off by their margins at most; infinite without bound.

    With true values ``a`` in ``[x - m, x + m]`` and ``b`` in ``[y - n, y + n]``, ``y > n``, the quotient is
    furthest away where ``a`` is as far from 0 and ``b`` as near to 0 as can be:
    ``|a/b - x/y| <= (y m + |x| n) / (y (y - n))``.

    >>> float(quotient_margin(50, 100, 0, 20)), 50 / 80 - 50 / 100
    (0.125, 0.125)
    """
    x, y = np.abs(np.asarray(over, dtype=np.float64)), np.asarray(under, dtype=np.float64)
    m, n = np.asarray(margin, dtype=np.float64), np.asarray(under_margin, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(y > n, (y * m + x * n) / (y * (y - n)), np.inf)


def _ends(
    over: Release, under: Release, exists: Mask, up: int, down: int
) -> tuple[Ints | None, Ints | None]:
    """What a quotient can be: the ends of one interval over those of the other, rounded outwards."""
    if over.least is None or over.most is None or under.least is None or under.most is None:
        return None, None
    al, ah = over.least.astype(np.int64), over.most.astype(np.int64)
    bl, bh = under.least.astype(np.int64), under.most.astype(np.int64)
    # A denominator that is not above 0 turns both around.
    turn = bh <= 0
    al, ah = np.where(turn, -ah, al), np.where(turn, -al, ah)
    bl, bh = np.where(turn, -bh, bl), np.where(turn, -bl, bh)
    apart = exists & (bl > 0)
    # The lowest quotient has the largest denominator, unless the numerator is below 0.
    low = _end_quotient(al, np.where(al >= 0, bh, bl), apart, up, down, "down")
    high = _end_quotient(ah, np.where(ah >= 0, bl, bh), apart, up, down, "up")
    low, high = np.where(apart, low, -UNBOUNDED), np.where(apart, high, UNBOUNDED)
    touching = exists & (bl == 0) & (bh > 0)
    from_zero, to_zero = touching & (al >= 0), touching & (ah <= 0)
    if from_zero.any():
        low = np.where(from_zero, _end_quotient(al, bh, from_zero, up, down, "down"), low)
    if to_zero.any():
        high = np.where(to_zero, _end_quotient(ah, bh, to_zero, up, down, "up"), high)
    return low, high


def _end_quotient(a: Ints, b: Ints, where: Mask, up: int, down: int, rounding: Rounding) -> Ints:
    """One end; over an unbounded denominator nothing is left, and an unbounded numerator stays so."""
    open_above, open_below = a >= UNBOUNDED, a <= -UNBOUNDED
    endless = b >= UNBOUNDED
    safe = where & ~open_above & ~open_below & ~endless
    out = _divided(np.where(safe, a, 0), np.where(safe, b, 1), up, down, rounding)
    out = np.where(where & open_above, UNBOUNDED, out)
    return np.where(where & open_below, -UNBOUNDED, out)


def _divided(a: Ints, b: Ints, up: int, down: int, rounding: Rounding) -> Ints:
    """``a * up / (b * down)``, exactly rounded: to the nearest, halves away from 0, or down or up."""
    wide = _largest(a) * up * 2 + _largest(b) * down >= _FITS
    x: Any = (a.astype(object) if wide else a) * up
    y: Any = (b.astype(object) if wide else b) * down
    x, y = np.where(y < 0, -x, x), np.where(y < 0, -y, y)
    if rounding == "down":
        quotient = x // y
    elif rounding == "up":
        quotient = -((-x) // y)
    else:
        size = (2 * abs(x) + y) // (2 * y)
        quotient = np.where(x < 0, -size, size)
    if wide:
        quotient = np.clip(quotient, -UNBOUNDED, UNBOUNDED)
    return np.asarray(quotient).astype(np.int64)


def _times(values: Ints, factor: int) -> Ints:
    """Values with more decimals; what is unbounded, or would not fit, stays or becomes so."""
    fits = np.abs(values) < UNBOUNDED // factor
    return np.where(fits, np.where(fits, values, 0) * factor, np.sign(values) * UNBOUNDED)


def _largest(values: Ints) -> int:
    return int(np.abs(values).max(initial=0))


def _end(values: Ints | None, open_end: int, shape: tuple[int, ...]) -> Ints:
    return np.full(shape, open_end, dtype=np.int64) if values is None else values


def _no(mask: Mask | None, shape: tuple[int, ...]) -> Mask:
    return np.zeros(shape, dtype=np.bool_) if mask is None else mask


# Quantiles from protected histograms: how many of each cell fall into each class of a variable with edges.
#
# Within a class everybody is taken to be spread evenly. What the true quantile can be follows from the bounds
# of the counts: it lies in no class below the first that could reach it, and in none above the first that
# must.


_PARTS = 1000
"""Quantiles are asked for in thousandths."""


def quantile(
    histogram: Release, edges: tuple[float, ...], at: float, decimals: int
) -> tuple[Ints, Mask, Ints | None, Ints | None]:
    """The quantile of every cell, whether it exists, and what it can be at least and at most.

    The classes stand along the last axis. ``edges`` has the lower end of every class and, unless the last one
    is open, its upper end. A quantile of nobody, or in the open class, does not exist as a number.
    """
    classes = histogram.shape[-1]
    if len(edges) not in (classes, classes + 1):
        raise InputError("A variable with edges has one for every class, and one more at the end.")
    ends = [Fraction(str(edge)) * 10**decimals for edge in edges]
    parts = round(at * _PARTS)
    counts = np.maximum(histogram.numbers, 0)
    running = np.cumsum(counts, axis=-1)
    wanted = parts * running[..., -1:]
    class_index = np.argmax(_PARTS * running >= wanted, axis=-1)
    exists = (running[..., -1] > 0) & histogram.shown.all(axis=-1)
    exists &= class_index + 1 < len(ends)
    values = np.zeros(class_index.shape, dtype=np.int64)
    for cell in np.ndindex(*class_index.shape):
        if not exists[cell]:
            continue
        k = int(class_index[cell])
        before = int(running[cell][k] - counts[cell][k])
        inside = Fraction(int(wanted[cell][0]) - _PARTS * before, _PARTS * int(counts[cell][k]))
        values[cell] = _nearest(ends[k] + inside * (ends[k + 1] - ends[k]))
    low, high = _bounds(histogram, ends, parts)
    return values, exists, low, high


def _bounds(
    histogram: Release, ends: list[Fraction], parts: int
) -> tuple[Ints | None, Ints | None]:
    if histogram.least is None or histogram.most is None:
        return None, None
    # Floating point is exact here: whole numbers far below 2**53, except where nothing is known.
    least, most = (
        np.maximum(histogram.least, 0).astype(np.float64),
        histogram.most.astype(np.float64),
    )
    below_least, below_most = np.cumsum(least, axis=-1), np.cumsum(most, axis=-1)
    can = below_most * (_PARTS - parts) >= parts * _above(least)
    can &= below_most > 0  # a class that nobody can have reached holds no quantile
    must = below_least * (_PARTS - parts) >= parts * _above(most)
    first, last = np.argmax(can, axis=-1), np.argmax(must, axis=-1)
    bottom = np.array([floor(end) for end in ends[: can.shape[-1]]], dtype=np.int64)
    top = [ceil(end) for end in ends[1:]]
    top += [UNBOUNDED] * (can.shape[-1] - len(top))
    return bottom[first], np.array(top, dtype=np.int64)[last]


def _above(counts: Floats) -> Floats:
    """Of each class how many are in the classes above it."""
    from_above = np.flip(np.cumsum(np.flip(counts, -1), axis=-1), -1)
    return np.concatenate([from_above[..., 1:], np.zeros_like(counts[..., :1])], axis=-1)


def _nearest(value: Fraction) -> int:
    size = (2 * abs(value.numerator) + value.denominator) // (2 * value.denominator)
    return -size if value < 0 else size
