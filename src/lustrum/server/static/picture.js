// A chart or map as a file of its own: its colours and letters go with it, so it needs no style sheet.

const LOOK = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "font-size", "font-weight", "font-style"];
const SPACE = "http://www.w3.org/2000/svg";

function dressed(svg, width, height) {
  const copy = svg.cloneNode(true);
  const [old, made] = [svg, copy].map((root) => [...root.querySelectorAll("*")]);
  old.forEach((element, place) => {
    const style = getComputedStyle(element);
    for (const name of LOOK) made[place].setAttribute(name, style.getPropertyValue(name));
    made[place].removeAttribute("class");
  });
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  return copy;
}

function text(words, x, y, look) {
  const made = document.createElementNS(SPACE, "text");
  const style = getComputedStyle(look);
  for (const [name, value] of Object.entries({ x, y, fill: style.color, "font-size": "14px" })) made.setAttribute(name, value);
  made.textContent = words.replace(/\s+/g, " ").trim();
  return made;
}

/** The whole figure: its title, what the colours mean, every panel below the other. */
export function picture(figure) {
  const whole = document.createElementNS(SPACE, "svg");
  const caption = figure.querySelector("figcaption");
  const parts = [...figure.querySelectorAll("svg[role=img]")];
  const width = Math.max(640, ...parts.map((part) => Math.ceil(part.getBoundingClientRect().width)));
  let y = 28;
  whole.append(text(caption.textContent, 16, y, caption));
  for (const list of figure.querySelectorAll(".series")) {
    [...list.children].forEach((item, number) => {
      y += 22;
      const key = item.querySelector("svg");
      const numbered = key ? "" : `${number + 1} `;
      if (key) {
        const copy = dressed(key, 14, 14);
        copy.setAttribute("x", 16);
        copy.setAttribute("y", y - 12);
        whole.append(copy);
      }
      whole.append(text(numbered + item.textContent, 38, y, item));
    });
  }
  y += 20;
  for (const part of parts) {
    const heading = part.parentElement.querySelector("h3");
    if (heading) whole.append(text(heading.textContent, 16, (y += 24), heading));
    const size = part.getBoundingClientRect();
    const copy = dressed(part, size.width, size.height);
    copy.setAttribute("x", 16);
    copy.setAttribute("y", (y += 12));
    copy.setAttribute("overflow", "visible");
    whole.append(copy);
    y += size.height;
  }
  const from = text(document.querySelector("#here")?.textContent ?? location.href, 16, (y += 30), caption);
  from.setAttribute("font-size", "11px");
  whole.append(from);
  const ground = document.createElementNS(SPACE, "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(figure).backgroundColor);
  whole.prepend(ground);
  const size = { width: width + 32, height: Math.ceil(y + 16) };
  whole.setAttribute("width", size.width);
  whole.setAttribute("height", size.height);
  whole.setAttribute("font-family", "system-ui, sans-serif");
  return { ...size, source: new XMLSerializer().serializeToString(whole) };
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export async function download(figure, kind, name) {
  const { width, height, source } = picture(figure);
  if (kind === "svg") return save(new Blob([source], { type: "image/svg+xml" }), `${name}.svg`);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  const pen = canvas.getContext("2d");
  pen.scale(2, 2);
  pen.drawImage(image, 0, 0);
  save(await new Promise((done) => canvas.toBlob(done)), `${name}.png`);
}
