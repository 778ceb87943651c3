"""Why a point scored as it did: terms of the risk, the cells that are known best, and the protected table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.risk.cell_certainty import CellCertainty
from lustrum.risk.table_entropy import EntropyRisk
from lustrum.rumap import Point, RUMap

_ROWS = 200
_WORST = 10


@dataclass(frozen=True, eq=False)
class PointDetail:
    """What the page of a point shows."""

    point: Point
    table: str
    beaten_by: Point | None
    figures: tuple[tuple[str, float, float], ...]
    terms: tuple[tuple[str, float, float], ...]
    certain: tuple[dict[str, Any], ...]
    judged: int
    disclosed: int
    head: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    left_out: int
    notes: tuple[str, ...]
    changed: int
    hidden: int
    cells: int


def detail_of(ru_map: RUMap, label: str, table: str) -> PointDetail:
    """The point of a method on a table, with its first draw."""
    points = ru_map.of(table)
    index = next(i for i, p in enumerate(points) if p.label == label)
    by = ru_map.dominators(table)[index]
    true = ru_map.sweep.cases.tables[table]
    release = ru_map.release(label, table)
    certain, judged, disclosed = _certain(true, release)
    rows = _rows(true, release)
    original = next(p for p in points if p.family == "original data")
    inner = true.inner
    return PointDetail(
        point=points[index],
        table=table,
        beaten_by=points[by] if by >= 0 else None,
        figures=tuple(
            (name, original.figures[name], value) for name, value in points[index].figures.items()
        ),
        terms=_terms(ru_map, true, release),
        certain=certain,
        judged=judged,
        disclosed=disclosed,
        head=tuple(axis.label for axis in true.axes),
        rows=tuple(rows[:_ROWS]),
        left_out=max(0, len(rows) - _ROWS),
        notes=release.notes,
        changed=int((release.shown & (release.published != true.values))[inner].sum()),
        hidden=int((~release.shown)[inner].sum()),
        cells=int(inner.sum()),
    )


def _terms(ru_map: RUMap, table: Table, release: Release) -> tuple[tuple[str, float, float], ...]:
    measure = next((m for _, m in ru_map.measures.risks if isinstance(m, EntropyRisk)), None)
    if measure is None:
        return ()
    try:
        before, after = measure.terms_before(table), measure.terms_after(table, release)
    except InputError:
        return ()
    names = ("empty cells", "small counts", "large counts", "number of people")
    return tuple(zip(names, before.as_tuple(), after.as_tuple(), strict=True))


def _certain(table: Table, release: Release) -> tuple[tuple[dict[str, Any], ...], int, int]:
    if table.kind != "count" or table.decimals:
        return (), 0, 0
    certainties = CellCertainty().cells(table, release)
    order = np.argsort(-certainties.certainty, kind="stable")[:_WORST]
    rows = []
    for index in order.tolist():
        position = np.unravel_index(int(certainties.cells[index]), table.shape)
        rows.append(
            {
                "cell": _name(table, position),
                "true": int(table.values[position]),
                "published": _shown(release, position),
                "low": _end(certainties.low[index]),
                "high": _end(certainties.high[index]),
                "certainty": float(certainties.certainty[index]),
            }
        )
    return tuple(rows), int(certainties.cells.size), certainties.disclosed


def _rows(table: Table, release: Release) -> list[dict[str, Any]]:
    return [
        {
            "codes": [a.labels[i] for a, i in zip(table.axes, position, strict=True)],
            "true": _scaled(int(table.values[position]), table.decimals),
            "published": _shown(release, position),
            "total": not bool(table.inner[position]),
            "changed": not release.shown[position]
            or release.published[position] != table.values[position],
        }
        for position in np.ndindex(*table.shape)
    ]


def _name(table: Table, position: tuple[Any, ...]) -> str:
    return ", ".join(
        f"{axis.label} {axis.labels[int(i)]}" for axis, i in zip(table.axes, position, strict=True)
    )


def _shown(release: Release, position: tuple[Any, ...]) -> str:
    if not release.shown[position]:
        return "hidden"
    return _scaled(int(release.published[position]), release.decimals)


def _scaled(value: int, decimals: int) -> str:
    return f"{value:,}" if not decimals else f"{value / 10**decimals:,.{decimals}f}"


def _end(value: float) -> str:
    return f"{value:,.0f}" if np.isfinite(value) else "no bound"
