"""Invariant matrices: the distribution of the published values is expected to be that of the true ones.

A matrix ``P`` is invariant for frequencies ``t`` if ``t P = t``. Shlomo and Young (2008) make any matrix so
in two steps: go by ``P`` and come back by the reverse conditional probabilities; for the codes of records
the idea is of Gouweleeuw, Kooiman, Willenborg and De Wolf (1998). The result depends on ``t``. A matrix
made from the true frequencies of a table reveals them, because it leaves them unchanged, so it is as
confidential as the frequencies. A matrix made from public frequencies may be public.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.model.channel import MatrixChannel


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
