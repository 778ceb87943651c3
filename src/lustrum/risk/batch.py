"""``R1`` and ``R2`` of many populations against one sample, compiled.

Counts are small integers, so ``x log x`` is looked up. With ``L(x) = x log x`` and whole numbers
``n F_i - N f_i`` in place of the shares' differences, the conditional entropy of
:mod:`lustrum.risk.entropy` becomes

    n N H(X|Y) = L(S) - sum_i L(|n F_i - N f_i|) + sum over deficits of (L(N f_i) - L(n F_i))

where ``S`` is the sum of the deficits; the logarithms of ``n N`` cancel. The plain twins are
:func:`~lustrum.risk.r1.r1_values` and :func:`~lustrum.risk.r2.r2_values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from lustrum.model import Channel
from lustrum.model.arrays import Array, Floats, Ints
from lustrum.model.channel import row_entries
from lustrum.numeric.arithmetic_loops import exp, log
from lustrum.numeric.compiled import compiled, compiled_after
from lustrum.numeric.structure.ragged import distinct
from lustrum.risk.entropy import share_to_power, size_of, xlogx
from lustrum.risk.r1 import WEIGHTS, r1_values
from lustrum.risk.r2 import r2_values

# The table-level entropy risk of many tables that may stand behind one release, all at once.
#
# Figures beside an answer are means over several such tables. Tables of counts hold few different numbers, so
# the terms of :mod:`lustrum.risk.table_entropy` are worked out by number and not by cell. The plain twin is
# one table after the other by :meth:`~lustrum.risk.table_entropy.EntropyRisk.before` and ``after``.


@dataclass(frozen=True, eq=False)
class ManyTerms:
    """The four terms of each table, before and after protection, in the order of the weights."""

    before: tuple[Floats, Floats, Floats, Floats]
    after: tuple[Floats, Floats, Floats, Floats]


def terms_of_many(
    tables: Ints,
    published: Ints,
    channel: Channel,
    split: int,
    parts: Literal["published", "true"],
    shared: Literal["observed", "expected"],
) -> ManyTerms:
    """The terms of tables, one a row, that were published as the same numbers.

    Every table has two cells or more and somebody in it.
    """
    values, value_index = distinct(tables)
    shown, column = distinct(published)
    origin, at, chance = _entries(values, shown, channel)
    small, large, small_after, large_after, people, empty, both, either = many_terms(
        value_index,
        values,
        column,
        shown,
        np.searchsorted(origin, np.arange(values.size + 1)),
        at,
        chance,
        split,
        parts == "published",
        shared == "observed",
    )
    size, zeros = size_of(people), empty / tables.shape[1]
    after = (
        np.where(both > 0, share_to_power(zeros, either / np.maximum(both, 1)), 0.0),
        small_after * channel.stay(0, split),
        large_after * channel.stay(split + 1, None),
        size,
    )
    return ManyTerms((zeros, small, large, size), after)


def _entries(values: Ints, shown: Ints, channel: Channel) -> tuple[Ints, Ints, Floats]:
    """Which values lead to which of the numbers shown, value by value, and how likely."""
    pair_by_pair = getattr(channel, "chances", None)
    if pair_by_pair is not None:
        reach = getattr(channel, "reach")  # noqa: B009 - only such channels have it
        first = np.searchsorted(shown, values - reach, side="left")
        last = np.searchsorted(shown, values + reach, side="right")
        origin, at = row_entries(first, last - first)
        return origin, at, pair_by_pair(values[origin], shown[at])
    rows = channel.transitions(values)
    at = np.minimum(np.searchsorted(shown, rows.published), shown.size - 1)
    hit = np.flatnonzero(shown[at] == rows.published)
    hit = hit[np.argsort(rows.origin[hit], kind="stable")]
    return rows.origin[hit], at[hit], rows.probability[hit]


@compiled_after()
def entropy_term(number: Array, values: Array, begin: int, end: int) -> float:  # pragma: no cover
    """``1 - H / log K`` of a part of a table: ``number`` cells of the part hold each value."""
    cells = 0
    total = 0.0
    for i in range(begin, end):
        cells += number[i]
        total += number[i] * values[i]
    if total <= 0:
        return 0.0
    if cells == 1:
        return 1.0
    entropy = 0.0
    for i in range(begin, end):
        share = values[i] / total
        if number[i] > 0 and share > 0:
            entropy -= number[i] * share * log(share)
    return min(max(1.0 - entropy / log(float(cells)), 0.0), 1.0)


@compiled_after()
def many_terms(  # pragma: no cover
    value_index: Array,
    values: Array,
    column: Array,
    shown: Array,
    first: Array,
    at: Array,
    chance: Array,
    split: int,
    by_published: bool,
    observed: bool,
) -> Any:
    """Of tables, one a row of ``value_index``: terms of small and large counts before and after, people, zeros.

    Cell ``j`` of table ``t`` holds ``values[value_index[t, j]]`` and shows ``shown[column[j]]``. The value
    ``v`` leads to ``shown[at[k]]`` with ``chance[k]``, ``k`` from ``first[v]`` on. The last three rows count
    the cells that are empty, that also look it, and that are one of the two.
    """
    turns, cells = value_index.shape
    small = 0
    while small < values.size and values[small] <= split:
        small += 1
    held = values.astype(np.float64)
    seen = np.zeros(shown.size)
    for j in range(cells):
        seen[column[j]] += 1.0
    out = np.zeros((8, turns))
    number = np.zeros(values.size, dtype=np.int64)
    lower = np.zeros(shown.size, dtype=np.int64)
    upper = np.zeros(shown.size, dtype=np.int64)
    people = np.zeros(shown.size)
    there = np.zeros(shown.size)
    for t in range(turns):
        number[:] = 0
        lower[:] = 0
        upper[:] = 0
        people[:] = 0.0
        there[:] = 0.0
        empty = both = either = 0
        for j in range(cells):
            v, c = value_index[t, j], column[j]
            number[v] += 1
            if (shown[c] if by_published else values[v]) <= split:
                lower[c] += 1
            else:
                upper[c] += 1
            is_empty, looks_empty = values[v] == 0, shown[c] == 0
            empty += is_empty
            both += is_empty and looks_empty
            either += is_empty or looks_empty
        everybody = 0
        for v in range(values.size):
            if number[v] == 0:
                continue
            everybody += number[v] * values[v]
            for k in range(first[v], first[v + 1]):
                weight = number[v] * chance[k]
                there[at[k]] += weight
                people[at[k]] += weight * held[v]
        for c in range(shown.size):
            if observed:
                people[c] /= seen[c]
            elif there[c] > 0:
                people[c] /= there[c]
            else:
                people[c] = shown[c]
        out[0, t] = entropy_term(number, held, 0, small)
        out[1, t] = entropy_term(number, held, small, values.size)
        out[2, t] = entropy_term(lower, people, 0, shown.size)
        out[3, t] = entropy_term(upper, people, 0, shown.size)
        out[4, t] = everybody
        out[5, t] = empty
        out[6, t] = both
        out[7, t] = either
    return out


_LOOKUP = 1 << 20
"""Entries of the table of ``x log x``: 8 MiB, of which a study touches a few hundred KiB."""

_MOST = 2.0**62
"""Products of counts at or above this might not fit 64 bits; such tables go the plain way."""


def risks_of_many(
    populations: Ints, sample: Ints, weights: Sequence[float] = WEIGHTS
) -> tuple[Floats, Floats]:
    """``R1`` and ``R2`` of each row of populations, cells in the last axis, for one sample.

    Nothing is checked: every row and the sample need somebody in them and two cells or more.

    >>> first, second = risks_of_many(np.array([[4, 4, 0], [8, 0, 0]]), np.array([2, 2, 0]))
    >>> second.round(3).tolist()
    [0.401, 0.917]
    """
    rows = np.ascontiguousarray(populations, dtype=np.int64)
    given = np.ascontiguousarray(sample, dtype=np.int64)
    zeros, spread, size = weights
    risks: Floats = _risks(rows, given, float(zeros), float(spread), float(size), _lookup())
    if risks.min() < 0:
        return r1_values(rows, weights), r2_values(rows, given, weights)
    return risks[0], risks[1]


@cache
def _lookup() -> Floats:
    return xlogx(np.arange(_LOOKUP))


@compiled
def _xlogx(x: int, table: Array) -> float:  # pragma: no cover
    return table[x] if x < table.size else x * log(float(x))


@compiled
def _risks(
    rows: Array, sample: Array, w_zeros: float, w_spread: float, w_size: float, table: Array
) -> Any:  # pragma: no cover
    cells = sample.size
    n = sample.sum()
    log_n, log_cells = log(float(n)), log(float(cells))
    logs = np.array([_xlogx(f, table) for f in sample])
    unseen = (sample == 0).sum()
    out = np.zeros((2, rows.shape[0]))
    for d in range(rows.shape[0]):
        N = rows[d].sum()
        if float(n) * float(N) >= _MOST:
            out[0, d] = -1.0
            break
        empty, both = 0, 0
        sum_logs, apart, kept_people, kept_sample = 0.0, 0.0, 0.0, 0.0
        deficit, people, seen = 0, 0, 0
        for i in range(cells):
            F, f = rows[d, i], sample[i]
            value = _xlogx(F, table)
            sum_logs += value
            empty += F == 0
            both += (F == 0) & (f == 0)
            gap = n * F - N * f
            apart += _xlogx(abs(gap), table)
            if gap < 0:
                deficit -= gap
                kept_people += value
                kept_sample += logs[i]
                people += F
                seen += f
        log_N = log(float(N))
        H = log_N - sum_logs / N
        deficit_term = N * (kept_sample + seen * log_N) - n * (kept_people + people * log_n)
        left = (_xlogx(deficit, table) - apart + deficit_term) / (n * N)
        # Rounding must not push a ratio outside [0, 1], nor a share of nothing become NaN.
        ratio = min(max(left / H, 0.0), 1.0) if H > 0.0 and deficit > 0 else 0.0
        scale = min(max(1.0 - H / log_cells, 0.0), 1.0)
        root = np.sqrt(N)
        small = w_size * (1.0 + log(root)) / root
        share = empty / cells
        shared = share if both > 0 else 0.0
        if both > 0 and empty + unseen > 2 * both:
            shared = min(share, exp((empty + unseen - both) / both * log(share)))
        out[0, d] = w_zeros * share + w_spread * scale + small
        out[1, d] = w_zeros * shared + w_spread * scale * (1.0 - ratio) + small
    return out
