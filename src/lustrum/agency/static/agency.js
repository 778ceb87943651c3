// Sends the form, takes the growing map in, writes the policy. Without scripts the pages can still be read.

async function post(address, body) {
  const answer = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body || {}),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

function encoded(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",", 2)[1] || "");
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

function startForm(form) {
  const input = document.getElementById("files");
  const drop = document.getElementById("drop");
  const said = document.getElementById("said");
  let files = [];
  const show = () => {
    const list = document.getElementById("chosen");
    list.replaceChildren(...files.map((file) => Object.assign(document.createElement("li"), { textContent: file.name })));
  };
  input.addEventListener("change", () => { files = [...input.files]; show(); });
  for (const name of ["dragover", "dragenter"]) {
    drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    files = [...event.dataTransfer.files];
    show();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    said.textContent = "";
    try {
      const methods = {};
      for (const box of form.querySelectorAll("[data-method]:checked")) {
        const values = document.getElementById(`v-${box.dataset.method}`);
        methods[box.dataset.method] = values ? values.value : "";
      }
      const limit = document.getElementById("limit").value.trim().replace(",", ".");
      const sent = [];
      for (const file of files) sent.push({ name: file.name, content: await encoded(file) });
      const answer = await post("/maps", {
        files: sent,
        methods,
        risk: document.getElementById("risk").value,
        attacker: document.getElementById("attacker").value,
        limit: limit === "" ? null : Number.isFinite(Number(limit)) ? Number(limit) : limit,
        replications: Number(document.getElementById("replications").value) || 0,
      });
      location.assign(answer.address);
    } catch (error) {
      said.textContent = error.message;
    }
  });
}

function grow(place) {
  let mark = "";
  const status = document.getElementById("status");
  const step = async () => {
    let state;
    try {
      const answer = await fetch(`${place.dataset.address}?seen=${encodeURIComponent(mark)}`);
      if (!answer.ok) throw new Error(await answer.text());
      state = await answer.json();
    } catch {
      document.getElementById("count").textContent = "The page is not answering; is it still running?";
      return;
    }
    if (state.html !== undefined) {
      const label = document.activeElement && place.contains(document.activeElement)
        ? document.activeElement.getAttribute("href") : null;
      const open = [...place.querySelectorAll("details")].map((own) => own.open);
      place.innerHTML = state.html;
      place.querySelectorAll("details").forEach((own, i) => { if (i < open.length) own.open = open[i]; });
      if (label) {
        const same = [...place.querySelectorAll("a")].find((own) => own.getAttribute("href") === label);
        if (same) same.focus();
      }
      mark = state.mark;
    }
    const bar = document.getElementById("progress");
    bar.max = state.total;
    bar.value = state.done;
    document.getElementById("count").textContent = `${state.done} of ${state.total} draws`;
    if (state.finished) {
      place.dataset.finished = "yes";
      document.getElementById("stop").hidden = true;
      status.textContent = "The map is finished.";
    } else {
      setTimeout(step, 250);
    }
  };
  step();
}

const form = document.getElementById("ask");
if (form) startForm(form);
const growing = document.getElementById("growing");
if (growing && growing.dataset.finished === "no") grow(growing);
const stop = document.getElementById("stop");
if (stop) stop.addEventListener("click", () => post(stop.dataset.address));
const use = document.getElementById("use");
if (use) {
  use.addEventListener("click", async () => {
    const said = document.getElementById("said");
    try {
      said.textContent = (await post(use.dataset.address + location.search)).said;
    } catch (error) {
      said.textContent = error.message;
    }
  });
}
