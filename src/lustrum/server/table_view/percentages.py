"""Percentages and differences as a table of their own, so that a file holds what the page shows."""

from __future__ import annotations

from dataclasses import replace

from lustrum.model import Release
from lustrum.model.described_statistic import PERCENT
from lustrum.model.text import say
from lustrum.server.table_view.arrange import arrange, placed
from lustrum.server.urls.display import TableView

SHARES = {
    "row-percent": say("Percentages of each row"),
    "column-percent": say("Percentages of each column"),
    "whole-percent": say("Percentages of the whole table"),
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
        published=figures.units,
        undefined=release.shown & ~figures.known,
        decimals=figures.decimals,
        unit=PERCENT if table.view.percent else "" if table.view.relative else release.unit,
        label=SHARES[table.view.show],
        additive=False,
        channel=None,
        low=None,
        high=None,
        errors=None,
        grades=None,
        margin=None,
    )
