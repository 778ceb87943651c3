"""Percentages and differences as a table of their own, so that a file holds what the page shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lustrum.model import Release
from lustrum.model.described_statistic import PERCENT
from lustrum.model.text import say
from lustrum.server.table_view.arrange import arrange, placed
from lustrum.server.table_view.figures import whole
from lustrum.server.urls.display import TableView

SHARES = {
    "row-percent": say("Percentages of each row"),
    "column-percent": say("Percentages of each column"),
    "whole-percent": say("Percentages of the whole table"),
    "row-rate": say("Per 1,000 of each row"),
    "difference": say("Difference to the first column"),
    "index": say("Index, first column = 100"),
}


def as_shown(release: Release, view: TableView) -> Release:
    """The release, or what the view shows instead, worked out from published values."""
    if not view.derived:
        placed(release, view)  # a view that this table cannot have is a mistake
        return release
    table = arrange(release, view)
    if not table.view.derived:
        return release
    figures = table.figures
    return replace(
        release,
        numbers=figures.units,
        undefined=release.shown & ~figures.known,
        decimals=figures.decimals,
        unit=PERCENT if table.view.percent else "" if table.view.relative else release.unit,
        label=SHARES[table.view.show],
        additive=False,
        channel=None,
        least=None,
        most=None,
        errors=None,
        grades=None,
        margin=None,
        margins=None
        if figures.margins is None
        else np.where(np.isfinite(figures.margins), figures.margins, -1).astype(np.int64),
    )


# --- Whether the totals of a table are the sums of their parts, as any reader can check


@dataclass(frozen=True)
class SumCheck:
    """How many totals were compared with the sums of their parts, how many differ, and by how much at most.

    ``wider`` names the variables whose total holds more than the categories that are shown.
    """

    compared: int
    differing: int
    largest: int
    wider: tuple[str, ...]


def sums(release: Release, counted: Mapping[str, frozenset[int]]) -> SumCheck:
    """Add the published parts up and compare them with the published totals; means have no sums.

    ``counted`` holds the members of variables that are counted where not all of them are.
    """
    compared = differing = largest = 0
    wider = []
    for position, axis in enumerate(release.axes):
        total = whole(axis)
        if total is None:
            continue
        inner = np.flatnonzero(axis.inner)
        everybody = axis.categories[total].member_set
        everybody &= counted.get(axis.name, everybody)
        held = [m for i in inner for m in axis.categories[i].members if m in everybody]
        if set(held) < everybody:
            wider.append(axis.label)
        if not release.additive or sorted(held) != sorted(everybody):
            continue
        shown = np.take(release.shown, [*inner, total], axis=position).all(axis=position)
        parts = np.take(release.numbers, inner, axis=position).sum(axis=position)
        gaps = np.abs(np.take(release.numbers, total, axis=position) - parts)[shown]
        compared += gaps.size
        differing += int(np.count_nonzero(gaps))
        largest = max(largest, int(gaps.max(initial=0)))
    return SumCheck(compared, differing, largest, tuple(wider))
