"""Every page in every language before axe-core, which knows the mistakes that shut people out."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browsing import axe_complaints, context_of, expect
from lustrum.local import local_service
from lustrum.server import create_app
from lustrum.server.http.languages import languages
from lustrum.server.settings import Settings
from server.conftest import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page
    from starlette.middleware.base import RequestResponseEndpoint
    from starlette.requests import Request
    from starlette.responses import Response

pytestmark = pytest.mark.browser

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 800}
TABLE = "/datasets/demo/table?by=age:ten-year&by=sex&totals=on"
WIDE = "/datasets/demo/table?by=age:ten-year&by=sex&by=employment&totals=on"
PAGES = {
    "home": "/",
    "search without result": "/?q=nothing-like-it",
    "accessibility": "/accessibility",
    "builder": "/datasets/demo",
    "filled builder": "/datasets/demo?by=age&by=sex&codes=age:1..4&where=region:1",
    "about": "/datasets/demo/about?q=age",
    "variable": "/datasets/demo/variables/age?level=life-stage",
    "chooser": "/datasets/demo?by=area&codes=area:1-01-001&tree=codes:area",
    "table": f"{WIDE}&sort=-sex:2",
    "percentages": f"{TABLE}&show=row-percent&empty=hide&names=both",
    "chart": f"{WIDE}&as=chart&bounds=on",
    "stacked chart": f"{TABLE}&as=chart&chart=stacked&show=row-percent",
    "uncertainty": f"{TABLE}&bounds=on",
    "large table": "/datasets/demo/table?by=area&by=sex&totals=on",
    "refusal": "/datasets/demo/table?by=area&by=age",
    "mistake": "/datasets/demo/table?by=agge",
    "not found": "/nothing",
}
LIVE_PAGES = {
    "workspace": "/datasets/demo?q=foreign",
    "tree": "/datasets/demo?by=age&by=sex&where=area:1-01&tree=where:area",
    "pyramid": "/datasets/demo?by=age&by=sex&totals=on&as=chart",
    "lines": "/datasets/demo?by=age&by=region&as=chart",
    "heat map": "/datasets/demo?by=age:ten-year&by=occupation&as=chart",
    "map": "/datasets/demo?by=area:district&by=sex&totals=on&as=map",
    "two maps": "/datasets/demo?by=area:district&by=sex&totals=on&as=map&show=row-percent&against=sex:2",
    "shaded table": "/datasets/demo?by=age:ten-year&by=employment&totals=on&heat=on",
    "table with bars": "/datasets/demo?by=age:ten-year&by=employment&totals=on&heat=bars",
    "differences": "/datasets/demo?by=age&by=sex&where=region:1&show=difference",
    "index": "/datasets/demo?by=age&by=region&totals=on&show=index",
    "folded": "/datasets/demo?by=region&by=sex&by=employment&totals=on&pivot=region:rows&pivot=sex:rows"
    "&pivot=employment:columns&fold=region:1",
    "own groups": "/datasets/demo?by=age&by=sex&group=age:Young=1..4&group=age:Older=5..21&totals=on",
    "frame": "/datasets/demo/embed?by=age&by=sex&as=chart",
    "too large": "/datasets/demo?by=area&by=age&by=occupation&by=education",
    "large": "/datasets/demo?by=area&by=age&by=occupation",
    "api": "/api",
    "protection": "/protection",
}
LIVE_ON_A_PHONE = ("workspace", "tree", "folded", "pyramid", "two maps", "api", "protection")
LIVE_IN_THE_DARK = ("workspace", "lines", "two maps", "shaded table")
ANSWERS_ALONE = (
    "pyramid", "lines", "heat map", "map", "shaded table", "table with bars", "differences", "index",
    "folded", "own groups", "large",
)  # fmt: skip
ON_A_PHONE = ("home", "filled builder", "chooser", "table", "chart", "refusal")
IN_THE_DARK = ("filled builder", "stacked chart", "refusal", "mistake")


@pytest.fixture(scope="module")
def context(browser: Browser, address: str) -> Iterator[BrowserContext]:
    """One profile for all pages: nothing is remembered in it anyway."""
    # The script is put in from outside, which the content policy of the pages forbids.
    with context_of(browser, base_url=address, bypass_csp=True, viewport=DESKTOP) as made:
        yield made


@pytest.fixture(scope="module")
def tab(context: BrowserContext) -> Iterator[Page]:
    """One page for all tests: a new one costs a process of the browser each time."""
    made = context.new_page()
    yield made
    made.close()


@pytest.fixture
def page(tab: Page) -> Page:
    """The page as it was at first."""
    tab.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
    tab.emulate_media(color_scheme="light")
    return tab


def violations(
    page: Page,
    path: str,
    boxes: str = "details:not([data-load])",
    filled: int = 0,
    contrast: bool = True,
    within: str = "body",
) -> list[tuple[str, str, list[str]]]:
    """What axe-core finds on a page with these boxes open; a script must fill them with so many ticks."""
    page.goto(path)  # until all is loaded; no script asks for more before somebody does something
    page.locator(boxes).evaluate_all("(all) => all.forEach((box) => { box.open = true; })")
    if filled:
        expect(page.locator(f"{boxes} .ticks input")).to_have_count(filled)
    return axe_complaints(page, contrast, within)


def at(code: str, path: str) -> str:
    """A page in a language."""
    return languages()[code].at(path)


# Every page in English, and in one of the other languages in turn.
IN_TURN = [code for code in languages() if code != "en"]
IN_LANGUAGES = [
    (name, code) for i, name in enumerate(PAGES) for code in ("en", IN_TURN[i % len(IN_TURN)])
]


@pytest.mark.parametrize(("name", "code"), IN_LANGUAGES)
def test_axe_finds_nothing_on_any_page(page: Page, name: str, code: str) -> None:
    # Colours, the most costly check by far, do not depend on the language.
    contrast = code == "en"
    assert violations(page, at(code, PAGES[name]), contrast=contrast) == []


@pytest.mark.parametrize("name", ON_A_PHONE)
def test_axe_finds_nothing_on_a_phone(page: Page, name: str) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert violations(page, at("fr", PAGES[name])) == []
    # French and German are longer, and still fit.
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.goto(at("de", PAGES[name]))
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("name", IN_THE_DARK)
def test_axe_finds_nothing_in_dark_colours(page: Page, name: str) -> None:
    page.emulate_media(color_scheme="dark")
    assert violations(page, PAGES[name]) == []


def test_axe_finds_nothing_while_a_table_is_made(
    context: BrowserContext, root: Path, tmp_path: Path
) -> None:
    shutil.copytree(root, tmp_path / "data", ignore=shutil.ignore_patterns("jobs.sqlite*"))
    app = create_app(
        local_service(tmp_path / "data", workers=1), Settings(background_cells=1, rate="")
    )

    # The page loads itself again every two seconds; on a slow machine axe would lose it half-way.
    @app.middleware("http")
    async def stay(request: Request, answer: RequestResponseEndpoint) -> Response:
        response = await answer(request)
        del response.headers["Refresh"]
        return response

    # Without its life the server takes jobs in and never begins with them.
    with served(app, lifespan="off") as address:
        page = context.new_page()
        for code in languages():
            assert violations(page, f"{address}{at(code, TABLE)}") == []
            assert "/jobs/" in page.url
            expect(page.locator("progress")).to_be_visible()
        # A table for which somebody else waits too would go on.
        page.goto(f"{address}{WIDE}")
        page.get_by_role("button").click()
        expect(page.locator("progress")).to_have_count(0)
        assert violations(page, page.url) == []
        expect(page.locator("progress")).to_have_count(0)
        page.close()


def test_axe_would_find_a_mistake(page: Page) -> None:
    page.goto("/")
    page.evaluate("document.querySelector('main').append(document.createElement('input'))")
    page.evaluate("document.documentElement.lang = ''")
    found = {name: impact for impact, name, _ in axe_complaints(page)}
    assert found == {"label": "critical", "html-has-lang": "serious"}


@pytest.mark.parametrize("name", LIVE_PAGES)
def test_axe_finds_nothing_in_any_state_of_the_workspace(page: Page, live: str, name: str) -> None:
    # The form beside the answer is the same in most states.
    within = "#answer" if name in ANSWERS_ALONE else "body"
    path = LIVE_PAGES[name]
    assert violations(page, live + path, within=within) == []
    if name == "two maps":
        page.get_by_role("button", name="Zoom in").first.click()
        assert axe_complaints(page, within=within) == []
    if name in LIVE_IN_THE_DARK:
        page.emulate_media(color_scheme="dark")
        assert violations(page, live + path, within=within) == []
    if name in LIVE_ON_A_PHONE:
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        assert violations(page, live + at("fr", path), contrast=False, within=within) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
