// Comfort only: without this file every page still works.

const number = new Intl.NumberFormat("en");

/** The live count of cells beside the button, and a word when a variable stands twice. */
function countCells(form) {
  const said = form.querySelector("[data-count]");
  const limit = Number(form.dataset.limit);
  const most = Number(form.dataset.most);
  const chosen = [...form.querySelectorAll("select[data-axis]")]
    .map((list) => list.selectedOptions[0])
    .filter((option) => option && option.value);
  const sizes = chosen.map((option) => Number(option.dataset.categories));
  const names = chosen.map((option) => option.dataset.variable);
  const cells = sizes.reduce((product, size) => product * size, 1);
  let text = `At most ${number.format(limit)} cells.`;
  let wrong = false;
  if (names.some((name, at) => names.indexOf(name) !== at)) {
    text = "A variable stands twice; choose it once.";
    wrong = true;
  } else if (chosen.length > most) {
    text = `${chosen.length} variables; at most ${most} are allowed.`;
    wrong = true;
  } else if (chosen.length > 0) {
    const sum = sizes.length > 1 ? `${sizes.map((n) => number.format(n)).join(" × ")} = ` : "";
    text = `${sum}${number.format(cells)} cells of at most ${number.format(limit)}.`;
    wrong = cells > limit;
  }
  if (said.textContent !== text) said.textContent = text;
  said.classList.toggle("wrong", wrong);
}

/** A search field above a long list: only the options that match stay, and the list opens to show them. */
function addSearch(list) {
  const groups = [...list.querySelectorAll("optgroup")].map((group) => ({
    group,
    options: [...group.children],
  }));
  const total = groups.reduce((sum, { options }) => sum + options.length, 0);
  if (total < 25) return;
  const field = document.createElement("input");
  field.type = "search";
  field.className = "find";
  field.autocomplete = "off";
  field.placeholder = list.dataset.searchable;
  field.setAttribute("aria-label", list.dataset.searchable);
  field.setAttribute("aria-controls", list.id);
  const narrow = () => {
    const wanted = field.value.trim().toLowerCase();
    let rows = 1;
    for (const { group, options } of groups) {
      const named = group.label.toLowerCase().includes(wanted);
      const kept = options.filter(
        (option) => named || option.selected || option.text.toLowerCase().includes(wanted),
      );
      group.replaceChildren(...kept);
      group.hidden = kept.length === 0;
      rows += kept.length === 0 ? 0 : kept.length + 1;
    }
    if (wanted) list.size = Math.min(Math.max(rows, 2), 9);
    else list.removeAttribute("size");
  };
  const close = () => {
    if (field.value === "") return;
    field.value = "";
    narrow();
  };
  field.addEventListener("input", narrow);
  list.addEventListener("click", (event) => event.target instanceof HTMLOptionElement && close());
  list.addEventListener("blur", close);
  list.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || field.value === "") return;
    event.preventDefault();
    close();
  });
  // Enter in the search field goes on to the list instead of sending the form.
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      list.focus();
    }
  });
  list.before(field);
}

/** Lists that were left alone stay out of the address. */
function keepAddressShort(form) {
  const lists = [...form.querySelectorAll("select")];
  form.addEventListener("submit", () => {
    for (const list of lists) list.disabled = list.value === "";
  });
  window.addEventListener("pageshow", () => {
    for (const list of lists) list.disabled = false;
    countCells(form);
  });
}

for (const form of document.querySelectorAll("form[data-builder]")) {
  form.addEventListener("change", () => countCells(form));
  form.querySelectorAll("select[data-searchable]").forEach(addSearch);
  keepAddressShort(form);
  countCells(form);
}
