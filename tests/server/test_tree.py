"""The tree of categories beside the table: ticks mean people at every level; by keys, fingers, links."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browsing import arrive, axe_complaints, context_of, expect, visit
from examples import examples
from lustrum.model import Axis, Dataset, TableQuery
from lustrum.policy import Policy
from lustrum.server.pages import tree
from lustrum.server.pages.tree import TreeRow
from lustrum.server.service.served_dataset import ServedDataset
from lustrum.server.urls import forms

if TYPE_CHECKING:
    from fastapi.testclient import TestClient
    from playwright.sync_api import Browser, Locator, Page

OPEN = "/datasets/demo"


def _group(code: str, members: range) -> dict[str, Any]:
    label = f"{5 * members[0]} to {5 * members[-1] + 4}"
    return {"code": code, "label": label, "members": [str(i) for i in members]}


AGES = {
    "name": "age",
    "label": "Age",
    "codes": [[str(i), f"{5 * i} to {5 * i + 4}"] for i in range(12)],
    "hierarchies": [
        {
            "name": "bands",
            "levels": [
                {
                    "name": "fine",
                    "label": "Fine",
                    "groups": [_group(f"F{i}", range(3 * i, 3 * i + 3)) for i in range(4)],
                },
                {
                    "name": "coarse",
                    "label": "Coarse",
                    "groups": [
                        {"code": "Y", "label": "Young", "members": ["F0", "F1"]},
                        {"code": "O", "label": "Old", "members": ["F2", "F3"]},
                    ],
                },
            ],
        }
    ],
}
DATASET = Dataset.from_mapping(
    {"dataset": {"name": "town", "units": "people"}, "variables": [AGES]}
)
VARIABLE = DATASET.variable("age")
RULES = {"max_dimensions": 3, "max_filters": 3, "nested_only": False}
SERVED = ServedDataset(DATASET, Policy.model_validate({"rules": RULES}))
CODES = [c.code for level in VARIABLE.levels for c in level.categories] + list(VARIABLE.codes)
RANGES = {"0-29": set(range(6)), "15-24, 50+": None, "40 to 44": {8}, "Old": set(range(6, 12))}


def flat(rows: tuple[TreeRow, ...]) -> dict[str, str]:
    """The state of every row, whatever lies below another one."""
    return {row.code: row.state for row in rows} | {
        code: state for row in rows for code, state in flat(row.rows).items()
    }


@settings(max_examples=examples(60, 600))
@given(
    st.sampled_from(["where", "codes", "codes:fine"]),
    st.lists(
        st.tuples(st.sampled_from(["tick", "untick"]), st.sampled_from(CODES))
        | st.tuples(st.sampled_from(["take", "leave"]), st.sampled_from(["0-29", "Old"])),
        max_size=6,
    ),
)
def test_what_is_ticked_is_who_was_ticked(kind: str, acts: list[tuple[str, str]]) -> None:
    """Beside a plain set of people: whatever is ticked, at whatever level, in whatever order."""
    kind, _, level = kind.partition(":")
    by = (Axis("age", level or None),) if kind == "codes" else ()
    leaves = VARIABLE.level(level).categories if level else VARIABLE.finest
    query, people = TableQuery("town", by), set[int]()
    for act, value in acts:
        if act in ("take", "leave"):
            members = RANGES[value] or set()
        else:
            # A part of a category of the table stands for the whole of it.
            own = VARIABLE.category(value).member_set
            members = {m for c in leaves if own <= c.member_set for m in c.members} | own
        about = [("tree", f"{kind}:age"), (act, value)]
        if kind == "codes" and level and value in VARIABLE.codes:
            continue
        query, mistake = tree.chosen(SERVED, query, about)
        assert mistake == ""
        people = people | members if act in ("tick", "take") else people - members
        # The address says it all.
        query = forms.read([tuple(p) for p in _pairs(forms.write(query))], "town")  # type: ignore[misc]
        held = query.where[0].codes if query.where else ()
        if kind == "codes":
            held = query.by[0].codes or ()
            if held == () and len(people) == len(VARIABLE.codes):
                people = set()  # all of them are shown where none is ticked
        assert {m for code in held for m in VARIABLE.category(code).members} == people
        shown = tree.tree(SERVED, query, about[:1], ())
        assert shown is not None
        for code, state in flat(shown.rows).items():
            inside = VARIABLE.category(code).member_set
            both = len(inside & people)
            assert state == ("on" if both == len(inside) else "some" if both else "off"), code


def _pairs(query: str) -> list[list[str]]:
    return [part.split("=", 1) for part in query.split("&") if part]


def test_own_groups_are_made_of_what_is_ticked_and_undone() -> None:
    query = TableQuery("town", (Axis("age", "fine"),))

    def press(query: TableQuery, *acts: tuple[str, str]) -> tuple[TableQuery, str]:
        return tree.chosen(SERVED, query, [("tree", "codes:age"), *acts])

    assert press(query, ("join", "on"), ("named", "Few"))[1].startswith("Tick the categories")
    query, _ = press(query, ("tick", "F0"), ("named", "Children"), ("join", "on"))
    assert forms.write(query) == "by=age&group=age:Children=0..2"
    query, _ = press(query, ("tick", "F0"), ("tick", "3"), ("tick", "4"))
    assert forms.write(query).endswith("group=age:15+to+19=3&group=age:20+to+24=4")
    again, mistake = press(query, ("named", "Children"), ("join", "on"))
    assert mistake
    assert again == query
    shown = tree.tree(SERVED, query, [("tree", "codes:age")], ())
    assert shown is not None
    assert flat(shown.rows)["F0"] == flat(shown.rows)["1"] == "in"
    assert flat(shown.rows)["F1"] == "some"
    query, _ = press(query, ("part", "Children"))
    assert forms.write(query) == "by=age&codes=age:3,4"


@pytest.mark.parametrize(
    ("wanted", "said"), [("17-23", "15-24 would"), ("zebra", "has no category 'zebra'")]
)
def test_what_no_category_means_is_one_sentence(wanted: str, said: str) -> None:
    about = [("tree", "where:age"), ("find", wanted)]
    shown = tree.tree(SERVED, TableQuery("town", ()), about, ())
    assert shown is not None
    assert said in str(shown.mistake)
    query, mistake = tree.chosen(SERVED, TableQuery("town", ()), [*about[:1], ("take", wanted)])
    assert query.where == ()
    assert said in str(mistake)


@pytest.mark.parametrize(("language", "keys"), [("en", "RCLF"), ("de", "ZSEF"), ("fr", "LCPF")])
def test_every_language_has_its_own_keys(bundled: TestClient, language: str, keys: str) -> None:
    page = bundled.get(f"/{language}{OPEN}").text
    spare = page.split('id="spare-region"')[1].split("</details>")[0]
    assert re.findall(r'data-key="(\w+)"', spare) == list(keys)
    hint = page.split('class="hint keys"')[1].split("</p>")[0]
    assert re.findall(r"\b[A-Z]\b", hint) == list(keys)


def test_a_rate_per_thousand_is_the_percentage_with_a_digit_more(bundled: TestClient) -> None:
    def values(show: str) -> list[str]:
        address = f"/api/v1/tables?dataset=demo&by=age&by=sex&totals=on&format=csv&show={show}"
        return [row["value"] for row in csv.DictReader(bundled.get(address).text.splitlines())]

    shares = [round(10 * float(v), 1) for v in values("row-percent&decimals=2")]
    assert [float(v) for v in values("row-rate&decimals=1")] == shares


def test_old_addresses_of_layers_still_work(bundled: TestClient) -> None:
    asked = f"{OPEN}?by=age:life-stage&by=sex&pivot=age:rows&pivot=sex:"
    old = bundled.get(f"{asked}wafers&wafer=sex:1").text
    new = bundled.get(f"{asked}layers&layer=sex:1").text
    cells = [re.findall(r"<td[^>]*>([^<]+)", page) for page in (old, new)]
    assert len(cells[0]) == 6
    assert cells[0] == cells[1]
    assert "wafer" not in old + new


# In a browser


def rows(page: Page) -> list[str]:
    """The rows of the table."""
    names = page.locator("table.data tbody th[scope=row]").all_inner_texts()
    return [name.strip() for name in names if name.strip() != "Total"]


@pytest.mark.browser
def test_the_keyboard_walks_and_ticks_the_tree_beside_the_live_table(
    browser: Browser, live: str
) -> None:
    with visit(browser, live, viewport={"width": 1440, "height": 900}) as page:
        page.goto(OPEN)
        page.locator("#spare-area > summary").focus()
        page.keyboard.press("f")
        upper = page.get_by_role("treeitem", name="Upper Merrow")
        expect(upper).to_be_focused()
        expect(upper).to_have_attribute("aria-expanded", "false")
        page.keyboard.press("End")
        expect(page.get_by_role("treeitem", name="Lower Merrow")).to_be_focused()
        page.keyboard.press("u")
        expect(upper).to_be_focused()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press(" ")
        first = page.get_by_role("treeitem", name="Merrow City")
        expect(first).to_have_attribute("aria-checked", "true")
        expect(page.locator("h1")).to_contain_text("area is Merrow City")
        expect(first).to_be_focused()
        # Two keys in haste are two choices, though the page has shown neither.
        page.keyboard.press("ArrowDown")
        page.keyboard.press(" ")
        page.keyboard.press("ArrowDown")
        page.keyboard.press(" ")
        expect(page.locator("h1")).to_contain_text("Merrow City, Ardenshire or Severin Valley")
        expect(upper).to_have_attribute("aria-checked", "mixed")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press(" ")
        expect(page.locator("h1")).to_contain_text("area is Upper Merrow")
        expect(page.locator("table.data")).to_be_in_viewport()
        page.get_by_role("link", name="Close").click()
        expect(page.locator("#tree")).to_have_count(0)


@pytest.mark.browser
def test_ranges_of_labels_and_own_groups_are_chosen_without_leaving(
    browser: Browser, live: str
) -> None:
    with visit(browser, live, viewport={"width": 1440, "height": 900}) as page:
        page.goto(f"{OPEN}?by=age&by=sex")
        page.locator("#in-age > summary").click()
        page.get_by_role("link", name="Choose its categories").click()
        find = page.get_by_label("Find, or a range or list such as")
        find.fill("65+")
        expect(page.locator("#tree-take")).to_have_text("Tick these 8")
        find.press("Enter")
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator("table.data tbody tr")).to_have_count(8)
        assert rows(page)[0] == "65 to 69"
        page.get_by_label("Make an own group of those ticked").fill("Pensioners")
        page.get_by_label("Make an own group of those ticked").press("Enter")
        expect(page.locator("table.data tbody tr")).to_have_count(1)
        find.fill("0-14")
        find.press("Enter")
        expect(page.locator("table.data tbody tr")).to_have_count(4)
        assert rows(page) == ["Pensioners", "0 to 4", "5 to 9", "10 to 14"]
        page.get_by_role("button", name="Undo the group Pensioners").click()
        expect(page.locator("table.data tbody tr")).to_have_count(3)
        # A range with the shift key.
        page.get_by_role("button", name="Untick all").click()
        expect(page.locator("table.data tbody tr")).to_have_count(21)


@pytest.mark.browser
def test_an_own_group_is_dragged_together_or_walked_with_the_shift_key(
    browser: Browser, live: str
) -> None:
    with visit(browser, live, viewport={"width": 1440, "height": 1200}) as page:
        page.goto(f"{OPEN}?by=age:ten-year&tree=codes:age")

        def row(name: str) -> Locator:
            return page.get_by_role("treeitem", name=name)

        row("10 to 19").locator("button").first.hover()
        page.mouse.down()
        row("20 to 29").locator("button").first.hover()
        row("30 to 59").locator("button").first.hover()
        expect(page.locator("#tree li.over")).to_have_count(3)
        page.mouse.up()
        # The name is there to be taken or written over, and Enter makes the group.
        expect(page.locator("#tree-join")).to_have_value("10 to 59")
        expect(page.locator("#tree-join")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("table.data tbody th")).to_have_text(["10 to 59"])
        page.goto(f"{OPEN}?by=age:ten-year&tree=codes:age")
        row("0 to 9").first.focus()
        page.keyboard.press("Shift+ArrowDown")
        expect(row("10 to 19")).to_be_focused()
        expect(page.locator("#tree-join")).to_have_value("0 to 19")
        page.locator("#tree-join").fill("Children")
        page.keyboard.press("Enter")
        expect(page.locator("table.data tbody th")).to_have_text(["Children"])


@pytest.mark.browser
def test_on_a_phone_a_sheet_lies_over_the_table_which_is_seen_after_a_choice(
    browser: Browser, live: str
) -> None:
    phone = {"width": 390, "height": 844}
    with context_of(
        browser, base_url=live, viewport=phone, has_touch=True, bypass_csp=True
    ) as context:
        page = context.new_page()
        page.goto(f"{OPEN}?by=age&by=sex&totals=on")
        page.get_by_role("link", name="Choose", exact=True).tap()
        page.locator("#in-age > summary").tap()
        page.get_by_role("link", name="Choose its categories").tap()
        page.locator("#tree .rows > li > button[value]").nth(2).tap()
        expect(page.locator("table.data tbody tr")).to_have_count(3)
        expect(page.locator("table.data tbody td").first).to_be_in_viewport()
        expect(page.locator("#tree .rows > li").nth(2)).to_be_in_viewport()
        table, sheet = (page.locator(one).bounding_box() for one in ("table.data", ".chooser"))
        assert table is not None
        assert sheet is not None
        assert table["y"] + 120 < sheet["y"]
        assert axe_complaints(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.get_by_role("button", name="Show the table").tap()
        expect(page.locator(".chooser")).to_be_hidden()


@pytest.mark.browser
def test_without_scripts_every_row_is_a_button(browser: Browser, live: str) -> None:
    with visit(browser, live, java_script_enabled=False) as page:
        page.goto(f"{OPEN}?by=age:life-stage&by=sex")
        page.locator("#in-age > summary").click()
        arrive(page, page.get_by_role("link", name="Choose its categories"), re.compile("tree="))
        page.locator("#tree .rows > li > button").nth(1).click()
        page.wait_for_url(re.compile("tick="))
        assert len(rows(page)) == 1
        page.locator("#tree .rows > li > button").nth(2).click()
        expect(page.locator("table.data tbody tr")).to_have_count(2)
