"""The pages in a real browser: with the mouse, with the keyboard alone, on a phone, and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

TABLE = "/datasets/demo/table?by=age:ten-year&by=sex&by=employment&totals=on"
REFUSED = "/datasets/demo/table?by=area&by=age"
FOCUSED = "document.activeElement.id || document.activeElement.textContent.trim()"


@contextmanager
def visit(browser: Browser, address: str, **options: Any) -> Iterator[Page]:
    """A page in a profile of its own; any complaint or request to another host fails the test."""
    context = browser.new_context(base_url=address, **options)
    page = context.new_page()
    host = urlsplit(address).netloc
    abroad: list[str] = []
    complaints: list[str] = []
    context.on("request", lambda r: urlsplit(r.url).netloc == host or abroad.append(r.url))
    page.on("console", lambda m: complaints.append(m.text) if m.type != "log" else None)
    page.on("pageerror", lambda e: complaints.append(str(e)))
    page.set_default_timeout(10_000)
    yield page
    assert abroad == []
    assert complaints == []
    assert context.cookies() == []
    context.close()


def test_a_table_is_built_with_the_mouse(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.goto("/")
        page.get_by_role("link", name="Demo census").click()
        count = page.get_by_role("status")
        assert count.inner_text() == "At most 20,000 cells."
        page.get_by_label("Rows").select_option("age")
        page.get_by_label("Columns").select_option("sex")
        page.get_by_label("Groups", exact=True).select_option("employment")
        assert count.inner_text() == "21 × 2 × 5 = 210 cells of at most 20,000."
        page.get_by_label("Population").select_option("region:1")
        page.get_by_role("button", name="Make the table").click()
        page.wait_for_url("**/table?**")
        assert page.get_by_role("heading", level=1).inner_text() == (
            "Age by sex and current activity status"
        )
        assert page.get_by_role("table").locator("tbody tr").count() == 22
        assert page.get_by_role("columnheader", name="Employed", exact=True).count() == 1
        page.get_by_role("link", name="Change this table").click()
        assert page.get_by_label("Rows").input_value() == "age"
        assert page.get_by_label("Population").input_value() == "region:1"


def test_the_count_warns_of_too_many_cells_and_of_a_variable_twice(
    browser: Browser, address: str
) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo?by=area&by=age&by=occupation")
        count = page.get_by_role("status")
        assert count.inner_text() == "158 × 21 × 13 = 43,134 cells of at most 20,000."
        assert "wrong" in (count.get_attribute("class") or "")
        page.get_by_label("Columns").select_option("area:district")
        assert count.inner_text() == "A variable stands twice; choose it once."
        page.goto("/datasets/demo?by=area&by=age&by=occupation&by=sex")
        assert count.inner_text() == "4 variables; at most 3 are allowed."


def test_a_long_list_can_be_searched(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo")
        options = page.get_by_label("Population").locator("option")
        everything = options.count()
        page.get_by_label("Find a category").fill("calder")
        assert 1 < options.count() < 12
        page.keyboard.press("Enter")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        assert page.get_by_label("Population").input_value() == "area:2-01"
        assert options.count() == everything


def tab_to(page: Page, target: str) -> None:
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == target:
            return
    raise AssertionError(f"{target} cannot be reached with the Tab key")


def test_a_table_is_built_with_the_keyboard_alone(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.goto("/")
        page.keyboard.press("Tab")
        assert page.evaluate(FOCUSED) == "Skip to the content"
        tab_to(page, "Demo census")
        page.keyboard.press("Enter")
        page.wait_for_url("**/datasets/demo")
        tab_to(page, "by-1")
        page.keyboard.type("Educ")
        tab_to(page, "by-2")
        page.keyboard.type("Se")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        assert page.locator("#by-2").input_value() == "sex"
        tab_to(page, "Make the table")
        page.keyboard.press("Enter")
        page.wait_for_url("**/table?**")
        assert page.get_by_role("heading", level=1).inner_text() == "Educational attainment by sex"
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.getAttribute('role')") == "region":
                break
        else:
            raise AssertionError("the table cannot be scrolled with the keyboard")


@pytest.mark.parametrize("path", ["/", "/datasets/demo", TABLE, REFUSED])
def test_a_phone_shows_every_page_without_sideways_scrolling(
    browser: Browser, address: str, path: str
) -> None:
    phone = {"width": 360, "height": 740}
    with visit(browser, address, viewport=phone, color_scheme="dark") as page:
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_headers_stay_in_sight_while_a_table_scrolls(browser: Browser, address: str) -> None:
    with visit(browser, address, viewport={"width": 390, "height": 700}) as page:
        page.goto("/datasets/demo/table?by=age&by=sex&by=employment&totals=on")
        page.evaluate("document.querySelector('.scroll').scrollTo(300, 200)")
        box = page.locator(".scroll").bounding_box()
        head = page.locator("thead .corner").bounding_box()
        first = page.locator("tbody th").nth(8).bounding_box()
        assert box is not None
        assert head is not None
        assert first is not None
        assert abs(head["x"] - box["x"]) < 3
        assert abs(head["y"] - box["y"]) < 3
        assert abs(first["x"] - box["x"]) < 3


def test_the_links_of_a_refusal_lead_to_an_answer(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.goto(REFUSED)
        assert page.get_by_text("This table cannot be shown").is_visible()
        page.get_by_role("link", name="Area in 14 categories: District").click()
        page.wait_for_url("**/table?by=area:district&by=age")
        assert page.get_by_role("table").is_visible()


def test_everything_works_without_scripts(browser: Browser, address: str) -> None:
    with visit(browser, address, java_script_enabled=False) as page:
        page.goto("/datasets/demo")
        page.get_by_label("Rows").select_option("age:ten-year")
        page.get_by_label("Columns").select_option("sex")
        page.get_by_role("button", name="Make the table").click()
        page.wait_for_url("**/table?**")
        assert page.get_by_role("table").is_visible()
        page.get_by_role("link", name="Change this table").click()
        assert page.get_by_label("Rows").input_value() == "age:ten-year"


def test_the_call_for_a_program_can_be_copied(browser: Browser, address: str) -> None:
    rights = ["clipboard-read", "clipboard-write"]
    with visit(browser, address, permissions=rights) as page:
        page.goto(TABLE)
        page.locator(".copy", has_text="curl").get_by_role("button").click()
        page.get_by_role("button", name="Copied").wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith(f"curl '{address}/api/v1/tables?dataset=demo&by=age:ten-year")


def test_colours_have_enough_contrast(browser: Browser, address: str) -> None:
    for scheme in ("light", "dark"):
        with visit(browser, address, color_scheme=scheme) as page:
            for path in ("/", "/datasets/demo", TABLE, REFUSED):
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
