"""Pictures of charts and maps to take along: they say what they are, and no word is cut or covers another."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import pytest

from browsing import expect, layout_faults, visit

if TYPE_CHECKING:
    from fastapi.testclient import TestClient
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

KINDS = {
    "bars": "by=age:ten-year&by=sex&chart=bars&as=chart&where=region:1",
    "shares": "by=age:ten-year&by=sex&as=chart&show=column-percent&where=region:1",
    "stacked": "by=age:ten-year&by=education:broad&chart=stacked&as=chart&where=region:1",
    "lines": "by=age&by=sex&by=household_size:broad&chart=lines&as=chart&where=region:1",
    "pyramid": "by=age&by=sex&chart=pyramid&as=chart&where=region:1",
    "heat": "by=age:ten-year&by=household_size&chart=heat&as=chart&where=region:1",
    "map": "by=area:district&by=sex&as=map&show=row-percent&where=region:1",
    "two maps": "by=area:district&by=sex&as=map&show=row-percent&where=region:1&against=sex:2",
}
FAULTS = """async () => {
  const script = document.querySelector("[data-picture=svg]").dataset.script;
  const { source } = (await import(script)).picture(document.querySelector("figure.chart"));
  const holder = document.createElement("div");
  holder.style = "position: absolute; top: 0; left: 0; width: 3000px";
  holder.innerHTML = source;
  document.body.append(holder);
  const whole = holder.firstChild.getBoundingClientRect();
  const box = (text) => [text.textContent, text.getBoundingClientRect()];
  const texts = [...holder.querySelectorAll("text")].map(box);
  const faults = [];
  texts.forEach(([words, a], place) => {
    const inside = a.left >= whole.left && a.right <= whole.right + 1 && a.bottom <= whole.bottom;
    if (!inside) faults.push(`cut: ${words}`);
    for (const [other, b] of texts.slice(place + 1)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 3) faults.push(`${words} over ${other}`);
    }
  });
  holder.remove();
  return [faults, texts.map(([words]) => words).join(" ")];
}"""


@pytest.mark.parametrize("kind", KINDS)
def test_no_word_of_a_picture_is_cut_or_covered(browser: Browser, live: str, kind: str) -> None:
    with visit(browser, live) as page:
        page.goto(f"/datasets/demo/table?{KINDS[kind]}")
        for width in (390, 768, 1024, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            faults, words = page.evaluate(FAULTS)
            assert faults == [], width
        for said in (
            "people whose region is Upper Merrow",
            "Demo census",
            "version",
            "asked for on",
        ):
            assert said in words
        assert "Protected. " in words
        shares = ("Percentages of each", "Share within each")
        assert any(said in words for said in shares) == ("percent" in KINDS[kind])


STATES = {
    "workspace": "/datasets/demo?q=foreign",
    "tree": "/datasets/demo?by=age:ten-year&by=sex&tree=codes:age&find=10-59",
    "refusal": "/datasets/demo?by=area&by=age&by=occupation&by=education",
    "wide table": "/datasets/demo?by=education&by=occupation&totals=on&show=row-percent&names=both",
    "small charts": "/datasets/demo?by=age:ten-year&by=sex&by=area:district&as=chart",
    "all areas": "/datasets/demo?by=area&totals=on&as=map",
    "German": "/de/datasets/demo?by=education&by=sex&as=chart",
    "French maps": "/fr/datasets/demo?by=area:district&by=sex&as=map&show=row-percent&against=sex:2",
    "about": "/datasets/demo/about",
    "protection": "/protection",
    "frame": "/datasets/demo/embed?by=age&by=sex&as=chart",
    **{name: f"/datasets/demo?{question}" for name, question in KINDS.items()},
}


# What a picture takes along is laid out above; beside the form of the workspace two kinds stand for all.
BESIDE = [
    pytest.param(
        one, marks=[pytest.mark.deep] * (one in KINDS and one not in ("pyramid", "two maps"))
    )
    for one in STATES
]


@pytest.mark.parametrize("state", BESIDE)
def test_no_words_on_a_page_are_cut_or_cover_others(
    browser: Browser, live: str, state: str
) -> None:
    with visit(browser, live) as page:
        page.goto(STATES[state])
        for width in (1440, 768, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert layout_faults(page) == [], width


# What lies below the middle of a word is asked of the browser; a mark stands out by its fill or by its edge.
FAINT = """() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const paint = (...colours) => {
    pen.clearRect(0, 0, 1, 1);
    for (const [colour, share] of colours) {
      pen.globalAlpha = share;
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
    }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) =>
    0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const contrast = (a, b) => {
    const [dark, bright] = [light(a), light(b)].sort((x, y) => x - y);
    return (bright + 0.05) / (dark + 0.05);
  };
  const look = (one) => getComputedStyle(one);
  const drawn = (one) => one instanceof SVGElement && !(one instanceof SVGSVGElement);
  const seen = (one) => (one ? Number(look(one).opacity) * seen(one.parentElement) : 1);
  const colour = (one) => {
    const { fill, fillOpacity, backgroundColor } = look(one);
    if (!drawn(one)) return [[backgroundColor, 1]];
    return fill === "none" ? [] : [[fill, seen(one) * Number(fillOpacity)]];
  };
  const below = (x, y, word) => {
    const all = document.elementsFromPoint(x, y).reverse();
    return all.filter((one) => one !== word && one.tagName !== "text").flatMap(colour);
  };
  const faults = new Set();
  const figure = document.querySelector("figure.chart");
  for (const word of figure.querySelectorAll("svg[role=img] text, figcaption, .series li, p")) {
    if (!word.textContent.trim() || !word.checkVisibility({ visibilityProperty: true })) continue;
    const box = word.getBoundingClientRect();
    const style = look(word);
    const ground = below(box.left + box.width / 2, box.top + box.height / 2, word);
    const halo = style.paintOrder.startsWith("stroke") && style.stroke !== "none";
    const ink = paint(...ground, [drawn(word) ? style.fill : style.color, seen(word)]);
    const far = contrast(ink, halo ? paint([style.stroke, 1]) : paint(...ground));
    if (far < 4.5) faults.add(`${word.textContent.trim().slice(0, 40)}: ${far.toFixed(2)}`);
  }
  const ground = [look(figure).backgroundColor, 1];
  // A shade is read beside others and its key; a place on a map has an edge too.
  const marks = "svg[role=img] :is(circle, path, polyline, line, rect:not([class^=h])):has(> title)";
  for (const mark of figure.querySelectorAll(marks)) {
    const { stroke } = look(mark);
    const inks = [...colour(mark), ...(stroke === "none" ? [] : [[stroke, seen(mark)]])];
    const far = Math.max(...inks.map((ink) => contrast(paint(ground, ink), paint(ground))));
    if (far < 3) faults.add(`${mark.getAttribute("class")}: ${far.toFixed(2)}`);
  }
  return [...faults];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_words_and_marks_of_a_picture_stand_out_by_day_and_night(
    browser: Browser, live: str, kind: str, scheme: Literal["light", "dark"]
) -> None:
    window = {"width": 390, "height": 4000}
    with visit(browser, live, color_scheme=scheme, viewport=window) as page:
        page.goto(f"/datasets/demo/table?{KINDS[kind]}")
        assert page.evaluate(FAINT) == []
        # Words that nobody can see are found.
        caption = page.locator("#chart-caption")
        caption.evaluate("(one) => { one.style.color = getComputedStyle(one).backgroundColor; }")
        assert page.evaluate(FAINT) != []


def test_words_that_are_cut_or_covered_are_found(browser: Browser, live: str) -> None:
    with visit(browser, live) as page:
        page.goto(STATES["workspace"])
        assert layout_faults(page) == []
        for place, style, fault in (
            ("#source", "position: relative; top: -1.5em", " over "),
            ("h1", "overflow: hidden; width: 3em; white-space: nowrap", "cut: "),
        ):
            page.locator(place).evaluate("(one, style) => { one.style.cssText = style; }", style)
            assert any(fault in found for found in layout_faults(page))


def test_maps_are_zoomed_by_buttons_keys_and_drags_and_show_the_same_part(
    browser: Browser, live: str
) -> None:
    with visit(browser, live, viewport={"width": 1440, "height": 1000}) as page:
        page.goto(f"/datasets/demo?{KINDS['two maps']}")
        first, second = page.locator("#map"), page.locator("#map-2")
        whole = first.get_attribute("viewBox")
        assert whole is not None
        assert first.get_attribute("aria-labelledby") != second.get_attribute("aria-labelledby")
        page.get_by_role("button", name="Zoom in").click()
        expect(first).not_to_have_attribute("viewBox", whole)
        part = first.get_attribute("viewBox")
        assert part is not None
        expect(second).to_have_attribute("viewBox", part)
        assert float(part.split()[2]) == float(whole.split()[2]) / 2
        box = first.bounding_box()
        assert box is not None
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(*middle)
        page.mouse.down()
        page.mouse.move(middle[0] - 60, middle[1], steps=4)
        page.mouse.up()
        expect(first).not_to_have_attribute("viewBox", part)
        moved = first.get_attribute("viewBox")
        assert moved is not None
        assert float(moved.split()[0]) > float(part.split()[0])
        second.focus()
        page.keyboard.press("ArrowRight")
        # The place stands in both maps, in words with the figure of each.
        expect(page.locator(".map path.here")).to_have_count(2)
        expect(page.locator("[data-pointed]")).to_contain_text(
            re.compile("Male: .*; Sex: Female: ")
        )
        page.keyboard.press("0")
        expect(first).to_have_attribute("viewBox", whole)
        expect(page.get_by_role("button", name="Whole map")).to_be_disabled()
        shapes = page.get_by_role("link", name="Shapes as TopoJSON").get_attribute("href")
        assert shapes is not None
        codes = page.locator("#map path").evaluate_all(
            "(all) => all.map((one) => one.dataset.code)"
        )
        found = page.request.get(shapes).json()["objects"]["area"]["geometries"]
        assert set(codes) <= {shape["id"] for shape in found}


def test_a_second_map_has_the_shades_of_the_first(bundled: TestClient) -> None:
    def shades(more: str) -> list[dict[str, str]]:
        page = bundled.get(f"/datasets/demo/table?{KINDS['map']}{more}").text
        maps = page.split("data-map>")[1:]
        pattern = r'class="h(\d)"[^>]*><title>[^<]*: ([\d.]+)\u202f%'
        return [{figure: shade for shade, figure in re.findall(pattern, one)} for one in maps]

    men, women = shades("&layer=sex:1&against=sex:2")
    both: dict[str, str] = {}
    for figure, shade in (*men.items(), *women.items()):
        assert both.setdefault(figure, shade) == shade
    ranked = sorted(both, key=float)
    assert [both[one] for one in ranked] == sorted(both.values())
    assert len(shades("&against=sex:1&layer=sex:1")) == 1  # the same map twice says nothing
    assert len(shades("&against=region:1")) == 1
