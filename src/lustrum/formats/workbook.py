"""What small and large workbooks have in common."""

from __future__ import annotations

from lustrum.model import Release

MOST_DIGITS = 10**15
"""A spreadsheet keeps 15 digits; a longer number is written as text, so that none is lost."""

MOST_ROWS = 1_048_576

NO_NUMBER = "\u2013"
"""Stands for a number that does not exist, such as a mean over nobody."""


def cell_heads(release: Release) -> tuple[list[str], list[str], list[str]]:
    """The columns of the sheet Cells: names of variables, the unit, and those of estimates."""
    names = [text for axis in release.axes for text in (axis.name, f"{axis.name}_label")]
    unit = ["unit"] if release.label else []
    estimated = ["standard_error", "reliability"] if release.errors is not None else []
    return names, unit, estimated
