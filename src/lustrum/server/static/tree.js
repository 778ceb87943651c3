// The tree of categories: arrows, letters and space; search while typing; every choice is shown at once. Without this
// file every row is a button of a plain form.

let pending = []; // what was pressed since the page came that stands here
let opened = new Set();
let about, anchor, soon, looking, fresh, naming;
let typed = { text: "", at: 0 };

const form = () => document.querySelector("#tree form");
const rows = () => [...document.querySelectorAll("#tree [role=treeitem]")].filter((row) => row.getClientRects().length);
const row = (element) => element?.closest("#tree li");
const code = (row) => row.id.slice("row-".length);
const fixed = (row) => row.firstElementChild.className === "in"; // it belongs to a group of its own name
const ticked = (row) => row.firstElementChild.name === "untick";
const mark = (row, on, some = false) => {
  if (!fixed(row)) row.firstElementChild.name = on ? "untick" : "tick";
  row.classList.toggle("some", some);
  row.setAttribute("aria-checked", some ? "mixed" : String(on));
};

/** Roles, names and one stop for the Tab key: the rows are a tree as soon as arrows work in it. */
function dress() {
  const here = form();
  if (!here) return (about = undefined);
  if (about !== here.dataset.about) [about, opened, anchor, fresh] = [here.dataset.about, new Set(), undefined, true];
  const list = here.querySelector(".rows");
  if (!list) return;
  list.setAttribute("role", "tree");
  list.setAttribute("aria-multiselectable", "true");
  for (const one of list.querySelectorAll("li")) {
    const below = one.querySelector(":scope > ul");
    one.setAttribute("role", "treeitem");
    one.setAttribute("aria-label", one.firstElementChild.textContent);
    one.tabIndex = -1;
    mark(one, ticked(one) || fixed(one), one.classList.contains("some"));
    if (fixed(one)) one.setAttribute("aria-disabled", "true");
    for (const button of one.querySelectorAll(":scope > button")) {
      button.tabIndex = -1;
      button.setAttribute("aria-hidden", "true");
    }
    below?.setAttribute("role", "group");
    const shut = one.querySelector(":scope > .open");
    if (below && one.classList.contains("some")) opened.add(code(one));
    if (below || shut) {
      shut?.remove();
      if (shut) one.dataset.closed = "";
      const twist = Object.assign(document.createElement("button"), { type: "button", className: "twist", tabIndex: -1 });
      twist.setAttribute("aria-hidden", "true");
      one.firstElementChild.after(twist);
      one.setAttribute("aria-expanded", String(Boolean(below) && opened.has(code(one))));
    }
  }
  const stop = [...list.querySelectorAll("li")].find((one) => code(one) === anchor) ?? list.querySelector("li");
  stop.tabIndex = 0;
}

function address(acts, find = form().elements.find.value) {
  const pairs = [...form().querySelectorAll("input[type=hidden]")].map(({ name, value }) => [name, value]);
  return `${form().getAttribute("action")}?${new URLSearchParams([...pairs, ...(find ? [["find", find]] : []), ...acts])}`;
}

/** A choice, together with those that no page has shown yet. */
function act(name, value, more = []) {
  pending.push([name, value], ...more);
  const again = ["take", "leave", "join"].includes(name) ? "" : undefined;
  document.dispatchEvent(new CustomEvent("lustrum:go", { detail: address(pending, again) }));
}

const depth = (one) => (one?.parentElement.closest("li") ? 1 + depth(one.parentElement.closest("li")) : 0);

/** The rows from one to another, of the rung of the first. */
function span(from, to) {
  const all = rows();
  const ends = [all.indexOf(from), all.indexOf(to)].sort((a, b) => a - b);
  return all.slice(ends[0], ends[1] + 1).filter((other) => depth(other) === depth(from) && !fixed(other));
}

/** Ticks or unticks the rows from one to another. */
function sweep(from, to, on) {
  const some = span(from, to).filter((other) => ticked(other) !== on);
  anchor = code(to);
  if (!some.length) return;
  some.forEach((other) => mark(other, on));
  const acts = some.map((other) => [on ? "tick" : "untick", code(other)]);
  act(...acts[0], acts.slice(1));
}

function tick(one, wide) {
  if (fixed(one)) return;
  const from = wide && rows().find((other) => code(other) === anchor);
  sweep(from || one, one, !ticked(one));
}

/** Other rows of the same tree: those that are found, or an open branch. */
async function look(more = []) {
  clearTimeout(soon);
  looking?.abort();
  looking = new AbortController();
  const asked = address([...pending, ...more]).replace(form().getAttribute("action"), form().dataset.tree);
  try {
    const answer = await fetch(asked, { signal: looking.signal });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.querySelector("#tree-rows");
    if (!answer.ok || !found || !form()) return;
    form().querySelector("#tree-rows").replaceWith(found);
    const under = [...form().querySelectorAll("input[name=under]")];
    if (more.length && under.length) under[0].value = more[0][1];
    dress();
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

async function fold(one, open) {
  anchor = code(one);
  if (open) opened.add(anchor);
  else opened.delete(anchor);
  if (open && one.dataset.closed !== undefined) {
    await look([["under", anchor]]);
    document.getElementById(one.id)?.focus();
  } else one.setAttribute("aria-expanded", String(open));
}

function focus(one) {
  if (!one) return;
  document.querySelectorAll("#tree li[tabindex='0']").forEach((other) => (other.tabIndex = -1));
  one.tabIndex = 0;
  one.focus();
}

function letters(one, key, stamp) {
  typed = { text: stamp - typed.at < 700 ? typed.text + key : key, at: stamp };
  const all = rows();
  const at = all.indexOf(one);
  const order = [...all.slice(at + (typed.text.length > 1 ? 0 : 1)), ...all.slice(0, at + 1)];
  focus(order.find((other) => other.getAttribute("aria-label").toLowerCase().startsWith(typed.text.toLowerCase())));
}

/** To another row; with the Shift key what lies between is ticked, so that it can become a group. */
function walk(one, to, wide) {
  if (to && wide) sweep(one, to, true);
  focus(to);
}

// A selection is dragged over the rows with a mouse or pen; a finger scrolls.
let from;
let over;
const under = (event) => event.target.closest?.("#tree [role=treeitem]");
const light = () => {
  for (const one of document.querySelectorAll("#tree .over")) one.classList.remove("over");
  if (over) for (const one of span(from, over)) one.classList.add("over");
};
document.addEventListener("pointerdown", (event) => {
  const one = event.pointerType !== "touch" && event.button === 0 && !event.target.closest(".twist") && under(event);
  [from, over] = [one && !fixed(one) ? one : undefined, undefined];
});
document.addEventListener("pointermove", (event) => {
  const one = from && under(event);
  if (!one || (one === from && !over) || one === over) return;
  over = one;
  light();
});
document.addEventListener("pointerup", () => {
  if (!over) return (from = undefined);
  const ends = [from, over];
  from = over = undefined;
  light();
  naming = true;
  sweep(...ends, true);
});

document.addEventListener("keydown", (event) => {
  if (event.target.matches?.("#tree-find, #tree-join") && event.key === "Enter") {
    event.preventDefault();
    if (event.target.id === "tree-join") return form().querySelector("[name=join]").click();
    return void look().then(() => document.querySelector("#tree-take")?.click());
  }
  const one = event.target.matches?.("#tree [role=treeitem]") && event.target;
  if (!one || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = rows();
  const at = all.indexOf(one);
  const expanded = one.getAttribute("aria-expanded");
  const ways = {
    ArrowDown: () => walk(one, all[at + 1], event.shiftKey),
    ArrowUp: () => walk(one, all[at - 1], event.shiftKey),
    Home: () => focus(all[0]),
    End: () => focus(all.at(-1)),
    ArrowRight: () => (expanded === "false" ? fold(one, true) : expanded && focus(all[at + 1])),
    ArrowLeft: () => (expanded === "true" ? fold(one, false) : focus(row(one.parentElement))),
    " ": () => tick(one, event.shiftKey),
    Enter: () => tick(one, false),
  };
  const way = ways[event.key] ?? (event.key.length === 1 && (() => letters(one, event.key, event.timeStamp)));
  if (!way) return;
  event.preventDefault();
  way();
});

document.addEventListener("click", (event) => {
  const here = event.target.closest("#tree");
  if (!here || event.ctrlKey || event.metaKey) return;
  if (event.target.closest("[data-shut]")) {
    event.preventDefault();
    const name = about.split(":")[1];
    here.remove();
    about = undefined;
    return document.querySelector(`#in-categories-${name}, #change-${name}, #spare-${name} summary`)?.focus();
  }
  const button = event.target.closest("button");
  const one = row(event.target);
  if (!button) return;
  event.preventDefault();
  if (button.className === "twist") fold(one, one.getAttribute("aria-expanded") === "false");
  else if (one) {
    tick(one, event.shiftKey);
    focus(one);
  } else if (button.name === "join") act("join", "on", [["named", form().elements.named.value]]);
  else if (button.name) act(button.name, button.value);
  else look();
});

document.addEventListener("input", (event) => {
  if (event.target.id !== "tree-find") return;
  clearTimeout(soon);
  soon = setTimeout(look, 150);
});

document.addEventListener("lustrum:page", () => {
  pending = [];
  dress();
});
document.addEventListener("lustrum:step", () => {
  if (naming) document.querySelector("#tree-join")?.select(); // Enter makes the group of what was dragged over
  naming = false;
  if (!fresh) return;
  fresh = false;
  document.querySelector("#tree li[tabindex='0']")?.focus({ preventScroll: true });
  const panel = document.querySelector(".chooser");
  panel.scrollTop += document.querySelector("#tree").getBoundingClientRect().top - panel.getBoundingClientRect().top - 60;
});
dress();
fresh = false;
