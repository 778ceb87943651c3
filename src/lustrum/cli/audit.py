"""Audit published files: what can a reader of all of them work out, and does a certificate hold?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from lustrum.audit.certificate import ProvenCell, Report, certify, verify_file
from lustrum.cli.suppress import rule_of, settings_of
from lustrum.model import InputError
from lustrum.readers.confidential import read_true
from lustrum.readers.judge import (
    JudgedFiles,
    OpenedFile,
    default_level,
    judge,
    levels_of,
    open_file,
)
from lustrum.readers.layout import Layout, layout_text, layouts_of
from lustrum.readers.propose import propose
from lustrum.readers.report import AuditedFile, AuditedValue, FileReport
from lustrum.runtime.durable import write_whole

_SHOWN, _FOLLOWS = 50, 4


def audit_files(
    files: Sequence[Path],
    console: Console,
    *,
    layouts: Sequence[Path] = (),
    proposal: Path | None = None,
    json: Path | None = None,
    html: Path | None = None,
    certificate: Path | None = None,
    truth: Sequence[Path] = (),
    protect: str | None = None,
    close: float = 1.0,
    narrow: int = 5,
    seconds: float | None = None,
    equations_only: bool = False,
    contributions: Path | None = None,
    coalition: int = 1,
) -> int:
    """Audit files, print the report and write what was asked for; gives the exit code."""
    opened = [
        open_file(path, layout)
        for path, layout in zip(files, layouts_of(files, layouts), strict=True)
    ]
    if proposal is not None:
        _write_proposal(opened, proposal, console)
    if protect is not None and not truth and contributions is None:
        raise InputError(
            "--protect needs the true tables; name them with --truth, or give --contributions."
        )
    if coalition > 1 and contributions is None:
        raise InputError(
            "--coalition needs the contributions; name their file with --contributions."
        )
    default = None if protect is None else default_level(protect)
    settings = settings_of([file.layout for file in opened], {})
    if settings.rule and protect is not None and not truth:
        raise InputError("'rule' stands in [suppress] of the layout, so leave --protect out.")
    levels = levels_of([read_true(path) for path in truth], default) if truth else None
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True, markup=False), transient=True) as bar:
        bar.add_task("Auditing", total=None)
        judged = judge(
            opened,
            close=close,
            narrow=narrow,
            levels=levels,
            seconds=seconds,
            equations_only=equations_only,
            contributions=contributions,
            coalition=max(coalition, 2 if settings.attacker == "pairs" else 1),
            protect=default,
            rule=rule_of(settings.rule) if settings.rule and contributions else None,
            unions=settings.unions or False,
        )
    report = judged.report
    _show(report, close, narrow, console)
    secret = "; it names contributors and is confidential" if report.confidential else ""
    if json is not None:
        report.write(json)
        console.print(Text(f"The report is in {json}{secret}."))
    if html is not None:
        write_whole(html, page(report, [file.layout for file in opened]).encode())
        console.print(Text(f"The page is in {html}{secret}."))
    if certificate is not None:
        _certify(judged, certificate)
        console.print(Text(f"The proof is in {certificate}; check it with 'lustrum verify'."))
    return report.exit


def _certify(judged: JudgedFiles, path: Path) -> None:
    if judged.known is None:
        raise InputError("There is nothing to prove: the published cells contradict each other.")
    certify(judged.known, list(judged.cells)).write(path)


def _write_proposal(opened: Sequence[OpenedFile], path: Path, console: Console) -> None:
    if len(opened) > 1:
        raise InputError("--propose is about one file; propose the layout of each on its own.")
    if path.exists():
        raise InputError(f"{path} exists already; remove it, or name another file for --propose.")
    proposal = propose(opened[0].container)
    questions = "".join(f"# Open: {q.role}: {q.text}\n" for q in proposal.questions)
    write_whole(path, (questions + layout_text(proposal.layout, proposal.reasons)).encode())
    console.print(
        Text(
            f"The proposed layout is in {path}; settle what stands under 'open', and audit with "
            f"--layout {path}."
        )
    )


def _show(report: FileReport, close: float, narrow: int, console: Console) -> None:
    for file in report.files:
        for note in file.notes:
            console.print(Text(f"{file.name}: {note}"))
        if file.layout == "beside the file":
            console.print(Text(f"{file.name}: read by the layout beside it."))
    values = [value for value in report.values if value.about == "value"]
    exact = sum(value.finding == "exact" for value in values)
    cells = "1 cell is" if report.hidden == 1 else f"{report.hidden:,} cells are"
    console.print(Text(f"{cells} hidden or changed; {exact} can be worked out exactly."))
    if report.contributors:
        sets = f", and sets of up to {report.coalition}" if report.coalition > 1 else ""
        console.print(
            Text(f"Judged: readers, {report.contributors:,} contributors and holdings{sets}.")
        )
    for place in report.standing:
        console.print(Text(f"A number stands beside the word that it is hidden: {place}."))
    for finding, title in (
        ("exact", "Exactly disclosed"),
        ("close", f"Known to within {close:g} percent or rounding"),
        ("within protection", "Within the protection interval"),
        ("few values", f"At most {narrow} values left"),
    ):
        _list(title, [value for value in values if value.finding == finding], console)
    learned = [value for value in report.values if value.about != "value"]
    _list("What contributors learn about others", learned, console)
    if report.closest is not None and not report.disclosed:
        console.print(
            Text(f"The closest open value is {report.closest.cell}: {_range(report.closest)}.")
        )
    if report.if_confirmed and not report.disclosed:
        _list("Disclosed if the proposed roles are right", report.if_confirmed, console)
    for number, question in enumerate(report.questions, start=1):
        console.print(
            Text(f"Question {number} ({question.file}, {question.role}): {question.text}")
        )
    for word in report.on_word if report.exit == 0 else ():
        console.print(Text(f"Taken on your word: {word}."))
    hint = " Answer them in a layout (--propose writes one, --layout reads it)."
    console.print(Text(report.reason + (hint if report.exit == 4 else "")))


def _range(value: AuditedValue) -> str:
    low, high = ("no end" if end is None else f"{end:,.10g}" for end in (value.low, value.high))
    return f"{low} to {high}"


def _nameless(who: Sequence[str]) -> str:
    """Who knows something, without a name: terminals are copied and logged."""
    if len(who) > 1:
        return f"{len(who)} together"
    return f"a {who[0].partition(' ')[0]}" if who else "every reader"


def _list(title: str, values: Sequence[AuditedValue], console: Console) -> None:
    if not values:
        return
    grid = Grid(title=title, title_justify="left", header_style="bold")
    insiders = any(value.about != "value" for value in values)
    last = ("of", "known to", "finding") if insiders else ("follows from",)
    for head in ("cell", "where", "least", "greatest", *last):
        grid.add_column(head, justify="right" if head in ("least", "greatest") else "left")
    for value in values[:_SHOWN]:
        ends = ["" if end is None else f"{end:,.10g}" for end in (value.low, value.high)]
        more = "; ..." if len(value.follows) > _FOLLOWS else ""
        facts = ["; ".join(value.follows[:_FOLLOWS]) + more]
        if insiders:
            facts = [value.about, _nameless(value.known_to), value.finding]
        grid.add_row(*map(Text, (value.cell, value.place, *ends, *facts)))
    console.print(grid)
    if len(values) > _SHOWN:
        console.print(Text(f"… and {len(values) - _SHOWN} more."))


# The page of an audit: the verdict, every finding as a range, and the roles of the file to choose by mouse.


_STYLE = "\n" + Path(__file__).with_name("audit.css").read_text(encoding="utf-8")

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
_SCRIPT = "\n" + Path(__file__).with_name("audit.js").read_text(encoding="utf-8")


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


def show_verification(
    file: Path,
    digest: str | None,
    console: Console,
    *,
    every: bool = False,
    json: Path | None = None,
) -> bool:
    """Check a certificate and say what came out; with ``every``, list all bounds it proves."""
    report = verify_file(file, digest)
    if json is not None:
        _report(file, report).write(json)
    if report.holds and every:
        console.print(_grid(report))
    console.print(Text(str(report)), soft_wrap=True)
    single = sum(p.low == p.high and p.low is not None for p in report.proven)
    if single:
        noun = "cell has" if single == 1 else "cells have"
        console.print(Text(f"{single} {noun} only one value left: disclosed to every reader."))
    return report.holds


def _report(file: Path, report: Report) -> FileReport:
    """The outcome for programs; ends are in the unit of the table."""
    unit = 10**report.decimals
    values = tuple(
        AuditedValue(
            cell=item.name,
            place="",
            low=None if item.low is None else float(item.low / unit),
            high=None if item.high is None else float(item.high / unit),
            sharp=item.low_sharp and item.high_sharp,
            finding="exact" if item.low is not None and item.low == item.high else "open",
        )
        for item in report.proven
    )
    return FileReport(
        command="verify",
        exit=0 if report.holds else 1,
        reason=str(report).partition("\n")[0],
        files=(AuditedFile(name=str(file), digest=report.digest, layout="none"),),
        hidden=len(values),
        open=sum(value.finding == "open" for value in values),
        values=values,
    )


def _grid(report: Report) -> Grid:
    grid = Grid(header_style="bold")
    grid.add_column("cell")
    for head in ("at least", "at most"):
        grid.add_column(head, justify="right")
    grid.add_column("")
    for item in report.proven:
        ends = (_number(end, report.decimals) for end in (item.low, item.high))
        grid.add_row(*map(Text, (item.name, *ends, _remark(item))))
    return grid


def _remark(item: ProvenCell) -> str:
    loose = [
        word for word, sharp in (("low", item.low_sharp), ("high", item.high_sharp)) if not sharp
    ]
    return f"not sharp: {', '.join(loose)}" if loose else ""


def _number(value: Fraction | None, decimals: int) -> str:
    """A value in the table's own unit.

    >>> _number(Fraction(1305), 1), _number(Fraction(27, 2), 0), _number(None, 0)
    ('130.5', '27/2', '-')
    """
    if value is None:
        return "-"
    if value.denominator > 1:
        return str(value / 10**decimals)
    if decimals == 0:
        return str(value.numerator)
    digits = f"{abs(value.numerator):0{decimals + 1}d}"
    return f"{'-' if value < 0 else ''}{digits[:-decimals]}.{digits[-decimals:]}"
