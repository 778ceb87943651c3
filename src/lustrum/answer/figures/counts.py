"""Risk and utility as a reader can work them out: expectations under the reader's own belief.

A reader sees a release, knows the method, and holds for every cell a distribution over the counts that may be
behind it: what the release leaves open, each value weighed by how likely the channel makes the number shown.
A figure is the mean of its measure over tables that follow this belief. It depends on protected numbers and
public facts alone, so that it tells a reader nothing new.

The tables are not drawn at random. Of ``n`` cells that look alike, each gets another quantile of their common
belief, so that together they follow it closely, and each of the few tables that are looked at shifts the
quantiles. The cells are put in the order of names and codes first: a question asked in another order, or with
totals, has the same figures to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.arrays import Ints
from lustrum.audit.belief.posterior import weighted
from lustrum.audit.belief.priors import Uniform
from lustrum.model import InputError, Release, Table
from lustrum.model.plugins import load

__all__ = ["Figures", "expected_figures", "possible_tables"]


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
    inner = _canonical(release)
    utility = load("lustrum.utilities", "hellinger")()
    found: list[tuple[float, float, float]] = []
    for table in possible_tables(inner):
        try:
            found.append(
                (measure.before(table), measure.after(table, inner), utility.of(table, inner))
            )
        except InputError:
            continue  # nobody is left in this table, so that there is nothing to measure
    if not found:
        return Figures(None, None, None)
    before, after, worth = (round(float(np.mean(column)), 3) for column in zip(*found, strict=True))
    return Figures(before, after, worth)


def possible_tables(release: Release) -> Iterator[Table]:
    """Tables that together follow the belief of a reader about the cells of a release."""
    if not bool(release.shown.all()):
        return
    shown = release.published.ravel()
    low, high = _range(release, shown)
    kinds, kind_of, size = np.unique(
        np.stack([shown, low, high], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    belief = _believed(release, kinds)
    indptr = belief.indptr
    # Every kind of cell has its own stretch of this rising line: its number plus the quantile.
    line = np.cumsum(belief.probabilities)
    base = np.concatenate(([0.0], line))[indptr[:-1]]
    row = np.repeat(np.arange(len(kinds)), np.diff(indptr))
    line = row + np.minimum(line - base[row], 1.0)
    kind_of = kind_of.ravel()
    place = _places(kind_of)
    turns = max(2, min(8, _MOST_CELLS // max(shown.size, 1)))
    for turn in range(turns):
        shift = ((turn + 0.5) / turns + np.arange(len(kinds)) * _GOLDEN) % 1.0
        quantile = (place + shift[kind_of]) / size[kind_of]
        at = np.searchsorted(line, kind_of + quantile, side="left")
        values = belief.values[np.clip(at, indptr[kind_of], indptr[kind_of + 1] - 1)]
        yield Table(
            axes=release.axes,
            values=values.reshape(release.shape).astype(np.int64),
            unit=release.unit,
            structural=release.structural,
        )


def _range(release: Release, shown: Ints) -> tuple[Ints, Ints]:
    """What the release leaves open for each cell, as far as it is followed."""
    if release.low is not None and release.high is not None:
        low, high = release.low.ravel(), release.high.ravel()
    elif release.channel is not None:
        low, high = release.channel.support(shown)
    else:
        low = high = shown
    low = np.clip(low, np.maximum(shown - _REACH, 0), None)
    high = np.clip(high, None, shown + _REACH)
    low, high = np.minimum(low, high), np.maximum(low, high)
    if release.structural is not None:
        fixed = release.structural.ravel()
        low, high = np.where(fixed, 0, low), np.where(fixed, 0, high)
    return low.astype(np.int64), high.astype(np.int64)


def _believed(release: Release, kinds: Ints) -> Any:
    shown, low, high = (np.ascontiguousarray(column) for column in kinds.T)
    try:
        return weighted(low, high, Uniform(), shown, release.channel)
    except InputError:
        # The channel leads none of these counts to the number shown; then all are alike.
        return weighted(low, high, Uniform())


def _places(kind_of: npt.NDArray[np.intp]) -> Ints:
    """For each cell, how many cells of its kind come before it."""
    order = np.argsort(kind_of, kind="stable")
    starts = np.searchsorted(kind_of[order], kind_of[order], side="left")
    out = np.empty(kind_of.size, dtype=np.int64)
    out[order] = np.arange(kind_of.size) - starts
    return out


def _canonical(release: Release) -> Release:
    """The inner cells of a release, axes in the order of their names and categories in that of their codes."""
    picks = []
    for axis in release.axes:
        inner = np.flatnonzero(axis.inner).tolist()
        picks.append(np.array(sorted(inner, key=axis.codes.__getitem__), dtype=np.intp))
    part = release.take(picks)
    turn = sorted(range(len(part.axes)), key=lambda a: part.axes[a].name)

    def turned(array: Any) -> Any:
        return None if array is None else np.ascontiguousarray(array.transpose(turn))

    return replace(
        part,
        axes=tuple(part.axes[a] for a in turn),
        published=turned(part.published),
        status=turned(part.status),
        low=turned(part.low),
        high=turned(part.high),
        structural=turned(part.structural),
    )
