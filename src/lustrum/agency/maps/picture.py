"""The map as SVG with a link for every point: it can be walked by keyboard and follows the page's colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.numeric.arithmetic import power_of_ten
from lustrum.risk.cell_certainty import CellCertainty
from lustrum.risk.table_entropy import EntropyRisk
from lustrum.rumap import Point, RUMap
from lustrum.runtime.svg import element, escaped

_WIDTH, _HEIGHT = 720, 460
_SHAPES = 10
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 48
_COLOURS = 8


def map_svg(ru_map: RUMap, table: str, limit: float | None, address: str) -> str:
    """The map of a table; ``address`` leads to the page of a point, with {index} for its number."""
    points = ru_map.of(table)
    pairs = [
        (p, by)
        for p, by in zip(points, ru_map.dominators(table), strict=True)
        if np.isfinite(p.risk) and np.isfinite(p.utility) and p.family != "no data"
    ]
    risks = [0.0, *(p.risk for p, _ in pairs), *([] if limit is None else [limit])]
    x_ends = _ends([p.utility for p, _ in pairs])
    y_ends = _ends(risks)
    families = list(dict.fromkeys(p.family for p in points if not p.is_corner))

    def at(utility: float, risk: float) -> tuple[float, float]:
        x = (utility - x_ends[0]) / (x_ends[1] - x_ends[0])
        y = (risk - y_ends[0]) / (y_ends[1] - y_ends[0])
        return (
            round(_LEFT + x * (_WIDTH - _LEFT - _RIGHT), 1),
            round(_HEIGHT - _BOTTOM - y * (_HEIGHT - _TOP - _BOTTOM), 1),
        )

    parts = _axes(x_ends, y_ends, at, ru_map)
    if limit is not None:
        (x1, y), (x2, _) = at(x_ends[0], limit), at(x_ends[1], limit)
        parts.append(element("line", class_="limit", x1=x1, y1=y, x2=x2, y2=y))
        name = f"limit {limit:g}"
        parts.append(element("text", name, class_="limit-name", x=x1 + 4, y=y - 5))
    steps = sorted((p for p, by in pairs if by == -1), key=lambda p: round(p.risk, 9))
    if len(steps) > 1:
        corners = [at(steps[0].utility, steps[0].risk)]
        for before, after in pairwise(steps):
            corners += [at(before.utility, after.risk), at(after.utility, after.risk)]
        line = " ".join(f"{x},{y}" for x, y in corners)
        parts.append(element("polyline", class_="frontier-line", points=line))
    for point, by in pairs:
        parts += _drawn(point, by, at, families, address)
    said = f"Map of {table}: {len(pairs)} points, utility to the right, risk upwards"
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    return element("svg", *parts, class_="map", viewBox=box, role="group", aria_label=said)


def _drawn(point: Point, by: int, at: object, families: Sequence[str], address: str) -> list[str]:
    assert callable(at)
    x, y = at(point.utility, point.risk)
    if point.is_corner:
        name = escaped(point.label)
        square = element("rect", x=x - 4, y=y - 4, width=8, height=8)
        return [
            element("g", element("title", name), square, class_="corner"),
            element("text", name, class_="name", x=x - 8, y=y + 4),
        ]
    number = families.index(point.family)
    state = "frontier" if by == -1 else "dominated"
    said = f"{point.label}: risk {point.risk:.4f}, utility {point.utility:.4f}, {state}"
    outline = point.region(24)
    region = ""
    if len(outline) > 1:
        line = " ".join(f"{a},{b}" for a, b in (at(u, r) for u, r in outline))
        region = element("polygon", class_="region", points=line)
    return [
        element(
            "a",
            element("title", escaped(said)),
            region,
            _shape(number, x, y),
            class_=f"point f{number % _COLOURS} {state}",
            href=address.format(index=point.index),
            aria_label=said,
        )
    ]


def _shape(number: int, x: float, y: float) -> str:
    """A shape for each family, as in the charts."""
    kind = number % _SHAPES
    if kind == 0:
        return element("circle", cx=x, cy=y, r=6)
    if kind == 1:
        return element("rect", x=x - 5.5, y=y - 5.5, width=11, height=11)
    corners = {
        2: ((0, -7), (6.5, 5), (-6.5, 5)),
        3: ((0, -7.5), (6.5, 0), (0, 7.5), (-6.5, 0)),
        4: ((0, 7), (6.5, -5), (-6.5, -5)),
        5: (
            (-2, -6),
            (2, -6),
            (2, -2),
            (6, -2),
            (6, 2),
            (2, 2),
            (2, 6),
            (-2, 6),
            (-2, 2),
            (-6, 2),
            (-6, -2),
            (-2, -2),
        ),
        6: ((-5, -6.5), (7, 0), (-5, 6.5)),
        7: ((5, -6.5), (-7, 0), (5, 6.5)),
        8: ((-6, -6), (6, -6), (-6, 6), (6, 6)),
        9: ((-6, -6), (-6, 6), (6, -6), (6, 6)),
    }[kind]
    line = " ".join(f"{round(x + a, 1)},{round(y + b, 1)}" for a, b in corners)
    return element("polygon", class_="mark", points=line)


def _axes(
    x_ends: tuple[float, float], y_ends: tuple[float, float], at: object, ru_map: RUMap
) -> list[str]:
    assert callable(at)
    parts = []
    for value in _ticks(*x_ends):
        x, bottom = at(value, y_ends[0])
        _, top = at(value, y_ends[1])
        parts.append(element("line", class_="grid", x1=x, y1=top, x2=x, y2=bottom))
        parts.append(element("text", f"{value:g}", class_="tick", x=x, y=bottom + 16))
    for value in _ticks(*y_ends):
        left, y = at(x_ends[0], value)
        right, _ = at(x_ends[1], value)
        parts.append(element("line", class_="grid", x1=left, y1=y, x2=right, y2=y))
        parts.append(element("text", f"{value:g}", class_="tick left", x=left - 6, y=y + 4))
    better = "higher is better" if ru_map.sign > 0 else "lower is better"
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    name = escaped(f"utility: {ru_map.utility} ({better})")
    parts.append(element("text", name, class_="axis", x=middle, y=_HEIGHT - 8))
    height = (_TOP + _HEIGHT - _BOTTOM) / 2
    turned = f"translate(14 {height}) rotate(-90)"
    parts.append(element("text", escaped(f"risk: {ru_map.risk}"), class_="axis", transform=turned))
    return parts


def _ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    room = 0.06 * ((high - low) or 1.0)
    return (low - room if low else 0.0), high + room


def _ticks(low: float, high: float) -> list[float]:
    step = power_of_ten((high - low) / 4)
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 6)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) for i in range(first, math.floor(high / step + 1e-9) + 1)]


# --- Why a point scored as it did: terms of the risk, the cells that are known best, and the protected table

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
    certain: tuple[dict[str, object], ...]
    judged: int
    disclosed: int
    head: tuple[str, ...]
    rows: tuple[dict[str, object], ...]
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
        changed=int((release.shown & (release.numbers != true.values))[inner].sum()),
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


def _certain(table: Table, release: Release) -> tuple[tuple[dict[str, object], ...], int, int]:
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


def _rows(table: Table, release: Release) -> list[dict[str, object]]:
    return [
        {
            "codes": [a.labels[i] for a, i in zip(table.axes, position, strict=True)],
            "true": _scaled(int(table.values[position]), table.decimals),
            "published": _shown(release, position),
            "total": not bool(table.inner[position]),
            "changed": not release.shown[position]
            or release.numbers[position] != table.values[position],
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
    return _scaled(int(release.numbers[position]), release.decimals)


def _scaled(value: int, decimals: int) -> str:
    return f"{value:,}" if not decimals else f"{value / 10**decimals:,.{decimals}f}"


def _end(value: float) -> str:
    return f"{value:,.0f}" if np.isfinite(value) else "no bound"
