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
        this.entries.push({ code: this.code(input), text: label.textContent, row: label.parentElement });
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
    const labels = JSON.parse(this.box.dataset.shelves);
    const seen = new Set();
    try {
      for (const [place, address] of this.box.dataset.load.split(" ").entries()) {
        let next = address;
        for (let page = 0; next && page < PAGES; page += 1) {
          const answer = await (await fetch(next)).json();
          for (const { code, label } of answer.categories) {
            if (seen.has(code)) continue;
            seen.add(code);
            this.entries.push({ code, label, text: `${label} ${code}`, shelf: labels[place] });
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
    const { find, tick, untick, range } = this.box.dataset;
    if (this.entries.length < SEARCHED) return;
    this.field = element("input", { type: "search", className: "find", autocomplete: "off", placeholder: find });
    this.field.setAttribute("aria-label", find);
    this.between = element("button", { type: "button", textContent: range, hidden: true });
    const all = element("button", { type: "button", textContent: tick });
    const none = element("button", { type: "button", textContent: untick });
    this.note = element("p", { className: "hint" });
    this.note.setAttribute("role", "status");
    this.tools = element("div", { className: "tools" }, this.field, this.between, all, none);
    const first = this.inside.querySelector(".shelf, .ticks, .own");
    if (first) first.before(this.tools, this.note);
    else this.inside.append(this.tools, this.note);
    this.field.addEventListener("input", () => this.narrow());
    // The search is no choice, and Enter in it must not send the form.
    this.field.addEventListener("change", (event) => event.stopPropagation());
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      const found = this.found();
      if (this.range()) this.set(this.range(), true);
      else if (found.length === 1) this.set(found, !this.chosen.has(found[0].code));
    });
    this.between.addEventListener("click", () => this.set(this.range() ?? [], true));
    all.addEventListener("click", () => this.set(this.found(), true));
    none.addEventListener("click", () => this.set(this.found(), false));
  }

  /** The entries between two codes, where the search field holds a range such as 5-12. */
  range() {
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

  found() {
    const range = this.range();
    if (range) return range;
    const words = this.field.value.toLowerCase().split(/\s+/).filter(Boolean);
    return this.entries.filter((entry) => words.every((word) => entry.text.toLowerCase().includes(word)));
  }

  narrow() {
    const found = this.found();
    this.between.hidden = !this.range();
    this.note.textContent = found.length ? "" : this.box.dataset.none;
    if (!this.long) {
      const kept = new Set(found);
      for (const entry of this.entries) entry.row.hidden = !kept.has(entry);
      return;
    }
    const lists = [];
    let shelf;
    for (const entry of found.slice(0, SHOWN)) {
      if (entry.shelf !== shelf) {
        shelf = entry.shelf;
        lists.push(element("p", { className: "shelf", textContent: shelf }));
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
    for (const part of this.inside.querySelectorAll(".ticks, .shelf")) part.hidden = true;
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
