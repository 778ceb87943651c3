"""The few loops that numpy cannot do at once, compiled when they are first run."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.numeric.compiled import compiled, compiled_if_large

_NONE = 2**62  # no bound
_FAR = 2**61  # beyond this a sum counts as unbounded, so that nothing overflows


@compiled_if_large
def _times(coefficient: int, bound: int) -> int:  # pragma: no cover
    """A coefficient times a bound, or no bound where that would be too far."""
    if bound >= _FAR or bound <= -_FAR or abs(bound) > _FAR // abs(coefficient):
        return _NONE if (bound > 0) == (coefficient > 0) else -_NONE
    return coefficient * bound


@compiled_if_large
def _sum_ends(
    begin: int, end: int, cells: Any, coefficients: Any, low: Any, high: Any
) -> Any:  # pragma: no cover
    """Least and most sum of a relation without its unbounded terms, and how many those are."""
    least, most, below, above = 0, 0, 0, 0
    for k in range(begin, end):
        c = coefficients[k]
        small = _times(c, low[cells[k]] if c > 0 else high[cells[k]])
        large = _times(c, high[cells[k]] if c > 0 else low[cells[k]])
        if small <= -_FAR:
            below += 1
        else:
            least += small
        if large >= _FAR:
            above += 1
        else:
            most += large
        if abs(least) >= _FAR or abs(most) >= _FAR:
            return 0, 0, 2, 2  # two unbounded terms leave nothing to be said
    return least, most, below, above


@compiled_if_large
def tighten(  # pragma: no cover
    indptr: Any,
    cells: Any,
    coefficients: Any,
    user_ptr: Any,
    users: Any,
    low: Any,
    high: Any,
    rounds: int,
) -> Any:
    """Narrow ``low`` and ``high`` in place; a cell in conflict or -1, and whether all is settled.

    A relation is looked at again only after a bound of one of its cells has changed.
    """
    count = indptr.size - 1
    for cell in range(low.size):
        if low[cell] > high[cell]:
            return cell, False
    waiting = np.ones(count, dtype=np.bool_)
    for _ in range(rounds):
        changed = False
        for row in range(count):
            if not waiting[row]:
                continue
            waiting[row] = False
            begin, end = indptr[row], indptr[row + 1]
            least, most, below, above = _sum_ends(begin, end, cells, coefficients, low, high)
            if below > 1 and above > 1:
                continue
            for k in range(begin, end):
                cell, c = cells[k], coefficients[k]
                small = _times(c, low[cell] if c > 0 else high[cell])
                large = _times(c, high[cell] if c > 0 else low[cell])
                # The others leave this term between minus their most and minus their least.
                new_large, new_small = large, small
                if below == 0:
                    new_large = min(large, small - least)
                elif below == 1 and small <= -_FAR:
                    new_large = min(large, -least)
                if above == 0:
                    new_small = max(small, large - most)
                elif above == 1 and large >= _FAR:
                    new_small = max(small, -most)
                if new_large == large and new_small == small:
                    continue
                new_low, new_high = low[cell], high[cell]
                size = abs(c)
                if new_large < large:
                    bound = new_large // size
                    if c > 0:
                        new_high = min(new_high, bound)
                    else:
                        new_low = max(new_low, -bound)
                if new_small > small:
                    bound = -((-new_small) // size)
                    if c > 0:
                        new_low = max(new_low, bound)
                    else:
                        new_high = min(new_high, -bound)
                if new_high >= _FAR:
                    new_high = high[cell]
                if new_low <= -_FAR:
                    new_low = low[cell]
                if new_low == low[cell] and new_high == high[cell]:
                    continue
                low[cell], high[cell] = new_low, new_high
                if new_low > new_high:
                    return cell, False
                changed = True
                for u in range(user_ptr[cell], user_ptr[cell + 1]):
                    waiting[users[u]] = True
                # Later cells of this row may use the narrower bound right away.
                least, most, below, above = _update(
                    least, most, below, above, small, large, c, new_low, new_high
                )
                if abs(least) >= _FAR or abs(most) >= _FAR:
                    break
        if not changed:
            return -1, True
    return -1, False


@compiled_if_large
def _update(  # pragma: no cover
    least: int,
    most: int,
    below: int,
    above: int,
    small: int,
    large: int,
    c: int,
    low: int,
    high: int,
) -> Any:
    """The sums of a relation after one of its terms has narrowed."""
    new_small = _times(c, low if c > 0 else high)
    new_large = _times(c, high if c > 0 else low)
    if new_small > -_FAR:
        if small <= -_FAR:
            below -= 1
            least += new_small
        else:
            least += new_small - small
    if new_large < _FAR:
        if large >= _FAR:
            above -= 1
            most += new_large
        else:
            most += new_large - large
    return least, most, below, above


@compiled
def _fold(value: int, excess: int) -> int:  # pragma: no cover
    """A product of two residues modulo ``2**31 - excess``, without dividing."""
    mask = 2**31 - 1
    value = (value & mask) + (value >> 31) * excess
    value = (value & mask) + (value >> 31) * excess
    prime = 2**31 - excess
    return value - prime * (value >= prime)


@compiled
def _inverse(value: int, excess: int) -> int:  # pragma: no cover
    power, result, left = value, 1, 2**31 - excess - 2
    while left:
        if left & 1:
            result = _fold(result * power, excess)
        power = _fold(power * power, excess)
        left >>= 1
    return result


@compiled
def reduce_modulo(matrix: Any, excess: int, full: bool) -> Any:  # pragma: no cover
    """Eliminate in place modulo the prime ``2**31 - excess``; the pivot columns, in order.

    Row ``i`` ends with a 1 in pivot column ``i``. With ``full``, pivot columns are cleared above
    the pivot too, which gives the one reduced form that the row space has.
    """
    height, width = matrix.shape
    prime = 2**31 - excess
    pivots = np.empty(min(height, width), dtype=np.int64)
    rank = 0
    for column in range(width):
        if rank == height:
            break
        row = rank
        while row < height and matrix[row, column] == 0:
            row += 1
        if row == height:
            continue
        if row != rank:
            for k in range(column, width):
                matrix[rank, k], matrix[row, k] = matrix[row, k], matrix[rank, k]
        if matrix[rank, column] != 1:
            factor = _inverse(matrix[rank, column], excess)
            for k in range(column, width):
                matrix[rank, k] = _fold(matrix[rank, k] * factor, excess)
        for other in range(0 if full else rank + 1, height):
            if other == rank or matrix[other, column] == 0:
                continue
            factor = prime - matrix[other, column]
            source, target = matrix[rank, column:], matrix[other, column:]
            for k in range(target.size):
                target[k] = _fold(target[k] + factor * source[k], excess)
        pivots[rank] = column
        rank += 1
    return pivots[:rank]
