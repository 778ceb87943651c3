"""The choice of a method: most utility under a limit of risk, or least expected loss.

Under a limit the agency holds the risk down first and then keeps as much utility as it can (Duncan, Fienberg,
Krishnan, Padman and Roehrig 2001, section 2). By losses it states what a disclosure costs and what it costs not
to publish: ``disclosure * risk + withheld * (1 - utility)`` (Duncan and Fienberg 1999). The best method lies on
the frontier in either case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.errors import kind_of
from lustrum.model.release import check_release
from lustrum.model.table import check_table
from lustrum.model.text import html_table
from lustrum.risk.cell_certainty import CellCertainty
from lustrum.rumap.cases import Cases
from lustrum.rumap.grids import MapMethod
from lustrum.rumap.map import Over, RUMap, ordered, sweep_of
from lustrum.rumap.measures import usual_impute
from lustrum.rumap.points import ORIGINAL, Draw, Point, compared
from lustrum.rumap.sweep import Cache, Progress, Sweep, reporter
from lustrum.utility.measures.distances import AverageDistance, LargestDeviation

if TYPE_CHECKING:
    import altair
    import pandas

    from lustrum.audit import Attacker


_FIRST = 2
"""Draws of every method in the first round of a search by halves."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The method chosen, with the evidence: the map, why this one, and why none of the others.

    ``method`` is None where no method is under the limit.
    """

    method: MapMethod | None
    point: Point | None
    map: RUMap
    over: Over
    reason: str
    others: tuple[tuple[str, str], ...]

    def __repr__(self) -> str:
        return f"Choice({'none' if self.point is None else self.point.label})"

    def __str__(self) -> str:
        return "\n".join([self.reason, *(f"- {label}: {why}" for label, why in self.others)])


def best(
    tables: Table | Sequence[Table] | Mapping[str, Table] | Cases,
    max_risk: float,
    methods: Iterable[MapMethod] | None = None,
    measures: Sequence[Any] | None = None,
    attackers: Sequence[Attacker | str] | None = None,
    *,
    over: Over = "worst",
    search: Literal["grid", "halving", "bayes"] = "grid",
    trials: int = 48,
    replications: int = 10,
    seed: int = 0,
    workers: int | None = None,
    cache: Cache | Path | str | None = None,
    progress: Progress | bool | None = None,
) -> Choice:
    """The method with most utility among those whose risk is at most ``max_risk`` on all tables.

    With ``over="mean"`` the mean over the tables counts instead of the worst. A search by ``halving``
    measures all methods twice, keeps the better half, doubles the draws, and so on: of a large grid only
    the few best are drawn ``replications`` times. A search by ``bayes`` learns from ``trials`` proposals where
    to look next; its ``methods`` may be spaces with spans of parameters (:func:`lustrum.rumap.space`).

    >>> from lustrum.rumap import grid
    >>> table = Table.from_counts([[1, 14, 3], [17, 83, 0]])
    >>> methods = grid("conventional-rounding", base=[3, 5, 10]) + grid("none")
    >>> best(table, 0.25, methods).point.label
    'conventional-rounding base 3'
    """
    told = reporter(progress)
    if isinstance(max_risk, bool) or not isinstance(max_risk, (int, float)):
        raise InputError(
            f"'max_risk' is the largest risk that you accept, such as 0.05, not {kind_of(max_risk)}; methods "
            "come after it: best(table, 0.05, [...])."
        )
    if not max_risk >= 0:
        raise InputError(f"A limit of risk is a number of 0 or more, not {max_risk!r}.")
    spaces = None if methods is None else list(methods)
    if search == "bayes" and not spaces:
        raise InputError("A search by 'bayes' needs methods, with what to search of each.")
    sweep = sweep_of(
        tables,
        spaces,
        measures,
        attackers,
        replications=replications,
        seed=seed,
        workers=workers,
        cache=cache,
    )
    if search == "grid":
        ru_map = RUMap(sweep, ordered(d for job_draws in sweep.run(told) for d in job_draws))
    elif search == "halving":
        ru_map = _halved(sweep, max_risk, over, told)
    elif search == "bayes":
        from lustrum.rumap.search import searched

        ru_map = searched(sweep, max_risk, trials, over, told)
    else:
        raise InputError(f"A search is by 'grid', 'halving' or 'bayes', not {search!r}.")
    return best_of(ru_map, max_risk, over)


def best_of(ru_map: RUMap, max_risk: float, over: Over = "worst") -> Choice:
    """The choice from a map that was made already; none from one that still grows."""
    if ru_map.to_come:
        reason = (
            f"No method is named yet: {ru_map.to_come} draws are to come, and with few draws the best one is "
            "best by chance."
        )
        return Choice(None, None, ru_map, over, reason, ())
    sign = ru_map.measures.sign
    points = [p for p in ru_map.over(over) if not p.is_corner]
    most = max(p.draws for p in points)
    safe = [p for p in points if _within(p.risk_range[1], max_risk) and np.isfinite(p.utility)]
    # A search by halves leaves methods behind; those have fewer draws and cannot be chosen.
    ends = [p for p in safe if p.draws == most or p.errors == (0.0, 0.0)]
    point = max(ends, key=lambda p: (compared(sign * p.utility), -compared(p.risk)), default=None)
    others = tuple(
        (p.label, _why_not(p, point, max_risk, sign, most)) for p in points if p is not point
    )
    if point is None:
        near = min(
            (p for p in points if np.isfinite(p.risk)), key=lambda p: compared(p.risk), default=None
        )
        hint = f" The lowest is {near.risk:.4g}, by {near.label}." if near is not None else ""
        reason = f"No method keeps the risk at {max_risk:g} or below.{hint}"
        return Choice(None, None, ru_map, over, reason, others)
    reason = (
        f"{point.label} keeps most utility ({point.utility:.4g}) among the methods whose risk is at most "
        f"{max_risk:g}; its risk is {point.risk:.4g}, at most {point.risk_range[1]:.4g} with 95 per cent "
        f"confidence.{_already(ru_map, max_risk, over)}"
    )
    return Choice(ru_map.sweep.methods[point.index], point, ru_map, over, reason, others)


def _already(ru_map: RUMap, max_risk: float, over: Over) -> str:
    """A warning that a limit asks for nothing: then the method that changes least is the best one."""
    original = next((p for p in ru_map.over(over) if p.family == ORIGINAL), None)
    if original is None or not _within(original.risk, max_risk):
        return ""
    return (
        f" The original data have a risk of {original.risk:.4g}, which is under the limit too; a lower limit "
        "tells the methods apart."
    )


def decide(ru_map: RUMap, disclosure: float, withheld: float, over: Over = "mean") -> Choice:
    """The method with the least expected loss, by what a disclosure and what withholding cost.

    Utility must have two ends, so that the share withheld is known. To publish everything and to publish
    nothing are choices too; where one of them has the least loss, the reason says so and no method is
    chosen.

    >>> from lustrum.rumap import grid, rumap
    >>> table = Table.from_counts([[1, 14, 3], [17, 83, 0]])
    >>> found = rumap(table, grid("conventional-rounding", base=[3, 5, 10]))
    >>> decide(found, disclosure=10, withheld=20).point.label
    'conventional-rounding base 5'
    """
    if not (disclosure >= 0 and withheld >= 0 and disclosure + withheld > 0):
        raise InputError("Losses are numbers of 0 or more, and one of them is above 0.")
    low, high = ru_map.measures.utilities[0][1].range
    if not (np.isfinite(low) and np.isfinite(high)):
        raise InputError(
            f"The utility {ru_map.utility!r} has no worst value; a loss needs a measure with two ends."
        )

    def loss(point: Point) -> float:
        utility_share = (point.utility - low) / (high - low)
        utility_share = utility_share if ru_map.measures.sign > 0 else 1 - utility_share
        return float(disclosure * point.risk + withheld * (1 - utility_share))

    points = [p for p in ru_map.over(over) if np.isfinite(p.risk) and np.isfinite(p.utility)]
    first = min(points, key=lambda p: (compared(loss(p)), p.is_corner))
    others = tuple((p.label, f"expected loss {loss(p):.4g}") for p in points if p is not first)
    reason = f"{first.label} has the least expected loss, {loss(first):.4g}."
    if first.is_corner:
        return Choice(None, None, ru_map, over, reason, others)
    return Choice(ru_map.sweep.methods[first.index], first, ru_map, over, reason, others)


def _halved(sweep: Sweep, limit: float, over: Over, progress: Progress | None) -> RUMap:
    """Successive halving with draws as the resource (Jamieson and Talwalkar 2016)."""
    draws: dict[tuple[int, int], list[Draw]] = {}
    alive = list(range(len(sweep.methods)))
    wanted, done = min(_FIRST, sweep.replications), 0
    while True:
        jobs = [(m, r) for m in alive for r in range(wanted) if (m, r) not in draws]
        for job_draws, _ in sweep.all_of(jobs):
            draws[job_draws[0].method, job_draws[0].replication] = job_draws
            done += 1
            if progress is not None:
                progress(done, len(sweep.methods) * sweep.replications)
        ru_map = RUMap(sweep, ordered(d for job_draws in draws.values() for d in job_draws))
        if wanted >= sweep.replications:
            return ru_map
        points = {p.index: p for p in ru_map.over(over) if not p.is_corner}
        order = sorted(alive, key=lambda m: _score(points[m], limit, ru_map.measures.sign))
        alive = sorted(order[: max(1, (len(alive) + 1) // 2)])
        wanted = min(2 * wanted, sweep.replications)


def _score(point: Point, limit: float, sign: float) -> tuple[float, float]:
    """Methods under the limit by utility, then the others by how far they are above it."""
    if not (np.isfinite(point.risk) and np.isfinite(point.utility)):
        return (np.inf, 0.0)
    # A method whose interval reaches under the limit may still prove to be under it.
    over = max(0.0, compared(point.risk_range[0]) - compared(limit))
    return (compared(over), compared(-sign * point.utility))


def _within(risk: float, limit: float) -> bool:
    return compared(risk) <= compared(limit)


def _why_not(p: Point, chosen: Point | None, limit: float, sign: float, most: int) -> str:
    if not (np.isfinite(p.risk) and np.isfinite(p.utility)):
        return p.note or "it has no figures"
    if not _within(p.risk, limit):
        return f"risk {p.risk:.4g} is above the limit"
    if not _within(p.risk_range[1], limit):
        return f"risk {p.risk:.4g} may be above the limit: up to {p.risk_range[1]:.4g}"
    if chosen is not None and p.draws < most and any(p.errors):
        return f"left behind by the search after {p.draws} draws, with utility {p.utility:.4g}"
    if chosen is not None and compared(sign * p.utility) <= compared(sign * chosen.utility):
        return f"utility {p.utility:.4g} is not better"
    return f"risk {p.risk:.4g}, utility {p.utility:.4g}"


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
