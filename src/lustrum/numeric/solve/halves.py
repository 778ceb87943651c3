"""Zero-half cuts: half the sum of some inequalities of whole numbers, rounded up.

For rows ``a_k x >= b_k`` of whole numbers, half of their sum is an inequality too. With whole x that are not
negative its coefficients can be rounded up, and then its side. Where the sides add up to an odd number, a point
violates the result if the slack of the rows and the values of columns with odd coefficients add up to less than
1. Sums with few such columns are found by elimination modulo 2, the largest values first (Koster, Zymolka and
Kutschka 2009).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Floats
from lustrum.numeric.compiled import compiled
from lustrum.numeric.solve.cutting import Cut, lacking
from lustrum.numeric.solve.products import cleared, uniform

_ROWS = 1500
_MOST = 150
_PASSES = 4
_BITS = 26  # of slacks and of what cuts are ranked by; what differs by less is the same


def zero_half_cuts(cuts: Sequence[Cut], x: Floats, violation: float = 0.02) -> list[Cut]:
    """Cuts of this kind that a point violates, from rows that are nearly tight, the most violated first.

    A column near 1 is looked at as 1 less a column near 0.
    """
    slack, rows = [], []
    for cut, rest in zip(cuts, (-lacking(cuts, x)).tolist(), strict=True):
        if rest < 1.0 - 2 * violation and _whole(cut):
            slack.append(max(rest, 0.0))
            rows.append(cut)
    even = cleared(np.array(slack), _BITS)
    order = np.argsort(even, kind="stable")[:_ROWS]
    rows = [rows[i] for i in order]
    turned = x > 0.5
    near = np.where(turned, 1.0 - x, x)
    columns = np.flatnonzero(near > 1e-6)
    if not rows or not columns.size:
        return []
    column_index = np.full(x.size, -1, dtype=np.int64)
    column_index[columns] = np.arange(columns.size)
    odd = np.zeros((len(rows), columns.size + 1), dtype=np.bool_)
    for number, row in enumerate(rows):
        single = row.weights.astype(np.int64) % 2 != 0
        inside = column_index[row.columns[single]]
        odd[number, inside[inside >= 0]] = True
        odd[number, -1] = (int(row.side) + int(turned[row.columns[single]].sum())) % 2 != 0
    loose = even[order]
    cuts_by_key: dict[bytes, Cut] = {}
    luck = np.random.default_rng(0)
    row_numbers = np.arange(len(rows))
    for turn in range(_PASSES):
        # Large values first: what they hide is worth most.
        value = near[columns] * (1.0 if turn == 0 else uniform(luck, 0.5, 1.5, columns.size))
        by = np.argsort(-value, kind="stable")
        mixed = np.concatenate([odd[:, :-1][:, by], odd[:, -1:]], axis=1)
        # Which rows make up each sum, 64 to a word.
        used = np.zeros((len(rows), len(rows) // 64 + 1), dtype=np.uint64)
        used[row_numbers, row_numbers // 64] = np.uint64(1) << (row_numbers % 64).astype(np.uint64)
        left = loose + (0.0 if turn == 0 else uniform(luck, 0.0, 1e-3, loose.size))
        violated_rows = _eliminate(mixed, used, left, near[columns[by]], 1.0 - 2 * violation)
        for number in violated_rows[:_MOST].tolist():
            bits = np.unpackbits(used[number].astype("<u8").view(np.uint8), bitorder="little")
            cut = _halved([rows[k] for k in np.flatnonzero(bits)], turned)
            if cut.lacks(x) > violation:
                cuts_by_key.setdefault(cut.key(), cut)
    found_cuts = list(cuts_by_key.values())
    lack = np.array([cut.lacks(x) / np.sqrt(1.0 + cut.columns.size) for cut in found_cuts])
    ranked = np.argsort(-cleared(lack, _BITS), kind="stable")[:_MOST]
    return [found_cuts[i] for i in ranked.tolist()]


def _whole(cut: Cut) -> bool:
    return bool(cut.side == np.rint(cut.side) and (cut.weights == np.rint(cut.weights)).all())


def _halved(rows: Sequence[Cut], turned: npt.NDArray[np.bool_]) -> Cut:
    total = np.zeros(turned.size)
    for row in rows:
        total[row.columns] += row.weights
    # Sides and weights are whole numbers.
    side = math.fsum(row.side for row in rows) - total[turned].sum()
    weights = np.where(turned, np.floor(total / 2 + 1e-9), np.ceil(total / 2 - 1e-9))
    columns = np.flatnonzero(weights)
    side = np.ceil(side / 2 - 1e-9) + weights[turned].sum()
    return Cut(columns, weights[columns], float(side))


@compiled
def _eliminate(odd: Any, used: Any, slack: Any, x: Any, limit: float) -> Any:  # pragma: no cover
    """Combine rows so that few odd columns are left; gives the rows that make violated cuts."""
    height, width = odd.shape[0], odd.shape[1] - 1
    free = np.ones(height, np.bool_)
    violated = np.zeros(height, np.bool_)
    for column in range(width + 1):
        for row in range(height):
            if free[row] and not violated[row] and odd[row, width]:
                lost = slack[row]
                for k in range(column, width):
                    if odd[row, k]:
                        lost += x[k]
                        if lost >= limit:
                            break
                if lost < limit:
                    violated[row] = True
                    free[row] = False
        if column == width:
            break
        pivot = -1
        for row in range(height):
            if free[row] and odd[row, column] and (pivot < 0 or slack[row] < slack[pivot]):
                pivot = row
        if pivot < 0:
            continue
        free[pivot] = False
        for row in range(height):
            if free[row] and odd[row, column]:
                if slack[row] + slack[pivot] >= limit:
                    free[row] = False
                    continue
                slack[row] += slack[pivot]
                # No free row is odd in a column that had its turn.
                for k in range(column, width + 1):
                    odd[row, k] ^= odd[pivot, k]
                for k in range(used.shape[1]):
                    used[row, k] ^= used[pivot, k]
    return np.flatnonzero(violated)
