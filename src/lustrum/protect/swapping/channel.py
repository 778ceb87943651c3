"""The channel of a swap, counted from the cells of a table, for the agency's own risk measures."""

from __future__ import annotations

import numpy as np

from lustrum.model import InputError, Table
from lustrum.model.channel import MatrixChannel


def estimate_channel(before: Table, after: Table, cap: int = 10) -> MatrixChannel:
    """``P(after | before)``: the share of the inner cells of each value that take each other value.

    The values are 0, 1, ..., ``cap``, where the last one includes all above. A value that no cell has
    stays. The result is made from confidential counts and must never be released.

    >>> true = Table.from_counts([1, 1, 1, 1, 2, 0])
    >>> estimate_channel(true, Table.from_counts([1, 1, 1, 2, 2, 0]), cap=2).matrix.tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.75, 0.25], [0.0, 0.0, 1.0]]
    """
    if type(cap) is not int or cap < 1:
        raise InputError(f"The largest value of a channel is a whole number from 1, not {cap!r}.")
    if [axis.codes for axis in before.axes] != [axis.codes for axis in after.axes]:
        raise InputError("The tables before and after swapping must have the same categories.")
    if not before.kind == after.kind == "count" or before.decimals or after.decimals:
        raise InputError("A channel is estimated from tables of whole counts.")
    true = np.minimum(before.values[before.inner], cap)
    shown = np.minimum(after.values[after.inner], cap)
    cells = np.bincount(true * (cap + 1) + shown, minlength=(cap + 1) ** 2)
    matrix = cells.reshape(cap + 1, cap + 1).astype(np.float64)
    total = matrix.sum(axis=1, keepdims=True)
    matrix = np.where(total > 0, matrix / np.maximum(total, 1), np.eye(cap + 1))
    return MatrixChannel(matrix, residue_base=1)
