"""What small and large workbooks have in common."""

from __future__ import annotations

from lustrum.formats.cell_text import HeadNames
from lustrum.model import Release

MOST_DIGITS = 10**15
"""A spreadsheet keeps 15 digits; a longer number is written as text, so that none is lost."""

MOST_ROWS = 1_048_576

NO_NUMBER = "\u2013"
"""Stands for a number that does not exist, such as a mean over nobody."""


def cell_heads(release: Release) -> tuple[list[str], list[str], list[str], list[str]]:
    """The columns of the sheet Cells: variables, what every cell has, the unit, and those of estimates."""
    called = HeadNames.of(release.axes)
    pairs = zip(release.axes, called.labels, strict=True)
    names = [text for axis, label in pairs for text in (axis.name, label)]
    every = [called.facts[fact] for fact in ("value", "status", "low", "high")]
    unit = [called.facts["unit"]] if release.label else []
    estimated = [called.facts[fact] for fact in ("standard_error", "reliability")]
    graded = release.errors is not None and release.grades is not None
    return names, every, unit, estimated if graded else []
