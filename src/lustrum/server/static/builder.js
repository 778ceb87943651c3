// The builder while choices are made: the form is asked for again with every choice, and what changed is put
// into place; then the hint follows. Comfort only: without this file the form works as it stands.

const FORM_AFTER = 60; // milliseconds without a choice
const HINT_AFTER = 300;
const VIEW = ["as", "show", "empty", "heat", "names", "margins", "bounds", "decimals", "chart", "scale", "classes", "pivot", "wafer", "sort"];

/** Codes as a short list, runs as ranges: 1,2,7..12. The server reads the same. */
function listed(codes) {
  const escaped = (code) => {
    const text = code.replaceAll("%", "%25").replaceAll(",", "%2C");
    return /\.\.|^\.|\.$/.test(text) ? text.replaceAll(".", "%2E") : text;
  };
  const next = (code) => {
    const parts = code.match(/^([^]*?)([0-9]{1,9})$/);
    if (!parts) return null;
    const following = String(Number(parts[2]) + 1).padStart(parts[2].length, "0");
    return following.length > 9 ? null : parts[1] + following;
  };
  const out = [];
  for (let start = 0, end; start < codes.length; start = end + 1) {
    end = start;
    while (end + 1 < codes.length && next(codes[end]) === codes[end + 1]) end += 1;
    if (end - start < 2) end = start;
    out.push(start === end ? escaped(codes[start]) : `${escaped(codes[start])}..${escaped(codes[end])}`);
  }
  return out.join(",");
}

const written = ([name, value]) =>
  `${name}=${encodeURIComponent(value).replaceAll("%3A", ":").replaceAll("%2C", ",").replaceAll("%20", "+")}`;

/** The question that the form holds, as a query string. */
function question(form) {
  const pairs = [];
  const names = new Set();
  for (const slot of form.querySelectorAll("[data-slot]")) {
    const chosen = slot.querySelector("select[name=by]").value;
    if (!chosen) continue;
    const [name, level = ""] = chosen.split(/:(.*)/s);
    names.add(name);
    pairs.push(["by", chosen]);
    const box = slot.querySelector("details[data-picker]");
    if (!box?.picker || !box.dataset.key.startsWith(`codes|${name}|${level}|`)) continue;
    const groups = [...box.querySelectorAll("input[name=group]")].map((field) => field.value.trim()).filter(Boolean);
    for (const own of box.querySelectorAll("[data-group]")) {
      const label = own.querySelector("input[type=text]").value.trim().replaceAll("%", "%25").replaceAll("=", "%3D");
      const ticked = [...own.querySelectorAll("input[name=into]:checked")];
      const members = ticked.map((input) => input.value.slice(name.length + 1).split(/:(.*)/s)[1]);
      // A name without categories, or the other way round, is a group in the making.
      if (label && members.length) groups.push(`${name}:${label}=${listed(members)}`);
    }
    const codes = box.picker.codes();
    if (groups.length) pairs.push(...groups.map((group) => ["group", group]));
    else if (codes.length) pairs.push(["codes", `${name}:${listed(codes)}`]);
  }
  for (const box of form.querySelectorAll("details[data-kind=where]")) {
    const codes = box.picker?.codes() ?? [];
    const name = box.dataset.variable;
    if (codes.length > 3) pairs.push(["among", `${name}:${listed(codes)}`]);
    else pairs.push(...codes.map((code) => ["where", `${name}:${code}`]));
  }
  for (const list of form.querySelectorAll("select[name=place]")) {
    if (names.has(list.value.split(":")[0])) pairs.push(["place", list.value]);
  }
  for (const box of form.querySelectorAll("input[name=totals]")) {
    if (box.checked) pairs.push([box.name, box.value]);
  }
  const shown = [...form.querySelectorAll("select[name=statistic]")].map((list) => list.value).filter(Boolean);
  // A count alone goes without saying.
  if (shown.length > 1 || (shown.length && shown[0] !== "count")) {
    pairs.push(...shown.map((value) => ["statistic", value]));
  }
  const weight = form.querySelector("select[name=weight]")?.value;
  if (weight) pairs.push(["weight", weight]);
  return pairs.map(written).join("&");
}

/** Cut points that were typed; the server makes own groups of them. */
function cuts(form) {
  const boxes = [...form.querySelectorAll("[data-cuts]")].filter((box) => box.querySelector("input[type=text]").value.trim());
  return boxes.flatMap((box) => [...box.querySelectorAll("input[type=text], input:checked")].map((input) => written([input.name, input.value.trim()])));
}

class Builder {
  constructor(form) {
    this.form = form;
    this.live = form.dataset.live !== undefined;
    this.asked = question(form);
    this.canonical = form.dataset.question;
    form.querySelector("[data-check]").hidden = true;
    form.addEventListener("change", () => {
      this.outdate();
      this.soon = setTimeout(() => (this.live ? this.go() : this.refresh()), this.live ? HINT_AFTER : FORM_AFTER);
    });
    form.addEventListener("keydown", (event) => {
      // Enter after the name of a group goes on with the group; it does not send the form.
      if (event.key === "Enter" && event.target.matches("[data-group] input[type=text]")) event.preventDefault();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.live) return this.go();
      const now = question(form);
      location.assign(`${form.getAttribute("action")}?${[now === this.asked ? this.canonical : now, ...cuts(form)].join("&")}`);
    });
    form.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-apply]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      if (this.live) document.dispatchEvent(new CustomEvent("lustrum:go", { detail: link.href }));
      else this.refresh(new URL(link.href).search.slice(1), true);
    });
    document.addEventListener("lustrum:page", (event) => {
      const fresh = event.detail.page.querySelector("form[data-builder]");
      this.place(fresh, event.detail.everything);
      this.canonical = fresh.dataset.question;
      this.asked = question(this.form);
    });
    this.bar();
  }

  /** The table beside the form follows the choice; how it is shown stays in the address. */
  go() {
    const kept = [...new URLSearchParams(location.search)].filter(([name]) => VIEW.includes(name));
    const pairs = [question(this.form), ...kept.map(written)].filter(Boolean).join("&");
    document.dispatchEvent(new CustomEvent("lustrum:go", { detail: `${this.form.dataset.here}?${pairs}` }));
  }

  /** From the moment of a choice on, the hint is about an older question: nothing under way may show it as today's. */
  outdate() {
    clearTimeout(this.soon);
    clearTimeout(this.timer);
    this.hinting?.abort();
    this.fetching?.abort();
    this.form.querySelector("#foresight").classList.add("waiting");
  }

  /** Ask for the form as these choices make it; the last choice wins. */
  async refresh(query = question(this.form), everything = false) {
    this.outdate();
    this.fetching = new AbortController();
    const waiting = this.form.querySelector("#foresight");
    try {
      const answer = await fetch(`${this.form.dataset.parts}?${query}`, { signal: this.fetching.signal });
      // What was chosen meanwhile is newer than this answer, and asks for one of its own.
      if (!everything && question(this.form) !== query) return;
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        this.place(page.querySelector("form"), everything);
        this.canonical = page.querySelector("form").dataset.question;
        this.asked = question(this.form);
        history.replaceState(null, "", `${this.form.dataset.here}${this.canonical ? "?" : ""}${this.canonical}`);
      }
    } catch (error) {
      if (error.name === "AbortError") return;
    }
    if (everything) waiting.focus();
    this.timer = setTimeout(() => this.hint(this.asked), everything ? 0 : HINT_AFTER);
  }

  async hint(query) {
    this.hinting = new AbortController();
    const box = this.form.querySelector("#foresight");
    try {
      const answer = await fetch(`${this.form.dataset.hints}?${query}`, { signal: this.hinting.signal });
      const page = new DOMParser().parseFromString(answer.ok ? await answer.text() : "", "text/html");
      box.replaceChildren(...page.body.childNodes);
    } catch (error) {
      if (error.name === "AbortError") return;
      box.replaceChildren();
    }
    box.classList.remove("waiting");
  }

  /** Replace the parts that changed; the part with the focus stays, so that no typing is lost. */
  place(fresh, everything) {
    const focused = document.activeElement?.id;
    const slots = this.form.querySelector("#slots");
    for (const slot of fresh.querySelectorAll("#slots > [data-slot]")) {
      if (!document.getElementById(slot.id)) slots.append(document.importNode(slot, true));
    }
    for (const slot of this.form.querySelectorAll("[data-slot]")) {
      const same = fresh.querySelector(`#${slot.id}`);
      if (!same) {
        slot.remove();
        continue;
      }
      const [old, wanted] = [slot, same].map((one) => one.querySelector("details[data-picker]"));
      if (old && !wanted) old.remove();
      if (!old && wanted) slot.append(document.importNode(wanted, true));
    }
    for (const part of fresh.querySelectorAll("[data-part]")) {
      const old = document.getElementById(part.id);
      const kept = !everything && old.contains(document.activeElement) && old.dataset.always === undefined;
      const same = !everything && part.dataset.key !== undefined && part.dataset.key === old.dataset.key;
      // A list of another variable is of no use, even if it has the focus.
      if (same || (kept && part.dataset.key === undefined)) continue;
      const made = document.importNode(part, true);
      if (!everything && old.open !== undefined && part.dataset.kind === "where") made.open = old.open;
      old.replaceWith(made);
    }
    if (everything) {
      this.form.querySelector("input[name=totals]").checked = fresh.querySelector("input[name=totals]").checked;
    }
    document.dispatchEvent(new Event("lustrum:fresh"));
    this.bar();
    if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus();
  }

  /** What cannot stand beside the rest cannot be chosen. */
  bar() {
    for (const option of this.form.querySelectorAll("option[data-why]")) option.disabled = !option.selected;
  }
}

for (const form of document.querySelectorAll("form[data-builder]")) new Builder(form);
