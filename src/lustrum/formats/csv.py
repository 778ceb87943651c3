"""CSV: one row per cell, the status in a column of its own, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from typing import ClassVar

import numpy as np

from lustrum.model import Release
from lustrum.model.release import check_release

__all__ = ["Csv", "inert", "number_text"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class Csv:
    """Writes one row per cell: a code and a label per variable, the value, the status.

    A suppressed value is an empty field beside its status letter, never 0. Where the release states intervals
    instead, they stand in the columns ``low`` and ``high``. Several statistics stand in a column of their own,
    and beside sums, means and the like stands their unit.
    Estimates have their standard error and reliability. A number that does not exist, such as a mean over
    nobody, is an empty field that is free for publication.
    """

    name: ClassVar[str] = "csv"
    media_type: ClassVar[str] = "text/csv"
    ending: ClassVar[str] = "csv"

    def write(self, release: Release, label: str = "") -> str:
        """The release as text."""
        check_release(release, "A CSV file")
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\r\n")
        names = [inert(axis.name) for axis in release.axes]
        head = [column for name in names for column in (name, f"{name}_label")]
        shown, stated = release.known, release.stated
        measured = bool(release.label)
        ends = ["low", "high"] if stated.any() else []
        estimated = ["standard_error", "reliability"] if release.errors is not None else []
        unit = ["unit"] if measured else []
        writer.writerow([*head, "value", *unit, "status", *ends, *estimated])
        for position in np.ndindex(*release.shape):
            row: list[str] = []
            for axis, i in zip(release.axes, position, strict=True):
                category = axis.categories[i]
                row += [inert(category.code), inert(category.label)]
            place = position[-1] if position else 0
            value = number_text(*release.written(int(release.published[position]), place))
            row.append(value if shown[position] else "")
            if measured:
                row.append(inert(release.unit_at(place)))
            row.append(str(release.status[position]))
            if ends and release.low is not None and release.high is not None:
                pair = (release.low[position], release.high[position])
                known = stated[position]
                row += [
                    number_text(*release.written(int(end), place)) if known else "" for end in pair
                ]
            if release.errors is not None and release.grades is not None:
                error = int(release.errors[position])
                there = error >= 0 and bool(shown[position])
                row += [
                    number_text(*release.written(error, place)) if there else "",
                    str(release.grades[position]) if there else "",
                ]
            writer.writerow(row)
        return out.getvalue()


def number_text(value: int, decimals: int) -> str:
    """A whole number of units of the last decimal, as it is written."""
    if decimals == 0:
        return str(value)
    digits = f"{abs(value):0{decimals + 1}d}"
    return f"{'-' if value < 0 else ''}{digits[:-decimals]}.{digits[-decimals:]}"


def inert(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
