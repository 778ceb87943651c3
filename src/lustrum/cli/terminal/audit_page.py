"""The page of an audit: the verdict, every finding as a range, and the roles of the file to choose by mouse."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from lustrum.readers.layout import Layout
from lustrum.readers.report import AuditedValue, FileReport

_STYLE = """
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  color: #1a1f36; background: #fff }
h1, h2 { line-height: 1.2 }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; width: 100% }
th, td { border-bottom: 1px solid #c9ccd8; padding: .35rem .6rem; text-align: left; vertical-align: top }
td.n, th:nth-child(2), th:nth-child(3) { text-align: right; white-space: nowrap }
.verdict { border-left: .4rem solid; padding: .4rem .8rem; font-weight: 600 }
.e0 { border-color: #2c8465 } .e3 { border-color: #b3261e } .e4 { border-color: #c98a00 }
.scroll { overflow-x: auto }
select, button, textarea { font: inherit; color: inherit; background: transparent; border: 1px solid #8a90a6;
  border-radius: .3rem; padding: .15rem .4rem }
textarea { width: 100%; min-height: 16rem; font-family: ui-monospace, monospace; font-size: .85rem }
fieldset { border: 1px solid #c9ccd8; border-radius: .4rem; margin: 1rem 0; min-width: 0 }
label { display: grid; grid-template-columns: minmax(4rem, 16rem) 8.5rem minmax(5rem, 14rem); gap: .5rem;
  margin: .3rem 0; align-items: center; overflow-wrap: anywhere }
select { width: 100%; min-height: 2rem }
:focus-visible { outline: 3px solid #5468c4; outline-offset: 1px }
@media (prefers-color-scheme: dark) { body { background: #14161f; color: #e8e9f0 } option { color: #1a1f36 } }
"""

_ROLES = ("total", "part", "subset", "same", "independent", "not_additive")
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
for (const editor of document.querySelectorAll("[data-layout]")) {
  const layout = JSON.parse(editor.dataset.layout), text = editor.querySelector("textarea");
  const asked = layout.open || [];
  function update() {
    for (const s of editor.querySelectorAll("select[data-symbol]"))
      if (s.value !== "range") layout.symbols[s.dataset.symbol] = s.value;
    for (const s of editor.querySelectorAll("select[data-letter]")) layout.letters[s.dataset.letter] = s.value;
    for (const f of editor.querySelectorAll("fieldset[data-dimension]")) {
      const d = layout.dimensions[f.dataset.dimension] = {};
      const put = (role, head, code) => {
        d[role] = d[role] || {};
        (d[role][head] = d[role][head] || []).push(code);
      };
      for (const l of f.querySelectorAll("label")) {
        const [role, head] = l.querySelectorAll("select"), code = l.dataset.code;
        head.hidden = !["part", "subset", "same"].includes(role.value);
        if (role.value === "part") put("totals", head.value, code);
        else if (role.value === "subset") put("subsets", head.value, code);
        else if (role.value === "same") (d.same = d.same || {})[code] = head.value;
        else if (role.value !== "total") (d[role.value] = d[role.value] || []).push(code);
      }
      for (const head of Object.keys(d.subsets || {})) d.subsets[head] = { codes: d.subsets[head] };
    }
    const notes = editor.querySelector("input[name=notes]"), parts = editor.querySelector("input[name=parts]");
    layout.notes = notes && notes.checked ? "nothing" : null;
    layout.parts = parts && parts.checked ? "nothing" : null;
    const lists = [...editor.querySelectorAll("fieldset[data-dimension]")]
      .map(f => "codes:" + f.dataset.dimension);
    const chosen = role => lists.includes(role) || ["symbols", "letters"].includes(role)
      || layout[role] === "nothing";
    layout.open = asked.filter(role => !chosen(role));  // what nobody could choose here stays open
    text.value = rows(layout);
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
    words = "".join(f"<li>{escape(word)}</li>" for word in report.on_word)
    editors = "".join(
        _editor(file.name, layout)
        for file, layout in zip(report.files, layouts, strict=True)
        if layout.open or report.exit == 4
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Audit</title><style>{_STYLE}</style></head><body><h1>What a reader can work out</h1>"
        f'<p class="verdict e{report.exit}">{escape(report.reason)}</p>'
        f"<p>{report.hidden:,} values are not published as they are.</p>{findings}"
        + (f"<h2>Questions</h2><ol>{questions}</ol>" if questions else "")
        + editors
        + (f"<h2>Taken on a person's word</h2><ul>{words}</ul>" if words else "")
        + f"<script>{_SCRIPT}</script></body></html>\n"
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


def _editor(name: str, layout: Layout) -> str:
    """Selects for every symbol, letter and code of a layout, and the layout that they make."""
    data = layout.model_dump(exclude_defaults=True, mode="json")
    parts = []
    if layout.symbols:
        rows = "".join(
            f"<label>{escape(text or 'a blank field')}"
            + _select(f'data-symbol="{escape(text)}"', ("hidden", "zero", "impossible", "range"),
                      meaning if isinstance(meaning, str) else "range")
            + "</label>"
            for text, meaning in layout.symbols.items()
        )  # fmt: skip
        parts.append(f"<fieldset><legend>In place of a number</legend>{rows}</fieldset>")
    if layout.letters:
        rows = "".join(
            f"<label>{escape(text)}"
            + _select(
                f'data-letter="{escape(text)}"',
                ("note", "hidden"),
                meaning if isinstance(meaning, str) else "note",
            )
            + "</label>"
            for text, meaning in layout.letters.items()
        )
        parts.append(f"<fieldset><legend>Beside a number</legend>{rows}</fieldset>")
    for dimension, roles in layout.dimensions.items():
        heads = {part: ("part", total) for total, codes in roles.totals.items() for part in codes}
        heads |= {
            code: ("subset", head) for head, group in roles.subsets.items() for code in group.codes
        }
        heads |= {code: ("same", other) for code, other in roles.same.items()}
        heads |= dict.fromkeys(roles.independent, ("independent", ""))
        heads |= dict.fromkeys(roles.not_additive, ("not_additive", ""))
        codes = sorted({*roles.settled()}) or []
        if len(codes) < 2:
            continue
        rows = "".join(
            f'<label data-code="{escape(code)}">{escape(code)}'
            + _select(f'aria-label="role of {escape(code)}"', _ROLES,
                      heads.get(code, ("total", ""))[0])
            + _select(f'aria-label="what {escape(code)} belongs to"', codes, heads.get(code, ("", codes[0]))[1])
            + "</label>"
            for code in codes
        )  # fmt: skip
        parts.append(
            f'<fieldset data-dimension="{escape(dimension)}"><legend>{escape(dimension)}</legend>'
            f"{rows}</fieldset>"
        )
    for role, text in (("notes", "Lines outside the tables"), ("parts", "Other parts of the file")):
        if role in layout.open:
            parts.append(
                f'<p><input type="checkbox" name="{role}" id="{role}"> '
                f'<label style="display:inline" for="{role}">{text} say nothing about hidden cells</label></p>'
            )
    return (
        f"<section data-layout='{escape(json.dumps(data))}'><h2>Roles in {escape(name)}</h2>{''.join(parts)}"
        '<p><button type="button">Download the layout</button></p>'
        '<textarea aria-label="The layout as TOML" spellcheck="false"></textarea></section>'
    )


def _select(attributes: str, options: Sequence[str], chosen: str) -> str:
    inside = "".join(
        f'<option value="{escape(option)}"{" selected" if option == chosen else ""}>'
        f"{escape(option.replace('_', ' '))}</option>"
        for option in options
    )
    return f"<select {attributes}>{inside}</select>"
