"""CSV: one row per cell, the status in a column of its own, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from typing import ClassVar

import numpy as np

from lustrum.model import Release

__all__ = ["Csv"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class Csv:
    """Writes one row per cell: a code and a label per variable, the value, the status.

    A suppressed value is an empty field beside its status letter, never 0.
    """

    name: ClassVar[str] = "csv"
    media_type: ClassVar[str] = "text/csv"
    ending: ClassVar[str] = "csv"

    def write(self, release: Release, label: str = "") -> str:
        """The release as text."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\r\n")
        names = [_inert(axis.name) for axis in release.axes]
        head = [column for name in names for column in (name, f"{name}_label")]
        writer.writerow([*head, "value", "status"])
        shown = release.shown
        for position in np.ndindex(*release.shape):
            row: list[str] = []
            for axis, i in zip(release.axes, position, strict=True):
                category = axis.categories[i]
                row += [_inert(category.code), _inert(category.label)]
            value = _number(int(release.published[position]), release.decimals)
            writer.writerow([*row, value if shown[position] else "", release.status[position]])
        return out.getvalue()


def _number(value: int, decimals: int) -> str:
    if decimals == 0:
        return str(value)
    digits = f"{abs(value):0{decimals + 1}d}"
    return f"{'-' if value < 0 else ''}{digits[:-decimals]}.{digits[-decimals:]}"


def _inert(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
