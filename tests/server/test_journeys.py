"""Whole journeys: to a file and a saved link, in French, by keyboard, by fingers, enlarged, without scripts."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browsing import arrive, expect, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

Figures = dict[tuple[str, str], int]
FOCUSED = "document.activeElement.id || document.activeElement.textContent.trim()"


def figures(page: Page) -> Figures:
    """The figures of a table of two variables by the labels of its row and column."""
    columns = page.locator("thead tr").last.locator("th").all_inner_texts()
    columns = [text.strip() for text in columns][-page.locator("tbody tr:first-child td").count() :]
    found: Figures = {}
    for row in page.locator("tbody tr").all():
        name = row.locator("th").inner_text().strip()
        cells = [re.sub(r"\D", "", text) for text in row.locator("td").all_inner_texts()]
        found |= {(name, column): int(cell) for column, cell in zip(columns, cells, strict=True)}
    return found


def taken_away(page: Page, name: str, folder: Path) -> Path:
    """The file behind a button of an answer."""
    with page.expect_download() as waiting:
        page.locator(f"#get-{name}").click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def test_a_table_is_built_turned_taken_away_and_found_again(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    with visit(browser, address) as page:
        page.goto("/")
        arrive(page, page.get_by_role("link", name="Demo census", exact=True), "**/datasets/demo")
        page.locator("#in-age > summary").click()
        page.get_by_role("link", name="Life stage (6)").click()
        page.locator("#foresight", has_text="Likely answered.").wait_for()
        expect(page.get_by_label("Show a total for each variable")).to_be_checked()
        page.get_by_role("link", name="Make the table").click()
        page.wait_for_url("**/table?**")
        first = figures(page)
        assert len(first) == 7 * 3
        assert first["Total", "Total"] > 19_000

        page.get_by_role("link", name="Swap rows and columns").click()
        page.wait_for_url("**pivot=**")
        page.locator("tbody tr th", has_text="Female").wait_for()
        turned = figures(page)
        assert {(column, row): value for (row, column), value in turned.items()} == first

        with taken_away(page, "csv", tmp_path).open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert {(r["age_label"], r["sex_label"]): int(r["value"]) for r in rows} == first

        import openpyxl

        book = openpyxl.load_workbook(taken_away(page, "xlsx", tmp_path))
        sheet = [row for row in book["Table"].iter_rows(values_only=True) if row[0]]
        head = next(i for i, row in enumerate(sheet) if row[1] is not None)
        names = sheet[head][1:]
        cells = {
            (row[0], n): v for row in sheet[head + 1 :] for n, v in zip(names, row[1:], strict=True)
        }
        assert {key: value for key, value in cells.items() if value is not None} == first
        saved = page.locator("#permanent-text").inner_text()

    with visit(browser, address) as stranger:
        stranger.goto(saved)
        assert figures(stranger) == turned


def test_a_refusal_leads_to_a_table(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo?by=area&by=age")
        page.get_by_role("link", name="Make the table").click()
        page.wait_for_url("**/table?**")
        expect(page.get_by_text("This table cannot be shown")).to_be_visible()
        page.locator(".suggestions a").first.click()
        expect(page.get_by_role("table")).to_be_visible()
        expect(page.get_by_text("This table cannot be shown")).to_have_count(0)
        change = page.get_by_role("link", name="Change this table")
        arrive(page, change, "**/datasets/demo?by=**")
        expect(page.get_by_role("link", name="Make the table")).to_be_visible()


def test_the_keyboard_alone_leads_from_the_start_to_a_file(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    def tab_to(target: str) -> None:
        for _ in range(120):
            page.keyboard.press("Tab")
            if page.evaluate(FOCUSED) == target:
                return
        raise AssertionError(f"{target} cannot be reached with the Tab key")

    with visit(browser, address) as page:
        page.goto("/")
        tab_to("Skip to the content")
        page.keyboard.press("Enter")
        tab_to("Demo census")
        page.keyboard.press("Enter")
        page.wait_for_url("**/datasets/demo")
        for name, key, there in (
            ("Age", "Delete", "#spare-age"),
            ("Educational attainment", "r", "#in-education"),
            ("Sex", "Delete", "#spare-sex"),
        ):
            tab_to(name)
            page.keyboard.press(key)
            page.locator(there).wait_for()
        tab_to("Make the table")
        page.keyboard.press("Enter")
        page.wait_for_url("**/table?**")
        tab_to("view-show")
        page.keyboard.press("ArrowDown")
        page.wait_for_url("**show=**")
        tab_to("get-csv")
        with page.expect_download() as waiting:
            page.keyboard.press("Enter")
        waiting.value.save_as(tmp_path / "table.csv")
        lines = (tmp_path / "table.csv").read_text("utf-8").splitlines()
        assert len(lines) in (10, 11)
        assert lines[0].startswith("education,")


@pytest.mark.parametrize("scripts", [True, False])
def test_a_journey_in_french_stays_french_and_leads_to_the_same_figures(
    browser: Browser, address: str, scripts: bool
) -> None:
    with visit(browser, address, locale="fr-FR", java_script_enabled=scripts) as page:
        page.goto("/")
        assert page.url == f"{address}/fr/"
        census = page.get_by_role("link", name="Recensement de démonstration", exact=True)
        arrive(page, census, "**/fr/datasets/demo")
        page.locator("#in-age > summary").click()
        page.get_by_role("link", name="Étape de la vie (6)").click()
        page.locator("#foresight", has_text="Réponse probable.").wait_for()
        page.get_by_role("link", name="Créer le tableau").click()
        page.wait_for_url("**/fr/datasets/demo/table?**")
        expect(page.locator("html")).to_have_attribute("lang", "fr")
        expect(page.get_by_role("heading", level=1)).to_have_text(
            re.compile("^Âge \\(étape de la vie\\) × sexe, ")
        )
        french = figures(page)
        page.get_by_label("Afficher", exact=True).select_option("row-percent")
        if scripts:
            page.wait_for_url("**show=row-percent")
            expect(page.get_by_role("status")).to_have_text("Le tableau a été mis à jour.")
        else:
            page.get_by_role("button", name="Appliquer").click()
            page.wait_for_url("**show=row-percent**")
        expect(page.locator("tr.t td").last).to_have_text("100,0")
        page.get_by_role("link", name="English").click()
        page.wait_for_url(f"{address}/datasets/**show=row-percent")
        expect(page.locator("tr.t td").last).to_have_text("100.0")
        plain = page.get_by_role("link", name="Back to the plain table")
        arrive(page, plain, re.compile(r"/datasets/demo/table\?(?!.*show=)"))
        page.locator("td", has_text=re.compile(r"^\d{1,3},\d{3}$")).first.wait_for()
        assert list(figures(page).values()) == list(french.values())
        # A visitor who has chosen English keeps it, though the browser prefers French.
        arrive(page, page.get_by_role("link", name="Datasets").first, f"{address}/en/")
        expect(page.locator("html")).to_have_attribute("lang", "en")
        page.get_by_role("link", name="Français").click()
        expect(page).to_have_url(f"{address}/fr/")


def test_without_scripts_everything_is_reached_by_links_and_buttons(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    with visit(browser, address, java_script_enabled=False) as page:
        page.goto("/")
        page.get_by_label("Search by name").fill("census")
        page.get_by_role("button", name="Search").click()
        page.wait_for_url("**q=census**")
        arrive(page, page.get_by_role("link", name="Demo census", exact=True), "**/datasets/demo")
        page.goto("/datasets/demo?by=area&by=age")
        page.get_by_role("link", name="Make the table").click()
        expect(page.get_by_text("This table cannot be shown")).to_be_visible()
        offered = page.locator(".suggestions a").first
        arrive(page, offered, f"{address}{offered.get_attribute('href')}")
        shown = page.locator("tbody td").count()
        assert shown > 20
        swap = page.get_by_role("link", name="Swap rows and columns")
        arrive(page, swap, "**pivot=**")
        expect(page.locator("tbody td")).to_have_count(shown)
        assert taken_away(page, "csv", tmp_path).read_text("utf-8").count("\n") == shown + 1
        page.get_by_role("link", name="Chart").click()
        expect(page.get_by_role("img").first).to_be_visible()


WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
ENLARGED = (
    "/en/",
    "/datasets/demo",
    "/datasets/demo?by=age&by=sex&totals=on&as=chart",
    "/datasets/demo?by=area:district&by=sex&totals=on&as=map",
    "/datasets/demo/about",
    "/protection",
    "/api",
)


def test_four_times_the_size_needs_no_scrolling_sideways(browser: Browser, live: str) -> None:
    """A screen of 1280 pixels shows 320 where everything is four times as large (WCAG 1.4.10)."""
    with visit(browser, live, viewport={"width": 320, "height": 256}) as page:
        for path in ENLARGED:
            page.goto(path)
            assert page.evaluate(WIDE) <= 0, path


def test_fingers_alone_put_a_variable_into_the_columns_and_take_the_file_away(
    browser: Browser, live: str, tmp_path: Path
) -> None:
    with visit(
        browser, live, viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True
    ) as page:
        page.goto("/en/")
        page.get_by_role("link", name="Demo census", exact=True).tap()
        page.wait_for_url("**/datasets/demo")
        page.get_by_role("link", name="Choose", exact=True).tap()
        page.locator("#in-sex summary").tap()
        page.locator("#in-sex").get_by_role("link", name="Remove").tap()
        expect(page.locator("#spare-sex")).to_be_visible()
        page.locator("#spare-region summary").tap()
        page.locator("#spare-region [data-to=columns]").tap()
        expect(page.locator("[data-zone=columns] #in-region")).to_be_visible()
        expect(page.locator("h1")).to_contain_text("region")
        page.get_by_role("button", name="Show the table").tap()
        with page.expect_download() as waiting:
            page.locator("#get-csv").tap()
        assert "by=region" in waiting.value.url
        waiting.value.save_as(tmp_path / "table.csv")
        assert "region" in (tmp_path / "table.csv").read_text("utf-8").splitlines()[0]
