"""The way to a table in a real browser: by mouse, by keyboard alone, on a phone, without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from lustrum.policy import Policy
from lustrum.release import TableService
from lustrum.server import create_app
from lustrum.server.urls.code_lists import list_of
from server.conftest import served
from server.test_browser import visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

FOCUSED = "document.activeElement.id || document.activeElement.textContent.trim()"
PHONE = {"width": 390, "height": 800}


def asked(page: Page) -> list[tuple[str, str]]:
    """The question in the address of a page."""
    return parse_qsl(urlsplit(page.url).query)


def settled(page: Page, count: str) -> None:
    """Wait until the form has taken a choice in."""
    page.wait_for_function(
        "(said) => document.querySelector('#count').textContent === said", arg=count
    )


def hinted(page: Page, said: str) -> None:
    page.locator("#foresight:not(.waiting)", has_text=said).wait_for()


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 900}, PHONE])
def test_a_table_is_built_with_the_mouse(
    browser: Browser, address: str, viewport: dict[str, Any]
) -> None:
    with visit(browser, address, viewport=viewport) as page:
        page.goto("/")
        page.get_by_role("link", name="Demo census", exact=True).click()
        assert page.locator("#count").inner_text() == "At most 20,000 cells."
        page.locator("#where-region summary").click()
        page.get_by_label("Upper Merrow").check()
        page.get_by_text("People whose region is Upper Merrow").wait_for()
        page.get_by_label("Variable 1").select_option("household_size")
        settled(page, "6 cells of at most 20,000.")
        page.get_by_label("Variable 2").select_option("sex")
        settled(page, "6 × 2 = 12 cells of at most 20,000.")
        page.get_by_label("Variable 3").select_option("employment")
        settled(page, "6 × 2 × 5 = 60 cells of at most 20,000.")
        hinted(page, "Likely answered.")
        page.get_by_role("button", name="Make the table").click()
        page.wait_for_url("**/table?**")
        assert asked(page) == [
            ("by", "household_size"),
            ("by", "sex"),
            ("by", "employment"),
            ("where", "region:1"),
            ("totals", "on"),
        ]
        assert page.get_by_role("heading", level=1).inner_text() == (
            "Household size by sex and current activity status"
        )
        page.go_back()
        assert page.get_by_label("Variable 1").input_value() == "household_size"
        assert page.get_by_label("Upper Merrow").is_checked()


def test_what_is_in_the_table_or_forbidden_cannot_be_chosen_again(
    browser: Browser, address: str
) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo")
        page.get_by_label("Variable 1").select_option("age")
        settled(page, "21 cells of at most 20,000.")
        again = page.locator("#by-2 option[value='age:ten-year']")
        assert again.is_disabled()
        assert "already in the table" in again.inner_text()
        assert page.locator("#by-1 option[value='age:ten-year']").is_enabled()
        page.locator("#where-region summary").click()
        page.get_by_label("Upper Merrow").check()
        page.get_by_text("People whose region is Upper Merrow").wait_for()
        page.locator("#where-sex summary").click()
        assert page.locator("#where-sex input").first.is_disabled()
        assert page.locator("#where-sex").get_by_text("untick the other first").is_visible()


def test_the_hint_follows_the_choices_and_its_advice_is_taken_by_a_click(
    browser: Browser, address: str
) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo")
        page.get_by_label("Variable 1").select_option("area")
        settled(page, "158 cells of at most 20,000.")
        page.get_by_label("Variable 2").select_option("age")
        hinted(page, "Likely refused.")
        region = page.locator("#foresight")
        assert region.get_attribute("aria-live") == "polite"
        region.get_by_role("link", name="Area in 14 categories: District").click()
        hinted(page, "Likely answered.")
        assert page.get_by_label("Variable 1").input_value() == "area:district"
        assert asked(page)[0] == ("by", "area:district")
        page.get_by_role("button", name="Make the table").click()
        page.wait_for_url("**/table?**")
        assert page.get_by_role("table").is_visible()


def test_the_hint_of_an_older_choice_is_never_shown_as_today_s(
    browser: Browser, address: str
) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo")
        page.get_by_label("Variable 1").select_option("age")
        hinted(page, "Likely answered.")
        # In one turn of the page's own clock, so that a slow machine cannot come in between.
        waits = page.get_by_label("Variable 1").evaluate(
            """(list) => {
              list.value = "sex";
              list.dispatchEvent(new Event("change", { bubbles: true }));
              return document.querySelector("#foresight").classList.contains("waiting");
            }"""
        )
        assert waits
        hinted(page, "Likely answered.")
        assert page.locator("#count").inner_text() == "2 cells of at most 20,000."


def test_too_many_cells_are_told_at_once(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo?by=area&by=age")
        page.get_by_label("Variable 3").select_option("occupation")
        settled(page, "158 × 21 × 13 = 43,134 cells of at most 20,000.")
        assert "wrong" in (page.locator("#count").get_attribute("class") or "")


def test_categories_are_ticked_one_by_one_by_range_and_all_at_once(
    browser: Browser, address: str
) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo?by=age")
        box = page.locator("#codes-1")
        box.locator("summary").click()
        box.get_by_label("Find, or a range").fill("5-12")
        box.get_by_role("button", name="Tick this range").click()
        settled(page, "8 cells of at most 20,000.")
        assert ("codes", "age:5..12") in asked(page)
        box.get_by_label("Find, or a range").fill("100 and")
        page.keyboard.press("Enter")
        settled(page, "9 cells of at most 20,000.")
        box.get_by_label("Find, or a range").fill("")
        box.get_by_role("button", name="Untick all").click()
        settled(page, "21 cells of at most 20,000.")
        ticks = box.locator(".ticks input")
        ticks.nth(1).click()
        ticks.nth(4).click(modifiers=["Shift"])
        settled(page, "4 cells of at most 20,000.")
        assert ("codes", "age:2..5") in asked(page)
        box.get_by_role("button", name="Tick all", exact=True).click()
        settled(page, "21 cells of at most 20,000.")
        assert not any(name == "codes" for name, _ in asked(page))


def test_a_long_list_loads_when_it_is_opened_and_can_be_searched(
    browser: Browser, address: str
) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo")
        box = page.locator("#where-area")
        assert box.locator(".ticks input").count() == 0
        box.locator("summary").click()
        box.locator(".ticks input").first.wait_for()
        assert box.locator(".ticks input").count() == 158 + 14 + 2
        box.get_by_label("Find, or a range").fill("calder do")
        assert box.locator(".ticks input").count() == 1
        page.keyboard.press("Enter")
        page.get_by_text("People whose area is Calder Docks").wait_for()
        page.goto("/datasets/demo?by=area")
        box = page.locator("#codes-1")
        box.locator("summary").click()
        box.get_by_label("Find, or a range").fill("1-01-003 - 1-01-006")
        page.keyboard.press("Enter")
        settled(page, "4 cells of at most 20,000.")
        assert ("codes", "area:1-01-003..1-01-006") in asked(page)
        page.reload()
        assert "4 of 158 chosen" in page.locator("#codes-1 summary").inner_text()


def test_variables_change_places(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo?by=age:ten-year&by=sex&by=region")
        page.locator("#place-region").focus()
        page.locator("#place-region").select_option("region:rows")
        page.wait_for_url("**/demo?by=region**")
        assert [value for name, value in asked(page) if name == "by"] == [
            "region",
            "age:ten-year",
            "sex",
        ]
        assert page.evaluate(FOCUSED) == "place-region"
        assert page.locator("#place-age").input_value() == "age:columns"


def test_lists_are_written_by_the_page_as_the_server_reads_them(
    browser: Browser, address: str
) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo")
        source = page.locator("script[src*='builder.js']").get_attribute("src")
        text = page.request.get(f"{address}{source}").text()
        function = text[text.index("function listed") : text.index("const written")]
        for codes in (
            ["1", "2", "3", "5", "08", "09", "10", "99", "100", "101"],
            ["2-01", "2-02", "2-03", "a,b", "50%", "..", "1.2", "x.", "999999999", "Z"],
            ["%2C", "1..3", "007", "008", "009", "010"],
        ):
            written = page.evaluate(f"(codes) => {{ {function}; return listed(codes); }}", codes)
            assert list_of(written, "It") == codes


def tab_to(page: Page, target: str) -> None:
    for _ in range(80):
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
        for _ in range(80):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.parentElement.id") == "where-region":
                break
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        page.get_by_text("People whose region is Upper Merrow").wait_for()
        tab_to(page, "by-1")
        page.keyboard.type("Educ")
        settled(page, "9 cells of at most 20,000.")
        assert page.evaluate(FOCUSED) == "by-1"
        tab_to(page, "by-2")
        page.keyboard.type("Sex")
        settled(page, "9 × 2 = 18 cells of at most 20,000.")
        tab_to(page, "Make the table")
        page.keyboard.press("Enter")
        page.wait_for_url("**/table?**")
        assert page.get_by_role("heading", level=1).inner_text() == "Educational attainment by sex"
        assert page.get_by_text("People whose region is Upper Merrow").first.is_visible()


def test_everything_works_without_scripts(browser: Browser, address: str) -> None:
    with visit(browser, address, java_script_enabled=False) as page:
        page.goto("/datasets/demo")
        page.locator("#where-region summary").click()
        page.get_by_label("Upper Merrow").check()
        page.get_by_label("Variable 1").select_option("age:ten-year")
        page.get_by_label("Variable 2").select_option("sex")
        page.get_by_role("button", name="Check").click()
        assert page.get_by_text("Likely answered.").is_visible()
        page.locator("#codes-1 summary").click()
        page.locator("#codes-1 input").nth(2).check()
        page.locator("#codes-1 input").nth(3).check()
        page.locator("#place-sex").select_option("sex:rows")
        page.get_by_role("button", name="Make the table").click()
        page.wait_for_url("**/table?**")
        assert page.get_by_role("table").is_visible()
        assert page.get_by_role("heading", level=1).inner_text().startswith("Sex by age")


def test_a_long_list_is_chosen_from_without_scripts(browser: Browser, address: str) -> None:
    with visit(browser, address, java_script_enabled=False) as page:
        page.goto("/datasets/demo?by=area&by=sex&totals=on")
        page.locator("#codes-1 summary").click()
        page.locator("#codes-1").get_by_role("link", name="on a page of its own").click()
        page.get_by_label("Merrow Old Town").check()
        page.get_by_label("Find a category").fill("calder")
        page.get_by_role("button", name="Search").click()
        page.get_by_label("Calder Docks").check()
        page.get_by_role("button", name="Use these").click()
        assert page.locator("#count").inner_text() == "2 × 2 = 4 cells of at most 20,000."
        assert ("codes", "area:1-01-001,2-01-001") in asked(page)


class Loose(TableService):
    """The same data under rules that allow own groups, judge areas one by one and keep variables apart."""

    def policy(self, name: str) -> Policy:
        policy = super().policy(name)
        rules = {
            "nested_only": False,
            "per_area": "area",
            "disallowed": [["sex", "citizenship"]],
        }
        return policy.model_copy(update={"rules": policy.rules.model_copy(update=rules)})


@pytest.fixture(scope="module")
def loose(root: Path) -> Iterator[str]:
    """The address of a server under those rules."""
    with served(create_app(Loose(root, workers=1))) as found:
        yield found


def test_areas_have_a_step_and_own_groups_are_made_of_what_is_ticked(
    browser: Browser, loose: str
) -> None:
    with visit(browser, loose) as page:
        page.goto("/datasets/demo")
        page.get_by_label("Type of area").select_option("area:district")
        settled(page, "14 cells of at most 20,000.")
        page.get_by_label("Variable 1").select_option("age")
        settled(page, "14 × 21 = 294 cells of at most 20,000.")
        box = page.locator("#codes-1")
        box.locator("> summary").click()
        for number, (name, ends) in enumerate((("Young, < 20", (1, 4)), ("Older", (5, 21)))):
            group = box.locator("[data-group]").nth(number)
            if group.get_attribute("open") is None:
                group.locator("summary").click()
            group.get_by_label("Name of the group").fill(name)
            page.keyboard.press("Enter")
            for code in range(ends[0], ends[1] + 1):
                box.locator(f'input[value="age:{number + 1}:{code}"]').check()
            box.locator("[data-group]").nth(number + 1).wait_for()
        settled(page, "14 × 2 = 28 cells of at most 20,000.")
        assert ("group", "age:Young, < 20=1..4") in asked(page)
        page.get_by_role("button", name="Make the table").click()
        page.wait_for_url("**/table?**")
        assert page.get_by_text("Young, < 20").first.is_visible()


def test_variables_that_may_not_meet_bar_each_other(browser: Browser, loose: str) -> None:
    with visit(browser, loose) as page:
        page.goto("/datasets/demo")
        page.get_by_label("Variable 1").select_option("sex")
        settled(page, "2 cells of at most 20,000.")
        barred = page.locator("#by-2 option[value='citizenship']")
        assert barred.is_disabled()
        assert "not together with Sex" in barred.inner_text()
        page.locator("#where-citizenship summary").click()
        assert page.locator("#where-citizenship .ticks input").first.is_disabled()


def test_a_refusal_leads_to_an_answer(browser: Browser, address: str) -> None:
    with visit(browser, address, viewport=PHONE) as page:
        page.goto("/datasets/demo/table?by=area&by=age")
        assert page.get_by_text("This table cannot be shown").is_visible()
        page.get_by_role("link", name="Area in 14 categories: District").click()
        page.wait_for_url("**/table?by=area:district&by=age")
        assert page.get_by_role("table").is_visible()
