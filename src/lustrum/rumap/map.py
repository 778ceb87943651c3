"""The risk-utility map: points, frontier, and what they mean for several tables at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from lustrum._version import __version__
from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Indices, Mask
from lustrum.model.errors import check_known
from lustrum.model.text import html_table
from lustrum.rumap.cases import Cases, cases_of
from lustrum.rumap.grids import MapMethod, default_methods, labels
from lustrum.rumap.measures import Measures, measures_of
from lustrum.rumap.points import NOTHING, ORIGINAL, Draw, Point, compared, corner, point_of
from lustrum.rumap.sweep import Cache, Progress, Sweep, reporter

if TYPE_CHECKING:
    import altair
    import pandas
    import pyarrow as pa

    from lustrum.audit import Attacker

# The risk-utility frontier: which points no other point beats.
#
# A point dominates another if it has no more risk and no less utility, and is better in one of the two. The
# frontier holds the points that nothing dominates. Functions on arrays; utility is higher where it is better.


def frontier(risk: npt.ArrayLike, utility: npt.ArrayLike) -> Mask:
    """Which points no other point dominates. Equal points stand or fall together; NaN never stands.

    >>> frontier([0.1, 0.2, 0.2, 0.3], [0.5, 0.9, 0.8, 0.9]).tolist()
    [True, True, False, False]
    """
    return np.asarray(dominators(risk, utility) == -1)


def dominators(risk: npt.ArrayLike, utility: npt.ArrayLike) -> Indices:
    """For each point a point of the frontier that dominates it: -1 if none does, -2 if it has no figures.

    >>> dominators([0.1, 0.2, 0.2, np.nan], [0.5, 0.9, 0.8, 1.0]).tolist()
    [-1, -1, 1, -2]
    """
    R, U = (np.asarray(a, dtype=np.float64).ravel() for a in (risk, utility))
    dominated_by = np.full(R.size, -2, dtype=np.intp)
    valid = np.flatnonzero(~(np.isnan(R) | np.isnan(U)))
    best = -1
    # By rising risk, and falling utility at the same risk: what dominates a point came before it.
    for i in valid[np.lexsort((-U[valid], R[valid]))].tolist():
        if best >= 0 and U[best] >= U[i] and (R[best] < R[i] or U[best] > U[i]):
            dominated_by[i] = best
        else:
            dominated_by[i] = -1
            if best < 0 or U[i] > U[best]:
                best = i
    return dominated_by


def dominated_area(
    risk: npt.ArrayLike, utility: npt.ArrayLike, most_risk: float = 1.0, least_utility: float = 0.0
) -> float:
    """The area of the map that the points dominate, up to a largest risk and down to a least utility.

    More points never make it smaller, so it compares frontiers.

    >>> round(dominated_area([0.2, 0.6], [0.5, 1.0]), 6)
    0.6
    """
    R, U = (np.asarray(a, dtype=np.float64).ravel() for a in (risk, utility))
    keep = frontier(R, U) & (most_risk > R) & (least_utility < U)
    order = np.argsort(R[keep], kind="stable")
    R, U = R[keep][order], U[keep][order]
    widths = np.diff(np.append(R, most_risk))
    return float((widths * (np.maximum.accumulate(U) - least_utility)).sum()) if R.size else 0.0


Over = Literal["worst", "mean"]
"""How several tables become one: by the worst of them, or on average."""


@dataclass(frozen=True, eq=False)
class RUMap:
    """The points of a map. Low risk and high utility are wanted.

    The figures follow from true counts. A map is for the agency that chooses a method, not for the public.
    So many draws are ``to_come`` on a map that still grows.
    """

    sweep: Sweep
    draws: tuple[Draw, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    to_come: int = 0

    def __repr__(self) -> str:
        return f"RUMap({len(self.points)} points, {len(self.tables)} tables)"

    def __str__(self) -> str:
        width = max(len(p.label) for p in self.points)
        lines = []
        for table in self.tables:
            lines.append(f"{table}: {self.risk} against {self.utility}")
            for point, by in zip(self.of(table), self.dominators(table), strict=True):
                mark = "" if by == -2 else "*" if by == -1 else " "
                lines.append(
                    f"{mark:2}{point.label:{width}}  {point.risk:.4f}  {point.utility:.4f}"
                )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (table, p.label, f"{p.risk:.4f}", f"{p.utility:.4f}", "yes" if by == -1 else "")
            for table in self.tables
            for p, by in zip(self.of(table), self.dominators(table), strict=True)
        ]
        said = f"{self.risk} against {self.utility}; map.chart() draws it."
        return html_table(said, ("table", "method", "risk", "utility", "on the frontier"), rows)

    @property
    def measures(self) -> Measures:
        return self.sweep.measures

    @property
    def risk(self) -> str:
        return self.measures.risk

    @property
    def utility(self) -> str:
        return self.measures.utility

    @property
    def sign(self) -> float:
        """1 where a higher utility is better, -1 where a lower one is."""
        return self.measures.sign

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(self.sweep.cases.tables)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(labels(self.sweep.methods))

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Table by table, the two corners and then the methods in their order."""
        by: dict[tuple[str, int], list[Draw]] = {}
        for draw in self.draws:
            by.setdefault((draw.table, draw.method), []).append(draw)
        points = []
        for name, table in self.sweep.cases.tables.items():
            for end, figures in (
                (NOTHING, self.measures.nothing()),
                (ORIGINAL, self.measures.before(table)),
            ):
                points.append(corner(name, end, figures, self.risk, self.utility))
            for index, method in enumerate(self.sweep.methods):
                draws = sorted(by.get((name, index), []), key=lambda d: d.replication)
                if draws:
                    mapping = method.to_mapping()
                    point = point_of(
                        draws, self.labels[index], method.name, mapping, self.risk, self.utility
                    )
                    points.append(point)
        return tuple(points)

    def of(self, table: str | None = None) -> tuple[Point, ...]:
        name = self._table(table)
        return tuple(p for p in self.points if p.table == name)

    def over(self, how: Over = "worst") -> tuple[Point, ...]:
        """One point for each method over all tables: highest risk and lowest utility, or the means."""
        if how not in ("worst", "mean"):
            raise InputError(f"Tables are taken together by 'worst' or 'mean', not {how!r}.")
        by: dict[str, list[Point]] = {}
        for point in self.points:
            by.setdefault(point.label, []).append(point)
        return tuple(
            _together(method_points, how, self.measures.sign) for method_points in by.values()
        )

    def dominators(self, table: str | None = None) -> list[int]:
        """For each point of a table the place of one that dominates it, -1 on the frontier.

        The corners neither dominate nor are on the frontier; they and points without figures get -2.
        """
        return _dominators(self.of(table), self.measures.sign)

    def frontier(self, table: str | None = None, over: Over | None = None) -> tuple[Point, ...]:
        """The points of a table, or over all tables, that no method beats, by rising risk."""
        points = self.of(table) if over is None else self.over(over)
        pairs = zip(points, _dominators(points, self.measures.sign), strict=True)
        return tuple(sorted((p for p, by in pairs if by == -1), key=lambda p: compared(p.risk)))

    def release(self, label: str, table: str | None = None, replication: int = 0) -> Release:
        """What a method of the map publishes of a table in one of its draws."""
        check_known((label,), self.labels, "The map has no method")
        releases = self.sweep.release(self.labels.index(label), replication)
        return releases[self._table(table)]

    def to_arrow(self) -> pa.Table:
        """A tidy frame: a row for each point, with whether it is on the frontier or what dominates it."""
        import pyarrow as pa

        rows = []
        for table in self.tables:
            points = self.of(table)
            for point, by in zip(points, self.dominators(table), strict=True):
                beaten = points[by].label if by >= 0 else ""
                rows.append({**point.row(), "frontier": by == -1, "dominated_by": beaten})
        return pa.Table.from_pylist(rows)

    def to_pandas(self) -> pandas.DataFrame:
        return self.to_arrow().to_pandas()

    def draws_to_arrow(self) -> pa.Table:
        import pyarrow as pa

        rows = [
            {
                "table": d.table, "label": self.labels[d.method], "replication": d.replication,
                **d.figures, "note": d.note,
            }
            for d in sorted(self.draws, key=lambda d: (d.table, d.method, d.replication))
        ]  # fmt: skip
        return pa.Table.from_pylist(rows)

    def chart(
        self,
        table: str | None = None,
        *,
        limit: float | None = None,
        labels: Literal["frontier", "all", "none"] = "frontier",
        regions: bool = True,
        corners: bool = False,
        width: int = 560,
        height: int = 400,
    ) -> altair.LayerChart:
        """The map of one table as a Vega-Lite chart; see :func:`lustrum.rumap.charts.map_chart`."""
        from lustrum.rumap.charts import map_chart

        return map_chart(
            self,
            table,
            limit=limit,
            labels=labels,
            regions=regions,
            corners=corners,
            width=width,
            height=height,
        )

    def save(self, path: Path | str, *, limit: float | None = None) -> Path:
        """Write the map as a picture (PNG, SVG), a page (HTML) or a specification (JSON).

        Several tables become small multiples. For other options make a chart with :meth:`chart` or
        :func:`lustrum.rumap.charts.tables_chart` and write it with :func:`lustrum.rumap.charts.save_chart`.
        """
        from lustrum.rumap.charts import save_chart, tables_chart

        several = len(self.tables) > 1
        chart = tables_chart(self, limit=limit) if several else self.chart(limit=limit)
        return save_chart(chart, path)

    def _table(self, table: str | None) -> str:
        if table is None:
            if len(self.tables) > 1:
                raise InputError(f"The map has several tables; name one: {', '.join(self.tables)}.")
            return self.tables[0]
        check_known((table,), self.tables, "The map has no table")
        return table


def rumap(
    tables: Table | Sequence[Table] | Mapping[str, Table] | Cases,
    methods: Iterable[MapMethod] | None = None,
    measures: Sequence[Any] | None = None,
    attackers: Sequence[Attacker | str] | None = None,
    *,
    replications: int = 10,
    seed: int = 0,
    workers: int | None = None,
    cache: Cache | Path | str | None = None,
    progress: Progress | bool | None = None,
) -> RUMap:
    """Measure every method on every table and put them on one map of risk against utility.

    ``tables`` is a table, several, or a :class:`Cube` or :class:`Records` from which tables are counted.
    ``methods`` are specs, for instance from :func:`grid`; without them a set that fits the table.
    ``measures`` are risk and utility measures, as objects or by name; the first of each are the axes.
    ``attackers`` are those against whom cells are judged. Methods with chance are drawn ``replications``
    times. A method that is not for a table gets a point without figures and a sentence that says why.
    With a ``cache`` file a map that was stopped goes on where it was. ``progress`` is a function that is told
    how many draws are done and of how many, or True for a line that says so.

    >>> from lustrum.rumap import grid
    >>> table = Table.from_counts([[1, 14, 3], [17, 83, 0]])
    >>> found = rumap(table, grid("random-rounding", base=[3, 5]), replications=4)
    >>> [p.label for p in found.points]
    ['no data', 'original data', 'random-rounding base 3', 'random-rounding base 5']
    """
    told = reporter(progress)
    sweep = sweep_of(
        tables,
        methods,
        measures,
        attackers,
        replications=replications,
        seed=seed,
        workers=workers,
        cache=cache,
    )
    draws = [draw for job_draws in sweep.run(told) for draw in job_draws]
    return RUMap(sweep, ordered(draws), _provenance(sweep))


def growing_map(sweep: Sweep, progress: Progress | None = None) -> Iterator[RUMap]:
    """The map after each draw, for a page on which points appear as they come in.

    >>> from lustrum.rumap import grid
    >>> methods = grid("conventional-rounding", base=[3, 5])
    >>> sweep = sweep_of(Table.from_counts([[1, 9], [8, 7]]), methods, workers=1)
    >>> [*growing_map(sweep)][-1].to_come
    0
    """
    draws: list[Draw] = []
    to_come = 0

    def counted(done: int, total: int) -> None:
        nonlocal to_come
        to_come = total - done
        if progress is not None:
            progress(done, total)

    for job_draws in sweep.run(counted):
        draws += job_draws
        yield RUMap(sweep, ordered(draws), _provenance(sweep), to_come)


def sweep_of(
    tables: Table | Sequence[Table] | Mapping[str, Table] | Cases,
    methods: Iterable[MapMethod] | None = None,
    measures: Sequence[Any] | None = None,
    attackers: Sequence[Attacker | str] | None = None,
    *,
    replications: int = 10,
    seed: int = 0,
    workers: int | None = None,
    cache: Cache | Path | str | None = None,
) -> Sweep:
    """What :func:`rumap` is going to measure.

    >>> from lustrum.rumap import grid
    >>> len(sweep_of(Table.from_counts([1, 9]), grid("conventional-rounding", base=[3, 5])).methods)
    2
    """
    cases = cases_of(tables)
    first = next(iter(cases.tables.values()))
    chosen = tuple(default_methods(first) if methods is None else methods)
    draw_cache = cache if isinstance(cache, Cache) else Cache(cache)
    return Sweep(
        cases,
        chosen,
        measures_of(measures, attackers, first),
        replications,
        seed,
        workers,
        draw_cache,
    )


def ordered(draws: Iterable[Draw]) -> tuple[Draw, ...]:
    return tuple(sorted(draws, key=lambda d: (d.method, d.replication)))


def _provenance(sweep: Sweep) -> dict[str, Any]:
    return {
        "lustrum": __version__,
        "seed": sweep.seed,
        "replications": sweep.replications,
        "measures": list(sweep.measures.columns),
    }


def _dominators(points: Sequence[Point], sign: float) -> list[int]:
    places = [i for i, p in enumerate(points) if not p.is_corner]
    dominated_by = dominators(
        [compared(points[i].risk) for i in places],
        [compared(sign * points[i].utility) for i in places],
    )
    out = [-2] * len(points)
    for index, by in zip(places, dominated_by.tolist(), strict=True):
        out[index] = places[by] if by >= 0 else by
    return out


def _together(points: Sequence[Point], how: Over, sign: float) -> Point:
    risks, utilities = (np.array([getattr(p, n) for p in points]) for n in ("risk", "utility"))
    errors = np.array([p.errors for p in points])
    if how == "worst":
        # One table without figures leaves the worst unknown; NaN goes through.
        at = (
            int(np.argmax([compared(risk) for risk in risks])),
            int(np.argmin([compared(sign * utility) for utility in utilities])),
        )
        risk, utility = float(risks[at[0]]), float(utilities[at[1]])
        spread = float(errors[at[0], 0]), float(errors[at[1], 1])
    else:
        risk, utility = float(risks.mean()), float(utilities.mean())
        both = np.sqrt((errors**2).sum(axis=0)) / len(points)
        spread = float(both[0]), float(both[1])
    columns = points[0].figures
    figures = {c: float(np.mean([p.figures[c] for p in points])) for c in columns}
    return replace(
        points[0],
        table="all tables",
        risk=risk,
        utility=utility,
        figures=figures,
        draws=min(p.draws for p in points),
        errors=spread,
        correlation=0.0,
        note=next((p.note for p in points if p.note), ""),
    )
