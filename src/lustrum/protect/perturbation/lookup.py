"""A transition matrix as a lookup table from uniform 64-bit words to published values.

Each row of a matrix becomes a list of thresholds, the cumulative probabilities in units of ``2**-64``. The
value drawn is the first one whose threshold lies above the word, so that the probability of every
value is right to ``2**-64``, and a value of probability 0 is never drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Array, Floats, Ints, Words
from lustrum.model.channel import MatrixChannel
from lustrum.numeric.compiled import compiled

_ALL = 1 << 64


@dataclass(frozen=True, eq=False)
class RowLookup:
    """The rows of a matrix one after the other: where each begins, its steps and its thresholds.

    ``steps`` are published minus true values, in ascending order. Entry ``k`` of a row is drawn by the
    words from ``thresholds[k - 1]`` up to but without ``thresholds[k]``; the last entry of a row takes all
    words that are left, and its threshold is the largest word.
    """

    first: Ints
    steps: Ints
    thresholds: Words


def perturb_by_words(values: npt.ArrayLike, channel: MatrixChannel, random_words: Words) -> Ints:
    """Draw a published value for each true one, by its row of the matrix and its uniform word.

    A larger word gives a larger published value. The same value and word always give the same result.

    >>> flip = MatrixChannel([[0.75, 0.25], [0.25, 0.75]])
    >>> perturb_by_words([0, 0, 1], flip, np.array([0, 2**64 - 1, 2**63], dtype=np.uint64)).tolist()
    [0, 1, 1]
    """
    counts = np.asarray(values, dtype=np.int64)
    uniform = np.asarray(random_words, dtype=np.uint64)
    if counts.shape != uniform.shape:
        raise InputError(
            f"Every value needs a word of its own; the values have the shape {counts.shape} and the "
            f"words {uniform.shape}."
        )
    if not counts.size:
        return counts.copy()
    channel.rows_of(np.array([counts.min(), counts.max()]))  # raises an error for wrong counts
    lookup_table = lookup(channel)
    out = np.empty(counts.size, dtype=np.int64)
    base = channel.residue_base or 1
    _draw(
        np.ascontiguousarray(counts).reshape(-1),
        np.ascontiguousarray(uniform).reshape(-1),
        channel.cap,
        base,
        lookup_table.first,
        lookup_table.steps,
        lookup_table.thresholds,
        out,
    )
    return out.reshape(counts.shape)


@lru_cache(maxsize=64)
def lookup(channel: MatrixChannel) -> RowLookup:
    """The cumulative thresholds of a matrix, worked out in whole numbers.

    >>> lookup(MatrixChannel([[0.5, 0.5], [0, 1]])).thresholds.tolist()[0] == 2**63
    True
    """
    row, column = np.nonzero(channel.matrix)
    first = np.searchsorted(row, np.arange(channel.cap + 2)).astype(np.int64)
    thresholds: list[int] = []
    for begin, end in pairwise(first.tolist()):
        # A row may differ from 1 by rounding error; shares of its exact sum do not.
        exact = [
            Fraction(float(channel.matrix[r, c]))
            for r, c in zip(row[begin:end], column[begin:end], strict=True)
        ]
        sums = list(accumulate(exact))
        thresholds += [min(int(s * _ALL / sums[-1]), _ALL - 1) for s in sums]
    return RowLookup(first, (column - row).astype(np.int64), np.array(thresholds, dtype=np.uint64))


@compiled
def _draw(  # pragma: no cover
    values: Array,
    random_words: Array,
    cap: int,
    base: int,
    first: Array,
    steps: Array,
    above: Array,
    out: Array,
) -> None:
    lowest = cap - base + 1
    for i in range(values.size):
        value = values[i]
        row = value
        if value > cap:
            row = cap if base == 1 else lowest + (value - lowest) % base
        word = random_words[i]
        begin = first[row]
        # Thresholds ascend, so counting those below the word finds the entry without an unpredictable
        # branch.
        passed = 0
        for entry in range(begin, first[row + 1] - 1):
            passed += word >= above[entry]
        out[i] = value + steps[begin + passed]


# Invariant matrices: the distribution of the published values is expected to be that of the true ones.
#
# A matrix ``P`` is invariant for frequencies ``t`` if ``t P = t``. Shlomo and Young (2008) make any matrix so
# in two steps: go by ``P`` and come back by the reverse conditional probabilities; for the codes of records
# the idea is of Gouweleeuw, Kooiman, Willenborg and De Wolf (1998). The result depends on ``t``. A matrix
# made from the true frequencies of a table reveals them, because it leaves them unchanged, so it is as
# confidential as the frequencies. A matrix made from public frequencies may be public.


def invariant(matrix: npt.ArrayLike, frequency: npt.ArrayLike) -> Floats:
    """``R = P Q`` with ``t R = t``, where ``Q`` leads back: ``Q[j, i] = t_i p_ij / (t P)_j``.

    A row of a value that no true value leads to has no way back; it stays at its own value.

    >>> t = np.array([6.0, 3.0])
    >>> (t @ invariant(np.array([[0.9, 0.1], [0.5, 0.5]]), t)).round(12).tolist()
    [6.0, 3.0]
    """
    there = np.asarray(matrix, dtype=np.float64)
    weights = _checked(frequency, len(there))
    if there.ndim != 2 or there.shape[0] != there.shape[1]:
        raise InputError("Only a square transition matrix can be made invariant.")
    reached = (weights[:, None] * there).sum(axis=0)
    back = (weights[:, None] * there).T / np.where(reached > 0, reached, 1.0)[:, None]
    both = np.zeros_like(there)
    for via in range(len(there)):  # one after the other, so that all machines add in one order
        both = both + there[:, via, None] * back[via]
    return np.asarray(both + np.diag(np.maximum(1.0 - both.sum(axis=1), 0.0)))


def calibrated(matrix: npt.ArrayLike, frequency: npt.ArrayLike) -> Floats:
    """The invariant matrix that moves as much as the given one.

    Going there and back moves more than going there. A mixture with the identity is invariant too, and
    its weight is chosen so that the mean of the diagonal is that of the given matrix.
    """
    both = invariant(matrix, frequency)
    moving = float((1.0 - np.diagonal(np.asarray(matrix, dtype=np.float64))).sum())
    moved = float((1.0 - np.diagonal(both)).sum())
    weight = min(1.0, moving / moved) if moved > 0 else 1.0
    return np.asarray(weight * both + (1.0 - weight) * np.eye(len(both)))


def frequencies_of(channel: MatrixChannel, values: Ints) -> Floats:
    """How many values belong to each row of the matrix."""
    rows = channel.rows_of(np.asarray(values).ravel())
    return np.bincount(rows, minlength=channel.cap + 1).astype(np.float64)


def invariant_reach(channel: MatrixChannel) -> MatrixChannel:
    """A matrix that is above 0 wherever an invariant matrix of any table can be.

    Only its positive entries matter: they give bounds that do not depend on any frequencies.
    """
    reaches = (channel.matrix > 0).astype(np.float64)
    both = (reaches @ reaches.T > 0) | np.eye(len(reaches), dtype=np.bool_)
    return MatrixChannel(both / both.sum(axis=1, keepdims=True), channel.residue_base)


def _checked(frequency: npt.ArrayLike, rows: int) -> Floats:
    weights = np.asarray(frequency, dtype=np.float64)
    if weights.shape != (rows,):
        raise InputError(
            f"A matrix with {rows} rows needs {rows} frequencies, one per row; there are {weights.size}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise InputError("Frequencies are numbers of 0 or more, and not all of them 0.")
    return weights
