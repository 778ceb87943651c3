"""Releases of one table side by side: what each hides, how far it is off, and how sure a reader is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lustrum.model import InputError, Release, Table
from lustrum.model.errors import kind_of
from lustrum.model.release import check_release
from lustrum.model.table import check_table
from lustrum.model.text import html_table
from lustrum.risk.cell_certainty import CellCertainty
from lustrum.rumap.measures import usual_impute
from lustrum.utility.measures.distances import AverageDistance, LargestDeviation

if TYPE_CHECKING:
    import altair
    import pandas


@dataclass(frozen=True)
class ReleaseComparison:
    """A row for each release. The figures follow from true values: for the agency, not for the public."""

    rows: tuple[Mapping[str, Any], ...]

    def __repr__(self) -> str:
        return f"ReleaseComparison({len(self.rows)} releases)"

    @property
    def frame(self) -> pandas.DataFrame:
        import pandas as pd

        return pd.DataFrame([dict(row) for row in self.rows]).set_index("release")

    def _repr_html_(self) -> str:
        header = tuple(self.rows[0])
        lines = [
            [f"{v:,.4g}" if isinstance(v, float) else str(v) for v in row.values()]
            for row in self.rows
        ]
        return html_table("Low certainty and small distances are wanted.", header, lines)

    def chart(self, width: int = 420, height: int = 300) -> altair.LayerChart:
        """Distance against certainty as a Vega-Lite chart; below and to the left is better."""
        from lustrum.rumap.charts import releases_chart

        return releases_chart(self.rows, width, height)


def compare(table: Table, releases: Mapping[str, Release]) -> ReleaseComparison:
    """Releases of a table, by name: cells that are hidden, distance of inner cells, and certainty.

    Distances have hidden cells filled as maps do. Certainty is that of an outsider about cells of 1
    to 5 (:class:`~lustrum.risk.CellCertainty`); it is left out for sums.

    >>> from lustrum.protect import ConventionalRounding, Suppression
    >>> table = Table.from_counts([[1, 14, 3], [17, 83, 0]])
    >>> made = {"rounded": ConventionalRounding(base=3).apply(table), "hidden": Suppression().apply(table)}
    >>> compare(table, made).frame["hidden cells"].tolist()
    [0, 1]
    """
    check_table(table, "A comparison")
    given: object = releases
    if not isinstance(given, Mapping) or not given:
        raise InputError(
            f"Releases are given by name, such as {{'rounded': release}}, not as {kind_of(releases)}."
        )
    rows, impute = [], usual_impute(table)
    for name, release in releases.items():
        check_release(release, "A comparison")
        row: dict[str, Any] = {
            "release": str(name),
            "method": str(release.method.get("method", "")),
            "hidden cells": int((~release.known).sum()),
            "average distance": AverageDistance(impute).of(table, release),
            "largest deviation": LargestDeviation(impute).of(table, release),
        }
        if table.kind == "count":
            row["certainty"] = CellCertainty().after(table, release)
        rows.append(row)
    return ReleaseComparison(tuple(rows))
