"""What small and large workbooks have in common."""

from __future__ import annotations

from math import prod

from lustrum.formats.cell_text import HeadNames
from lustrum.formats.placing import usual_placing
from lustrum.model import Release

MOST_DIGITS = 10**15
"""A spreadsheet keeps 15 digits; a longer number is written as text, so that none is lost."""

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
"""A sheet has no more; what does not fit is left out."""

NO_NUMBER = "\u2013"
"""Stands for a number that does not exist, such as a mean over nobody."""


def fits(release: Release) -> bool:
    """Whether the sheets of the table and of its cells hold every cell."""
    placing = usual_placing(release.shape)
    parts, down, across = (
        prod(release.shape[i] for i in axes)
        for axes in (placing.wafers, placing.rows, placing.columns)
    )
    # Two rows above the headers, and two above every part of a table that is cut.
    rows = 2 + max(len(placing.columns), 1) + parts * (down + 2 * bool(placing.wafers))
    return release.published.size < MOST_ROWS and rows <= MOST_ROWS and across < MOST_COLUMNS


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
