"""What an attacker of a series makes of its answers: nested cells compared, and probabilities multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from lustrum.audit.belief.posterior import likelihood
from lustrum.audit.knowledge.facts import Knowledge
from lustrum.model import Channel, Release, Table, TableAxis
from lustrum.model.arrays import Floats, Indices, Mask, Sparse
from lustrum.model.channel import ObservedChannel
from lustrum.numeric.arithmetic import exp2, log2
from lustrum.numeric.structure import UNBOUNDED

_PAIRS = 4_000_000
"""Pairs of cells that are compared at most for two tables."""
_VALUES = 4096
"""Most values of one cell that are weighed one by one."""


def base_certainty(
    base: Table, judged: Indices, low: Floats, high: Floats, looks: Sequence[Release]
) -> Floats:
    """``2**-H`` of each judged cell, from its bounds and all answers that show it."""
    out = np.zeros(judged.size)
    channels = [(release, _channel_of(base, release)) for release in looks if release.shown.all()]
    for index, cell in enumerate(judged.tolist()):
        least, most = low[cell], high[cell]
        values = [int(release.numbers.flat[cell]) for release, _ in channels]
        if not np.isfinite(most):
            if not values:
                continue
            most = max(values) + _VALUES // 4
        if most - least >= _VALUES and not values:
            out[index] = 1.0 / (most - least + 1)
            continue
        candidates = np.arange(int(least), int(min(most, least + _VALUES)) + 1)
        weights = np.ones(candidates.size)
        for value, (_, channel) in zip(values, channels, strict=True):
            weights = weights * likelihood(value, channel, candidates)
        total = weights.sum()
        if total <= 0:
            weights, total = np.ones(candidates.size), float(candidates.size)
        p = weights[weights > 0] / total
        out[index] = exp2((p * log2(p)).sum())
    return out


def _channel_of(base: Table, release: Release) -> Channel:
    return release.channel or ObservedChannel(base.values, release.numbers)


def same_people(base: Sequence[TableAxis], releases: Sequence[Release]) -> Sparse:
    """The same-people rule for the last of some keyed releases beside all before it.

    With keys the same people get the same number. So where a cell lies inside another and shows a
    different number, at least one person is in the rest: each row marks the base cells of such a rest.
    """
    last = releases[-1]
    membership = _membership(last.axes, base)
    rows = []
    for other in releases[:-1]:
        if last.numbers.size * other.numbers.size > _PAIRS:
            continue
        theirs = _membership(other.axes, base)
        for part, whole, in_part, in_whole in (
            (last, other, membership, theirs),
            (other, last, theirs, membership),
        ):
            inside = _nested(part.axes, whole.axes)
            differ = part.numbers.ravel()[:, None] != whole.numbers.ravel()[None, :]
            smaller, larger = np.nonzero(inside & differ)
            rows.append(in_whole[larger] - in_part[smaller])
    cells = int(np.prod([len(axis) for axis in base]))
    if not rows:
        return sparse.csr_array((0, cells), dtype=np.int64)
    return sparse.csr_array(sparse.vstack(rows, format="csr"))


def with_someone_in(known: Knowledge, rests: Sparse) -> Knowledge:
    """The same knowledge, and that each of these groups of the first cells holds somebody."""
    count = rests.shape[0]
    if not count:
        return known
    wide = sparse.csr_array((rests.data, rests.indices, rests.indptr), shape=(count, len(known)))
    return replace(
        known,
        matrix=sparse.vstack([known.matrix, wide], format="csr"),
        fact_low=np.concatenate([known.fact_low, np.ones(count, np.int64)]),
        fact_high=np.concatenate([known.fact_high, np.full(count, UNBOUNDED, np.int64)]),
    )


def _membership(axes: Sequence[TableAxis], base: Sequence[TableAxis]) -> Sparse:
    """Which base cells each cell of a table holds, as rows of 0 and 1."""
    by = {axis.name: axis for axis in axes}
    membership = sparse.csr_array(np.ones((1, 1), dtype=np.int64))
    for axis in base:
        table_axis = by.get(axis.name)
        if table_axis is None:
            held = np.ones((1, len(axis)), dtype=np.int64)
        else:
            held = np.array(
                [
                    [c.member_set <= d.member_set for c in axis.categories]
                    for d in table_axis.categories
                ],
                dtype=np.int64,
            )
        membership = sparse.csr_array(sparse.kron(membership, held, format="csr"))
    return membership


def _nested(axes: Sequence[TableAxis], others: Sequence[TableAxis]) -> Mask:
    """Which cells of the first table lie inside which of the second, and are not the same cell."""
    by = {axis.name: axis for axis in others}
    names = [axis.name for axis in axes]
    shape = [len(axis) for axis in axes]
    size = [len(axis) for axis in others]
    inside = np.ones((*shape, *size), dtype=np.bool_)
    same = np.ones((*shape, *size), dtype=np.bool_)
    for position, axis in enumerate(axes):
        if axis.name not in by:
            same[:] = False  # the other sums over an axis that this one splits
            continue
        other_position = len(names) + [a.name for a in others].index(axis.name)
        categories, other = axis.categories, by[axis.name].categories
        within = np.array([[c.member_set <= d.member_set for d in other] for c in categories])
        equal = np.array([[c.member_set == d.member_set for d in other] for c in categories])
        view = [1] * inside.ndim
        view[position], view[other_position] = within.shape
        inside &= within.reshape(view)
        same &= equal.reshape(view)
    if any(axis.name not in names for axis in others):
        inside[:] = False  # this one sums over an axis that the other splits
    cells = int(np.prod(shape)), int(np.prod(size))
    return np.asarray((inside & ~same).reshape(cells))
