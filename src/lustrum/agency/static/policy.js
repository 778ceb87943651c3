// Shows what a draft decides and changes while it is written. Without scripts the button "Check" does the same.

const form = document.getElementById("policy");
const place = document.getElementById("effect");
let timer = 0;
let asked = null;

async function check() {
  if (asked) asked.abort();
  asked = new AbortController();
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(form.action, {
      method: "POST",
      headers: { "X-Lustrum-Part": "effect" },
      body: new URLSearchParams(new FormData(form)),
      signal: asked.signal,
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    place.innerHTML = text;
    place.removeAttribute("aria-busy");
  } catch (error) {
    if (error.name === "AbortError") return;
    place.textContent = error.message;
    place.removeAttribute("aria-busy");
  }
}

form.addEventListener("input", (event) => {
  if (event.target.name !== "text" && event.target.name !== "questions") return;
  clearTimeout(timer);
  timer = setTimeout(check, 500);
});
