// Lists of categories to tick: search, all and none, ranges, and long lists that load when they are opened.
// Comfort only: without this file the lists are plain boxes to tick, or a link to a page of their own.

const SHOWN = 200; // rows of a long list that stand on the page at once
const PAGES = 20; // pages of 1000 that a list may load
const SEARCHED = 8; // shorter lists need no search

const number = new Intl.NumberFormat(document.documentElement.lang || "en");
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, key) => number.format(values[key]));

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** The numbers that a label speaks of: "15 to 19", "90 and over", "under 15", "7"; null where it has none. */
const OPEN = /^\s*(\+|(years? )?(and|or) (over|more|older|above)|(ans )?(et|ou) (plus|davantage)|(Jahre )?(und|oder) (mehr|älter))/i;
const BELOW = /(under|below|less than|fewer than|moins de|unter|weniger als)\s*$/i;
const BETWEEN = /^\s*(-|–|\.\.|to|or|and|à|ou|et|bis|oder|und)\s*$/i;
function span(label) {
  const found = [...label.matchAll(/\d+(?:[   ]\d{3})*/g)];
  if (!found.length) return null;
  const [first, second] = found;
  const value = (match) => Number(match[0].replace(/[   ]/g, ""));
  const after = (match) => label.slice(match.index + match[0].length);
  if (second && BETWEEN.test(after(first).slice(0, second.index - first.index - first[0].length)) && value(first) <= value(second)) {
    return [value(first), value(second)];
  }
  if (BELOW.test(label.slice(0, first.index))) return [-Infinity, value(first) - 1];
  if (OPEN.test(after(first))) return [value(first), Infinity];
  return found.length === 1 ? [value(first), value(first)] : null;
}

class Picker {
  constructor(box) {
    this.box = box;
    this.inside = box.querySelector(".inside");
    this.long = box.dataset.load !== undefined;
    this.chosen = new Set();
    this.entries = [];
    this.anchor = null;
    this.ready = false;
    if (this.long) {
      for (const code of JSON.parse(box.dataset.chosen)) this.chosen.add(code);
      box.querySelectorAll("[data-plain]").forEach((part) => part.remove());
    } else {
      for (const input of this.inputs()) {
        const label = input.closest("label");
        const name = label.querySelector("span").textContent;
        const row = label.parentElement;
        this.entries.push({ code: this.code(input), label: name, text: label.textContent, row, heading: row.parentElement });
        if (input.checked) this.chosen.add(this.code(input));
      }
    }
    if (box.dataset.why !== undefined) {
      this.off();
      return;
    }
    if (!this.long) this.bar();
    box.addEventListener("toggle", () => this.open());
    box.addEventListener("click", (event) => this.click(event));
    box.addEventListener("change", (event) => this.changed(event));
    if (box.open) this.open();
  }

  inputs() {
    return [...this.inside.querySelectorAll(".ticks:not(.members) input")];
  }

  code(input) {
    return input.value.slice(this.box.dataset.variable.length + 1);
  }

  /** The codes chosen, in the order of the list; none where all or none are ticked in a list for the table. */
  codes() {
    const known = new Set(this.entries.map((entry) => entry.code));
    const found = this.entries.filter((entry) => this.chosen.has(entry.code)).map((entry) => entry.code);
    const all = this.box.dataset.kind === "codes" && found.length === Number(this.box.dataset.size);
    return all ? [] : [...found, ...[...this.chosen].filter((code) => !known.has(code))];
  }

  async open() {
    if (!this.box.open || !this.long || this.ready) return;
    this.ready = true;
    const labels = JSON.parse(this.box.dataset.headings);
    const seen = new Set();
    try {
      for (const [place, address] of this.box.dataset.load.split(" ").entries()) {
        let next = address;
        for (let page = 0; next && page < PAGES; page += 1) {
          const answer = await (await fetch(next)).json();
          for (const { code, label } of answer.categories) {
            if (seen.has(code)) continue;
            seen.add(code);
            this.entries.push({ code, label, text: `${label} ${code}`, heading: labels[place] });
          }
          const following = answer.next && new URL(answer.next);
          next = following && following.pathname + following.search;
        }
      }
    } catch {
      this.ready = false;
      return;
    }
    this.bar();
    this.list = element("div");
    this.tools.after(this.list);
    this.narrow();
  }

  bar() {
    const { find, finds, tick, untick, range } = this.box.dataset;
    if (this.entries.length < SEARCHED) return;
    for (const entry of this.entries) entry.span = span(entry.label);
    const numbered = this.entries.filter((entry) => entry.span);
    // A list in which few labels hold a number, as in "District 9", is not one of numbers.
    this.numbers = 2 * numbered.length > this.entries.length && numbered.some(({ span: [low, high] }) => low < high);
    this.numbers ||= numbered.length === this.entries.length;
    const example = numbered.flatMap((entry) => entry.span).filter((value) => Number.isFinite(value) && value > 0);
    const hint = this.numbers && example.length > 1 ? finds.replace("{range}", `${example[0]}-${example[1]}`) : find;
    this.field = element("input", { type: "search", className: "find", autocomplete: "off", placeholder: hint });
    this.field.setAttribute("aria-label", hint);
    this.between = element("button", { type: "button", textContent: range, hidden: true });
    const all = element("button", { type: "button", textContent: tick });
    const none = element("button", { type: "button", textContent: untick });
    this.note = element("p", { className: "hint" });
    this.note.setAttribute("role", "status");
    this.tools = element("div", { className: "tools" }, this.field, this.between, all, none);
    const first = this.inside.querySelector(".heading, .ticks, .own");
    if (first) first.before(this.tools, this.note);
    else this.inside.append(this.tools, this.note);
    this.field.addEventListener("input", () => this.narrow());
    // The search is no choice, and Enter in it must not send the form.
    this.field.addEventListener("change", (event) => event.stopPropagation());
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      const found = this.found();
      if (this.range()?.length) this.set(this.range(), true);
      else if (found.length === 1) this.set(found, !this.chosen.has(found[0].code));
    });
    this.between.addEventListener("click", () => this.set(this.range() ?? [], true));
    all.addEventListener("click", () => this.set(this.found(), true));
    none.addEventListener("click", () => this.set(this.found(), false));
  }

  /** The two numbers of a range such as 15-64 or 65+ in the search field, or null. */
  ends() {
    const found = this.field.value.match(/^\s*(\d+)\s*(?:(?:-|–|\.\.)\s*(\d+)|\+)\s*$/);
    return found && [Number(found[1]), Number(found[2] ?? Infinity)].sort((a, b) => a - b);
  }

  /** The entries whose labels lie wholly within the range that the search field holds, of one level. */
  range() {
    if (!this.numbers) return this.codeRange();
    const ends = this.ends();
    if (!ends) return null;
    const inside = this.entries.filter((entry) => entry.span && entry.span[0] >= ends[0] && entry.span[1] <= ends[1]);
    const levels = new Map();
    for (const entry of inside) levels.set(entry.heading, [...(levels.get(entry.heading) ?? []), entry]);
    return [...levels.values()].sort((a, b) => b.length - a.length)[0] ?? [];
  }

  /** The entries between two codes such as 1-01-003, where labels have no numbers that a range could mean. */
  codeRange() {
    const text = this.field.value;
    // Codes may hold a hyphen themselves, so that every place to cut is tried.
    for (const cut of text.matchAll(/\.\.|–|-/g)) {
      const ends = [text.slice(0, cut.index), text.slice(cut.index + cut[0].length)].map((end) => end.trim());
      const [low, high] = ends
        .map((end) => this.entries.findIndex((entry) => entry.code === end))
        .sort((a, b) => a - b);
      if (low >= 0) return this.entries.slice(low, high + 1);
    }
    return null;
  }

  /** What the range in the search field leaves out, or why there is none. */
  remark(range) {
    const ends = this.ends();
    if (!ends) return "";
    if (!this.numbers) return range.length ? "" : this.box.dataset.words;
    const level = range.length ? range[0].heading : this.entries.find((entry) => entry.span).heading;
    const cut = this.entries.filter(
      ({ span: own, heading }) => own && heading === level && own[0] <= ends[1] && own[1] >= ends[0] && !(own[0] >= ends[0] && own[1] <= ends[1]),
    );
    return cut.length ? this.box.dataset.partly.replace("{names}", cut.map((entry) => entry.label).join("; ")) : "";
  }

  found() {
    const range = this.range();
    if (range) return range;
    const words = this.field.value.toLowerCase().split(/\s+/).filter(Boolean);
    return this.entries.filter((entry) => words.every((word) => entry.text.toLowerCase().includes(word)));
  }

  narrow() {
    const found = this.found();
    const range = this.range();
    this.between.hidden = !range?.length;
    this.note.textContent = this.remark(range ?? []) || (found.length ? "" : this.box.dataset.none);
    if (!this.long) {
      const kept = new Set(found);
      for (const entry of this.entries) entry.row.hidden = !kept.has(entry);
      return;
    }
    const lists = [];
    let heading;
    for (const entry of found.slice(0, SHOWN)) {
      if (entry.heading !== heading) {
        heading = entry.heading;
        lists.push(element("p", { className: "heading", textContent: heading }));
        lists.push(element("ul", { className: "ticks" }));
      }
      lists.at(-1).append(this.row(entry));
    }
    this.list.replaceChildren(...lists);
    if (found.length > SHOWN) this.note.textContent = fill(this.box.dataset.more, { n: found.length - SHOWN });
  }

  row(entry) {
    const value = `${this.box.dataset.variable}:${entry.code}`;
    const box = element("input", { type: "checkbox", value, checked: this.chosen.has(entry.code) });
    const code = element("code", { textContent: entry.code });
    const label = element("span", { textContent: entry.label });
    return element("li", {}, element("label", { className: "tick" }, box, " ", label, " ", code));
  }

  set(entries, on) {
    for (const { code } of entries) {
      if (on) this.chosen.add(code);
      else this.chosen.delete(code);
    }
    for (const input of this.inputs()) input.checked = this.chosen.has(this.code(input));
    this.said();
    this.box.dispatchEvent(new Event("change", { bubbles: true }));
  }

  click(event) {
    const input = event.target;
    if (!(input instanceof HTMLInputElement) || !input.closest(".ticks:not(.members)")) return;
    const rows = this.inputs().filter((one) => !one.closest("li").hidden);
    if (event.shiftKey && this.anchor && rows.includes(this.anchor)) {
      const [low, high] = [rows.indexOf(this.anchor), rows.indexOf(input)].sort((a, b) => a - b);
      for (const one of rows.slice(low, high + 1)) {
        one.checked = input.checked;
        this.take(one);
      }
    }
    this.anchor = input;
  }

  changed(event) {
    if (!(event.target instanceof HTMLInputElement) || !event.target.closest(".ticks:not(.members)")) return;
    this.take(event.target);
    this.said();
  }

  take(input) {
    if (input.checked) this.chosen.add(this.code(input));
    else this.chosen.delete(this.code(input));
  }

  said() {
    const { said, every, size } = this.box.dataset;
    const badge = this.box.querySelector("[data-badge]");
    badge.textContent = this.chosen.size ? fill(said, { n: this.chosen.size, m: Number(size) }) : every;
  }

  /** What may not be chosen beside the rest cannot be ticked; the reason stands in place of the list. */
  off() {
    for (const input of this.inputs()) input.disabled = true;
    for (const part of this.inside.querySelectorAll(".ticks, .heading")) part.hidden = true;
  }
}

/** Own groups: a name for those ticked writes the group into its field. */
function addGrouping(box) {
  const own = box.querySelector("[data-groups]");
  if (!own) return;
  const name = element("input", { type: "text", autocomplete: "off", placeholder: own.dataset.name });
  name.setAttribute("aria-label", own.dataset.name);
  const make = element("button", { type: "button", textContent: own.dataset.make });
  make.addEventListener("click", () => {
    const codes = box.picker.codes();
    if (!name.value.trim() || codes.length === 0) return name.focus();
    const fields = [...own.querySelectorAll("input[name=group]")];
    let field = fields.find((one) => !one.value);
    if (!field) {
      field = fields.at(-1).cloneNode();
      fields.at(-1).after(field);
    }
    const label = name.value.trim().replaceAll("%", "%25").replaceAll("=", "%3D");
    const list = codes.map((code) => code.replaceAll("%", "%25").replaceAll(",", "%2C").replaceAll("..", "%2E%2E"));
    field.value = `${box.dataset.variable}:${label}=${list.join(",")}`;
    name.value = "";
    box.picker.set(box.picker.entries, false);
  });
  name.addEventListener("change", (event) => event.stopPropagation());
  name.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    make.click();
  });
  own.append(element("div", { className: "tools" }, name, make));
}

function enhance(root) {
  for (const box of root.querySelectorAll("details[data-picker]")) {
    if (box.picker) continue;
    box.picker = new Picker(box);
    addGrouping(box);
  }
}

document.addEventListener("lustrum:fresh", () => enhance(document));
enhance(document);
