"""Own groups by cut points, judged as groups are and defined wherever they are named."""

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

from browsing import axe_complaints, context_of
from lustrum.answer import TableService
from lustrum.server import Settings, create_app
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


CUT = [("by", "age"), ("by", "sex"), ("cut.age", " 0, 15; 65 ")]
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


# In a browser.


@pytest.fixture(scope="module")
def address(free: TableService) -> Iterator[str]:
    with served(create_app(free, Settings(rate=""))) as found:
        yield found


@pytest.mark.browser
@pytest.mark.parametrize("scripts", [True, False])
def test_cut_points_typed_into_a_variable_make_the_table(
    browser: Any, address: str, scripts: bool
) -> None:
    with context_of(browser, java_script_enabled=scripts, bypass_csp=True) as context:
        page = context.new_page()
        page.goto(f"{address}/datasets/demo?by=age&by=sex")
        page.locator("#in-age > summary").click()
        page.get_by_label("Cut points, such as").fill("15, 65")
        if scripts:
            assert axe_complaints(page) == []
        page.get_by_role("button", name="Group", exact=True).click()
        page.wait_for_url(re.compile("group="))
        page.get_by_role("link", name="Make the table").click()
        page.wait_for_url(re.compile(r"/datasets/demo/table\?.*group="))
        names = page.locator("tbody th[scope=row]").all_inner_texts()
        assert [name.strip() for name in names if name != "Total"] == ["0 to 14", "15 to 64", "65+"]
