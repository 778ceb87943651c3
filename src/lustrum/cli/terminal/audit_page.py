"""The page of an audit: the verdict, every finding as a range, and the roles of the file to choose by mouse."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape

from lustrum.readers.layout import Layout
from lustrum.readers.report import AuditedValue, FileReport

_STYLE = """
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  color: #1a1f36; background: #fff }
h1, h2 { line-height: 1.2; overflow-wrap: anywhere }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; width: 100% }
th, td { border-bottom: 1px solid #c9ccd8; padding: .35rem .6rem; text-align: left; vertical-align: top }
td.n, th:nth-child(2), th:nth-child(3) { text-align: right; white-space: nowrap }
.verdict { border-left: .4rem solid; padding: .4rem .8rem; font-weight: 600 }
.e0 { border-color: #2c8465 } .e3 { border-color: #b3261e } .e4 { border-color: #c98a00 }
.scroll { overflow-x: auto }
select, button, textarea { font: inherit; color: inherit; background: transparent; border: 1px solid #8a90a6;
  border-radius: .3rem; padding: .15rem .4rem }
textarea { width: 100%; min-height: 16rem; white-space: pre; font-family: ui-monospace, monospace;
  font-size: .85rem }
fieldset { border: 1px solid #c9ccd8; border-radius: .4rem; margin: 1rem 0; min-width: 0 }
.role { display: grid; grid-template-columns: minmax(4rem, 16rem) 12rem minmax(5rem, 16rem); gap: .5rem;
  margin: .3rem 0; align-items: center; overflow-wrap: anywhere }
.settle { display: block; margin-top: .6rem }
li, p { overflow-wrap: anywhere }
select { width: 100%; min-height: 2rem }
button { min-height: 2.2rem; padding: .15rem .8rem }
@media (max-width: 40rem) {
  .role { grid-template-columns: 1fr 1fr } .role > :first-child { grid-column: 1 / 3 }
}
:focus-visible { outline: 3px solid #5468c4; outline-offset: 1px }
@media (prefers-color-scheme: dark) { body { background: #14161f; color: #e8e9f0 } option { color: #1a1f36 } }
"""

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
_SCRIPT = """
const quote = s => JSON.stringify(s);
const key = s => /^[A-Za-z0-9_-]+$/.test(s) ? s : quote(s);
const pair = ([k, x]) => key(k) + " = " + value(x);
const value = v => Array.isArray(v) ? "[" + v.map(value).join(", ") + "]" : typeof v === "object"
  ? "{ " + Object.entries(v).filter(e => e[1] !== null).map(pair).join(", ") + " }"
  : typeof v === "string" ? quote(v) : String(v);
function rows(layout) {
  const out = [];
  for (const [k, v] of Object.entries(layout))
    if (v !== null && !["tables", "symbols", "letters", "dimensions"].includes(k))
      out.push(key(k) + " = " + value(v));
  for (const table of layout.tables || []) {
    out.push("", "[[tables]]");
    for (const entry of Object.entries(table))
      if (entry[0] !== "columns" && entry[1] !== null) out.push(pair(entry));
    out.push("[tables.columns]");
    for (const [k, v] of Object.entries(table.columns)) out.push(key(k) + " = " + value(v));
  }
  for (const part of ["symbols", "letters"])
    if (layout[part]) { out.push("", "[" + part + "]");
      for (const [k, v] of Object.entries(layout[part])) out.push(key(k) + " = " + value(v)); }
  for (const [name, d] of Object.entries(layout.dimensions || {})) {
    out.push("", "[dimensions." + key(name) + "]");
    for (const [k, v] of Object.entries(d)) {
      if (v === null || typeof v !== "object" || Array.isArray(v)) { out.push(k + " = " + value(v)); continue; }
      for (const [code, x] of Object.entries(v)) out.push(k + "." + key(code) + " = " + value(x));
    }
  }
  return out.join("\\n") + "\\n";
}
function whole(fieldset, head, before) {  // whether the codes inside another one are all of it
  let label = [...fieldset.querySelectorAll("[data-head]")].find(l => l.dataset.head === head);
  if (!label) {
    label = document.createElement("label");
    label.className = "role"; label.dataset.head = head;
    label.append(document.createElement("span"), document.createElement("select"));
    label.firstChild.textContent = "The codes inside " + head;
    const answers = { "": "may be all of it", true: "are all of it", false: "are not all of it" };
    for (const [answer, words] of Object.entries(answers))
      label.lastChild.append(new Option(words, answer, false, answer === String(before ?? "")));
    fieldset.insertBefore(label, fieldset.querySelector(".settle"));
  }
  const { value } = label.lastChild;
  return value === "" ? null : value === "true";
}
for (const editor of document.querySelectorAll("[data-layout]")) {
  const layout = JSON.parse(editor.dataset.layout), text = editor.querySelector("textarea");
  const asked = layout.open || [], proposed = structuredClone(layout.dimensions || {});
  const all = (within, what) => within.querySelectorAll(what);
  function update() {
    for (const s of all(editor, "select[data-symbol]"))
      if (s.value !== "range") layout.symbols[s.dataset.symbol] = s.value;
    for (const s of all(editor, "select[data-letter]")) layout.letters[s.dataset.letter] = s.value;
    for (const f of all(editor, "fieldset[data-dimension]")) {
      const old = proposed[f.dataset.dimension], d = layout.dimensions[f.dataset.dimension] = {};
      const put = (role, head, code) => {
        d[role] = d[role] || {};
        (d[role][head] = d[role][head] || []).push(code);
      };
      for (const l of all(f, "[data-code]")) {
        const [role, head] = all(l, "select"), code = l.dataset.code;
        head.hidden = !["part", "subset", "same"].includes(role.value);
        if (role.value === "part") put("totals", head.value, code);
        else if (role.value === "subset") put("subsets", head.value, code);
        else if (role.value === "same") (d.same = d.same || {})[code] = head.value;
        else if (role.value === "computed") {
          for (const kind of ["differences", "units"])
            if (old[kind] && code in old[kind]) (d[kind] = d[kind] || {})[code] = old[kind][code];
        } else if (role.value !== "total") (d[role.value] = d[role.value] || []).push(code);
      }
      for (const l of all(f, "[data-head]")) l.hidden = !(l.dataset.head in (d.subsets || {}));
      for (const head of Object.keys(d.subsets || {})) {
        const before = (old.subsets || {})[head] || {};
        d.subsets[head] = { ...before, codes: d.subsets[head], complete: whole(f, head, before.complete) };
      }
      if (old.all) d.all = old.all;
    }
    const settled = [...all(editor, "input[data-settles]")].filter(i => i.checked).map(i => i.dataset.settles);
    for (const role of ["notes", "parts"]) layout[role] = settled.includes(role) ? "nothing" : null;
    const kind = editor.querySelector("select[name=kind]");
    if (kind) layout.kind = kind.value || null;
    const missing = editor.querySelector("select[name=missing]");
    if (missing) for (const table of layout.tables) table.missing = missing.value || null;
    if (missing && missing.value) settled.push("missing");
    layout.open = asked.filter(role => !settled.includes(role));  // what nobody confirmed stays open
    text.value = rows(layout);
    const left = layout.open.length;
    editor.querySelector("[role=status]").textContent = left
      ? `${left} of ${asked.length} questions are open: ${layout.open.join(", ")}.`
      : "Every question is settled.";
  }
  editor.addEventListener("change", e => { if (e.target !== text) update(); });
  editor.querySelector("button").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text.value], { type: "text/plain" }));
    link.download = "layout.toml"; link.click();
  });
  update();
}
"""


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
