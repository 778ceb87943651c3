"""A hook of mkdocs: draw the tables and plots of docs/benchmarks.md from bench/figures/*.json, and fill in the
figures of other pages from docs/figures.json, which a test renews (RECORD=1), and of studies from
docs/studies/figures.json.

    <!-- figures: tabulate -->                                      all tables that this bench recorded
    <!-- plot: tabulate | Counting | table | ratio -->              one column of a table as bars
    <!-- figure: a 1 shows 3 -->                                    one figure within a sentence
    <!-- study: markov -->                                          what a paper prints beside ours

The figures of a study are renewed by ``lustrum study NAME --markdown | python scripts/docs_figures.py NAME``.

Only the page has sentences, and only the files have figures.
"""

from __future__ import annotations

import json
import math
import re
import sys
from html import escape
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).resolve().parent.parent / "bench" / "figures"
SENTENCES = FIGURES.parent.parent / "docs" / "figures.json"
STUDIES = SENTENCES.parent / "studies" / "figures.json"
PAGE = "benchmarks.md"
STUDY = re.compile(r"^<!-- study: (.+) -->$", re.MULTILINE)
FIGURE = re.compile(r"<!-- figure: (.+?) -->")
MARK = re.compile(r"^<!-- (figures|plot): (.+) -->$", re.MULTILINE)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """What mkdocs calls with every page."""
    return drawn(markdown) if page.file.src_uri == PAGE else filled(markdown)


def filled(markdown: str) -> str:
    """A page with the figures that its sentences and studies name."""
    markdown = STUDY.sub(lambda mark: study(mark[1]), markdown)
    if not FIGURE.search(markdown):
        return markdown
    known = json.loads(SENTENCES.read_text("utf-8"))
    return FIGURE.sub(lambda mark: as_text(known[mark[1]]), markdown)


def study(name: str) -> str:
    """The tables of a study, under each the remarks that its letters stand for."""
    out = []
    for table in json.loads(STUDIES.read_text("utf-8"))[name]:
        out += [
            f"## {table['title']}",
            "",
            "| figure | paper | ours | remark |",
            "|---|---:|---:|---|",
        ]
        for what, *printed, remark in table["rows"]:
            paper, ours = ("" if one is None else f"{one:.5g}" for one in printed)
            out.append(f"| {what} | {paper} | {ours} | {remark} |")
        for letter, remark in table.get("remarks", {}).items():
            out += ["", f"{letter}: {remark}"]
        out.append("")
    return "\n".join(out[:-1])


def study_figures(page: str) -> list[dict[str, Any]]:
    """The tables of a study as figures, from what ``lustrum study NAME --markdown`` prints."""
    tables: list[dict[str, Any]] = []
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title, *lines = section.splitlines()
        cells = [re.split(r" *(?<!\\)\| *", line)[1:-1] for line in lines if line.startswith("|")]
        rows: list[list[Any]] = [
            [what, *(float(one) if one else None for one in printed), remark]
            for what, *printed, remark in cells[2:]
        ]
        remarks = {line[0]: line[3:] for line in lines if re.match(r"[a-z]: ", line)}
        tables.append({"title": title, "rows": rows} | ({"remarks": remarks} if remarks else {}))
    return tables


def drawn(markdown: str) -> str:
    """The page with its tables and plots."""

    def replaced(mark: re.Match[str]) -> str:
        words = [word.strip() for word in mark[2].split("|")]
        return figures(*words) if mark[1] == "figures" else plot(*words)

    return MARK.sub(replaced, markdown)


def recorded(bench: str) -> list[dict[str, Any]]:
    """The tables of a bench."""
    found: list[dict[str, Any]] = json.loads((FIGURES / f"{bench}.json").read_text("utf-8"))[
        "tables"
    ]
    return found


def figures(bench: str) -> str:
    """The first table in full, the others behind their titles."""
    first, *rest = recorded(bench)
    parts = [f"**{first['title']}**\n\n{as_markdown(first)}"]
    for table in rest:
        parts.append(
            f'<details markdown="1">\n<summary>{escape(table["title"])}</summary>\n\n'
            f"{as_markdown(table)}\n\n</details>"
        )
    return "\n\n".join(parts)


def as_markdown(table: dict[str, Any]) -> str:
    """One table, with the command, the machine, the commit and the date under it."""
    columns = list(dict.fromkeys(name for row in table["rows"] for name in row))
    numeric = [
        all(isinstance(row.get(name), int | float | None) for row in table["rows"])
        for name in columns
    ]
    lines = [columns, ["---:" if number else "---" for number in numeric]]
    lines += [[as_text(row.get(name)) for name in columns] for row in table["rows"]]
    rows = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    origin = f"{table['machine']} · {table['commit']}, {table['date']}"
    return f"{rows}\n\n<small><code>{escape(table['command'])}</code> · {escape(origin)}</small>"


def as_text(value: str | float | None) -> str:
    """A figure with commas between thousands."""
    if value is None:
        return ""
    return escape(value, quote=False) if isinstance(value, str) else f"{value:,}"


def plot(bench: str, title: str, label: str, column: str) -> str:
    """Bars of one column, on a logarithmic scale where they differ by more than a factor of 20."""
    (table,) = [table for table in recorded(bench) if table["title"] == title]
    bars = [(str(row[label]), float(row[column])) for row in table["rows"] if row.get(column)]
    least, most = min(value for _, value in bars), max(value for _, value in bars)
    start = 10 ** math.floor(math.log10(least) - 0.3) if most > 20 * least else 0.0
    height, left, width = 24, 300, 380
    out = []
    for number, (name, value) in enumerate(bars):
        share = value / most
        if start:
            share = math.log(value / start) / math.log(most / start)
        y = 34 + height * number
        out.append(
            f'<text x="{left - 10}" y="{y + 13}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{left}" y="{y}" width="{width * share:.1f}" height="17" rx="3"/>'
            f'<text x="{left + width * share + 8:.1f}" y="{y + 13}">{value:,g}</text>'
        )
    said = f"{title}: {column}" + (", logarithmic" if start else "")
    return (
        f'<svg class="figures" viewBox="0 0 760 {44 + height * len(bars)}" role="img" '
        f'aria-label="{escape(said)}"><text class="title" x="0" y="18">{escape(said)}</text>'
        + "".join(out)
        + "</svg>"
    )


def renew(name: str, page: str) -> None:
    """Keep the figures of a study that was run again, one a line."""
    known = json.loads(STUDIES.read_text("utf-8")) | {name: study_figures(page)}
    text = json.dumps(known, indent=1, ensure_ascii=False)
    rows = re.compile(r"\[\n +([^\[\]{}]*?)\n +\]")
    lines = rows.sub(lambda row: "[" + re.sub(r",\n +", ", ", row[1]) + "]", text)
    STUDIES.write_text(lines + "\n", "utf-8")


if __name__ == "__main__":
    renew(sys.argv[1], sys.stdin.read())
