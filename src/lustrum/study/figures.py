"""The papers' figures as Vega-Lite charts, drawn from what the studies computed.

Needs the extra ``charts`` (altair, vl-convert).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lustrum.model import InputError
from lustrum.study.result import Study

if TYPE_CHECKING:
    import altair

CAPTIONS = {
    "components": "The three terms of the risk: share of empty cells, entropy, and number of people",
    "table-server-map": "Risk against utility of each method on the four tables, ours and as printed",
    "maps-tables": "Risk against utility of the paper's methods and of others on the four tables",
    "markov-map": "Risk against utility of each method, ours and as printed",
}
_RISK = ": risk"
_UTILITY = ": utility"


def figures_of(
    study: Study,
) -> dict[str, altair.LayerChart | altair.HConcatChart | altair.FacetChart]:
    """The figures that belong to a study, by file name."""
    if study.name == "table-server":
        return {"components": components_figure(), "table-server-map": map_figure(study)}
    if study.name == "markov":
        return {"markov-map": map_figure(study)}
    if study.name == "maps":
        return {"maps-tables": tables_figure(study)}
    return {}


def write_figures(study: Study, folder: Path) -> list[Path]:
    """Draw a study's figures into a folder as SVG."""
    import vl_convert

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, chart in figures_of(study).items():
        path = folder / f"{name}.svg"
        path.write_text(vl_convert.vegalite_to_svg(chart.to_dict()), encoding="utf-8")
        written.append(path)
    return written


def components_figure() -> altair.HConcatChart:
    """The three terms of the 2015 measure: share of zeros, entropy of ten cells, number of people."""
    import altair as alt

    from lustrum.study.table_server import components

    curves = components()
    panels = [
        ("Share of empty cells", curves.zero_share, curves.zeros, "linear"),
        ("Empty cells of ten, the rest even", curves.empty_cells, curves.entropy, "linear"),
        ("People in the table", curves.people, curves.size, "log"),
    ]
    charts = []
    for title, x, y, scale in panels:
        rows = [{"x": float(a), "y": float(b)} for a, b in zip(x, y, strict=True)]
        charts.append(
            alt.Chart(alt.InlineData(values=rows), width=200, height=180)
            .mark_line(color="#33409f")
            .encode(
                x=alt.X("x:Q", title=title, scale=alt.Scale(type=scale)),  # type: ignore[arg-type]
                y=alt.Y("y:Q", title="term of the risk", scale=alt.Scale(domain=[0, 1])),
            )
        )
    return alt.hconcat(*charts)


def map_figure(study: Study) -> altair.LayerChart:
    """A map of risk against utility, ours beside the printed figures; down and to the right is better."""
    import altair as alt

    rows = list(_points(study))
    if not rows:
        raise InputError(f"The study {study.name!r} has no pairs of risk and utility to draw.")
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("utility:Q", title="utility", scale=alt.Scale(zero=False)),
        y=alt.Y("risk:Q", title="risk of disclosure", scale=alt.Scale(zero=False)),
    )
    marks = base.mark_point(size=70, filled=True).encode(
        color=alt.Color("method:N", title="method", scale=alt.Scale(scheme="tableau10")),
        shape=alt.Shape("figure:N", title="figure"),
        tooltip=["what:N", "figure:N", "risk:Q", "utility:Q"],
    )
    ours = alt.FieldEqualPredicate(field="figure", equal="ours")
    labels = (
        base.mark_text(dx=6, dy=-6, align="left", fontSize=9)
        .encode(text="short:N")
        .transform_filter(ours)
    )
    chart: altair.LayerChart = alt.LayerChart(layer=[marks, labels], width=560, height=360)
    return chart


def tables_figure(study: Study) -> altair.FacetChart:
    """Small multiples: a map for each table, methods by colour and shape."""
    import altair as alt

    from lustrum.rumap.charts import COLOURS, SHAPES

    rows = [row for row in _points(study) if row["method"] != "original data"]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(methods))]
    shapes = [SHAPES[(i + i // len(COLOURS)) % len(SHAPES)] for i in range(len(methods))]
    chart = (
        alt.Chart(alt.InlineData(values=rows), width=300, height=240)
        .mark_point(size=70, strokeWidth=1.8)
        .encode(
            x=alt.X("utility:Q", title="utility", scale=alt.Scale(zero=False)),
            y=alt.Y("risk:Q", title="risk of disclosure"),
            color=alt.Color(
                "method:N", title="method", scale=alt.Scale(domain=methods, range=colours)
            ),
            shape=alt.Shape(
                "method:N", title="method", scale=alt.Scale(domain=methods, range=shapes)
            ),
            tooltip=["what:N", "risk:Q", "utility:Q"],
        )
        .facet(alt.Facet("short:N", title=None), columns=2)
        .resolve_scale(x="independent", y="independent")
        .configure_legend(labelLimit=320)
    )
    facet_chart: altair.FacetChart = chart
    return facet_chart


def _points(study: Study) -> Iterator[dict[str, Any]]:
    # The first panel with such pairs is the study's result; later ones vary its assumptions.
    panels = ({line.what: line for line in panel.lines} for panel in study.panels)
    paired = (p for p in panels if any(what.endswith(_UTILITY) for what in p))
    lines = next(paired, {})
    for what, line in lines.items():
        if not what.endswith(_RISK):
            continue
        name = what.removesuffix(_RISK)
        partner = lines.get(name + _UTILITY)
        if partner is None:
            continue
        table, _, method = name.rpartition(": ") if name.startswith("table ") else ("", "", name)
        short = table.replace("table ", "T") or method
        kind = method.split(",")[0] if not table else method
        for figure, risk, utility in (
            ("ours", line.ours, partner.ours),
            ("printed", line.paper, partner.paper),
        ):
            if risk is not None and utility is not None:
                yield {
                    "what": name, "short": short, "method": kind,
                    "figure": figure, "risk": risk, "utility": utility,
                }  # fmt: skip
