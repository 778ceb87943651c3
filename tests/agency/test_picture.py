"""The map as it is drawn in Chromium: every mark where its figures say, every word readable, colours apart."""

from __future__ import annotations

import base64
import csv
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from agency.test_browser import draw, show
from browsing import visit

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page
    from starlette.applications import Starlette

pytestmark = pytest.mark.browser

PLACES = """() => [...document.querySelectorAll('svg.map a.point')].map(a => {
  const mark = [...a.children].find(e => !e.matches('title, .region')).getBoundingClientRect();
  return {label: a.getAttribute('aria-label').split(':')[0],
          x: mark.x + mark.width / 2, y: mark.y + mark.height / 2};
})"""

WORDS = """() => { const svg = document.querySelector('svg.map').getBoundingClientRect();
  return {svg: [svg.left, svg.top, svg.right, svg.bottom],
          words: [...document.querySelectorAll('svg.map text')].map(t => {
            const r = t.getBoundingClientRect();
            return [t.textContent, t.getAttribute('class'), r.left, r.top, r.right, r.bottom]; })}; }"""

PIXELS = """async ([data, places]) => {
  const image = new Image(); image.src = 'data:image/png;base64,' + data; await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.width; canvas.height = image.height;
  const brush = canvas.getContext('2d'); brush.drawImage(image, 0, 0);
  return places.map(([x, y]) => [...brush.getImageData(Math.round(x), Math.round(y), 1, 1).data]);
}"""


def figures(page: Page) -> dict[str, tuple[float, float]]:
    """Utility and risk of every method, from the file that the page offers."""
    with page.expect_download() as started:
        page.get_by_role("link", name="CSV", exact=True).click()
    path = started.value.path()
    rows = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    return {row["label"]: (float(row["utility"]), float(row["risk"])) for row in rows}


def colours(browser: Browser, picture: bytes, places: list[list[float]]) -> list[list[int]]:
    """The colours of a picture at some places."""
    page = browser.new_page()
    found: list[list[int]] = page.evaluate(PIXELS, [base64.b64encode(picture).decode(), places])
    page.close()
    return found


@pytest.mark.parametrize("width", [390, 1280])
def test_every_mark_is_where_its_figures_say(
    width: int, browser: Browser, address: str, enter: str, table_file: Path
) -> None:
    with visit(browser, address, enter, viewport={"width": width, "height": 900}) as page:
        show(page, table_file, limit="0.15")
        known, drawn = figures(page), page.evaluate(PLACES)
        assert len(drawn) == 3
        given = np.array([known[place["label"]] for place in drawn])
        seen = np.array([[place["x"], place["y"]] for place in drawn])
        # One scale for each axis: pixels are a straight line of the figures, upwards for risk.
        for axis, sign in ((0, 1), (1, -1)):
            slope, start = np.polyfit(given[:, axis], seen[:, axis], 1)
            assert sign * slope > 0
            assert np.abs(slope * given[:, axis] + start - seen[:, axis]).max() < 1.0
        slope, start = np.polyfit(given[:, 1], seen[:, 1], 1)
        line = page.locator("svg.map .limit").bounding_box()
        assert line is not None
        assert abs(slope * 0.15 + start - (line["y"] + line["height"] / 2)) < 1.0
        assert np.array_equal(np.argsort(-seen[:, 1]), np.argsort(given[:, 1]))


def test_every_mark_can_be_clicked_also_under_the_region_of_another(
    browser: Browser, address: str, enter: str, table_file: Path
) -> None:
    with visit(browser, address, enter, viewport={"width": 1280, "height": 1600}) as page:
        show(page, table_file)
        # The widest region there can be, over the whole map, in the last point.
        page.evaluate(
            """() => { const last = [...document.querySelectorAll('svg.map a.point')].at(-1);
              const wide = document.createElementNS('http://www.w3.org/2000/svg', 'polygon');
              wide.setAttribute('class', 'region');
              wide.setAttribute('points', '0,0 720,0 720,460 0,460');
              last.prepend(wide); }"""
        )
        hit = """([x, y]) => { const a = document.elementFromPoint(x, y).closest('a.point');
          return a && a.getAttribute('aria-label').split(':')[0]; }"""
        for place in page.evaluate(PLACES):
            assert page.evaluate(hit, [place["x"], place["y"]]) == place["label"]


def test_no_word_is_cut_off_or_lies_on_another(
    browser: Browser, address: str, enter: str, table_file: Path
) -> None:
    with visit(browser, address, enter, viewport={"width": 1280, "height": 900}) as page:
        show(page, table_file)
        found = page.evaluate(WORDS)
        left, top, right, bottom = found["svg"]
        words = found["words"]
        assert {word[1] for word in words} >= {"tick", "tick left", "axis", "limit-name", "name"}
        for text, _, *box in words:
            assert left - 1 <= box[0] < box[2] <= right + 1, text
            assert top - 1 <= box[1] < box[3] <= bottom + 1, text
        for i, (text, _, *one) in enumerate(words):
            for other, _, *two in words[i + 1 :]:
                wide = min(one[2], two[2]) - max(one[0], two[0])
                high = min(one[3], two[3]) - max(one[1], two[1])
                assert min(wide, high) <= 2, (text, other)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_stand_out_from_the_ground_and_families_from_each_other(
    scheme: Any, browser: Browser, address: str, enter: str, table_file: Path
) -> None:
    size = {"width": 1280, "height": 1600}
    with visit(browser, address, enter, viewport=size, color_scheme=scheme) as page:
        show(page, table_file)
        drawn = page.evaluate(PLACES)
        box = page.locator("svg.map").bounding_box()
        assert box is not None
        scroll = page.evaluate("[scrollX, scrollY]")
        places = [[p["x"] + scroll[0], p["y"] + scroll[1]] for p in drawn]
        ground = [box["x"] + scroll[0] + box["width"] - 3, box["y"] + scroll[1] + 3]
        picture = page.screenshot(full_page=True)
    *marks, behind = colours(browser, picture, [*places, ground])
    for mark in marks:
        assert contrast(mark, behind) >= 3.0  # what WCAG 1.4.11 asks of graphics
    families = {}
    for place, mark in zip(drawn, marks, strict=True):
        families.setdefault(place["label"].split()[0], set()).add(tuple(mark))
    assert all(len(found) == 1 for found in families.values())
    assert len({next(iter(found)) for found in families.values()}) == len(families) == 2


def contrast(one: list[int], two: list[int]) -> float:
    """The contrast ratio of two colours by WCAG."""

    def light(colour: list[int]) -> float:
        parts = [c / 255 for c in colour[:3]]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((light(one), light(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_picture_of_a_map_is_the_same_each_time(
    browser: Browser, app: Starlette, address: str, table_file: Path
) -> None:
    pictures, marks = [], []
    for _ in range(2):
        enter, size = app.state.door.address(""), {"width": 1000, "height": 900}
        with visit(browser, address, enter, viewport=size) as page:
            draw(page, table_file)
            # How far the page had come when the map was finished moves it by parts of a pixel; a page that is
            # loaded again has the map at one place.
            page.reload()
            page.evaluate("document.fonts.ready.then(() => null)")
            marks.append(
                page.locator("svg.map").evaluate(
                    "(map) => map.outerHTML.replaceAll(location.pathname, '')"
                )
            )
            pictures.append(page.locator("svg.map").screenshot(animations="disabled"))
    assert marks[0] == marks[1]
    assert pictures[0] == pictures[1]
