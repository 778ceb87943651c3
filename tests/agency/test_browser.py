"""The agency's page in a real browser: drop in, tick, watch, click, use, print; phone, dark, keyboard, axe."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from browsing import arrive, axe_complaints, context_of, expect, visit
from lustrum.policy import read_policy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

DRAWN: dict[str, str] = {}  # the address of the last map by its limit
QUICK = {"random-rounding": "3, 5", "conventional-rounding": "3"}


def draw(page: Page, table_file: Path, limit: str = "0.2") -> None:
    """Fill the form and wait for the finished map."""
    page.goto("/")
    page.set_input_files("#files", table_file)
    for box in page.locator("[data-method]").all():
        name = box.get_attribute("data-method")
        box.set_checked(name in QUICK)
        if name in QUICK:
            page.fill(f"#v-{name}", QUICK[name])
    page.fill("#limit", limit)
    page.fill("#replications", "4")
    page.get_by_role("button", name="Draw the map").click()
    page.wait_for_selector("#growing[data-finished=yes]", state="attached")
    DRAWN[limit] = urlsplit(page.url).path


def show(page: Page, table_file: Path, limit: str = "0.2") -> None:
    """A finished map; one that another test drew with the same limit serves too."""
    if limit not in DRAWN:
        draw(page, table_file, limit)
        return
    page.goto(DRAWN[limit])
    page.wait_for_selector("#growing[data-finished=yes]", state="attached")


def test_a_table_becomes_a_map_a_choice_and_a_policy(
    browser: Browser, address: str, enter: str, table_file: Path, policy_path: Path
) -> None:
    with visit(browser, address, enter) as page:
        draw(page, table_file)
        expect(page.locator("svg.map a.point")).to_have_count(3)
        expect(page.locator("svg.map .limit")).to_have_count(1)
        expect(page.locator(".choice")).to_contain_text("keeps most utility")
        arrive(page, page.locator("svg.map a.point").first, "**/points/0*")
        expect(page.locator("main")).to_contain_text("Why it scored so")
        expect(page.get_by_role("heading", level=1)).to_have_text("random-rounding base 3")
        for picture in page.locator("figure img").all():
            assert picture.evaluate("async i => { await i.decode(); return i.naturalWidth }") > 100
        page.get_by_role("button", name="Use this in the policy").click()
        page.locator("#said", has_text="The policy is in").wait_for()
        policy = read_policy(policy_path)
        assert policy.protect.spec.to_mapping() == {"method": "random-rounding", "base": 3}
        assert policy.risk.limit == 0.2


def test_the_report_can_be_downloaded_as_page_and_pdf(
    browser: Browser, address: str, enter: str, table_file: Path
) -> None:
    with visit(browser, address, enter) as page:
        show(page, table_file)
        found = {}
        for kind in ("HTML", "PDF", "CSV"):
            with page.expect_download() as started:
                page.get_by_role("link", name=kind, exact=True).click()
            found[kind] = Path(started.value.path()).read_bytes()
        assert found["PDF"].startswith(b"%PDF")
        text = found["HTML"].decode()
        for head in ("Question", "Data", "Methods", "Map", "Choice", "Caveats"):
            assert f"<h2>{head}</h2>" in text
        assert "<script" not in text
        assert found["CSV"].startswith(b'"table"')


def test_points_are_reached_by_keyboard_in_their_order(
    browser: Browser, address: str, enter: str, table_file: Path
) -> None:
    with visit(browser, address, enter) as page:
        show(page, table_file)
        page.locator("svg.map a.point").first.focus()
        labels = []
        for _ in range(3):
            labels.append(page.evaluate("document.activeElement.getAttribute('aria-label')"))
            page.keyboard.press("Tab")
        assert [re.match(r"[^:]+", label or "")[0] for label in labels] == [  # type: ignore[index]
            "random-rounding base 3",
            "random-rounding base 5",
            "conventional-rounding",
        ]
        page.locator("svg.map a.point").nth(1).focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/points/1*")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone_and_pass_axe(
    browser: Browser, address: str, enter: str, table_file: Path, scheme: str
) -> None:
    phone = {"width": 390, "height": 800}
    options: dict[str, Any] = {"viewport": phone, "color_scheme": scheme, "bypass_csp": True}
    with visit(browser, address, enter, **options) as page:
        show(page, table_file)
        where = page.url
        for path in ("/", where, f"{where}/points/0?table=0"):
            page.goto(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            assert axe_complaints(page) == []


def test_a_mistake_is_one_sentence_on_the_page(
    browser: Browser, address: str, enter: str, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("area,faith,value\nA,B,many\n", encoding="utf-8")
    with context_of(browser, base_url=address) as context:
        page = context.new_page()
        page.goto(enter)
        page.wait_for_url("**/maps")
        page.set_input_files("#files", wrong)
        page.get_by_role("button", name="Draw the map").click()
        expect(page.locator("#said")).to_contain_text("wrong.csv")
        assert "/tmp" not in page.inner_text("#said")


def test_the_first_point_is_there_before_the_map_is_finished(
    browser: Browser, address: str, enter: str, table_file: Path
) -> None:
    with visit(browser, address, enter) as page:
        page.goto("/")
        page.set_input_files("#files", table_file)
        # So many that no machine finishes them before the page shows its first point.
        page.fill("#replications", "600")
        page.get_by_role("button", name="Draw the map").click()
        page.wait_for_selector("#growing[data-finished=no] svg.map a.point")
        page.get_by_role("button", name="Stop").click()
        page.wait_for_selector("#growing[data-finished=yes]", state="attached")
        expect(page.locator("#growing")).to_contain_text("stopped")
