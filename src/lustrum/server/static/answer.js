// Comfort only: without this file every page still works.

const main = document.querySelector("#main");

function addCopyButton(box) {
  const code = box.querySelector("code");
  const { copy, copied, selected } = box.dataset;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = copy;
  button.setAttribute("aria-describedby", code.id);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = copied;
    } catch {
      window.getSelection().selectAllChildren(code);
      button.textContent = selected;
    }
    setTimeout(() => (button.textContent = copy), 2000);
  });
  box.append(button);
}

/** The table for a spreadsheet or a text: as HTML with its headers, and as lines with tabs. */
function addTableCopy(box) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "small copy-table";
  button.textContent = box.dataset.copyTable;
  button.addEventListener("click", async () => {
    const table = box.querySelector("table").cloneNode(true);
    for (const link of table.querySelectorAll("a, abbr")) link.replaceWith(link.textContent.trim());
    const lines = [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim().replace(/\s+/g, " ")).join("\t"));
    const kinds = { "text/html": table.outerHTML, "text/plain": lines.join("\n") };
    const blobs = Object.entries(kinds).map(([type, text]) => [type, new Blob([text], { type })]);
    await navigator.clipboard.write([new ClipboardItem(Object.fromEntries(blobs))]);
    button.textContent = box.dataset.copied;
    setTimeout(() => (button.textContent = box.dataset.copyTable), 2000);
  });
  box.after(button);
}

// Say once what was done, for people who cannot see it.
const told = document.createElement("p");
told.className = "unseen";
told.setAttribute("role", "status");
document.body.append(told);

let latest = 0;
let fetching;

function dress() {
  // The script that links marks and cells is fetched only where there are marks.
  const drawn = main.querySelector("[data-link]");
  if (drawn) import(drawn.dataset.link).then(({ link }) => link(main));
  if (navigator.clipboard) {
    main.querySelectorAll(".copy").forEach(addCopyButton);
    main.querySelectorAll("[data-copy-table]").forEach(addTableCopy);
  }
  main.querySelectorAll(".pictures").forEach((part) => (part.hidden = false));
  main.querySelectorAll(".apply").forEach((button) => (button.hidden = true));
}

/** An address of the workspace with the tree of categories that is open. */
function withTree(address) {
  const open = document.querySelector("#tree form");
  const made = new URL(address, location.href);
  if (open && !made.searchParams.has("tree")) {
    for (const name of ["tree", "under", "find"]) {
      const { value } = open.elements[name] ?? { value: "" };
      if (value) made.searchParams.append(name, value);
    }
  }
  return made.href;
}

// Another view of the same table: only the content is exchanged. Focus, open parts and the place stay.
async function go(address, remember) {
  const number = ++latest;
  fetching?.abort();
  fetching = new AbortController();
  const looking = main.querySelector(".looking");
  if (!looking) return location.assign(address);
  looking.setAttribute("aria-busy", "true");
  let text;
  try {
    const response = await fetch(withTree(address), { headers: { Accept: "text/html" }, signal: fetching.signal });
    if (!response.ok) return location.assign(address);
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") return;
    return location.assign(address);
  }
  if (number !== latest) return;
  const page = new DOMParser().parseFromString(text, "text/html");
  const fresh = page.querySelector("#main");
  const here = page.querySelector(".looking")?.dataset.here;
  if (!fresh || !here) return location.assign(address);
  const active = document.activeElement;
  const inside = active !== main && main.contains(active);
  const open = new Map([...main.querySelectorAll("details[id]")].map((part) => [part.id, part.open]));
  const across = main.querySelector(".scroll")?.scrollLeft ?? 0;
  const parts = ["choices", "answer"].map((id) => [document.getElementById(id), page.getElementById(id)]);
  if (parts.every(([old, made]) => old && made)) {
    for (const [old, made] of parts) old.replaceChildren(...made.childNodes);
    document.dispatchEvent(new Event("lustrum:page"));
  } else main.replaceChildren(...fresh.childNodes);
  for (const part of main.querySelectorAll("details[id]")) {
    if (open.has(part.id)) part.open = open.get(part.id);
  }
  document.querySelectorAll(".tongues a").forEach((link, place) => {
    const other = page.querySelectorAll(".tongues a")[place];
    if (other) link.setAttribute("href", other.getAttribute("href"));
  });
  document.title = page.title;
  if (remember && here !== location.pathname + location.search) history.pushState({ step: (history.state?.step ?? 0) + 1 }, "", here);
  dress();
  const scroll = main.querySelector(".scroll");
  if (scroll) scroll.scrollLeft = across;
  // What had the focus has it again; if it is gone, the table is where to go on.
  const target = (active.id && document.getElementById(active.id)) || scroll;
  if (inside) target?.focus({ preventScroll: true });
  document.dispatchEvent(new Event("lustrum:step"));
  told.textContent = main.querySelector(".view")?.dataset.done ?? main.querySelector(".verdict, .lead")?.textContent ?? "";
}

function chosen(form) {
  const pairs = [...new FormData(form)].filter(([, value]) => value !== "");
  return `${form.getAttribute("action")}?${new URLSearchParams(pairs)}`;
}

main.addEventListener("change", (event) => {
  const form = event.target.closest(".view, .numbers");
  if (form) go(chosen(form), true);
});

main.addEventListener("submit", (event) => {
  if (!event.target.matches(".view, [data-live]")) return;
  event.preventDefault();
  go(chosen(event.target), true);
});

function flash(button) {
  button.dataset.words ??= button.textContent;
  button.textContent = button.closest("[data-copied]").dataset.copied;
  setTimeout(() => (button.textContent = button.dataset.words), 2000);
}

main.addEventListener("click", async (event) => {
  const clip = event.target.closest("button[data-clip]");
  if (clip) navigator.clipboard?.writeText(clip.dataset.clip).then(() => flash(clip));
  const kind = event.target.closest("button[data-picture]");
  if (!kind) return;
  const { copy, download } = await import(kind.dataset.script);
  const figure = kind.closest("figure");
  if (kind.dataset.picture !== "clip") return download(figure, kind.dataset.picture, kind.dataset.name);
  await copy(figure);
  flash(kind);
});

main.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-view], #answer a[data-apply], #choices a[data-apply], #found a[data-apply], #saved a[data-apply]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.href, true);
});

window.addEventListener("popstate", () => go(location.href, false));
document.addEventListener("lustrum:go", (event) => go(event.detail, true));

dress();
