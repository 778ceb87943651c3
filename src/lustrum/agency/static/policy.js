// Keeps the form and the text of a policy in step, and shows what the draft decides while it is written.
// Without scripts the buttons do the same.

const form = document.getElementById("policy");
const [fields, text, place, short] = ["form", "text", "effect", "in-short"].map((id) => document.getElementById(id));
let timer = 0;
let asked = null;
let written = null; // the field that somebody wrote in last, which is left as it is

/** Takes the form of the server over: values where the fields are the same, else all of it. */
function take(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html").body;
  const ids = (root) => [...root.querySelectorAll("[name]")].map((one) => one.name + one.tagName + one.textContent).join();
  if (ids(fresh) === ids(fields)) {
    for (const one of fresh.querySelectorAll("[name]")) {
      const here = form.elements[one.name];
      if (here !== written && here.value !== one.value) here.value = one.value;
    }
  } else {
    const open = new Set([...fields.querySelectorAll("details[open]")].map((one) => one.id));
    const known = new Set([...fields.querySelectorAll("details")].map((one) => one.id));
    const focused = document.activeElement.id;
    fields.replaceChildren(...fresh.childNodes);
    for (const one of fields.querySelectorAll("details")) if (known.has(one.id)) one.open = open.has(one.id);
    if (focused) document.getElementById(focused)?.focus();
  }
  dress();
}

/** A slider goes where its number is; it is no field of its own. */
function dress() {
  for (const one of fields.querySelectorAll("input[type=range]")) {
    const number = document.getElementById(one.dataset.of);
    one.hidden = false;
    if (one !== document.activeElement) one.value = number.value || number.placeholder;
  }
}

async function check() {
  asked = new AbortController();
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(form.action, {
      method: "POST",
      headers: { "X-Lustrum-Part": "effect" },
      body: new URLSearchParams(new FormData(form)),
      signal: asked.signal,
    });
    if (!answer.ok) throw new Error(await answer.text());
    const found = await answer.json();
    if (found.text !== undefined) {
      if (text.value !== found.text && text !== written) text.value = found.text;
      take(found.form);
      form.elements.preset.value = "";
    }
    place.innerHTML = found.effect;
    short.textContent = place.firstElementChild.dataset.short;
    short.hidden = false;
    place.removeAttribute("aria-busy");
  } catch (error) {
    if (error.name === "AbortError") return;
    place.textContent = error.message;
    place.removeAttribute("aria-busy");
  }
}

form.addEventListener("input", (event) => {
  const one = event.target;
  if (one.type === "checkbox") return;
  if (one.dataset.of) document.getElementById(one.dataset.of).value = one.value;
  written = one.dataset.of ? document.getElementById(one.dataset.of) : one;
  asked?.abort();
  clearTimeout(timer);
  timer = setTimeout(check, one === text || one.name === "questions" ? 500 : 120);
});
form.querySelector(".plain-check").hidden = true;
dress();
