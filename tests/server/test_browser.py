"""The pages in a real browser: no complaint, no request abroad, on a phone, in both colour schemes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from browsing import visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

TABLE = "/datasets/demo/table?by=age:ten-year&by=sex&by=household_size:broad&totals=on"
REFUSED = "/datasets/demo/table?by=area&by=age"


PAGES = [
    "/",
    "/accessibility",
    "/datasets/demo",
    "/datasets/demo?by=area&by=age&codes=age:1..4&where=region:1",
    "/datasets/demo/about",
    "/datasets/demo?by=sex&tree=where:area",
    TABLE,
    REFUSED,
]


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_shows_every_page_without_sideways_scrolling(
    browser: Browser, address: str, path: str
) -> None:
    phone = {"width": 360, "height": 740}
    with visit(browser, address, viewport=phone, color_scheme="dark") as page:
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_headers_stay_in_sight_while_a_table_scrolls(browser: Browser, address: str) -> None:
    with visit(browser, address, viewport={"width": 390, "height": 700}) as page:
        page.goto("/datasets/demo/table?by=area&by=sex&totals=on")
        page.evaluate("document.querySelector('.scroll').scrollTo(30, 200)")
        page.wait_for_function("() => document.querySelector('.scroll').scrollTop === 200")
        box = page.locator(".scroll").bounding_box()
        head = page.locator("thead .corner").bounding_box()
        first = page.locator("tbody th").nth(8).bounding_box()
        assert box is not None
        assert head is not None
        assert first is not None
        assert abs(head["x"] - box["x"]) < 3
        assert abs(head["y"] - box["y"]) < 3
        assert abs(first["x"] - box["x"]) < 3


def test_colours_have_enough_contrast(browser: Browser, address: str) -> None:
    for scheme in ("light", "dark"):
        with visit(browser, address, color_scheme=scheme) as page:
            for path in PAGES:
                page.goto(path)
                assert page.evaluate(CONTRAST) == [], f"{path} in {scheme}"


# Every text against the nearest ground painted behind it, by the formula of WCAG 2.2.
CONTRAST = """() => {
  const rgb = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const light = ({ r, g, b }) => [r, g, b]
    .map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour.a === 1) return colour;
    }
    return { r: 255, g: 255, b: 255 };
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !element.checkVisibility() || element.closest("option, optgroup, title")) continue;
    const style = getComputedStyle(element);
    const ink = rgb(element.closest("svg") ? style.fill : style.color);
    const [high, low] = [light(ink), light(ground(element))].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) poor.push(`${element.tagName} ${element.textContent.slice(0, 30)} ${ratio}`);
  }
  return poor;
}"""
