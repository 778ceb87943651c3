"""The page of an answer in a real browser: turning, percentages, charts, copying, and all without scripts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from browsing import expect, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

TABLE = "/datasets/demo/table?by=age:ten-year&by=sex&totals=on"
FOCUSED = "document.activeElement.id"
HEADS = "tbody th[scope=row]"


def heads(page: Page) -> list[str]:
    return [text.strip() for text in page.locator(HEADS).all_inner_texts()]


def test_a_view_is_changed_without_leaving_the_page(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.goto(TABLE)
        page.evaluate("window.stayed = true")
        expect(page.locator(".apply")).to_be_hidden()
        page.get_by_label("Show", exact=True).focus()
        page.get_by_label("Show", exact=True).select_option("row-percent")
        page.wait_for_url("**show=row-percent")
        expect(page.locator("tr.t td").last).to_have_text("100.0")
        assert page.evaluate("window.stayed")
        assert page.evaluate(FOCUSED) == "view-show"
        expect(page.get_by_role("status")).to_have_text("The table has been updated.")
        page.get_by_role("link", name="Swap rows and columns").click()
        page.wait_for_url("**pivot=**")
        expect(page.locator(HEADS)).to_have_text(["Male", "Female", "Total"])
        # What was of each row is of each column now, so that the figures are the same.
        assert page.get_by_label("Show", exact=True).input_value() == "column-percent"
        assert page.evaluate(FOCUSED) == "turn"
        page.go_back()
        page.locator(HEADS).nth(4).wait_for()
        expect(page.get_by_label("Show", exact=True)).to_have_value("row-percent")
        page.go_back()
        page.locator("#view-show option[value=counts][selected]").wait_for(state="attached")
        assert page.evaluate("window.stayed")


def test_a_saved_address_shows_the_same_view(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.goto(TABLE)
        page.get_by_text("More ways to look at it").click()
        page.get_by_label("Hide totals").check()
        page.wait_for_url("**margins=off")
        page.get_by_label("Categories as").select_option("codes")
        page.wait_for_url("**names=codes**")
        shown = heads(page)
        assert "_T" not in shown
        assert page.evaluate("document.querySelector('#more').open")
        page.reload()
        expect(page.locator(HEADS)).to_have_text(shown)
        page.get_by_role("link", name="Back to the plain table").click()
        page.wait_for_url(f"**{TABLE}")
        expect(page.locator(HEADS).last).to_have_text("Total")


# What a page would do after two seconds is done when the test says so: a slow machine misses nothing.
LATER = """window.later = []; const own = window.setTimeout;
window.setTimeout = (what, after, ...rest) =>
  after === 2000 ? window.later.push(what) : own(what, after, ...rest);"""


def test_the_citation_and_the_calls_can_be_copied(browser: Browser, address: str) -> None:
    rights = ["clipboard-read", "clipboard-write"]
    with visit(browser, address, permissions=rights) as page:
        page.add_init_script(LATER)
        page.goto(TABLE)
        page.get_by_label("Show", exact=True).select_option("row-percent")
        page.wait_for_url("**show=row-percent")

        def copied(name: str) -> str:
            box = page.locator(".copy", has=page.locator(f"#{name}-text"))
            box.get_by_role("button", name="Copy").click()
            expect(box.get_by_role("button", name="Copied")).to_be_visible()
            text: str = page.evaluate("navigator.clipboard.readText()")
            return text

        assert copied("permanent") == f"{address}{TABLE}&show=row-percent"
        assert copied("citation").startswith("Demo census, public tables: Age")
        assert (
            copied("curl") == f"curl '{address}/api/v1/tables?dataset=demo&{TABLE.split('?')[1]}'"
        )
        page.get_by_text("Python", exact=True).click()
        assert copied("python").startswith("from lustrum.client import Client\n")
        page.evaluate("window.later.forEach((what) => what())")
        expect(page.get_by_role("button", name="Copied")).to_have_count(0)


def test_every_view_works_without_scripts(browser: Browser, address: str) -> None:
    with visit(browser, address, java_script_enabled=False) as page:
        page.goto(TABLE)
        page.get_by_label("Show", exact=True).select_option("column-percent")
        page.get_by_text("More ways to look at it").click()
        page.get_by_label("Sex stands").select_option("sex:rows")
        page.get_by_label("Age stands").select_option("age:columns")
        page.get_by_role("button", name="Apply").click()
        page.wait_for_url("**show=column-percent**")
        expect(page.locator(HEADS)).to_have_text(["Male", "Female", "Total"])
        expect(page.locator("tr.t td").last).to_have_text("100.0")
        page.get_by_role("link", name="Swap rows and columns").click()
        expect(page.locator(HEADS).nth(4)).to_be_visible()
        expect(page.locator(HEADS).last).to_have_text("Total")
        page.get_by_role("link", name="Chart").click()
        expect(page.get_by_role("img", name=re.compile("Age"))).to_be_visible()
        page.get_by_role("link", name="Table", exact=True).click()
        page.get_by_role("link", name="Female", exact=True).click()
        expect(page.get_by_role("columnheader", name="Female")).to_have_attribute(
            "aria-sort", "descending"
        )


@pytest.mark.parametrize("page_of", ["/datasets/demo/table", "/datasets/demo"])
def test_a_table_of_twelve_rows_is_printed_on_one_page_and_comes_first(
    browser: Browser, live: str, page_of: str
) -> None:
    with visit(browser, live) as page:
        page.goto(f"{page_of}?by=age:ten-year&by=sex&totals=on")
        expect(page.locator("table.data tbody tr")).to_have_count(12)
        assert len(re.findall(rb"/Type /Page\b", page.pdf(format="A4"))) == 1
        page.emulate_media(media="print")
        heading, table, done = (
            page.locator(name).bounding_box() for name in ("h1", "table.data", ".what-was-done")
        )
        assert heading is not None
        assert table is not None
        assert done is not None
        assert heading["y"] < table["y"] < heading["y"] + 80
        assert table["y"] < done["y"]


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
