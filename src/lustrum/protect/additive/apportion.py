"""Whole numbers in given proportions: by largest remainder, or at random without bias.

Controlled methods compute the expected number of changes first, and only choose at random which cells
change (Shlomo, Antal and Elliot 2015, sections 3.2 and 3.3). An expected number is seldom whole.
:func:`apportioned` assigns the rest by size. Systematic sampling (Madow and Madow 1944) assigns it by one
uniform draw, so that every cell keeps its exact probability. All of its arithmetic is in whole numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask, Words

_ALL = 1 << 64


def apportioned(total: int, sizes: npt.ArrayLike) -> Ints:
    """Whole numbers in proportion to sizes that add up to the total, by largest remainder.

    Of equal remainders, the earlier one comes first. With whole sizes the result is exact.

    >>> apportioned(5, [1, 1, 2]).tolist()
    [1, 1, 3]
    """
    weights = np.asarray(sizes)
    if weights.dtype.kind not in "iu":
        weights = weights.astype(np.float64)
    if total < 0 or not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError("Only a total of 0 or more can be shared, by sizes of 0 or more.")
    if not weights.any():
        if total:
            raise InputError("A total cannot be shared when all sizes are 0.")
        return np.zeros(weights.shape, dtype=np.int64)
    whole: Any
    if weights.dtype.kind == "f":
        if total >= 1 << 31 or weights.size >= 1 << 21:  # rounding error could reach whole numbers
            raise InputError("Only a total below 2**31 can be shared by fractions.")
        exact = total * (weights / weights.sum())
        whole = np.floor(exact)
        rest = exact - whole
    else:
        large = total * int(weights.max()) >= 1 << 62
        products = total * weights.astype(object if large else np.int64)
        size = sum(weights.tolist())
        whole, rest = products // size, products % size
    whole = whole.astype(np.int64)
    whole[np.argsort(-rest, kind="stable")[: total - int(whole.sum())]] += 1
    return np.asarray(whole)


def systematic(sizes: Ints, step: int, start: int | Ints) -> Mask:
    """Which places hold a mark, if sizes are laid end to end and a mark is set every ``step``.

    Sizes run from 0 to ``step``. With a uniform ``start`` from 0 to ``step - 1``, a place holds a mark with
    probability exactly size / step. Any run of consecutive places holds the expected number of marks,
    rounded up or down.

    >>> systematic(np.array([1, 2, 2, 1]), 3, 0).tolist()
    [False, True, False, True]
    """
    ends = np.cumsum(sizes, dtype=np.int64) + start
    return np.asarray(ends // step > (ends - sizes) // step)


def spread_words(ranks: Ints, cells: int, shift: int) -> Words:
    """Words for the cells of a group, one from each of equal parts of the range, as many as cells.

    ``ranks`` are the places of the cells in a random order, ``shift`` is one uniform word for all. Each
    word is exactly uniform, and any interval of words holds the expected number of cells, rounded up or
    down.

    >>> (spread_words(np.arange(4), 4, 0) >> np.uint64(62)).tolist()
    [0, 1, 2, 3]
    """
    if not 0 < cells < 1 << 32:
        raise InputError("Words can be spread over 1 to 2**32 - 1 cells.")
    # (rank * 2**64 + shift) // cells, in pieces that fit 64 bits.
    quotient, remainder = divmod(_ALL, cells)
    whole, rest = divmod(int(shift), cells)
    rank = np.asarray(ranks, dtype=np.uint64)
    carried = (rank * np.uint64(remainder) + np.uint64(rest)) // np.uint64(cells)
    if cells == 1:  # then the quotient itself does not fit
        return np.full(rank.shape, shift, dtype=np.uint64)
    return np.asarray(rank * np.uint64(quotient) + np.uint64(whole) + carried)
