"""Own groups and several filters: by form fields without scripts, and in a browser up to the table."""

from __future__ import annotations

import html
import io
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from browsing import arrive, axe_complaints, context_of, expect
from lustrum.answer import TableService
from lustrum.model import Axis, Filter, Group, QueryError, TableQuery
from lustrum.server import Settings, create_app
from lustrum.server.urls import forms
from server.conftest import served, started


@pytest.fixture(scope="module")
def free(small_root: Path, tmp_path_factory: pytest.TempPathFactory) -> TableService:
    """The demo under a policy that allows own groups and three filters."""
    root = shutil.copytree(small_root, tmp_path_factory.mktemp("groups") / "data")
    path: Path = root / "policies" / "demo.toml"
    text = path.read_text().replace("nested_only = true", "nested_only = false")
    text = re.sub(r"max_filters = \d+", "max_filters = 3", text)
    text = re.sub(r"max_small_share = [\d.]+", "max_small_share = 1.0", text)
    path.write_text(re.sub(r"min_population = \d+", "min_population = 50", text))
    return started(TableService(root, workers=1))


@pytest.fixture(scope="module")
def client(free: TableService) -> TestClient:
    return TestClient(create_app(free, Settings(rate="")), base_url="http://lustrum.test")


FIELDS = [
    ("by", "age"),
    ("name.age.1", "Young"),
    ("into", "age:1:1"),
    ("into", "age:1:2"),
    ("name.age.2", " Old "),
    ("into", "age:2:20"),
    ("name.age.10", "Middle"),
    ("into", "age:10:9"),
    ("name.age.11", ""),
]


def test_names_and_boxes_of_a_form_become_groups_in_the_order_of_their_numbers() -> None:
    query = forms.read(FIELDS, "demo")
    assert [(g.label, g.members) for g in query.by[0].groups] == [
        ("Young", ("1", "2")),
        ("Old", ("20",)),
        ("Middle", ("9",)),
    ]
    # The address of the answer says it in the short form.
    assert forms.write(query) == "by=age&group=age:Young=1,2&group=age:Old=20&group=age:Middle=9"


CUT = [("by", "age"), ("by", "sex"), ("name.age.1", ""), ("cut.age", " 0, 15; 65 ")]
THREE = ["by=age", "by=sex"] + [
    f"group=age:{group}" for group in ("0+to+14=1..3", "15+to+64=4..13", "65%2B=14..21")
]


@pytest.mark.parametrize("page", ["/datasets/demo/table", "/datasets/demo"])
def test_cut_points_of_the_form_become_own_groups_in_the_address(
    client: TestClient, page: str
) -> None:
    form = client.get("/datasets/demo?by=age&by=sex").text
    assert re.findall(r'name="((?:cut|ends)\.\w+)"', form) == ["cut.age", "ends.age"]
    cut = client.get(page, params=CUT, follow_redirects=False)
    assert cut.status_code == 303
    path, _, asked = cut.headers["location"].partition("?")
    assert path == page
    assert sorted(asked.split("&")) == sorted(THREE)
    assert client.get(cut.headers["location"]).status_code == 200
    ends = client.get(page, params=[*CUT, ("ends.age", "on")], follow_redirects=False)
    assert ends.headers["location"].count("group=") == 12
    # What was left empty, and ends without points, say nothing.
    left = [("by", "age"), ("cut.age", " "), ("ends.age", "on")]
    assert client.get(page, params=left, follow_redirects=False).status_code == 200


def test_cut_points_are_judged_as_own_groups_are(client: TestClient, service: TableService) -> None:
    """Where the policy allows no own groups, no points are offered, and points are refused as groups are."""
    closed = TestClient(create_app(service, Settings(rate="")), base_url="http://lustrum.test")
    assert 'name="cut.' not in closed.get("/datasets/demo?by=age&by=sex").text
    refused = closed.get("/datasets/demo/table", params=CUT)
    assert "is not a category of the published classification" in refused.text
    wrong = client.get("/datasets/demo/table", params=[("by", "sex"), ("cut.age", "15")])
    assert wrong.status_code == 400
    assert "is not in the table, so it cannot be cut." in html.unescape(wrong.text)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ([("by", "age"), ("into", "age:1:3")], "has no name; give it one"),
        (
            [("by", "age"), ("name.age.1", "Young")],
            "'Young' of 'age' is empty; tick its categories",
        ),
        ([("by", "age"), ("into", "age:3")], "the number of a group and a code"),
        ([("by", "sex"), ("name.age.1", "x"), ("into", "age:1:3")], "not in the table"),
        ([("by", "age"), ("names.age.1", "x")], "There is no parameter 'names.age.1'"),
    ],
)
def test_half_a_group_is_one_clear_mistake(fields: list[tuple[str, str]], sentence: str) -> None:
    with pytest.raises(QueryError) as error:
        forms.read(fields, "demo")
    assert sentence in str(error.value)


def test_fields_of_a_variable_that_left_the_table_are_dropped_from_the_form() -> None:
    sent = [("by", "sex"), *FIELDS[1:], ("codes", "sex:1")]
    assert forms.tidied(sent) == [("by", "sex"), ("codes", "sex:1")]
    # Groups take the place of single categories that are still ticked.
    assert ("codes", "age:3") not in forms.tidied([*FIELDS, ("codes", "age:3")])


def test_the_form_offers_fields_for_every_group_and_one_more(client: TestClient) -> None:
    page = client.get("/datasets/demo", params=FIELDS).text
    assert re.findall(r'name="name\.age\.(\d+)" value="(\w*)"', page) == [
        ("1", "Young"),
        ("2", "Old"),
        ("3", "Middle"),
        ("4", ""),
    ]
    assert page.count('name="into"') == 4 * 21
    assert len(re.findall(r'name="into" value="age:\d+:\d+" checked', page)) == 4


def test_every_filter_can_be_removed_by_a_link(client: TestClient) -> None:
    where = [("where", "region:1"), ("where", "sex:2"), ("where", "education:3")]
    page = client.get("/datasets/demo", params=[("by", "age"), *where]).text
    links = re.findall(r'id="drop-\d" href="([^"]+)"', page)
    assert len(links) == 3
    for link, gone in zip(links, where, strict=True):
        query = forms.read([tuple(p.split("=")) for p in link.split("?")[1].split("&amp;")], "demo")
        kept = {item.variable for item in query.where}
        assert kept == {"region", "sex", "education"} - {gone[1].partition(":")[0]}


def test_an_answer_says_what_was_done_and_how_far_off_numbers_can_be(client: TestClient) -> None:
    page = client.get("/datasets/demo/table?by=sex&totals=on").text
    assert "What was done to the numbers" in page
    assert "Each true number is at most 2 lower and at most 2 higher" in page
    more = re.search(r'id="bounds" href="([^"]+)"', page)
    assert more
    assert (
        "Beside each figure: bounds that hold with certainty"
        in client.get(more[1].replace("&amp;", "&")).text
    )


def test_an_own_group_is_defined_wherever_it_is_named(client: TestClient) -> None:
    asked = "by=age&by=sex&group=age:Young=1,2,3&group=age:Old=20"
    api = f"/api/v1/tables?dataset=demo&{asked}"
    page = client.get(f"/datasets/demo/table?{asked}").text
    definition = re.search(r"Age \(Young = ([^;]+); Old = ([^)]+)\) by sex", page)
    assert definition, "the caption and the citation say what the groups hold"
    young, old = definition.groups()
    assert re.fullmatch(r"\d+ to \d+", young)
    assert page.count(f"Young = {young}; Old = {old}") >= 4  # caption, notes, citation, BibTeX
    written = client.get(f"{api}&format=csv").text.splitlines()
    assert written[0].startswith("age,age_label,age_members,sex,sex_label,value")
    assert f",Young,{young}," in written[1]
    table = client.get(f"{api}&format=json-stat").json()
    notes = table["dimension"]["age"]["category"]["note"]
    assert sorted(notes.values()) == sorted([[young], [old]])
    assert any(f"Young = {young}" in note for note in table["note"])
    book = client.get(f"{api}&format=xlsx")
    texts = zipfile.ZipFile(io.BytesIO(book.content)).read("xl/sharedStrings.xml").decode()
    assert f"Young = {young}" in texts


def test_groups_that_were_made_by_a_form_show_the_numbers_of_the_api(
    client: TestClient, free: TableService
) -> None:
    groups = (Group("Young", ("1", "2", "3", "4")), Group("Old", tuple(map(str, range(14, 22)))))
    where = (Filter("region", ("1",)), Filter("sex", ("2",)))
    decision = free.answer(TableQuery("demo", (Axis("age", groups=groups),), where))
    assert decision.release is not None
    fields = [("by", "age"), ("name.age.1", "Young"), ("name.age.2", "Old")]
    for number, group in enumerate(groups, start=1):
        fields += [("into", f"age:{number}:{code}") for code in group.members]
    page = client.get(
        "/datasets/demo/table", params=[*fields, ("where", "region:1"), ("where", "sex:2")]
    )
    assert page.status_code == 200
    for value in decision.release.published.ravel().tolist():
        assert f"{value:,}" in page.text or str(value) in page.text


# In a browser.


@pytest.fixture(scope="module")
def address(free: TableService) -> Iterator[str]:
    with served(create_app(free, Settings(rate=""))) as found:
        yield found


def tick(page: Any, group: int, codes: list[int]) -> None:
    for code in codes:
        page.locator(f'input[name="into"][value="age:{group}:{code}"]').check()


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False])
def test_cut_points_typed_into_the_form_make_the_table(
    browser: Any, address: str, scripts: bool
) -> None:
    with context_of(browser, java_script_enabled=scripts, bypass_csp=True) as context:
        page = context.new_page()
        page.goto(f"{address}/datasets/demo?by=age&by=sex")
        page.locator("#codes-1 > summary").click()
        page.get_by_label("Cut points, such as").fill("15, 65")
        if scripts:
            assert axe_complaints(page) == []
        page.get_by_role("button", name="Make the table").click()
        page.wait_for_url(re.compile(r"/datasets/demo/table\?.*group="))
        names = page.locator("tbody th[scope=row]").all_inner_texts()
        assert [name.strip() for name in names if name != "Total"] == ["0 to 14", "15 to 64", "65+"]


@pytest.mark.browser
@pytest.mark.parametrize(
    ("scripts", "width", "scheme"),
    [
        (True, 390, "dark"),
        (False, 1280, "light"),
        pytest.param(True, 1280, "light", marks=pytest.mark.deep),
        pytest.param(False, 390, "dark", marks=pytest.mark.deep),
    ],
)
def test_a_visitor_makes_own_groups_and_three_filters(
    browser: Any, address: str, scripts: bool, width: int, scheme: str
) -> None:
    with context_of(
        browser,
        java_script_enabled=scripts,
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        bypass_csp=True,  # for the script of axe
    ) as context:
        page = context.new_page()
        page.goto(f"{address}/datasets/demo")
        page.locator("#by-1").select_option("age")

        def settle() -> None:
            # The hint waits from the moment of a choice until the page knows all that follows from it.
            if scripts:
                page.locator("#foresight:not(.waiting)", has_text="Likely").wait_for()
            else:
                with page.expect_navigation():
                    page.locator("button[data-check]").click()

        settle()
        if not page.locator("#codes-1[open]").count():
            page.locator("#codes-1 > summary").click()
        for number, (label, codes) in enumerate(
            (("Children", [1, 2, 3]), ("Pensioners", [15, 16, 17, 18])), start=1
        ):
            block = page.locator("#codes-1 details[data-group]").nth(number - 1)
            if block.get_attribute("open") is None:
                block.locator("summary").focus()
                page.keyboard.press("Enter")
            block.locator('input[type="text"]').fill(label)
            tick(page, number, codes)
            settle()
            page.locator(f'input[name="name.age.{number + 1}"]').wait_for(state="attached")
        for variable, code in (("region", "1"), ("sex", "2"), ("citizenship", "1")):
            box = page.locator(f"#where-{variable}")
            if box.get_attribute("open") is None:
                box.locator("> summary").click()
            box.locator(f'input[value="{variable}:{code}"]').check()
            settle()
        expect(page.locator(".chips li")).to_have_count(3)
        if scripts:
            assert axe_complaints(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        arrive(page, page.locator("button.primary[type=submit]"), "**/datasets/demo/table?**")
        rows = page.locator("table tbody th")
        expect(rows.nth(0)).to_have_text("Children")
        expect(rows.nth(1)).to_have_text("Pensioners")
        expect(page.locator("section.what-was-done")).to_contain_text("at most")
        assert "group=age:Pensioners=15..18" in page.url or not scripts
        if scripts:
            assert axe_complaints(page) == []
        # Back to the form: everything is still there, and a filter can be removed.
        change = page.locator("a.button", has_text="Change this table")
        arrive(page, change, "**/datasets/demo?**")
        expect(page.locator(".chips li")).to_have_count(3)
        page.locator("#drop-1").click()
        expect(page.locator(".chips li")).to_have_count(2)
        expect(page.locator('input[name="name.age.1"]')).to_have_value("Children")
