"""What a table says of itself in every file: its origin, who is counted, how far off it is, its address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from lustrum.formats.cell_text import NO_NUMBER, free_name, number_text
from lustrum.model import CellStatus, Release, TableAxis

Line = tuple[str, str | float]


@dataclass(frozen=True)
class About:
    """What a release cannot say by itself: its dataset with version and date, who is counted, and its address.

    ``selection`` has an axis of one category for every variable by which people were selected. ``table`` is the
    name of the file of CSV that a description goes with, ``areas`` are variables of places, and ``more`` holds
    further lines.
    """

    dataset: str = ""
    version: str = ""
    updated: str = ""
    date: str = ""
    selection: tuple[TableAxis, ...] = ()
    link: str = ""
    table: str = ""
    areas: tuple[str, ...] = ()
    more: Mapping[str, str | float] = field(default_factory=dict)

    def beside(self, release: Release) -> Release:
        """The release with a variable of one category in front for each selection: so each row names it.

        A variable that the table shows, too, is called ``..._selected`` there.
        """
        if not self.selection:
            return release
        taken = {axis.name for axis in release.axes}
        front = []
        for axis in self.selection:
            name = free_name(f"{axis.name}_selected" if axis.name in taken else axis.name, taken)
            front.append(replace(axis, name=name))
        shape = (*(1 for _ in front), *release.shape)
        turned = release.each_array(lambda array: array.reshape(shape))
        return replace(release, axes=(*front, *release.axes), **turned)

    def lines(self, release: Release, label: str) -> Iterator[Line]:
        """All of it as names and values, the same in every file."""
        if label:
            yield "Title", label
        for name, value in (
            ("Dataset", self.dataset), ("Version", self.version),
            ("Updated", self.updated), ("Asked for on", self.date),
        ):  # fmt: skip
            if value:
                yield name, value
        for axis in self.selection:
            yield "Selected", f"{_described(axis)}: {axis.labels[0]}"
        if release.label and not release.statistics:
            yield "Statistic", release.label
        if release.unit:
            yield "Unit", release.unit
        for statistic in release.statistics:
            yield "Statistic", f"{statistic.label}; unit: {statistic.unit}"
        if release.undefined is not None and release.undefined.any():
            yield (
                f"Symbol {NO_NUMBER}",
                "does not exist, since the number to divide by is 0; not zero",
            )
        for axis in release.axes:
            yield "Variable", _described(axis)
        for note in release.notes:
            yield "Note", note
        if release.margin is not None:
            yield "Margin of error", number_text(release.margin, release.decimals)
        parameters = ", ".join(f"{k} {v}" for k, v in release.method.items() if k != "method")
        method = str(release.method.get("method", ""))
        if method:
            yield "Protected by", f"{method} ({parameters})" if parameters else method
        for letter in sorted({str(s) for s in np.unique(release.status)} - {CellStatus.FREE.value}):
            yield f"Symbol {letter}", f"{CellStatus(letter).meaning}; not zero"
        if self.link:
            yield "Address", self.link
        yield from self.more.items()


NOTHING = About()
"""Beside a release that says all that is known."""


def _described(axis: TableAxis) -> str:
    return axis.label if axis.label == axis.name else f"{axis.label} ({axis.name})"
