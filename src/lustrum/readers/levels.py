"""How far a reader must stay from the true values of a table, from a file that holds them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

import numpy as np
import numpy.typing as npt

from lustrum.audit import Protection
from lustrum.model import CellStatus, InputError, Release
from lustrum.readers.published.number_text import plain_number
from lustrum.readers.table_file import Number, TableFile

_EXACT = 2**53

DefaultLevel = tuple[Decimal, bool]
"""A level for cells that have none of their own: a number, and whether it is percent."""


def default_level(text: str) -> DefaultLevel:
    """A level in words, such as ``10%`` or ``5``."""
    number = plain_number(text.strip().removesuffix("%"))
    if number is None or number < 0:
        raise InputError(f"--protect is a percentage such as 10% or a number, not {text!r}.")
    return number, text.strip().endswith("%")


def protection_of(
    true: TableFile,
    release: Release,
    default: DefaultLevel | None = None,
    *,
    rounded: bool = False,
) -> Protection:
    """The protection that the cells of a published table need.

    The levels are the columns ``lower`` and ``upper`` of the true table. Where these are empty or missing, the
    default holds for all cells that are hidden for their own sake, or for all cells that were rounded.
    """
    names = [axis.name for axis in release.axes]
    if sorted(true.dimensions) != sorted(names):
        raise InputError(
            f"{true.source}: the variables are {', '.join(true.dimensions)}; those of the published table are "
            f"{', '.join(names)}."
        )
    order = [true.dimensions.index(name) for name in names]
    rows = {tuple(key[i] for i in order): row for row, key in enumerate(true.cells)}
    values = true.values[true.responses[0]]
    shape = release.published.shape
    arrays: list[npt.NDArray[np.int64]] = [np.zeros(shape, dtype=np.int64) for _ in range(3)]
    needed = np.zeros(shape, dtype=np.bool_)
    scale = 10**release.decimals
    wanted = np.ones(shape, dtype=np.bool_) if rounded else ~release.shown
    for position in zip(*np.nonzero(wanted), strict=True):
        key = tuple(a.codes[int(i)] for a, i in zip(release.axes, position, strict=True))
        row = rows.get(key)
        given = [_own(column, row) for column in (true.lower, true.upper)]
        secondary = release.status[position] == CellStatus.SECONDARY.value
        if given == [None, None] and (default is None or secondary):
            continue
        value = None if row is None else values[row]
        if value is None:
            raise InputError(
                f"{true.source}: a cell that needs protection has no true value; give it."
            )
        needed[position] = True
        exact = Fraction(value)
        lower, upper = (_usual(exact, default) if g is None else Fraction(g) for g in given)
        # In whole units of the published table, and never less than the level.
        middle = round(exact * scale)
        low, high = floor((exact - lower) * scale), ceil((exact + upper) * scale)
        if max(abs(low), abs(high)) > _EXACT:
            raise InputError(
                f"{true.source}: a value or a level has more digits than can be computed with exactly."
            )
        for array, number in zip(arrays, (middle, middle - low, high - middle), strict=True):
            array[position] = number
    return Protection.of(arrays[0], arrays[1], arrays[2], needed)


def _own(column: tuple[Number, ...] | None, row: int | None) -> Number:
    return None if column is None or row is None else column[row]


def _usual(value: Fraction, default: DefaultLevel | None) -> Fraction:
    if default is None:
        return Fraction(0)
    number, percent = Fraction(default[0]), default[1]
    return abs(value) * number / 100 if percent else number
