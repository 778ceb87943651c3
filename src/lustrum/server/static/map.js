// Links a chart or map with its table: what is pointed at in one is marked in the other, and arrow keys walk over a map.

/** What a mark says of itself without its margin: its names and its figure, as the table has them. */
const said = (title) => title.textContent.split(/[;%\u2009]| \(±/)[0].replace(/\s+/g, " ").trim();

export function link(main) {
  const figure = main.querySelector("figure.chart:not([data-linked])");
  const table = main.querySelector("table.data");
  if (!figure || !table) return;
  figure.dataset.linked = "";
  const maps = [...figure.querySelectorAll("[data-map]")];
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
  /** The same place on every map; without maps the mark alone. */
  const twins = (mark) => (mark && maps.length ? marks.filter((one) => one.dataset.code === mark.dataset.code) : [mark].filter(Boolean));
  const words = (mark) => [mark.closest("svg").parentElement.querySelector("h3"), mark.querySelector("title")].filter(Boolean).map((one) => one.textContent.trim()).join(": ");
  if (pointed) pointed.textContent = pointed.dataset.hint;

  function point(mark) {
    if (mark === now) return;
    for (const one of twins(now).flatMap((own) => [own, cellOf.get(own)])) one?.classList.remove("here");
    now = mark;
    if (pointed) pointed.textContent = now ? twins(now).map(words).join("; ") : pointed.dataset.hint;
    if (!now) return;
    for (const one of twins(now).flatMap((own) => [own, cellOf.get(own)])) one?.classList.add("here");
    // Above its neighbours, so that its whole border shows.
    if (maps.length) for (const one of twins(now)) one.parentElement.querySelector(":scope > path:last-of-type").after(one);
  }

  figure.addEventListener("pointermove", (event) => point(marks.find((mark) => mark === event.target)));
  figure.addEventListener("pointerleave", () => point());
  table.addEventListener("pointermove", (event) => point(markOf.get(event.target.closest("td, tr > th")?.matches("td") ? event.target.closest("td") : event.target.closest("tr")?.cells[1])));
  table.addEventListener("pointerleave", () => point());
  if (!maps.length) return;
  const look = zoom(figure, maps);
  for (const map of maps) {
    const shapes = marks.filter((mark) => map.contains(mark));
    map.addEventListener("click", (event) => {
      const cell = twins(event.target.closest("path")).map((one) => cellOf.get(one)).find(Boolean);
      if (!cell || look.dragged()) return;
      cell.closest("details").open = true;
      cell.scrollIntoView({ block: "center" });
    });
    map.addEventListener("keydown", (event) => {
      const by = { "+": 0.5, "=": 0.5, "-": 2, 0: 0 }[event.key];
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.ctrlKey || event.metaKey || (by === undefined && !step)) return;
      event.preventDefault();
      if (step) point(shapes[(shapes.indexOf(now) + step + shapes.length) % shapes.length]);
      look.to(by ?? 1, shapes.includes(now) ? middle(now) : undefined);
    });
  }
}

const middle = (shape) => {
  const box = shape.getBBox();
  return [box.x + box.width / 2, box.y + box.height / 2];
};

/** Buttons, keys, a drag, and the wheel with the Ctrl key; all maps of a figure show the same part. */
function zoom(figure, maps) {
  const { x, y, width, height } = maps[0].viewBox.baseVal;
  const size = Number(maps[0].querySelector("g").getAttribute("font-size"));
  const bar = figure.querySelector("[data-zoom]");
  let [part, left, top, from, moved] = [1, x, y];
  const held = (value, low, room) => Math.min(Math.max(value, low), low + room);

  function show() {
    left = held(left, x, width * (1 - part));
    top = held(top, y, height * (1 - part));
    for (const map of maps) {
      map.setAttribute("viewBox", [left, top, width * part, height * part].join(" "));
      map.querySelector("g").setAttribute("font-size", size * part);
      map.classList.toggle("zoomed", part < 1);
    }
    const [larger, ...smaller] = bar.querySelectorAll("button");
    larger.disabled = part <= 1 / 16;
    for (const button of smaller) button.disabled = part === 1;
  }

  /** A part of the present size (0: the whole map), around a place, which stays where it is seen. */
  function to(by, place = [left + (width * part) / 2, top + (height * part) / 2]) {
    const next = by ? Math.min(1, Math.max(1 / 16, part * by)) : 1;
    const seen = [(place[0] - left) / (width * part), (place[1] - top) / (height * part)].map((share) => (share < 0 || share > 1 ? 0.5 : share));
    [left, top, part] = [place[0] - seen[0] * width * next, place[1] - seen[1] * height * next, next];
    show();
  }

  const place = (map, event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
  for (const map of maps) {
    map.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const at = place(map, event);
      to(event.deltaY < 0 ? 0.8 : 1.25, [at.x, at.y]);
    }, { passive: false });
    map.addEventListener("pointerdown", (event) => {
      moved = false;
      if (part < 1 && event.button === 0) from = place(map, event);
    });
    map.addEventListener("pointermove", (event) => {
      if (!from) return;
      const at = place(map, event);
      if (!moved && Math.hypot(at.x - from.x, at.y - from.y) < (width * part) / 100) return;
      moved = true;
      left += from.x - at.x;
      top += from.y - at.y;
      show();
    });
  }
  for (const name of ["pointerup", "pointercancel"]) figure.addEventListener(name, () => (from = undefined));
  figure.addEventListener("pointerleave", () => (from = undefined));
  bar.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) to(Number(button.dataset.by));
  });
  bar.hidden = false;
  show();
  return { to, dragged: () => moved };
}
