"""The agency's pages in a real browser: an import by hand, a policy that is tried while it is written, axe."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette

from agency.towns import people
from browsing import arrive, axe_complaints, expect, layout_faults, visit
from lustrum.agency import create_agency_app
from lustrum.local import local_service
from lustrum.server import create_app
from server.conftest import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

PAGES = (
    "/", "/datasets/town", "/datasets/town/policy", "/datasets/town/report", "/import", "/maps",
)  # fmt: skip
PAGES += ("/usage", "/tasks", "/check", "/log", "/datasets/none")


@pytest.fixture(scope="module")
def app(town_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Starlette:
    """The pages over a data folder that no test changes."""
    return create_agency_app(data=town_data, files=[tmp_path_factory.getbasetemp()])


@pytest.fixture(scope="module")
def staff(app: Starlette) -> Iterator[str]:
    """Where they are."""
    with served(app) as found:  # type: ignore[arg-type]
        yield found


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
def test_pages_pass_axe_and_fit_their_screen(
    browser: Browser,
    staff: str,
    enter: str,
    town_data: Path,
    tmp_path: Path,
    scheme: str,
    width: int,
) -> None:
    size = {"width": width, "height": 900}
    options: dict[str, Any] = {"viewport": size, "color_scheme": scheme, "bypass_csp": True}
    with visit(browser, staff, enter, **options) as page:
        page.goto("/import")
        page.fill("#path", str(people(tmp_path / "people.csv", 90)))
        arrive(page, page.get_by_role("button", name="Look at it"), re.compile(r"/import/\d+"))
        for path in (page.url, *PAGES[:-1]):
            page.goto(path)
            page.locator("details").evaluate_all("(all) => all.forEach((one) => one.open = true)")
            assert layout_faults(page) == [], path
            assert axe_complaints(page) == [], path


def test_pages_of_mistakes_pass_axe_and_the_file_of_the_key_leads_inside(
    browser: Browser, staff: str, app: Starlette, tmp_path: Path
) -> None:
    context = browser.new_context(base_url=staff, bypass_csp=True)
    try:
        page = context.new_page()
        page.goto("/")
        expect(page.get_by_role("alert")).to_contain_text("closed to you")
        assert axe_complaints(page) == []
        with app.state.door.kept(tmp_path / "key.html", staff):
            page.goto((tmp_path / "key.html").as_uri())
            page.wait_for_url(f"{staff}/")
        expect(page.get_by_role("heading", level=1)).to_have_text("Datasets")
        page.goto(PAGES[-1])
        expect(page.get_by_role("alert")).to_contain_text("There is no dataset")
        assert axe_complaints(page) == []
    finally:
        context.close()


def test_a_policy_is_tried_while_it_is_written(browser: Browser, staff: str, enter: str) -> None:
    with visit(browser, staff, enter) as page:
        page.goto("/datasets/town/policy")
        expect(page.locator("#effect")).to_contain_text("No question would end in another way.")
        text = page.locator("#text").input_value()
        page.locator("#text").fill(re.sub(r"max_dimensions = \d+", "max_dimensions = 1", text))
        expect(page.locator("#effect")).to_contain_text(
            "2 of 3 questions would end in another way."
        )
        page.locator("#text").fill("nonsense\nend = true\n")
        expect(page.locator("#effect")).to_contain_text("not valid TOML")
        page.locator("#text").fill(text)
        page.locator("#questions").fill("age where area=N")
        expect(page.locator("#effect tbody th")).to_have_text(["age where area=N"])


def test_form_and_text_of_a_policy_keep_in_step(browser: Browser, staff: str, enter: str) -> None:
    with visit(browser, staff, enter) as page:
        page.goto("/datasets/town/policy")
        text = page.locator("#text")
        slider = page.get_by_role("slider", name="Most variables that may span a table.")
        slider.focus()
        page.keyboard.press("Home")  # to the left end, by the keyboard
        expect(text).to_have_value(re.compile(r"^max_dimensions = 1$", re.MULTILINE))
        expect(page.locator("#effect")).to_contain_text("rules.max_dimensions: 6 → 1 no looser")
        expect(page.locator("#in-short")).to_contain_text(
            "2 of 3 questions would end in another way"
        )
        expect(slider).to_be_focused()
        # The text writes into the form, and a comment of it stays when the form changes a line beside it.
        text.fill(
            "# Ours\n" + text.input_value().replace("max_filters = 20", "max_filters = 2  # few")
        )
        field = page.get_by_role(
            "spinbutton", name="Most variables that may select the population."
        )
        expect(field).to_have_value("2")
        field.fill("30")
        expect(text).to_have_value(
            re.compile(r"^# Ours\n[^~]*^max_filters = 30  # few$", re.MULTILINE)
        )
        loosens = page.get_by_role("checkbox", name="It may loosen the policy in force")
        expect(loosens).not_to_be_checked()
        loosens.check()
        field.fill("31")  # another draft: what was ticked is not about it
        expect(page.locator("#effect")).to_contain_text("20 → 31")
        expect(loosens).not_to_be_checked()
        text.fill("nonsense")
        expect(page.locator("#form")).to_contain_text("The form follows when the text can be read.")
        page.get_by_label("Begin again with").select_option("cell-key")
        expect(text).to_have_value(re.compile('method = "cell-key"'))
        page.locator("#of-protect summary").click()
        page.get_by_label("Name of the method that changes every table.").select_option(
            "random-rounding"
        )
        expect(text).to_have_value(re.compile('method = "random-rounding"'))
        expect(page.get_by_role("spinbutton", name="published as multiples of")).to_be_visible()


def test_a_file_becomes_a_served_dataset_in_ten_actions(browser: Browser, tmp_path: Path) -> None:
    data = tmp_path / "data"
    text = people(tmp_path / "Small Town.csv", 300).read_text(encoding="utf-8")
    app = create_agency_app(data=data)
    actions = 0

    def act(do: Callable[[], object]) -> None:
        nonlocal actions
        do()
        actions += 1

    with served(app) as place, visit(browser, place, app.state.door.address("")) as page:  # type: ignore[arg-type]
        page.goto("/import")
        page.locator("#drop").wait_for()
        held = page.evaluate_handle(
            """(text) => { const held = new DataTransfer();
            held.items.add(new File([text], "Small Town.csv", { type: "text/csv" })); return held; }""",
            text,
        )
        act(lambda: page.dispatch_event("#drop", "drop", {"dataTransfer": held}))
        page.wait_for_url(re.compile(r"/import/\d+"))
        act(lambda: page.locator("[name='label.area']").fill("Part of the town"))
        act(lambda: page.get_by_role("button", name="Import", exact=True).click())
        act(lambda: page.get_by_role("link", name="To the dataset").click())
        act(lambda: page.get_by_role("button", name="Protect the dataset").click())
        act(lambda: page.get_by_role("link", name="To the dataset").click())
        expect(page.locator(".facts")).to_contain_text("can be served")
    service = local_service(data, workers=1)
    try:
        with served(create_app(service)) as place, visit(browser, place) as page:  # type: ignore[arg-type]
            act(lambda: page.goto("/"))
            act(lambda: page.locator(".cards h3 a").click())
            expect(page.locator("table.data tbody td").first).to_have_text(re.compile(r"\d"))
            expect(page.locator(".workspace")).to_contain_text("Part of the town")
    finally:
        service.close()
    assert actions <= 10


def test_a_file_is_dropped_in_and_guessed(
    browser: Browser, staff: str, enter: str, tmp_path: Path
) -> None:
    path = people(tmp_path / "Dropped People.csv", 120)
    with visit(browser, staff, enter) as page:
        page.goto("/import")
        page.locator("#drop").wait_for()
        data = page.evaluate_handle(
            """(text) => { const held = new DataTransfer();
            held.items.add(new File([text], "Dropped People.csv", { type: "text/csv" })); return held; }""",
            path.read_text(encoding="utf-8"),
        )
        page.dispatch_event("#drop", "drop", {"dataTransfer": data})
        page.wait_for_url(re.compile(r"/import/\d+"))
        expect(page.get_by_role("heading", level=1)).to_have_text("Import Dropped People.csv")
        expect(page.locator("[name='role.id']")).to_have_value("identity")
        expect(page.locator("[name='role.area']")).to_have_value("variable")
        page.locator("[name='label.area']").fill("Part of the town")
        page.get_by_role("button", name="Look again").click()
        expect(page.locator("details pre")).to_contain_text("Part of the town")


def test_a_file_that_cannot_be_read_is_one_sentence_on_the_page(
    browser: Browser, staff: str, enter: str, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("the area,1st\nN,f\n", encoding="utf-8")
    context = browser.new_context(base_url=staff)
    try:
        page = context.new_page()
        page.goto(enter)
        page.wait_for_url(f"{staff}/")
        page.goto("/import")
        page.set_input_files("#file", wrong)
        expect(page.locator("#said")).to_contain_text("has no column that can be described")
        assert str(tmp_path) not in page.inner_text("#said")
        assert ".import-" not in page.inner_text("#said")
    finally:
        context.close()


def test_without_scripts_a_policy_is_checked_and_a_file_is_named(
    browser: Browser, staff: str, enter: str, tmp_path: Path
) -> None:
    with visit(browser, staff, enter, java_script_enabled=False) as page:
        page.goto("/datasets/town/policy")
        text = page.locator("#text").input_value()
        page.locator("#text").fill(re.sub(r"max_dimensions = \d+", "max_dimensions = 1", text))
        page.locator("#check").click()
        expect(page.locator("#effect")).to_contain_text("2 of 3 questions")
        page.goto("/import")
        expect(page.locator("#drop")).to_be_hidden()
        page.fill("#path", str(people(tmp_path / "people.csv", 90)))
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"/import/\d+"))
        expect(page.locator("tbody").first).to_contain_text("N")
