"""How far a reader must stay from the true values of a table, from a file that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Floats
from lustrum.readers.cells import CellCube
from lustrum.readers.confidential import Number, TrueFile
from lustrum.readers.judge import Levels
from lustrum.readers.number_text import Style, printed

DefaultLevel = tuple[Decimal, bool]
"""A level for cells that have none of their own: a number, and whether it is percent."""


def default_level(text: str) -> DefaultLevel:
    """A level in words, such as ``10%`` or ``5``."""
    number = printed(text.strip().removesuffix("%"), Style())
    if number is None or number.mark or number.value < 0:
        raise InputError(f"--protect is a percentage such as 10% or a number, not {text!r}.")
    return number.value, text.strip().endswith("%")


def levels_of(truth: Sequence[TrueFile], default: DefaultLevel | None = None) -> Levels:
    """The range that a reader's must hold for every cell that was not published as it is.

    The levels are the columns ``lower`` and ``upper`` of the true tables. Where these are empty or missing, the
    default holds.
    """

    def levels(cube: CellCube) -> tuple[Floats, Floats]:
        low, high = np.full(cube.value.shape, np.nan), np.full(cube.value.shape, np.nan)
        scale = 10**cube.decimals
        for file in truth:
            missing = next((name for name in file.names if name not in cube.names), None)
            if missing is not None:
                raise InputError(
                    f"{file.source}: the published tables have no variable {missing!r}."
                )
            index_of = [{code: i for i, code in enumerate(codes)} for codes in cube.codes]
            for row, key in enumerate(file.keys):
                codes = dict(zip(file.names, key, strict=True))
                at = tuple(
                    index.get(codes.get(name, "(all)"), -1)
                    for name, index in zip(cube.names, index_of, strict=True)
                )
                given = [_own(column, row) for column in (file.lower, file.upper)]
                if -1 in at or not cube.asked[at] or (given == [None, None] and default is None):
                    continue
                exact = Fraction(file.values[row])
                lower, upper = (_usual(exact, default) if g is None else Fraction(g) for g in given)
                # In whole units of the published tables, and never less than the level.
                low[at] = floor((exact - lower) * scale)
                high[at] = ceil((exact + upper) * scale)
        return low, high

    return levels


def _own(column: tuple[Number, ...] | None, row: int) -> Number:
    return None if column is None else column[row]


def _usual(value: Fraction, default: DefaultLevel | None) -> Fraction:
    if default is None:
        return Fraction(0)
    number, percent = Fraction(default[0]), default[1]
    return abs(value) * number / 100 if percent else number
