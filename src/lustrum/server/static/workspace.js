// The workspace with a script: search while typing, drag, keys, undo and redo. Without it every choice is a link.

const space = document.querySelector(".workspace");
const found = document.querySelector("#found");
const field = document.querySelector("#find-words");
const [undo, redo] = ["undo", "redo"].map((name) => space.querySelector(`[data-${name}]`));

let searching, soon;
async function search() {
  searching?.abort();
  searching = new AbortController();
  const kept = new URLSearchParams(location.search);
  kept.set("q", field.value);
  try {
    const answer = await fetch(`${space.dataset.find}?${kept}`, { signal: searching.signal });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    found.replaceChildren(...page.body.childNodes);
    dress(found);
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}
field.addEventListener("input", () => {
  clearTimeout(soon);
  soon = setTimeout(search, 200);
});
field.form.addEventListener("submit", async (event) => {
  event.preventDefault();
  clearTimeout(soon);
  await search();
  found.querySelector(".hits a")?.click(); // Enter takes what was found first
});
if (field.value !== field.defaultValue) search(); // typed before this script was there

/** The link of a variable that puts it into a zone. */
const link = (chip, zone) => chip.querySelector(`a[data-to="${zone}"]`);

function dress(root) {
  for (const chip of root.querySelectorAll(".chip[data-variable]")) chip.draggable = true;
  for (const hint of root.querySelectorAll(".keys")) hint.hidden = false;
}

space.addEventListener("keydown", (event) => {
  const chip = event.target.closest("summary") && event.target.closest(".chip[data-variable]");
  if (!chip || event.ctrlKey || event.metaKey || event.altKey) return;
  const way = [...chip.querySelectorAll("a[data-key]")].find((one) => one.dataset.key.toLowerCase() === event.key.toLowerCase());
  if (!way) return;
  event.preventDefault();
  way.click();
});

let dragged;
space.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.(".chip[data-variable]");
  if (!dragged) return;
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", dragged.dataset.variable);
});
space.addEventListener("dragover", (event) => {
  const zone = event.target.closest("[data-zone]");
  if (dragged && zone && link(dragged, zone.dataset.zone)) event.preventDefault();
});
space.addEventListener("drop", (event) => {
  const zone = event.target.closest("[data-zone]");
  if (!dragged || !zone) return;
  event.preventDefault();
  link(dragged, zone.dataset.zone)?.click();
  dragged = undefined;
});

// Every choice is a step of the history, so that undo is Back.
let furthest = 0;
function step() {
  const now = history.state?.step ?? 0;
  furthest = Math.max(furthest, now);
  undo.disabled = now === 0;
  redo.disabled = now >= furthest;
  dress(space);
}
undo.addEventListener("click", () => history.back());
redo.addEventListener("click", () => history.forward());
undo.parentElement.hidden = false;
document.addEventListener("lustrum:step", step);
step();

// On a phone what can be chosen is a sheet over the table, which is seen after every choice.
const chooser = space.querySelector(".chooser");
function sheet(open) {
  space.classList.toggle("choosing", open);
  if (open) chooser.focus({ preventScroll: true });
  else space.querySelector(".to-choose")?.focus({ preventScroll: true });
}
space.classList.add("sheeted");
space.addEventListener("click", (event) => {
  const way = event.target.closest(".to-choose, .sheet-shut");
  if (!way) return;
  event.preventDefault();
  sheet(way.matches(".to-choose"));
});
chooser.addEventListener("keydown", (event) => {
  if (event.key === "Escape") sheet(false);
});
document.addEventListener("lustrum:page", () => {
  if (!space.matches(".choosing")) return;
  space.querySelector(".scroll, .chart, .looking").scrollIntoView({ block: "start" });
});

// Tables under a name, kept in this browser and nowhere else.
const list = document.querySelector("#saved");
const { saved: place, remove } = list.dataset;
const kept = () => {
  try {
    const found = JSON.parse(localStorage.getItem(place) ?? "[]");
    return found.filter(({ name, query }) => typeof name === "string" && typeof query === "string");
  } catch {
    return [];
  }
};
function show(tables) {
  list.querySelector("ul").replaceChildren(
    ...tables.map(({ name, query }) => {
      const item = document.createElement("li");
      item.className = "chip filter";
      const open = document.createElement("a");
      open.href = `${location.pathname}?${query}`;
      open.textContent = name;
      open.dataset.apply = "";
      const away = document.createElement("button");
      away.type = "button";
      away.textContent = remove;
      away.setAttribute("aria-label", `${remove} ${name}`);
      away.addEventListener("click", () => store(kept().filter((one) => one.name !== name)));
      item.append(open, " ", away);
      return item;
    }),
  );
}
function store(tables) {
  localStorage.setItem(place, JSON.stringify(tables));
  show(tables);
}
list.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = event.target.querySelector("input");
  const name = field.value.trim();
  if (!name) return;
  const query = new URL(document.querySelector(".looking").dataset.here, location.href).search.slice(1);
  store([...kept().filter((one) => one.name !== name), { name, query }]);
  field.value = "";
});
show(kept());
list.hidden = false;
