"""Weight classes: groups of respondents, each large enough that its mean weight reveals no single weight.

Respondents are divided by one variable after the other, in an order that the agency names. A division is
kept if every part is large enough. Smaller parts are joined with each other, and with the smallest large
part if they are still too small. So every respondent is in exactly one class, no class is smaller than the
least size, and no difference of two classes is a smaller group.

Sizes are protected numbers of respondents: which cells share a class is public, since they share a weight, and
must not depend on who answered. True respondents are put into these classes afterwards.
"""

from __future__ import annotations

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Array, Ints


def weight_classes(codes: Array, sizes: Ints, order: list[int], least: int) -> Ints:
    """The class of each cell, numbered from 0.

    ``codes[v]`` are the codes of the cells, ``sizes`` how many respondents each shows, ``order`` the
    variables to divide by, ``least`` the fewest respondents of a class.

    >>> codes = np.array([[0, 0, 1, 1], [0, 1, 0, 1]])
    >>> weight_classes(codes, np.array([6, 7, 2, 3]), [0, 1], 5).tolist()
    [0, 1, 2, 2]
    """
    if least < 1:
        raise InputError(f"A weight class needs at least 1 respondent, not {least!r}.")
    if int(sizes.sum()) < least:
        raise InputError(
            "The survey has fewer respondents than a weight class needs; choose a smaller 'class_size'."
        )
    classes = np.full(codes.shape[1], -1, dtype=np.int64)
    waiting = [(np.arange(codes.shape[1], dtype=np.int64), 0)]
    number = 0
    while waiting:
        cells, depth = waiting.pop()
        parts = _divided(codes, sizes, cells, order, depth, least)
        if parts is None:
            classes[cells] = number
            number += 1
        else:
            # The last part is divided first, so that classes are numbered in the order of their codes.
            waiting.extend(reversed(parts))
    return classes


def _divided(
    codes: Array, sizes: Ints, cells: Ints, order: list[int], depth: int, least: int
) -> list[tuple[Ints, int]] | None:
    """The parts of a group, with the depth at which to continue; None if it is not divided."""
    while depth < len(order):
        cell_codes = codes[order[depth], cells]
        depth += 1
        groups = [cells[cell_codes == code] for code in np.unique(cell_codes)]
        held = [int(sizes[group].sum()) for group in groups]
        large = [i for i, size in enumerate(held) if size >= least]
        small = [i for i, size in enumerate(held) if size < least]
        if not large or len(groups) == 1:
            continue
        if not small:
            return [(group, depth) for group in groups]
        rest = np.sort(np.concatenate([groups[i] for i in small]))
        if sum(held[i] for i in small) >= least:
            return [*((groups[i], depth) for i in large), (rest, len(order))]
        if len(large) == 1:
            continue
        nearest = min(large, key=lambda i: (held[i], i))
        joined = np.sort(np.concatenate([groups[nearest], rest]))
        others = [(groups[i], depth) for i in large if i != nearest]
        return [*others, (joined, len(order))]
    return None


def classes_of(codes: Array, group: Ints, order: list[int], records: Array) -> Ints:
    """The class of every record: that of the cell with its codes, or of the nearest cell that is shown.

    The nearest cell has the same codes of the first variables of ``order``, of as many as possible, and then
    the next larger code, or the largest.

    >>> codes = np.array([[0, 0, 1, 1], [0, 2, 0, 1]])
    >>> classes_of(codes, np.array([0, 1, 2, 3]), [0, 1], np.array([[0, 0, 1], [2, 1, 5]])).tolist()
    [1, 1, 3]
    """
    shown = np.zeros(codes.shape[1], dtype=np.int64)
    nearest = np.zeros(records.shape[1], dtype=np.int64)
    for variable in order:
        cell_codes, theirs = codes[variable].astype(np.int64), records[variable].astype(np.int64)
        width = int(max(cell_codes.max(initial=0), theirs.max(initial=0))) + 1
        keys, key_index = np.unique(shown * width + cell_codes, return_inverse=True)
        at = np.searchsorted(keys, nearest * width + theirs)
        inside = np.minimum(at, keys.size - 1)
        # Behind the last cell that shares the codes so far comes another's; the one before is nearest.
        nearest = np.where((at < keys.size) & (keys[inside] // width == nearest), inside, at - 1)
        shown = np.asarray(key_index).ravel().astype(np.int64)
    first = np.unique(shown, return_index=True)[1]
    return np.asarray(group[first[nearest]])
