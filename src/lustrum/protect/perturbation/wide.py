"""Channels by a matrix with more columns than rows, so that the largest count with a row can grow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.channel import MatrixChannel

__all__ = ["WideChannel"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class WideChannel(MatrixChannel):
    """A transition matrix with rows for 0 to ``L`` and columns beyond ``L``.

    A square matrix cannot move its last value up. Here row ``L`` may reach ``L + 1`` and more, so that all
    counts above can move up and down alike, without bias (``residue_base=1``).

    >>> coin = WideChannel([[1.0, 0.0, 0.0], [0.25, 0.5, 0.25]], residue_base=1)
    >>> coin.transitions(np.array([7])).published.tolist()
    [6, 7, 8]
    >>> [bound.tolist() for bound in coin.support(np.array([0, 2]))]
    [[0, 1], [1, 3]]
    """

    def __init__(self, matrix: npt.ArrayLike, residue_base: int | None = 1) -> None:
        array = np.array(matrix, dtype=np.float64)
        if array.ndim != 2 or not array.size or array.shape[1] < array.shape[0]:
            raise InputError("A wide transition matrix has a column for every row, or more.")
        rows, columns = array.shape
        # The rules for probabilities are those of a square matrix; the rows below the last only fill it.
        square = np.eye(columns)
        square[:rows] = array
        array = MatrixChannel(square).matrix[:rows].copy()
        array.setflags(write=False)
        object.__setattr__(self, "matrix", array)
        object.__setattr__(self, "residue_base", residue_base)
        if residue_base is not None and (
            type(residue_base) is not int or not 1 <= residue_base <= rows
        ):
            raise InputError(
                f"The residue base of a matrix for {rows} values must be a whole number from 1 to "
                f"{rows}, not {residue_base!r}."
            )

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """The least and the most behind each published value; low above high where nothing is."""
        published = np.asarray(published, dtype=np.int64)
        none = np.iinfo(np.int64).max
        low = np.full(published.shape, none)
        high = np.full(published.shape, -1, dtype=np.int64)
        least, most = self._origins
        known = (published >= 0) & (published < least.size)
        place = np.where(known, published, 0)
        low = np.where(known, least[place], low)
        high = np.where(known, most[place], high)
        for row, step in self._steps_above:
            true = published - step
            fits = (true > self.cap) & (self._class_of(true) == row)
            low = np.where(fits, np.minimum(low, true), low)
            high = np.where(fits, np.maximum(high, true), high)
        reached = high >= 0
        return np.where(reached, low, published + 1), np.where(reached, high, published - 1)
