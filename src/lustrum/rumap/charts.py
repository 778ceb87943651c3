"""Maps and tables as Vega-Lite charts. Needs the extra ``charts`` (altair, vl-convert).

Colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart; methods differ
in shape as well, so that a chart can be read in black and white print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.rumap.points import NOTHING, ORIGINAL, compared

if TYPE_CHECKING:
    import altair

    from lustrum.rumap.points import MapLike, Point
    from lustrum.rumap.series import SeriesMap

Chart: TypeAlias = Any

COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444", "#8a6d00",
)  # fmt: skip
SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left",
    # An hourglass and a bow tie, as outlines.
    "M-0.9,-0.9H0.9L-0.9,0.9H0.9Z", "M-0.9,-0.9V0.9L0.9,-0.9V0.9Z",
)  # fmt: skip
"""More of them than colours, so that ten methods can be told apart without colour."""
_CORNER_SHAPE = "stroke"
_CHARACTER = 5.6
"""Width of a character of a label, in pixels."""
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


def map_chart(
    ru_map: MapLike,
    table: str | None = None,
    *,
    limit: float | None = None,
    labels: Literal["frontier", "all", "none"] = "frontier",
    regions: bool = True,
    corners: bool = False,
    width: int = 560,
    height: int = 400,
) -> altair.LayerChart:
    """The map of a table: points, frontier, confidence regions and a limit of risk.

    Of the two corners the original data is always there; ``corners`` adds the point of no data, which
    is often far away. Labels that would lie upon each other are left out.

    Utility grows to the right and risk upwards, as Duncan and others draw it: down and to the right is better.
    """
    alt = _altair()
    points = ru_map.of(table)
    size = width, height
    layers = _layers(
        alt, ru_map, points, ru_map.dominators(table), limit, labels, regions, corners, size
    )
    chart: altair.LayerChart = _configured(layers)
    return chart


def releases_chart(
    rows: Sequence[Mapping[str, Any]], width: int = 420, height: int = 300
) -> altair.LayerChart:
    """Releases side by side: the average distance of their cells, against certainty where it was measured."""
    alt = _altair()
    up = "certainty" if "certainty" in rows[0] else "hidden cells"
    base = alt.Chart(alt.Data(values=[dict(row) for row in rows])).encode(
        x=alt.X("average distance:Q", title="Average distance"),
        y=alt.Y(f"{up}:Q", title=up.capitalize()),
    )
    points = base.mark_point(filled=True, size=70, color=COLOURS[0])
    names = base.mark_text(align="left", dx=8).encode(text="release:N")
    chart: altair.LayerChart = _configured(
        alt.layer(points, names).properties(width=width, height=height)
    )
    return chart


def tables_chart(
    ru_map: MapLike,
    *,
    limit: float | None = None,
    labels: Literal["frontier", "all", "none"] = "none",
    columns: int = 2,
    width: int = 320,
    height: int = 240,
) -> altair.ConcatChart:
    """Small multiples: the map of every table, on the same scales."""
    alt = _altair()
    finite = [p for p in ru_map.points if np.isfinite(p.risk) and np.isfinite(p.utility)]
    drawn = [p for p in finite if p.family != NOTHING]
    ends = (
        _domain([p.utility for p in drawn]),
        _domain([0.0, *(p.risk for p in drawn), *([limit] if limit is not None else [])]),
    )
    size = width, height
    charts = [
        _layers(
            alt,
            ru_map,
            ru_map.of(name),
            ru_map.dominators(name),
            limit,
            labels,
            False,
            False,
            size,
            ends,
        ).properties(title=name)
        for name in ru_map.tables
    ]
    chart: altair.ConcatChart = _configured(alt.concat(*charts, columns=columns))
    return chart


def series_chart(series_map: SeriesMap, width: int = 560, height: int = 360) -> altair.HConcatChart:
    """Risk and utility after each question of a series, a line for each method."""
    alt = _altair()
    rows = [vars(p) for p in series_map.points]
    scale = alt.Scale(
        domain=list(series_map.labels), range=_cycled(COLOURS, len(series_map.labels))
    )
    dashes = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3]]
    panels = []
    for column, title in (("risk", "certainty about small cells"), ("utility", "mean utility")):
        panels.append(
            alt.Chart(alt.InlineData(values=rows), width=width // 2, height=height)
            .mark_line(point=alt.OverlayMarkDef(size=40), strokeWidth=2)
            .encode(
                x=alt.X("questions:O", title="questions", axis=alt.Axis(labelAngle=0)),
                y=alt.Y(f"{column}:Q", title=title, scale=alt.Scale(zero=column == "risk")),
                color=alt.Color("label:N", title="method", scale=scale),
                strokeDash=alt.StrokeDash(
                    "label:N",
                    title="method",
                    scale=alt.Scale(
                        domain=list(series_map.labels),
                        range=_cycled(dashes, len(series_map.labels)),
                    ),
                ),
                tooltip=[
                    "label:N",
                    "questions:Q",
                    "question:N",
                    "risk:Q",
                    "disclosed:Q",
                    "utility:Q",
                ],
            )
        )
    chart: altair.HConcatChart = _configured(alt.hconcat(*panels))
    return chart


def risk_table_chart(
    table: Table, release: Release, *, attacker: Any = "outsider", up_to: int = 5, cell: int = 22
) -> altair.LayerChart:
    """The table itself: how certain an attacker is of each small cell, darker where it is more.

    Tables of more than two variables are laid out with all but the last along the rows.
    """
    from lustrum.risk.cell_certainty import CellCertainty

    alt = _altair()
    measured = CellCertainty(attacker, up_to=up_to).cells(table, release)
    certainty = dict(zip(measured.cells.tolist(), measured.certainty.tolist(), strict=True))
    rows = []
    for flat, position in enumerate(np.ndindex(*table.shape)):
        names = [axis.labels[i] for axis, i in zip(table.axes, position, strict=True)]
        shown = bool(release.shown[position])
        rows.append(
            {
                "row": " | ".join(names[:-1]) or "all",
                "column": names[-1],
                "certainty": certainty.get(flat),
                "published": str(int(release.numbers[position])) if shown else "suppressed",
                "place": flat,
            }
        )
    last = table.axes[-1]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("column:N", title=last.label, sort=list(last.labels), axis=alt.Axis(orient="top")),
        y=alt.Y("row:N", title=" | ".join(a.label for a in table.axes[:-1]) or None,
                sort=alt.EncodingSortField("place")),
    )  # fmt: skip
    cells = base.mark_rect(stroke="#bbbbbb", strokeWidth=0.5).encode(
        color=alt.condition(
            "isValid(datum.certainty)",
            alt.Color(
                "certainty:Q", title="certainty", scale=alt.Scale(scheme="oranges", domain=[0, 1])
            ),
            alt.value("#f4f4f4"),
        ),
        tooltip=["row:N", "column:N", "published:N", "certainty:Q"],
    )
    layers = [cells]
    if table.values.size <= 200:
        layers.append(base.mark_text(fontSize=9, color="#111111").encode(text="published:N"))
    chart = alt.layer(*layers).properties(
        width=cell * max(table.shape[-1], 1) * 2, height=cell * int(np.prod(table.shape[:-1]))
    )
    configured: altair.LayerChart = _configured(chart)
    return configured


def distribution_chart(
    table: Table, release: Release, most: int = 12, width: int = 420, height: int = 240
) -> altair.Chart:
    """How many inner cells hold 0, 1, 2, ... before and after protection."""
    alt = _altair()
    rows = []
    before = table.values[table.inner]
    after = release.numbers[table.inner & release.shown]
    for word, values in (("before", before), ("after", after)):
        counted = np.bincount(np.clip(values, 0, most), minlength=most + 1)
        rows += [
            {
                "value": f"{v}" if v < most else f"{most}+",
                "place": v,
                "cells": int(n),
                "table": word,
            }
            for v, n in enumerate(counted.tolist())
        ]
    hidden = int((table.inner & ~release.shown).sum())
    if hidden:
        rows.append({"value": "hidden", "place": most + 1, "cells": hidden, "table": "after"})
    chart = (
        alt.Chart(alt.InlineData(values=rows), width=width, height=height)
        .mark_bar()
        .encode(
            x=alt.X("value:N", title="value of the cell", sort=alt.EncodingSortField("place"),
                    axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("table:N", sort=["before", "after"]),
            y=alt.Y("cells:Q", title="inner cells", scale=alt.Scale(type="symlog")),
            color=alt.Color("table:N", title="", sort=["before", "after"],
                            scale=alt.Scale(domain=["before", "after"], range=[COLOURS[6], COLOURS[4]])),
            tooltip=["table:N", "value:N", "cells:Q"],
        )
    )  # fmt: skip
    configured: altair.Chart = _configured(chart)
    return configured


def svg_of(chart: Chart) -> str:
    """A chart as SVG, drawn without a browser."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(chart.to_dict())
    return svg


def save_chart(chart: Chart, path: Path | str, scale: float = 2.0) -> Path:
    """Write a chart as .png, .svg, .html (with all scripts inside, no other host is asked) or .json."""
    import vl_convert

    target = Path(path)
    spec = chart.to_dict()
    kind = target.suffix.lower()
    if kind == ".png":
        target.write_bytes(vl_convert.vegalite_to_png(spec, scale=scale))
    elif kind == ".svg":
        target.write_text(svg_of(chart), encoding="utf-8")
    elif kind == ".html":
        target.write_text(vl_convert.vegalite_to_html(spec, bundle=True), encoding="utf-8")
    elif kind == ".json":
        target.write_text(chart.to_json(), encoding="utf-8")
    else:
        raise InputError(f"A chart is written as .png, .svg, .html or .json, not {kind!r}.")
    return target


def _layers(
    alt: Any,
    ru_map: MapLike,
    points: Sequence[Point],
    dominators: Sequence[int],
    limit: float | None,
    labels: str,
    regions: bool,
    corners: bool,
    size: tuple[int, int],
    ends: tuple[list[float], list[float]] | None = None,
) -> Any:
    rows: list[dict[str, Any]] = []
    outlines: list[dict[str, Any]] = []
    for point, by in zip(points, dominators, strict=True):
        if not (np.isfinite(point.risk) and np.isfinite(point.utility)):
            continue
        if point.family == NOTHING and not corners:
            continue
        state = "corner" if point.is_corner else "frontier" if by == -1 else "dominated"
        rows.append(
            {
                "label": point.label, "method": point.family, "risk": point.risk, "utility": point.utility,
                "state": state, "draws": point.draws, "table": point.table,
                "wanted": labels == "all" or (labels == "frontier" and state != "dominated")
                or point.is_corner,
            }
        )  # fmt: skip
        outline = point.region() if regions else []
        if len(outline) > 1:
            closed = [*outline, outline[0]]
            outlines += [
                {"label": point.label, "method": point.family, "utility": u, "risk": r, "order": i}
                for i, (u, r) in enumerate(closed)
            ]
    if ends is None:
        drawn = [*rows, *outlines]
        ends = (
            _domain([r["utility"] for r in drawn]),
            _domain([0.0, *(r["risk"] for r in drawn), *([] if limit is None else [limit])]),
        )
    _name_points(rows, ends, size)
    families = list(dict.fromkeys(r["method"] for r in rows if r["state"] != "corner"))
    domain = [*families, *([NOTHING] if corners else []), ORIGINAL]
    extra = [*(["#777777"] if corners else []), "#000000"]
    colour = alt.Scale(domain=domain, range=[*_cycled(COLOURS, len(families)), *extra])
    shapes = [*_cycled(SHAPES, len(families)), *([_CORNER_SHAPE] * len(extra))]
    shape = alt.Scale(domain=domain, range=shapes)
    x_scale, y_scale = (alt.Scale(domain=end, nice=False, zero=False) for end in ends)
    better = "higher is better" if ru_map.sign > 0 else "lower is better"
    x = alt.X("utility:Q", title=f"utility: {ru_map.utility} ({better})", scale=x_scale)
    y = alt.Y("risk:Q", title=f"risk of disclosure: {ru_map.risk}", scale=y_scale)
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x, y=y)
    layers = []
    if outlines:
        layers.append(
            alt.Chart(alt.InlineData(values=outlines))
            .mark_line(strokeWidth=0.8, opacity=0.6)
            .encode(x=x, y=y, order="order:Q", detail="label:N",
                    color=alt.Color("method:N", scale=colour, title="method"))
        )  # fmt: skip
    layers.append(
        base.transform_filter("datum.state == 'frontier'")
        .mark_line(color="#555555", strokeDash=[4, 3], interpolate="step-before", strokeWidth=1)
        .encode(order=alt.Order("risk:Q"))
    )
    layers.append(
        base.mark_point(size=75, strokeWidth=1.6).encode(
            color=alt.Color("method:N", scale=colour, title="method"),
            shape=alt.Shape("method:N", scale=shape, title="method"),
            fillOpacity=alt.condition("datum.state == 'dominated'", alt.value(0), alt.value(0.85)),
            fill=alt.Fill("method:N", scale=colour, title="method"),
            tooltip=["label:N", "state:N", alt.Tooltip("risk:Q", format=".4f"),
                     alt.Tooltip("utility:Q", format=".4f"), "draws:Q"],
        )
    )  # fmt: skip
    if limit is not None:
        line = [{"limit": limit, "words": f"limit {limit:g}"}]
        rule = alt.Chart(alt.InlineData(values=line))
        layers.append(rule.mark_rule(color="#b00020", strokeWidth=1.5).encode(y="limit:Q"))
        layers.append(
            rule.mark_text(align="left", x=4, dy=-6, color="#b00020").encode(
                y="limit:Q", text="words:N"
            )
        )
    for side, dx in (("right", -8), ("left", 8)):
        if any(r["name"] and r["side"] == side for r in rows):
            layers.append(
                base.transform_filter(f"datum.name != '' && datum.side == '{side}'")
                .mark_text(align=side, dx=dx, dy=-5, fontSize=10, color="#222222")
                .encode(text="name:N")
            )
    return alt.layer(*layers).properties(width=size[0], height=size[1])


def _name_points(
    rows: list[dict[str, Any]], ends: tuple[list[float], list[float]], size: tuple[int, int]
) -> None:
    """Give a label to each point that wants one and has room for it, those with less risk first."""
    (left, right), (bottom, top) = ends
    taken: list[tuple[float, float, float, float]] = []
    places = {}
    for row in rows:
        x = (row["utility"] - left) / (right - left) * size[0]
        y = (top - row["risk"]) / (top - bottom) * size[1]
        places[id(row)] = x, y
        taken.append((x - 6, y - 6, x + 6, y + 6))
        row["name"], row["side"] = "", "right"
    for row in sorted(rows, key=lambda r: (r["state"] != "corner", compared(r["risk"]))):
        if not row["wanted"]:
            continue
        x, y = places[id(row)]
        wide = _CHARACTER * len(row["label"])
        for side, first in (("right", x - 8 - wide), ("left", x + 8)):
            box = first, y - 12, first + wide, y + 2
            inside = box[0] >= 0 and box[2] <= size[0]
            if inside and not any(_overlap(box, other) for other in taken):
                row["name"], row["side"] = row["label"], side
                taken.append(box)
                break


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _configured(chart: Any) -> Any:
    return (
        chart.configure(
            font=_FONT,
            background="#ffffff",
            # Room for a viewer that has none of the fonts and takes a wider one for the legend.
            padding={"left": 5, "top": 5, "right": 44, "bottom": 5},
        )
        .configure_axis(labelFontSize=11, titleFontSize=12, gridColor="#e8e8e8")
        .configure_legend(labelFontSize=11, titleFontSize=11, labelLimit=320, symbolSize=90)
        .configure_view(stroke="#cccccc")
    )


def _domain(values: Sequence[float]) -> list[float]:
    finite = [v for v in values if np.isfinite(v)]
    low, high = min(finite), max(finite)
    room = 0.06 * ((high - low) or 1.0)
    return [low - room if low else 0.0, high + room]


def _cycled(values: Sequence[Any], count: int) -> list[Any]:
    return [values[i % len(values)] for i in range(count)]


def _altair() -> Any:
    try:
        import altair
    except ImportError as error:
        raise InputError(
            "Charts need the package Altair; install it with: pip install 'lustrum[charts]'."
        ) from error
    return altair
