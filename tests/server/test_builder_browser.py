"""The way to a table in a real browser: by mouse, by keyboard alone, on a phone, without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browsing import arrive, asked, expect, visit
from lustrum.answer import Snapshot, TableService
from lustrum.server import create_app
from lustrum.server.urls.code_lists import list_of
from server.conftest import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

FOCUSED = "document.activeElement.id || document.activeElement.textContent.trim()"
PHONE = {"width": 390, "height": 800}


def settled(page: Page, count: str) -> None:
    """Wait until the form has taken a choice in."""
    expect(page.locator("#count")).to_have_text(count)


def hinted(page: Page, said: str) -> None:
    page.locator("#foresight:not(.waiting)", has_text=said).wait_for()


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 900}, PHONE])
def test_a_table_is_built_with_the_mouse(
    browser: Browser, address: str, viewport: dict[str, Any]
) -> None:
    with visit(browser, address, viewport=viewport) as page:
        page.goto("/")
        arrive(page, page.get_by_role("link", name="Demo census", exact=True), "**/datasets/demo")
        settled(page, "At most 20,000 cells.")
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
        expect(page.get_by_role("heading", level=1)).to_have_text(
            "Household size by sex and current activity status, people whose region is Upper Merrow"
        )
        page.go_back()
        expect(page.get_by_label("Variable 1")).to_have_value("household_size")
        expect(page.get_by_label("Upper Merrow")).to_be_checked()


def test_what_is_in_the_table_or_forbidden_cannot_be_chosen_again(
    browser: Browser, address: str
) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo")
        page.get_by_label("Variable 1").select_option("age")
        settled(page, "21 cells of at most 20,000.")
        again = page.locator("#by-2 option[value='age:ten-year']")
        expect(again).to_be_disabled()
        expect(again).to_contain_text("already in the table")
        expect(page.locator("#by-1 option[value='age:ten-year']")).to_be_enabled()
        page.locator("#where-region summary").click()
        page.get_by_label("Upper Merrow").check()
        page.get_by_text("People whose region is Upper Merrow").wait_for()
        page.locator("#where-sex summary").click()
        expect(page.locator("#where-sex input").first).to_be_disabled()
        expect(page.locator("#where-sex").get_by_text("untick the other first")).to_be_visible()


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
        expect(region).to_have_attribute("aria-live", "polite")
        region.get_by_role("link", name="Area in 14 categories: District").click()
        hinted(page, "Likely answered.")
        expect(page.get_by_label("Variable 1")).to_have_value("area:district")
        assert asked(page)[0] == ("by", "area:district")
        page.get_by_role("button", name="Make the table").click()
        page.wait_for_url("**/table?**")
        expect(page.get_by_role("table")).to_be_visible()


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
        settled(page, "2 cells of at most 20,000.")


def test_the_bar_at_the_bottom_covers_no_variable_of_a_filled_form(
    browser: Browser, address: str
) -> None:
    with visit(browser, address, viewport={"width": 1440, "height": 900}) as page:
        page.goto("/datasets/demo?by=age&by=sex")
        expect(page.locator("#foresight")).to_contain_text("Likely")
        bar = page.locator(".go").bounding_box()
        assert bar is not None
        for number in (1, 2):
            field = page.locator(f"#by-{number}").bounding_box()
            assert field is not None
            assert field["y"] + field["height"] < bar["y"]


def test_too_many_cells_are_told_at_once(browser: Browser, address: str) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo?by=area&by=age")
        page.get_by_label("Variable 3").select_option("occupation")
        settled(page, "158 × 21 × 13 = 43,134 cells of at most 20,000.")
        expect(page.locator("#count")).to_contain_class("wrong")


def test_categories_are_ticked_one_by_one_by_range_and_all_at_once(
    browser: Browser, address: str
) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo?by=age")
        box = page.locator("#codes-1")
        box.locator("summary").click()
        box.get_by_label("Find, or a range such as 4-5").fill("20-59")
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


@pytest.mark.parametrize(
    ("words", "codes", "remark"),
    [
        ("15-19", "age:4", ""),
        ("15-64", "age:4..13", ""),
        ("65+", "age:14..21", ""),
        ("0 – 9", "age:1,2", ""),
        ("18-64", "age:5..13", "Only partly within this range, so left out: 15 to 19."),
        ("95-120", "age:20", "Only partly within this range, so left out: 100 and over."),
    ],
)
def test_a_range_means_what_the_labels_say(
    browser: Browser, address: str, words: str, codes: str, remark: str
) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo?by=age")
        box = page.locator("#codes-1")
        box.locator("summary").click()
        box.get_by_label("Find, or a range").fill(words)
        expect(box.get_by_role("status")).to_have_text(remark)
        box.get_by_role("button", name="Tick this range").click()
        page.wait_for_function(
            "codes => decodeURIComponent(location.search).includes(codes)", arg=codes
        )
        assert ("codes", codes) in asked(page)


def test_a_long_list_loads_when_it_is_opened_and_can_be_searched(
    browser: Browser, address: str
) -> None:
    with visit(browser, address) as page:
        page.goto("/datasets/demo")
        box = page.locator("#where-area")
        assert box.locator(".ticks input").count() == 0
        box.locator("summary").click()
        expect(box.locator(".ticks input")).to_have_count(158 + 14 + 2)
        box.get_by_label("Find").fill("5-12")
        expect(box.get_by_role("status")).to_have_text(
            "These categories have no numbers, so they have no ranges; search for a word."
        )
        expect(box.get_by_role("button", name="Tick this range")).to_be_hidden()
        box.get_by_label("Find").fill("calder do")
        expect(box.locator(".ticks input")).to_have_count(1)
        page.keyboard.press("Enter")
        page.get_by_text("People whose area is Calder Docks").wait_for()
        page.goto("/datasets/demo?by=area")
        box = page.locator("#codes-1")
        box.locator("summary").click()
        box.get_by_label("Find").fill("1-01-003 - 1-01-006")
        page.keyboard.press("Enter")
        settled(page, "4 cells of at most 20,000.")
        assert ("codes", "area:1-01-003..1-01-006") in asked(page)
        page.reload()
        expect(page.locator("#codes-1 summary")).to_contain_text("4 of 158 chosen")


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
        expect(page.locator("#place-age")).to_have_value("age:columns")


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
        page.keyboard.press("E")  # the only one; a pause between two letters would begin anew
        settled(page, "9 cells of at most 20,000.")
        assert page.evaluate(FOCUSED) == "by-1"
        tab_to(page, "by-2")
        page.keyboard.press("S")
        settled(page, "9 × 2 = 18 cells of at most 20,000.")
        hinted(page, "Likely")
        tab_to(page, "Make the table")
        page.keyboard.press("Enter")
        page.wait_for_url("**/table?**")
        expect(page.get_by_role("heading", level=1)).to_have_text(
            "Educational attainment by sex, people whose region is Upper Merrow"
        )


def test_everything_works_without_scripts(browser: Browser, address: str) -> None:
    with visit(browser, address, java_script_enabled=False) as page:
        page.goto("/datasets/demo")
        page.locator("#where-region summary").click()
        page.get_by_label("Upper Merrow").check()
        page.get_by_label("Variable 1").select_option("age:ten-year")
        page.get_by_label("Variable 2").select_option("sex")
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_text("Likely answered.")).to_be_visible()
        page.wait_for_load_state()
        page.locator("#codes-1 summary").click()
        page.locator("#codes-1 input").nth(2).check()
        page.locator("#codes-1 input").nth(3).check()
        page.locator("#place-sex").select_option("sex:rows")
        page.get_by_role("button", name="Make the table").click()
        page.wait_for_url("**/table?**")
        expect(page.get_by_role("table")).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^Sex by age"))


class Loose(TableService):
    """The same data under rules that allow own groups, judge areas one by one and keep variables apart."""

    def snapshot(self, name: str) -> Snapshot:
        policy = super().snapshot(name).policy
        rules = {
            "nested_only": False,
            "per_area": "area",
            "disallowed": [["sex", "citizenship"]],
        }
        loose = policy.model_copy(update={"rules": policy.rules.model_copy(update=rules)})
        return Snapshot(self.under(name, loose), loose)


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
        expect(page.get_by_text("Young, < 20").first).to_be_visible()


def test_variables_that_may_not_meet_bar_each_other(browser: Browser, loose: str) -> None:
    with visit(browser, loose) as page:
        page.goto("/datasets/demo")
        page.get_by_label("Variable 1").select_option("sex")
        settled(page, "2 cells of at most 20,000.")
        barred = page.locator("#by-2 option[value='citizenship']")
        expect(barred).to_be_disabled()
        expect(barred).to_contain_text("not together with Sex")
        page.locator("#where-citizenship summary").click()
        expect(page.locator("#where-citizenship .ticks input").first).to_be_disabled()


def test_a_refusal_leads_to_an_answer(browser: Browser, address: str) -> None:
    with visit(browser, address, viewport=PHONE) as page:
        page.goto("/datasets/demo/table?by=area&by=age")
        expect(page.get_by_text("This table cannot be shown")).to_be_visible()
        page.get_by_role("link", name="Area in 14 categories: District").click()
        page.wait_for_url("**/table?by=area:district&by=age")
        expect(page.get_by_role("table")).to_be_visible()
