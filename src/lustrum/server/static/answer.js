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

// Say once what was done, for people who cannot see it.
const told = document.createElement("p");
told.className = "unseen";
told.setAttribute("role", "status");
document.body.append(told);

let latest = 0;

function dress() {
  if (navigator.clipboard) main.querySelectorAll(".copy").forEach(addCopyButton);
  const apply = main.querySelector(".view .apply");
  if (apply) apply.hidden = true;
}

// Another view of the same table: only the content is exchanged. Focus, open parts and the place stay.
async function go(address, remember) {
  const number = ++latest;
  const looking = main.querySelector(".looking");
  if (!looking) return location.assign(address);
  looking.setAttribute("aria-busy", "true");
  let text;
  try {
    const response = await fetch(address, { headers: { Accept: "text/html" } });
    if (!response.ok || response.redirected) return location.assign(address);
    text = await response.text();
  } catch {
    return location.assign(address);
  }
  if (number !== latest) return;
  const page = new DOMParser().parseFromString(text, "text/html");
  const fresh = page.querySelector("#main");
  const here = page.querySelector("#here");
  if (!fresh || !here) return location.assign(address);
  const active = document.activeElement;
  const inside = active !== main && main.contains(active);
  const open = new Map([...main.querySelectorAll("details[id]")].map((part) => [part.id, part.open]));
  const across = main.querySelector(".scroll")?.scrollLeft ?? 0;
  main.replaceChildren(...fresh.childNodes);
  for (const part of main.querySelectorAll("details[id]")) {
    if (open.has(part.id)) part.open = open.get(part.id);
  }
  document.querySelectorAll(".tongues a").forEach((link, place) => {
    const other = page.querySelectorAll(".tongues a")[place];
    if (other) link.setAttribute("href", other.getAttribute("href"));
  });
  document.title = page.title;
  if (remember) history.pushState({ view: true }, "", here.getAttribute("href"));
  dress();
  const scroll = main.querySelector(".scroll");
  if (scroll) scroll.scrollLeft = across;
  // What had the focus has it again; if it is gone, the table is where to go on.
  const target = (active.id && document.getElementById(active.id)) || scroll;
  if (inside) target?.focus({ preventScroll: true });
  told.textContent = main.querySelector(".view").dataset.done;
}

function chosen(form) {
  const pairs = [...new FormData(form)].filter(([, value]) => value !== "");
  return `${form.getAttribute("action")}?${new URLSearchParams(pairs)}`;
}

main.addEventListener("change", (event) => {
  const form = event.target.closest(".view");
  if (form) go(chosen(form), true);
});

main.addEventListener("submit", (event) => {
  if (!event.target.matches(".view")) return;
  event.preventDefault();
  go(chosen(event.target), true);
});

main.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-view]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.href, true);
});

window.addEventListener("popstate", () => go(location.href, false));

dress();
