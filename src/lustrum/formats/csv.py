"""CSV: one row per cell, the status in a column of its own, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from lustrum.formats.about import NOTHING, About
from lustrum.formats.cell_text import HeadNames, csv_lines, field, inert, names_of, numbers
from lustrum.model import Release, TableAxis
from lustrum.model.release import check_publishable
from lustrum.model.text import say

_GUARDED = "on; a ' stands before what a spreadsheet would take for a formula"


class Csv:
    """Writes one row per cell: a code and a label per variable, the value, the status.

    A variable with own groups has a further column, which says what each of them holds.
    A text that a spreadsheet would take for a formula has a ``'`` before it, unless ``guard`` is off.
    A suppressed value is an empty field beside its status letter, never 0. Where the release states intervals
    instead, they stand in the columns ``low`` and ``high``. Several statistics stand in a column of their own,
    and beside sums, means and the like stands their unit.
    Estimates have their standard error and reliability, and numbers with a margin of error have that. Each
    variable by which people were selected has a column, also where the table does not show it. A number that
    does not exist, such as a mean over nobody, is an empty field that is free for publication. A variable
    called ``value`` keeps its name; the value then stands in ``value_``, as in every other form.
    """

    name: ClassVar[str] = "csv"
    media_type: ClassVar[str] = "text/csv"
    ending: ClassVar[str] = "csv"
    title: ClassVar[str] = say("CSV")
    cell_bytes: ClassVar[int] = 200
    tells_about: ClassVar[bool] = True

    def __init__(self, *, comments: bool = False, guard: bool = True) -> None:
        self.comments, self.guard = comments, guard

    def write(self, release: Release, label: str = "", about: About = NOTHING) -> str:
        """The release as text; with ``comments`` below lines that say what it is, each behind a #."""
        lines = list(about.lines(release, label)) if self.comments else []
        if self.comments:
            lines.append(
                ("Formula guard", _GUARDED if self.guard else "off; texts are as they are")
            )
        head = "".join(f"# {name}: {' '.join(str(value).split())}\r\n" for name, value in lines)
        return head + "".join(self.pieces(about.beside(release)))

    def pieces(self, release: Release) -> Iterator[str]:
        """The text in pieces of bounded size, for a table that is large."""
        check_publishable(release, "A CSV file")
        known, stated = release.known.ravel(), release.stated
        status = release.status.ravel()
        ends = [a for a in (release.least, release.most) if a is not None and stated.any()]
        grouped = [any(c.note for c in axis.categories) for axis in release.axes]
        called = HeadNames.of(release.axes)
        names = [
            name
            for index, (axis, has_members) in enumerate(zip(release.axes, grouped, strict=True))
            for name in (
                axis.name,
                called.labels[index],
                *([called.members[index]] if has_members else []),
            )
        ]
        units = [field(inert(release.unit_at(i))) for i in range(_last(release))]
        errors, grades = release.errors, release.grades
        graded = errors is not None and grades is not None
        margins = release.error_margins
        marks = {} if grades is None else {g: field(g) for g in ("", *np.unique(grades).tolist())}

        def columns(low: int, high: int) -> list[Sequence[str]]:
            cell_columns: list[Sequence[str]] = [
                numbers(release, release.numbers, known, low, high)
            ]
            if release.label:
                cell_columns.append(units * ((high - low) // len(units)))
            cell_columns.append(status[low:high].tolist())
            cell_columns += [numbers(release, end, stated, low, high) for end in ends]
            if errors is not None and grades is not None:
                there = known & (errors.ravel() >= 0)
                seen = np.where(there[low:high], grades.ravel()[low:high], "").tolist()
                cell_columns += [
                    numbers(release, errors, there, low, high),
                    [marks[g] for g in seen],
                ]
            if margins is not None:
                stated_margins = known & (margins.ravel() >= 0)
                cell_columns.append(numbers(release, margins, stated_margins, low, high))
            return cell_columns

        facts = [
            "value",
            *(["unit"] if release.label else []),
            "status",
            *(["low", "high"] if ends else []),
            *(["standard_error", "reliability"] if graded else []),
            *(["margin"] if margins is not None else []),
        ]
        head = [*names, *(called.facts[fact] for fact in facts)]
        axes = [
            _with_members(axis, self.guard) if has_members else names_of(axis, True, self.guard)
            for axis, has_members in zip(release.axes, grouped, strict=True)
        ]
        return csv_lines(head, axes, columns, "\r\n")


def _with_members(axis: TableAxis, guard: bool) -> list[str]:
    """Codes and labels of the categories, and what own groups hold."""
    named = zip(names_of(axis, True, guard), axis.categories, strict=True)
    kept = inert if guard else str
    return [f"{name},{field(kept(category.note))}" for name, category in named]


def _last(release: Release) -> int:
    """Places along the last axis."""
    return release.shape[-1] if release.axes else 1


class CsvDescription:
    """Writes what stands in the file of CSV, and what it is about, as CSV on the Web describes tables.

    See https://www.w3.org/TR/tabular-metadata/: the names of the columns, and beside them the same lines that
    other files have inside.
    """

    name: ClassVar[str] = "csvw"
    media_type: ClassVar[str] = "application/csvm+json"
    ending: ClassVar[str] = "csv-metadata.json"
    title: ClassVar[str] = say("Description of the CSV (CSVW)")
    tells_about: ClassVar[bool] = True

    def write(self, release: Release, label: str = "", about: About = NOTHING) -> str:
        wide = about.beside(release)
        head = next(csv.reader([next(Csv().pieces(wide))]))
        titles = {axis.name: axis.label for axis in wide.axes}
        columns = [{"name": name, "titles": titles.get(name, name)} for name in head]
        out = {
            "@context": "http://www.w3.org/ns/csvw",
            "url": about.table or "table.csv",
            "dc:title": label,
            "dc:source": about.dataset,
            "dc:date": about.date,
            "dc:identifier": about.link,
            "dialect": {"commentPrefix": "#"},
            "notes": [
                {"name": name, "value": value} for name, value in about.lines(release, label)
            ],
            "tableSchema": {"columns": columns, "primaryKey": [axis.name for axis in wide.axes]},
        }
        return json.dumps({name: value for name, value in out.items() if value}, ensure_ascii=False)
