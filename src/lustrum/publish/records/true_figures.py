"""True figures of a table: for the agency alone, where the records are. Never for a reader."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.model import Release, TableQuery
from lustrum.model.plugins import load
from lustrum.policy import Policy
from lustrum.tabulate import Engine


@dataclass(frozen=True)
class TrueFigures:
    """Confidential: each of these tells of the true counts."""

    risk_before: float
    risk_after: float
    utility: float
    mean_error: float
    largest_error: int


def true_figures(
    query: TableQuery, engine: Engine, release: Release, policy: Policy
) -> TrueFigures:
    """Risk, utility and errors of a released table, measured against the true counts."""
    table = engine.tabulate(query)
    picks = [
        [axis.codes.index(code) for code in shown.codes]
        for axis, shown in zip(table.axes, release.axes, strict=True)
    ]
    table = table.take(picks)
    measure = policy.risk.spec
    errors = np.abs(release.published - table.values)[release.shown]
    return TrueFigures(
        measure.before(table),
        measure.after(table, release),
        load("lustrum.utilities", "hellinger")().of(table, release),
        float(errors.mean()) if errors.size else 0.0,
        int(errors.max(initial=0)),
    )
