// Links a chart or map with its table: what is pointed at in one is marked in the other, and arrow keys walk over a map.

/** What a mark says of itself without its margin: its names and its figure, as the table has them. */
const said = (title) => title.textContent.split(/[;%\u2009]| \(±/)[0].replace(/\s+/g, " ").trim();

export function link(main) {
  const figure = main.querySelector("figure.chart:not([data-linked])");
  const table = main.querySelector("table.data");
  if (!figure || !table) return;
  figure.dataset.linked = "";
  const map = figure.querySelector("[data-map]");
  const pointed = figure.querySelector("[data-pointed]");
  const marks = [...figure.querySelectorAll("svg[role=img] * > title")].map((title) => title.parentElement);
  const heads = [...[...table.tHead.rows].at(-1).cells].map((cell) => cell.textContent.trim());
  const cells = new Map();
  for (const row of table.tBodies ? [...table.tBodies].flatMap((body) => [...body.rows]) : []) {
    const name = row.cells[0].textContent.trim();
    [...row.cells].slice(1).forEach((cell, place) => {
      const figure = cell.firstChild?.textContent.trim();
      const head = heads.slice(heads.length - row.cells.length + 1)[place];
      for (const names of [`${name}, ${head}`, name]) {
        const key = `${names}: ${figure}`;
        if (!cells.has(key)) cells.set(key, cell);
      }
    });
  }
  const pairs = marks.map((mark) => [mark, cells.get(said(mark.querySelector("title")))]);
  const cellOf = new Map(pairs);
  const markOf = new Map(pairs.filter(([, cell]) => cell).map(([mark, cell]) => [cell, mark]));
  let now;
  if (pointed) pointed.textContent = pointed.dataset.hint;

  function point(mark) {
    if (mark === now) return;
    for (const one of [now, cellOf.get(now)]) one?.classList.remove("here");
    now = mark;
    if (pointed) pointed.textContent = now ? now.querySelector("title").textContent : pointed.dataset.hint;
    if (!now) return;
    for (const one of [now, cellOf.get(now)]) one?.classList.add("here");
    if (map) map.querySelector("path:last-of-type").after(now); // above its neighbours, so that its whole border shows
  }

  figure.addEventListener("pointermove", (event) => point(marks.find((mark) => mark === event.target)));
  figure.addEventListener("pointerleave", () => point());
  table.addEventListener("pointermove", (event) => point(markOf.get(event.target.closest("td, tr > th")?.matches("td") ? event.target.closest("td") : event.target.closest("tr")?.cells[1])));
  table.addEventListener("pointerleave", () => point());
  if (!map) return;
  map.addEventListener("click", (event) => {
    const cell = cellOf.get(event.target.closest("path"));
    if (!cell) return;
    cell.closest("details").open = true;
    cell.scrollIntoView({ block: "center" });
  });
  const shapes = marks.slice();
  map.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    point(shapes[(shapes.indexOf(now) + step + shapes.length) % shapes.length]);
  });
}
