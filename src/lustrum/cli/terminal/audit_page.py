"""The page of an audit: the verdict, every finding as a range, and the roles of the file to choose by mouse."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from lustrum.readers.layout import Layout
from lustrum.readers.report import AuditedValue, FileReport

_STYLE = "\n" + Path(__file__).with_name("audit_page.css").read_text(encoding="utf-8")

_ROLES = {
    "total": "not a part",
    "part": "part of",
    "subset": "inside, of which",
    "same": "the same as",
    "independent": "no sum here",
    "not_additive": "adds up nowhere",
}
_COMPUTED = {"computed": "computed"}
_TITLES = {
    "exact": "Exactly disclosed",
    "close": "Known closely",
    "within protection": "Within the protection interval",
    "few values": "Few values left",
}
_SCRIPT = "\n" + Path(__file__).with_name("audit_page.js").read_text(encoding="utf-8")


def page(report: FileReport, layouts: Sequence[Layout]) -> str:
    """A page of its own, without any other file."""
    findings = "".join(
        _findings(title, [v for v in report.values if v.finding == finding and v.about == "value"])
        for finding, title in _TITLES.items()
    )
    learned = [value for value in report.values if value.about != "value"]
    findings += _findings("What contributors learn about others (confidential)", learned)
    if report.if_confirmed:
        findings += _findings("Disclosed if the proposed roles are right", report.if_confirmed)
    questions = "".join(
        f"<li><b>{escape(q.role)}</b>: {escape(q.text)}</li>" for q in report.questions
    )
    asked = {(q.file, q.role): q.text for q in report.questions}
    words = "".join(f"<li>{escape(word)}</li>" for word in report.on_word)
    editors = "".join(
        _editor(number, file.name, layout, asked)
        for number, (file, layout) in enumerate(zip(report.files, layouts, strict=True))
        if layout.open or report.exit == 4
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Audit</title><style>{_STYLE}</style></head><body><main><h1>What a reader can work out</h1>"
        f'<p class="verdict e{report.exit}">{escape(report.reason)}</p>'
        f"<p>{report.hidden:,} values are not published as they are.</p>{findings}"
        + (f"<h2>Questions</h2><ol>{questions}</ol>" if questions else "")
        + editors
        + (f"<h2>Taken on a person's word</h2><ul>{words}</ul>" if words else "")
        + f"</main><script>{_SCRIPT}</script></body></html>\n"
    )


def _findings(title: str, values: Sequence[AuditedValue]) -> str:
    if not values:
        return ""
    rows = "".join(
        f'<tr><td>{escape(v.cell)}</td><td class="n">{_end(v.low)}</td><td class="n">{_end(v.high)}</td>'
        f"<td>{escape(_why(v))}</td></tr>"
        for v in values
    )
    last = "follows from" if all(v.about == "value" for v in values) else "known to"
    heads = "".join(f"<th scope=col>{head}</th>" for head in ("cell", "least", "greatest", last))
    return (
        f'<h2>{title}</h2><div class="scroll" tabindex="0" role="region" aria-label="{title}">'
        f"<table><tr>{heads}</tr>{rows}</table></div>"
    )


def _why(value: AuditedValue) -> str:
    """Where a finding follows from; of what contributors learn, who they are and what it is about."""
    if value.about == "value":
        return "; ".join(value.follows)
    return f"{', '.join(value.known_to) or 'every reader'}: {value.about}"


def _end(value: float | None) -> str:
    return "" if value is None else f"{value:,.10g}"


def _editor(number: int, name: str, layout: Layout, asked: Mapping[tuple[str, str], str]) -> str:
    """Selects for every symbol, letter and code of a layout, and the layout that they make.

    A role stays open until somebody says that it is right, or what combinations are that no line lists.
    """
    data = layout.model_dump(exclude_defaults=True, mode="json")
    parts = []

    def field(
        role: str,
        title: str,
        rows: str,
        word: str = "This is right",
        more: str = "",
        settle: bool = True,
    ) -> None:
        text = asked.get((name, role), "")
        box = (
            f'<label class="settle"><input type="checkbox" data-settles="{escape(role)}"> {word}</label>'
            if settle and role in layout.open
            else ""
        )
        parts.append(
            f"<fieldset{more}><legend>{escape(title)}</legend>"
            + (f"<p>{escape(text)}</p>" if text else "")
            + f"{rows}{box}</fieldset>"
        )

    def words(kind: str, entries: Mapping[str, object], options: Sequence[str], other: str) -> str:
        return "".join(
            f'<label class="role"><span>{escape(text or "a blank field")}</span>'
            + _select(
                f'data-{kind}="{escape(text)}"',
                dict(zip(options, options, strict=True)),
                meaning if isinstance(meaning, str) else other,
            )
            + "</label>"
            for text, meaning in entries.items()
        )

    if layout.symbols:
        options = ("hidden", "zero", "impossible", "range")
        field("symbols", "In place of a number", words("symbol", layout.symbols, options, "range"))
    if layout.letters:
        rows = words("letter", layout.letters, ("note", "hidden"), "note")
        field("letters", "Beside a number", rows)
    for dimension, roles in layout.dimensions.items():
        heads = {part: ("part", total) for total, codes in roles.totals.items() for part in codes}
        heads |= {
            code: ("subset", head) for head, group in roles.subsets.items() for code in group.codes
        }
        heads |= {code: ("same", other) for code, other in roles.same.items()}
        heads |= dict.fromkeys(roles.independent, ("independent", ""))
        heads |= dict.fromkeys(roles.not_additive, ("not_additive", ""))
        heads |= dict.fromkeys((*roles.differences, *roles.units), ("computed", ""))
        known = [*roles.totals, *heads]
        codes = [*dict.fromkeys((*known, *sorted(roles.settled())))]
        if len(codes) < 2:
            continue
        rows = "".join(
            f'<div class="role" data-code="{escape(code)}"><span>{escape(code)}</span>'
            + _select(f'aria-label="role of {escape(code)}"', options, role)
            + _select(
                f'aria-label="what {escape(code)} belongs to"',
                dict(zip(codes, codes, strict=True)),
                head or codes[0],
            )
            + "</div>"
            for code in codes
            for role, head in [heads.get(code, ("total", ""))]
            for options in [{**_ROLES, **(_COMPUTED if role == "computed" else {})}]
        )
        field(f"codes:{dimension}", dimension, rows, more=f' data-dimension="{escape(dimension)}"')
    if (name, "kind") in asked:
        kinds = {"": "not said", "counts": "counts", "sums": "sums"}
        select = _select('name="kind" aria-label="kind of numbers"', kinds, layout.kind or "")
        field("kind", "The numbers", f'<div class="role"><span>They are</span>{select}</div>')
    if "missing" in layout.open:
        meanings = {"": "not said", "hidden": "hidden", "zero": "zero", "impossible": "impossible"}
        select = _select(
            'name="missing" aria-label="combinations that are not listed"', meanings, ""
        )
        row = f'<div class="role"><span>They are</span>{select}</div>'
        field("missing", "Combinations that are not listed", row, settle=False)
    for role, text, word in (
        ("signed", "Signs", "No number is negative"),
        ("notes", "Lines outside the tables", "They say nothing about hidden cells"),
        ("parts", "Other parts of the file", "They say nothing about hidden cells"),
    ):
        if role in layout.open:
            field(role, text, "", word)
    return (
        f"<section data-layout='{escape(json.dumps(data))}' aria-labelledby=\"file-{number}\">"
        f'<h2 id="file-{number}">Roles in {escape(name)}</h2>{"".join(parts)}<p role="status"></p>'
        '<p><button type="button">Download the layout</button></p>'
        '<textarea aria-label="The layout as TOML" spellcheck="false"></textarea></section>'
    )


def _select(attributes: str, options: Mapping[str, str], chosen: str) -> str:
    inside = "".join(
        f'<option value="{escape(option)}"{" selected" if option == chosen else ""}>{escape(words)}</option>'
        for option, words in options.items()
    )
    return f"<select {attributes}>{inside}</select>"
