"""A report for a board: question, data, methods, map, choice and caveats, as one HTML page or as PDF.

The page holds its pictures as SVG and has no script, so that it can be filed and printed. It is made from true
counts and says so.
"""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lustrum._version import __version__
from lustrum.model import InputError, Table
from lustrum.rumap.charts import map_chart, risk_table_chart, svg_of
from lustrum.rumap.choose import Choice
from lustrum.rumap.map import RUMap
from lustrum.rumap.points import Point

_STYLE = "\n" + Path(__file__).with_name("report.css").read_text(encoding="utf-8")

CAVEATS = (
    "The measures are models of an attacker. A method under the limit is safe against that attacker and no "
    "other.",
    "Utility is measured on these tables alone. Other tables of the same data can lose more.",
    "A risk of one table is not the risk of many: answers that overlap can be compared. See the risk of a "
    "series of questions before a table server opens.",
    "Methods without a channel of their own are judged by what became of the values of these very tables.",
    "Confidence regions speak of the chance in the methods, not of the choice of measures and tables.",
)
"""What every report says of its limits."""


@dataclass(frozen=True, eq=False)
class MapReport:
    """What goes into a report beside the map."""

    ru_map: RUMap
    choice: Choice | None = None
    limit: float | None = None
    title: str = "Choice of a protection method"
    question: str = ""
    source: str = ""


def write_report(report: MapReport, path: Path | str) -> Path:
    """Write a report as .html or, through Chromium, as .pdf."""
    target = Path(path)
    kind = target.suffix.lower()
    if kind == ".pdf":
        return write_pdf(report_html(report), target)
    if kind != ".html":
        raise InputError(f"A report is written as .html or .pdf, not {kind!r}.")
    target.write_text(report_html(report), encoding="utf-8")
    return target


def report_html(report: MapReport) -> str:
    """The report as a page without scripts."""
    ru_map = report.ru_map
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_text(report.title)}</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>{_text(report.title)}</h1>",
        '<p class="confidential">Confidential: this report is made from true counts. It is for the agency, '
        "not for publication.</p>",
        _section("Question", _question(report)),
        _section("Choice", _choice(report)),
        _section("Map", _maps(report)),
        *([_section("Why not another", _others(report.choice))] if _has_others(report) else []),
        _section("Data", _data(report)),
        _section("Methods", _methods(report)),
        _section("Measures", _measures(ru_map)),
        _section("Caveats", _listed(CAVEATS)),
        _section("How to repeat it", _repeat(ru_map)),
        "</main></body></html>",
    ]
    return "\n".join(parts)


def find_chromium() -> str | None:
    """The browser that LUSTRUM_CHROMIUM names, or one on the PATH: first those that never have a window."""
    names = (
        *("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser"),
        *("google-chrome", "google-chrome-stable", "chrome"),
    )
    return os.environ.get("LUSTRUM_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def write_pdf(page: str, target: Path) -> Path:
    """Print a page to PDF with Chromium, named by LUSTRUM_CHROMIUM or found on the PATH."""
    browser = find_chromium()
    if browser is None:
        raise InputError(
            "A PDF is printed by Chromium, which is not found; install it, name it in LUSTRUM_CHROMIUM, or "
            "write .html."
        )
    with tempfile.TemporaryDirectory(prefix="lustrum-report-") as folder:
        source = Path(folder) / "report.html"
        source.write_text(page, encoding="utf-8")
        pdf = Path(folder) / "report.pdf"
        command = [
            browser, "--headless", "--disable-gpu", "--no-sandbox", "--no-pdf-header-footer",
            "--disable-background-networking", f"--user-data-dir={folder}/profile",
            f"--print-to-pdf={pdf}", source.as_uri(),
        ]  # fmt: skip
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=120)
        except (OSError, subprocess.SubprocessError):
            raise InputError(f"Chromium ({browser}) could not print the report.") from None
        if not pdf.is_file():
            raise InputError(f"Chromium ({browser}) wrote no PDF.")
        shutil.move(pdf, target)
    return target


def _question(report: MapReport) -> str:
    ru_map = report.ru_map
    methods = sorted({p.family for p in ru_map.points if not p.is_corner})
    limit = "" if report.limit is None else f" The risk may be at most {report.limit:g}."
    asked = report.question or (
        f"Which of {len(ru_map.labels)} settings of {len(methods)} methods keeps most of "
        f"{_tables_words(ru_map)} useful while it protects the people in it?"
    )
    return f"<p>{_text(asked)}{limit}</p>"


def _choice(report: MapReport) -> str:
    choice = report.choice
    if choice is None:
        best = report.ru_map.frontier(over="worst")
        named = ", ".join(p.label for p in best)
        return f"<p>No limit was set. Methods that no other method beats: {_text(named)}.</p>"
    return f'<p class="choice">{_text(choice.reason)}</p>'


def _has_others(report: MapReport) -> bool:
    return report.choice is not None and bool(report.choice.others)


def _others(choice: Choice | None) -> str:
    """Why each of the others was not chosen."""
    rows = "".join(
        f"<tr><td class='label'>{_text(label)}</td><td>{_text(why)}</td></tr>"
        for label, why in (choice.others if choice is not None else ())
    )
    head = "<tr><th>method</th><th>not chosen because</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _maps(report: MapReport) -> str:
    ru_map, parts = report.ru_map, []
    for name in ru_map.tables:
        svg = svg_of(map_chart(ru_map, name, limit=report.limit, width=460, height=330))
        caption = f"{name}: risk against utility; down and to the right is better"
        parts.append(f"<figure>{svg}<figcaption>{_text(caption)}.</figcaption></figure>")
        parts.append(_points(ru_map, name, report.choice))
    point = report.choice.point if report.choice is not None else None
    if point is not None:
        parts += _cells(ru_map, point)
    return "".join(parts)


def _cells(ru_map: RUMap, point: Point, most: int = 400) -> list[str]:
    """How certain an attacker is of each small cell under the chosen method, where the table is small."""
    parts = []
    for name, table in ru_map.sweep.cases.tables.items():
        if table.kind != "count" or table.values.size > most or not table.shape:
            continue
        release = ru_map.release(point.label, name)
        svg = svg_of(risk_table_chart(table, release))
        caption = f"{name} under {point.label}: certainty about small cells"
        parts.append(f"<figure>{svg}<figcaption>{_text(caption)}.</figcaption></figure>")
    return parts


def _points(ru_map: RUMap, table: str, choice: Choice | None) -> str:
    chosen = choice.point.label if choice is not None and choice.point is not None else ""
    head = (
        "<tr><th>method</th><th class='n'>risk</th><th class='n'>95 %</th><th class='n'>utility</th>"
        "<th class='n'>95 %</th><th>state</th></tr>"
    )
    rows = []
    points = ru_map.of(table)
    for point, by in zip(points, ru_map.dominators(table), strict=True):
        state = "corner" if point.is_corner else "frontier" if by == -1 else ""
        if by >= 0:
            state = f"dominated by {points[by].label}"
        if not np.isfinite(point.risk) or not np.isfinite(point.utility):
            state = point.note
        kind = "chosen" if point.label == chosen else "dominated" if by >= 0 else ""
        rows.append(
            f"<tr class='{kind}'><td class='label'>{_text(point.label)}</td>{_number(point.risk)}"
            f"{_range(point.risk_range)}{_number(point.utility)}{_range(point.utility_range)}"
            f"<td>{_text(state)}</td></tr>"
        )
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _data(report: MapReport) -> str:
    ru_map = report.ru_map
    rows = "".join(
        f"<tr><td>{_text(name)}</td><td>{_text(_shape(table))}</td><td class='n'>{table.values.size:,}</td>"
        f"<td>{table.kind}s</td></tr>"
        for name, table in ru_map.sweep.cases.tables.items()
    )
    source = f"<p>{_text(report.source)}</p>" if report.source else ""
    head = "<tr><th>table</th><th>variables</th><th class='n'>cells</th><th>of</th></tr>"
    return f"{source}<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _methods(report: MapReport) -> str:
    rows = "".join(
        f"<tr><td class='label'>{_text(label)}</td>"
        f"<td><code>{_text(_words(method.to_mapping()))}</code></td></tr>"
        for label, method in zip(report.ru_map.labels, report.ru_map.sweep.methods, strict=True)
    )
    head = "<tr><th>method</th><th>in the words of a policy</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _measures(ru_map: RUMap) -> str:
    def line(role: str, named: Sequence[tuple[str, object]]) -> list[str]:
        return [f"{role}: {name} ({measure!r})" for name, measure in named]

    return _listed(
        [*line("risk", ru_map.measures.risks), *line("utility", ru_map.measures.utilities)]
    )


def _repeat(ru_map: RUMap) -> str:
    return (
        f"<p>Lustrum {_text(__version__)}, seed {ru_map.sweep.seed}, {ru_map.sweep.replications} draws of each "
        "method with chance. The same seed gives the same figures on any machine.</p>"
    )


def _tables_words(ru_map: RUMap) -> str:
    return (
        f"the table {ru_map.tables[0]!r}"
        if len(ru_map.tables) == 1
        else f"{len(ru_map.tables)} tables"
    )


def _shape(table: Table) -> str:
    return " x ".join(f"{a.label} ({len(a)})" for a in table.axes) or "everybody"


def _words(mapping: dict[str, object]) -> str:
    """Parameters as a policy file spells them.

    >>> _words({"rule": {"rule": "threshold", "minimum": 3}, "partial": False})
    'rule = { rule = "threshold", minimum = 3 }, partial = false'
    """
    return ", ".join(f"{k} = {_value(v)}" for k, v in mapping.items())


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{ {_words(dict(value))} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(v) for v in value)}]"
    return json.dumps(value, ensure_ascii=False, default=str)


def _section(title: str, content: str) -> str:
    return f"<section><h2>{_text(title)}</h2>{content}</section>"


def _listed(items: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{_text(item)}</li>' for item in items)}</ul>"


def _number(value: float) -> str:
    return f"<td class='n'>{value:.4f}</td>" if np.isfinite(value) else "<td class='n'>-</td>"


def _range(ends: tuple[float, float]) -> str:
    if not all(np.isfinite(e) for e in ends) or ends[0] == ends[1]:
        return "<td class='n'></td>"
    return f"<td class='n'>{ends[0]:.4f} to {ends[1]:.4f}</td>"


def _text(text: object) -> str:
    return html.escape(str(text))
