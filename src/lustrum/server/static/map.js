// Links a map with its table: what is pointed at in one is marked in the other, and arrow keys walk over the map.

export function link(main) {
  const map = main.querySelector("[data-map]:not([data-linked])");
  if (!map) return;
  map.dataset.linked = "";
  const said = main.querySelector("[data-pointed]");
  const shapes = [...map.querySelectorAll("path[data-code]")];
  const rows = new Map([...main.querySelectorAll("tr[data-code]")].map((row) => [row.dataset.code, row]));
  let now = -1;
  said.textContent = said.dataset.hint;

  function point(at) {
    if (at === now) return;
    shapes[now]?.classList.remove("here");
    rows.get(shapes[now]?.dataset.code)?.classList.remove("here");
    now = at;
    const shape = shapes[now];
    if (!shape) return (said.textContent = said.dataset.hint);
    shape.classList.add("here");
    map.append(shape); // above its neighbours, so that its whole border shows
    rows.get(shape.dataset.code)?.classList.add("here");
    said.textContent = shape.querySelector("title").textContent;
  }

  map.addEventListener("pointermove", (event) => point(shapes.indexOf(event.target.closest("path"))));
  map.addEventListener("click", (event) => {
    const row = rows.get(event.target.closest("path")?.dataset.code);
    if (!row) return;
    row.closest("details").open = true;
    row.scrollIntoView({ block: "center" });
  });
  map.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    point((now + step + shapes.length) % shapes.length);
  });
  for (const [code, row] of rows) {
    row.addEventListener("pointerenter", () => point(shapes.findIndex((shape) => shape.dataset.code === code)));
  }
}
