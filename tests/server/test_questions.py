"""Questions that people have, answered in at most five actions from the first page, counted.

An action is a click, a choice from a list, or a text typed with its Enter key.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from browsing import context_of, expect, visit
from lustrum.answer import TableService
from lustrum.demo.draws import SHIPPED
from lustrum.server import Settings, create_app
from server.conftest import served, started

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.browser

FIND = "Find a variable or a category"


class Visitor:
    """Somebody with five actions."""

    def __init__(self, page: Page, title: str = "Demo census") -> None:
        self.page, self.left = page, 5
        page.goto("/en/")
        self.click(page.get_by_role("link", name=title, exact=True))
        page.wait_for_url("**/datasets/*")
        page.locator(".steps:not([hidden])").wait_for()

    def _act(self) -> None:
        self.left -= 1
        assert self.left >= 0, "more than five actions"

    def click(self, what: Locator) -> None:
        self._act()
        what.click()

    def type(self, label: str, text: str, enter: bool = True) -> None:
        self._act()
        field = self.page.get_by_label(label)
        field.fill(text)
        if enter:
            field.press("Enter")

    def choose(self, label: str, value: str) -> None:
        self._act()
        self.page.get_by_label(label, exact=True).select_option(value)


@pytest.fixture
def visitor(browser: Browser, live: str) -> Iterator[Visitor]:
    with visit(browser, live, viewport={"width": 1440, "height": 900}) as page:
        yield Visitor(page)


def test_own_age_groups_in_one_region_as_a_file(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.page
    visitor.type(FIND, "Upper Merrow")
    expect(page.locator("h1")).to_contain_text("Upper Merrow")
    visitor.click(page.locator("#in-age > summary"))
    visitor.type("Cut points, such as", "0, 15, 65")
    expect(page.locator("table.data tbody tr")).to_have_count(4)
    with page.expect_download() as waiting:
        visitor.click(page.locator("#get-csv"))
    waiting.value.save_as(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["age_label"] for row in rows} == {"0 to 14", "15 to 64", "65+", "Total"}
    assert "Upper Merrow" in (tmp_path / "table.csv").read_text("utf-8")


def mapped(visitor: Visitor) -> None:
    """The districts by their share of foreign citizens."""
    page = visitor.page
    visitor.type(FIND, "foreign", enter=False)
    visitor.click(page.get_by_role("link", name=re.compile("Share by district on a map")).first)
    page.locator("#map").wait_for()


def ranked(page: Page) -> list[float]:
    """The figures of the list beside the map, but for the total."""
    texts = page.locator("table.data tbody tr:not(.t) td").all_inner_texts()
    return [float(text.replace(",", "")) for text in texts]


def test_the_district_with_the_largest_share_on_a_map_with_names_and_a_ranked_list(
    visitor: Visitor,
) -> None:
    page = visitor.page
    mapped(visitor)
    shares = ranked(page)
    assert len(shares) == 14
    assert shares == sorted(shares, reverse=True)
    first = page.locator("table.data tbody tr:not(.block) th").first
    expect(first).to_be_in_viewport()
    expect(page.locator("#map .place", has_text=first.inner_text().strip())).to_be_visible()
    # Pointing at the list marks the place, and the other way round.
    first.hover()
    expect(page.locator("#map path.here")).to_have_count(1)
    expect(page.locator("[data-pointed]")).to_contain_text(first.inner_text().strip())


def test_a_rate_per_thousand(visitor: Visitor) -> None:
    page = visitor.page
    mapped(visitor)
    shares = ranked(page)
    visitor.choose("Show", "row-rate")
    page.wait_for_url("**show=row-rate**")
    rates = ranked(page)
    assert all(abs(rate - 10 * share) <= 0.5001 for rate, share in zip(rates, shares, strict=True))
    assert rates != [10 * share for share in shares]  # with a digit more
    expect(page.locator("#trust > summary")).to_contain_text("per 1,000")


def test_two_districts_compared_in_a_chart(visitor: Visitor) -> None:
    page = visitor.page
    visitor.type(FIND, "Lakes, Highmoor", enter=False)
    visitor.click(page.get_by_role("link", name="Compare them"))
    page.wait_for_url("**by=area**")
    chart = page.locator("figure.chart")
    expect(chart).to_be_visible()  # beside the table, without a further action
    expect(chart).to_contain_text("Lakes")
    expect(chart).to_contain_text("Highmoor")
    cell = page.locator("table.data tbody tr").nth(3).locator("td").first
    cell.hover()
    expect(chart.locator(".here")).to_have_count(1)
    assert cell.inner_text().strip() in (chart.locator(".here title").text_content() or "")


@pytest.fixture(scope="module")
def shipped() -> Iterator[str]:
    """A server of what the package carries, which any site may show."""
    bundles = [SHIPPED / name for name in ("censuses", "survey")]
    app = create_app(started(TableService(bundles=bundles, workers=1)), Settings(rate=""))
    with served(app) as found:
        yield found


def test_the_change_between_two_censuses(browser: Browser, shipped: str) -> None:
    with visit(browser, shipped, viewport={"width": 1440, "height": 900}) as page:
        visitor = Visitor(page, "Demo censuses of 2016 and 2021")
        row = page.locator("table.data tbody tr", has_text="90 to 94").locator("td")
        before, after = (int(re.sub(r"\D", "", text)) for text in row.all_inner_texts())
        visitor.choose("Show", "difference")
        page.wait_for_url("**show=difference**")
        assert int(re.sub(r"\D", "", row.last.inner_text())) == after - before > 0
        expect(page.locator("h1")).not_to_contain_text("together")
        page.goto("/datasets/censuses?by=age")
        expect(page.locator("h1")).to_contain_text("all people, 2016 to 2021 together")


def test_a_chart_is_embedded_in_an_article(browser: Browser, shipped: str) -> None:
    with visit(browser, shipped, viewport={"width": 1440, "height": 900}) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        visitor = Visitor(page, "Demo censuses of 2016 and 2021")
        visitor.click(page.get_by_role("button", name="Copy code to embed"))
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        code = page.evaluate("navigator.clipboard.readText()")
        assert visitor.left >= 3
        expect(page.get_by_role("button", name="Copied")).to_have_count(0)
        page.get_by_role("button", name="Copy image").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        kinds = page.evaluate("navigator.clipboard.read().then((all) => all[0].types)")
        assert kinds == ["image/png"]
    news = FastAPI()
    news.get("/")(lambda: HTMLResponse(f"<h1>An article</h1>{code}"))
    with served(news) as paper, context_of(browser) as elsewhere:
        article = elsewhere.new_page()
        article.goto(paper)
        card = article.frame_locator("iframe")
        expect(card.locator("figure.chart svg[role=img]")).to_be_visible()
        for said in ("Age by census, all people", "asked for on", "Protected. Numbers are rarely"):
            expect(card.locator("body")).to_contain_text(said)
        expect(card.get_by_role("link", name="open this table")).to_be_visible()
        assert elsewhere.cookies() == []


@pytest.mark.parametrize("width", [1440, 1100])
def test_the_chart_stands_beside_the_table_where_there_is_room(
    browser: Browser, live: str, width: int
) -> None:
    with visit(browser, live, viewport={"width": width, "height": 900}) as page:
        page.goto("/datasets/demo?by=age&by=sex&totals=on")
        table, chart = page.locator("table.data"), page.locator("figure.chart")
        if width < 1200:
            expect(chart).to_be_hidden()
            return
        boxes = table.bounding_box(), chart.bounding_box()
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.goto("/datasets/demo?by=area:district&by=sex&totals=on&as=map")
        expect(page.locator("#map")).to_be_visible()
        expect(table).to_be_visible()
