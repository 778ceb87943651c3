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
  return out.join("\n") + "\n";
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
