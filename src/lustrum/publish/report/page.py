"""The report as one HTML page: no script, no other file, for a screen of any size, light or dark, and print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from lustrum._version import __version__
from lustrum.model import InputError
from lustrum.protect.population.attributes import FEWEST, GUESSED, NAMED
from lustrum.publish.report.findings import Findings
from lustrum.publish.report.sum_page import sum_section
from lustrum.runtime.data_folder import MANIFEST
from lustrum.runtime.durable import outages, write_whole
from lustrum.runtime.svg import element, escaped, scrolling

_STYLE = "\n" + Path(__file__).with_name("page.css").read_text(encoding="utf-8")


def page(findings: Findings) -> str:
    figures = findings.figures
    body = report_body(figures, findings.warnings)
    title = f"Protected population of {escape(figures['dataset'])}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="robots" content="noindex"><title>{title}</title><style>{_STYLE}</style></head>'
        '<body><main><p class="secret">Confidential: measured on the true counts. For the agency alone; do not '
        f"put it beside the bundle.</p><h1>{title}</h1>{body}</main></body></html>\n"
    )


def report_body(figures: dict[str, Any], warnings: Sequence[str]) -> str:
    """All that the report says, as HTML that may stand in another page; also from its figures read back."""
    return "".join(_sections(figures, warnings))


def _sections(figures: dict[str, Any], warnings: Sequence[str]) -> Iterator[str]:
    method = figures["method"]
    parameters = {k: v for k, v in method.items() if k != "method"}
    yield (
        f"<p>{figures['records']:,} records in {figures['finest_cells']:,} finest cells. The bundle has the "
        f"digest <code>{figures['digest'][:16]}</code>; Lustrum {__version__}.</p>"
        f"<p>{escape(', '.join(f'{k} = {v}' for k, v in parameters.items()))}</p>"
    )
    if warnings:
        yield "<h2>Read this first</h2>"
        yield from (f'<p class="warn">{escape(sentence)}</p>' for sentence in warnings)
    yield from _errors(figures)
    yield from _risk(figures)
    yield from _transitions(figures)
    yield from _beliefs(figures)
    yield from _groups(figures)
    yield from _comparison(figures)
    yield from _together(figures)
    yield from sum_section(figures.get("sums"), _table)


def _errors(figures: dict[str, Any]) -> Iterator[str]:
    yield "<h2>Errors by table and level</h2><p>How far controlled counts stand from the true ones.</p>"
    named = [(_kind(r["variables"], r["finest"]), r) for r in figures["errors"]]
    yield bars(
        "Mean and root mean square errors",
        {
            name: {"mean": r["mean_occupied"], "root mean square": r["root_mean_square"]}
            for name, r in named
        },
        "over cells that hold or show anybody",
    )
    yield _table(
        "Errors by kind of table",
        ["tables of", "tables", "cells", "mean error", "of non-empty cells", "root mean square", "largest"],
        (
            [name, r["tables"], r["cells"], f"{r['mean']:.2f}", f"{r['mean_occupied']:.2f}",
             f"{r['root_mean_square']:.2f}", r["largest"]]
            for name, r in named
        ),
    )  # fmt: skip
    yield "<h3>Worst cells</h3>"
    yield _table(
        "Worst cells",
        ["table", "cell", "true", "shown", "error"],
        (
            [w["table"], ", ".join(w["codes"]), w["true"], w["shown"], w["shown"] - w["true"]]
            for w in figures["agency"]["worst"]
        ),
    )
    tables = sorted(figures["agency"]["tables"], key=lambda t: -t["root_mean_square"])
    yield f"<details><summary>All {len(tables):,} controlled tables, those with larger errors first</summary>"
    yield _table(
        "All controlled tables",
        ["table", "cells", "mean error", "root mean square", "largest"],
        (
            [
                t["label"],
                t["cells"],
                f"{t['mean']:.2f}",
                f"{t['root_mean_square']:.2f}",
                t["largest"],
            ]
            for t in tables
        ),
    )
    yield "</details>"


def _kind(variables: int, finest: bool) -> str:
    if not variables:
        return "all records"
    many = "1 variable" if variables == 1 else f"{variables} variables"
    return f"{many}, {'finest levels' if finest else 'all levels'}"


def _risk(figures: dict[str, Any]) -> Iterator[str]:
    yield (
        "<h2>Risk before and after</h2><p>Hollow: the true table published as it is. Filled: what is "
        "published.</p>"
    )
    names = list(dict.fromkeys(name for row in figures["risk"] for name in row["measures"]))
    for name in names:
        rows = [(r["table"], *r["measures"][name]) for r in figures["risk"]]
        measured = [(t, b, a) for t, b, a in rows if b is not None and a is not None]
        if measured:
            yield pairs(name, measured)


def _transitions(figures: dict[str, Any]) -> Iterator[str]:
    yield (
        "<h2>From true counts to shown ones</h2><p>Of all finest cells with a true count, the share that shows "
        "each number; for 0, of the empty cells that may show somebody.</p>"
    )
    agency = figures["agency"]
    grid = {}
    for true, row in agency["transitions"].items():
        total = sum(row.values())
        if total:
            grid[int(true)] = {int(s): n / total for s, n in row.items()}
    if grid:
        yield heat("Transition frequencies", grid)
    base = figures["method"]["base"]
    shares = ", ".join(
        f"{share:.2f} of those with {r} above a multiple (unbiased: {int(r) / base:.2f})"
        for r, share in agency["rounded_up"].items()
    )
    yield (
        f"<p>Raised to the upper number: {shares or 'none'}. Of the cells that show {base}, "
        f"{agency['empty_share']:.1%} are empty in truth.</p>"
    )


def _beliefs(figures: dict[str, Any]) -> Iterator[str]:
    yield (
        "<h2>What is left to a reader</h2><p>True counts that a shown number of a finest cell leaves, to "
        "readers who know more and more. Where one is left, the reader knows the count.</p>"
    )
    shown = list(figures["readers"][0]["shown"])
    yield _table(
        "Counts left to readers",
        ["who", *(f"shown {s}" for s in shown), "cells with one count left", "in truth"],
        (
            [
                row["who"],
                *(_left(row["shown"].get(s)) for s in shown),
                row["pinned"],
                row["pinned_in_truth"],
            ]
            for row in figures["readers"]
        ),
    )
    known = figures["agency"]["known_changes"]
    if known["sure"]:
        yield _table(
            "How sure of a count somebody can be who knows every change of the cell, by its first number",
            ["first number", *(f"{n} releases" for n in known["sure"]["0"])],
            (
                [number, *(f"{p:.0%}" for p in row.values())]
                for number, row in known["sure"].items()
            ),
        )
    else:
        yield (
            "<p>To somebody who knows every change of a cell, the releases so far changed the odds of two "
            f"counts by a factor of {known['factor']:.2f} at most.</p>"
        )
    yield (
        "<h3>Bits left</h3><p>By the public report, all counts being alike beforehand; and in truth, to "
        "somebody who knows how often each true count stands behind the number.</p>"
    )
    yield _table(
        "Bits left", ["cells", "shown", "reader", "counts left", "bits by the report", "bits in truth"],
        (
            [b["cells"], b["shown"], b["who"], _left(b["counts"]) if b["counts"] else "by bounds",
             _bits(b["bits_alike"]), _bits(b["bits_in_truth"])]
            for b in figures["beliefs"]
        ),
    )  # fmt: skip


def _groups(figures: dict[str, Any]) -> Iterator[str]:
    single = figures["agency"]["single_columns"]
    yield (
        "<h2>Group disclosure</h2><p>Rows of two-way tables in which a single column holds anybody, though "
        "more could: of everybody in such a row the column is known, whatever the count.</p>"
    )
    yield _table(
        "Rows with a single column",
        ["rows", "in truth", "shown", "in truth and shown"],
        [list(single.values())],
    )
    yield (
        "<h2>Attributes</h2><p>Somebody knows all variables of a person but one, and looks at the row of the "
        "file that agrees with them. Where it shows a single category, and that with the base, this is the "
        "right one for a share of people; somebody who guesses from the rest of the file is right for "
        "another.</p>"
    )
    yield _table(
        "Attributes read off rows",
        [
            "variable",
            "people expected in the row, at least",
            "people",
            "named right",
            "guessed right",
        ],
        (
            [r["variable"], r["at_least"], r["people"], f"{r['named']:.0%}", f"{r['guessed']:.0%}"]
            for r in figures["agency"]["attributes"]
            if r["people"]
        ),
    )
    yield f"<p>{_highest_named(figures['agency']['attributes'])}</p>"


def _comparison(figures: dict[str, Any]) -> Iterator[str]:
    if not figures["comparison"]:
        return
    yield (
        "<h2>Beside keyed rounding and cell key</h2><p>The same questions, protected by record keys table by "
        "table.</p>"
    )
    yield bars(
        "Mean errors",
        {
            r["questions"]: {m: f["mean"] for m, f in r["methods"].items()}
            for r in figures["comparison"]
        },
        "over cells that hold anybody",
    )
    yield _table(
        "Errors beside keyed methods",
        [
            "questions",
            "cells",
            *(f"{m}: mean (largest)" for m in figures["comparison"][0]["methods"]),
        ],
        (
            [
                r["questions"],
                r["cells"],
                *(f"{f['mean']:.2f} ({f['largest']})" for f in r["methods"].values()),
            ]
            for r in figures["comparison"]
        ),
    )


def _together(figures: dict[str, Any]) -> Iterator[str]:
    both, agency = figures["together"], figures["agency"]
    if both is None:
        return
    apart = agency["differences"]
    yield (
        "<h2>Beside the release before</h2>"
        f"<p>{agency['unchanged']:,} cells of the earlier release kept their records; {agency['changed']:,} "
        f"did not. {apart['cells']:,} cells show another number, and {apart['changed']:,} of them have other "
        f"records. A reader of both sees that {both['changed']:,} cells changed for sure, since they moved by "
        "more than one step. For the others the bounds of all releases hold together.</p>"
    )
    yield _table(
        "Cells that show another number than before",
        ["before", "now", "cells", "with other records"],
        ([s["before"], s["after"], s["cells"], s["changed"]] for s in apart["steps"]),
    )
    yield _table(
        "Counts left to readers of all releases",
        ["counts left to a reader of all", "cells"],
        ([left, cells] for left, cells in both["left"].items()),
    )


def _left(counts: Sequence[int] | None) -> str:
    if counts is None:
        return "–"
    low, high, left = counts
    if left == 0:
        return "cannot be"
    return f"exactly {low}" if left == 1 else f"{low} to {high}: {left}"


def _bits(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _table(name: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    top = "".join(f'<th scope="col">{escape(str(one))}</th>' for one in head)
    body = "".join(
        "<tr>"
        + "".join(_cell(value, first=not column) for column, value in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}"><table><thead>'
        f"<tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value: object, *, first: bool) -> str:
    text = f"{value:,}" if isinstance(value, int) else escape(str(value))
    if first:
        return f'<th scope="row">{text}</th>'
    exact = ' class="one"' if isinstance(value, str) and value.startswith("exactly") else ""
    return f"<td{exact}>{text}</td>"


def _highest_named(risks: list[dict[str, Any]]) -> str:
    """The row of the table of attributes that is held against the limit."""
    judged = [r for r in risks if r["people"] >= FEWEST and r["guessed"] < GUESSED]
    held = f"bins of {FEWEST} people or more of whom a guess names fewer than {GUESSED:.0%}"
    if not judged:
        return f"There are no {held}; only such bins are held against the limit of {NAMED:.0%}."
    most = max(judged, key=lambda r: r["named"])
    verdict = "over" if most["exceeds"] else "within"
    return (
        f"Of {len(judged)} {held}, the highest is {escape(most['variable'])}: {most['named']:.1%} of "
        f"{most['people']:,} people are named right and {most['guessed']:.1%} guessed. That is {verdict} the "
        f"limit of {NAMED:.0%}."
    )


# Put the report into the agency's own folder, for its owner alone.


def write_report(folder: Path, findings: Findings) -> tuple[Path, Path]:
    """Write the page and the same figures as JSON; never into a bundle."""
    if any(
        (parent / MANIFEST).is_file() for parent in (folder.resolve(), *folder.resolve().parents)
    ):
        raise InputError(f"{folder} lies in a bundle; the agency's report must not stand there.")
    said = {"confidential": "For the agency alone: measured on the true counts."}
    written = {
        "report.html": page(findings),
        "report.json": json.dumps(
            {**said, "warnings": findings.warnings, **findings.figures}, indent=1
        )
        + "\n",
    }
    with outages(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in written.items():
            write_whole(folder / name, text.encode(), 0o600)
    return folder / "report.html", folder / "report.json"


# The pictures of the report: small SVGs that take their colours from the page.


_ROW = 22


def bars(title: str, groups: Mapping[str, Mapping[str, float]], unit: str) -> str:
    """Groups of horizontal bars, one bar for each series, with its number at the end."""
    series = list(dict.fromkeys(name for values in groups.values() for name in values))
    most = max((v for values in groups.values() for v in values.values()), default=0.0) or 1.0
    parts, y = [], 8
    for group, values in groups.items():
        parts.append(element("text", escaped(group), class_="head", x=0, y=y + 13))
        y += _ROW
        for name, value in values.items():
            width = 300 * value / most
            kind = series.index(name) % 4
            size = {"width": f"{max(width, 1):.1f}", "height": 14}
            parts += [
                element("text", escaped(name), x=8, y=y + 13),
                element("rect", class_=f"s{kind}", x=170, y=y + 3, **size, rx=2),
                element("text", f"{value:.2f}", x=f"{176 + width:.1f}", y=y + 14),
            ]
            y += _ROW
        y += 8
    return _svg(title, f"{title}, {unit}", 540, y, parts)


def pairs(title: str, rows: Sequence[tuple[str, float, float]]) -> str:
    """For each row a line from before (hollow) to after (filled), on a scale from 0 to the largest."""
    most = max((max(a, b) for _, a, b in rows), default=0.0) or 1.0
    parts, y = [], 8
    for name, before, after in rows:
        ends = [250 + 250 * value / most for value in (before, after)]
        left, right = (f"{end:.1f}" for end in ends)
        figures = f"{before:.2f} → {after:.2f}"
        parts += [
            element("text", escaped(_short(name)), x=0, y=y + 14),
            element("line", x1=left, x2=right, y1=y + 10, y2=y + 10),
            element("circle", class_="hollow", cx=left, cy=y + 10, r=5),
            element("circle", class_="s0", cx=right, cy=y + 10, r=5),
            element("text", figures, x=f"{max(ends) + 10:.1f}", y=y + 14),
        ]
        y += _ROW
    return _svg(title, title, 620, y + 6, parts)


def heat(title: str, rows: Mapping[int, Mapping[int, float]]) -> str:
    """A grid of shares: a row for each true count, a column for each shown one."""
    columns = sorted({shown for row in rows.values() for shown in row})
    parts = [
        element("text", f"shows {shown}", class_="mid", x=102 + 52 * i, y=14)
        for i, shown in enumerate(columns)
    ]
    y = 22
    for true, row in sorted(rows.items()):
        parts.append(element("text", f"true {true}", x=0, y=y + 17))
        for i, shown in enumerate(columns):
            share = row.get(shown, 0.0)
            x = 76 + 52 * i
            shade = f"{0.06 + 0.6 * share:.2f}"
            square = {"x": x, "y": y, "width": 50, "height": 24, "rx": 3}
            parts.append(element("rect", class_="s0", **square, fill_opacity=shade))
            parts.append(element("text", f"{share:.0%}", class_="mid", x=x + 25, y=y + 16))
        y += 26
    return _svg(title, title, 84 + 52 * len(columns), y + 4, parts)


def _short(name: str) -> str:
    return name if len(name) <= 34 else f"{name[:33]}…"


def _svg(title: str, said: str, width: int, height: int, parts: Sequence[str]) -> str:
    size = {"viewBox": f"0 0 {width} {height}", "width": width, "height": height}
    picture = element("svg", *parts, role="img", aria_label=said, **size)
    return element("figure", element("figcaption", escaped(said)), scrolling(title, picture))
