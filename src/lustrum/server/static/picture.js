// A chart or map as a file of its own: its colours and letters go with it, so it needs no style sheet.

const LOOK = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "font-size", "font-weight", "font-style", "paint-order", "stroke-linejoin", "display"];
const FONT = "system-ui, sans-serif";
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

function text(words, x, y, look, size = 14) {
  const made = document.createElementNS(SPACE, "text");
  const style = getComputedStyle(look);
  for (const [name, value] of Object.entries({ x, y, fill: style.color, "font-size": `${size}px` })) made.setAttribute(name, value);
  made.textContent = words.replace(/\s+/g, " ").trim();
  return made;
}

/** Words in as many lines as they need, each no wider than there is room; tells where the last one stands. */
function paragraph(whole, words, x, y, look, room, size = 14) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${size}px ${FONT}`;
  const fits = (line) => pen.measureText(line).width <= room;
  let line = "";
  const end = () => {
    whole.append(text(line, x, y, look, size));
    y += size + 6;
    line = "";
  };
  for (let word of words.replace(/\s+/g, " ").trim().split(" ")) {
    if (line && !fits(`${line} ${word}`)) end();
    // An address is one long word.
    while (!fits(word)) {
      let cut = word.length;
      while (cut > 1 && !fits(word.slice(0, cut))) cut -= 1;
      line = word.slice(0, cut);
      word = word.slice(cut);
      end();
    }
    line = line ? `${line} ${word}` : word;
  }
  end();
  return y - size - 6;
}

/** The whole figure: its title, what the colours mean, every panel below the other, and where it is from. */
export function picture(figure) {
  const whole = document.createElementNS(SPACE, "svg");
  const caption = figure.querySelector("figcaption");
  const parts = [...figure.querySelectorAll("svg[role=img]")];
  const width = Math.max(640, ...parts.map((part) => Math.ceil(part.getBoundingClientRect().width)));
  let y = paragraph(whole, caption.textContent, 16, 28, caption, width);
  for (const list of figure.querySelectorAll(".series")) {
    if (getComputedStyle(list).display === "none") continue;
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
      y = paragraph(whole, numbered + item.textContent, 38, y, item, width - 22);
    });
  }
  y += 20;
  for (const part of parts) {
    const heading = part.parentElement.querySelector("h3");
    if (heading) y = paragraph(whole, heading.textContent, 16, y + 24, heading, width);
    const size = part.getBoundingClientRect();
    const copy = dressed(part, size.width, size.height);
    copy.setAttribute("x", 16);
    copy.setAttribute("y", (y += 12));
    copy.setAttribute("overflow", part.matches(".zoomed") ? "hidden" : "visible");
    whole.append(copy);
    y += size.height;
  }
  y += 10;
  const remarks = [...figure.querySelectorAll("p.quiet"), document.querySelector("#source")];
  const address = document.querySelector("#here")?.textContent ?? location.href;
  for (const words of [...remarks.map((one) => one?.textContent), address]) {
    if (words) y = paragraph(whole, words, 16, y + 20, caption, width, 11);
  }
  const ground = document.createElementNS(SPACE, "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", getComputedStyle(figure).backgroundColor);
  whole.prepend(ground);
  const size = { width: width + 32, height: Math.ceil(y + 16) };
  whole.setAttribute("width", size.width);
  whole.setAttribute("height", size.height);
  whole.setAttribute("font-family", FONT);
  return { ...size, source: new XMLSerializer().serializeToString(whole) };
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function png(figure) {
  const { width, height, source } = picture(figure);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  const pen = canvas.getContext("2d");
  pen.scale(2, 2);
  pen.drawImage(image, 0, 0);
  return new Promise((done) => canvas.toBlob(done));
}

/** A browser takes the picture while it is made, since the click alone lets a page write to the clipboard. */
export function copy(figure) {
  return navigator.clipboard.write([new ClipboardItem({ "image/png": png(figure) })]);
}

export async function download(figure, kind, name) {
  if (kind === "png") return save(await png(figure), `${name}.png`);
  save(new Blob([picture(figure).source], { type: "image/svg+xml" }), `${name}.svg`);
}
