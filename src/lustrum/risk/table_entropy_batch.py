"""The table-level entropy risk of many tables that may stand behind one release, all at once.

Figures beside an answer are means over several such tables. Tables of counts hold few different numbers, so
the terms of :mod:`lustrum.risk.table_entropy` are worked out by number and not by cell. The plain twin is one
table after the other by :meth:`~lustrum.risk.table_entropy.EntropyRisk.before` and ``after``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lustrum.arrays import Floats, Ints
from lustrum.model import Channel
from lustrum.model.channel import row_entries
from lustrum.risk.entropy import share_to_power, size_of
from lustrum.risk.table_entropy_loops import many_terms
from lustrum.structure.distinct import distinct


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
