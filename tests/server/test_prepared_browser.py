"""Prepared tables in a browser: axe-core finds nothing, in any colours and on a phone; keys are enough."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browsing import context_of, expect
from lustrum.answer import TableService
from lustrum.server import create_app
from lustrum.server.settings import Settings
from server.conftest import served
from server.test_axe import DESKTOP, PHONE, violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

TABLE = "/prepared/biz-2025/activity-region.turnover"
PAGES = ("/prepared/biz-2025", TABLE, f"{TABLE}?as=chart", f"/fr{TABLE}")


@pytest.fixture(scope="module")
def address(turnover: Path) -> Iterator[str]:
    """A server of a programme's public folder and nothing else."""
    service = TableService(prepared=[turnover / "public"])
    with served(create_app(service, Settings(rate=""))) as found:
        yield found
    service.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with context_of(browser, base_url=address, bypass_csp=True, viewport=DESKTOP) as context:
        yield context.new_page()


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_in_any_colours_and_on_a_phone(page: Page, path: str) -> None:
    assert violations(page, path) == []
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert violations(page, path) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_the_keyboard_leads_from_the_programme_to_a_chart(page: Page) -> None:
    page.goto("/prepared/biz-2025")
    page.locator(f'a[href="{TABLE}"]').focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{TABLE}")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == "Chart":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**as=chart**")
    expect(page.locator("figure.chart")).to_be_visible()
