"""Growth since an earlier period: a description names the period, and the builder offers the earlier ones."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from browsing import arrive, asked, expect, visit
from lustrum.answer.table_service import TableService
from lustrum.local import local_service
from lustrum.model import Dataset, DescriptionError
from lustrum.server import Settings, create_app
from lustrum.server.urls.forms import tidied
from lustrum.tabulate import FrameSource, Secret, Store, ingest
from server.conftest import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DESCRIPTION = """
[dataset]
name = "visits"
unit = "visit"
units = "visits"

[[variables]]
name = "year"
label = "Year"
codes = [["2022", "2022"], ["2023", "2023"], ["2024", "2024"]]
period = true

[[variables]]
name = "kind"
label = "Kind"
codes = [["a", "Family"], ["b", "Business"], ["c", "Holiday"]]
"""
POLICY = """dataset = "visits"
protect = {method = "random-rounding"}
rules = {max_dimensions = 2}
risk = {limit = 1.0}
end = true
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableService]:
    root = tmp_path_factory.mktemp("visits")
    numbers = np.array([[300, 200, 100], [330, 180, 150], [396, 90, 300]])
    rows = np.repeat(np.arange(9), numbers.ravel())
    table = pa.table(
        {
            "year": np.array(["2022", "2023", "2024"])[rows // 3],
            "kind": np.array(list("abc"))[rows % 3],
        }
    )
    described = Dataset.from_mapping(tomllib.loads(DESCRIPTION))
    ingest(FrameSource(table), described, Store(root), secret=Secret(bytes(range(32))))
    (root / "policies").mkdir(exist_ok=True)
    Path(root / "policies" / "visits.toml").write_text(POLICY)
    found = local_service(root, workers=1)
    yield found
    found.close()


@pytest.fixture(scope="module")
def pages(service: TableService) -> TestClient:
    return TestClient(create_app(service, Settings(rate="")), base_url="http://lustrum.test")


def test_the_form_offers_growth_since_every_earlier_period_of_the_one_selected(
    pages: TestClient,
) -> None:
    def offered(address: str) -> list[str]:
        page = pages.get(address).text
        first = page.split('id="statistic-1"', 1)[1].split("</select>", 1)[0]
        return [part.split('"', 1)[0] for part in first.split('value="growth:')[1:]]

    assert offered("/datasets/visits?by=kind") == []
    assert "To see growth, select the later one under Year." in pages.get("/datasets/visits").text
    assert offered("/datasets/visits?by=kind&where=year:2024") == [
        "count:year=2023",
        "count:year=2022",
    ]
    assert offered("/datasets/visits?by=kind&where=year:2023") == ["count:year=2022"]
    assert offered("/datasets/visits?by=kind&where=year:2022") == []
    page = pages.get("/fr/datasets/visits?by=kind&where=year:2024").text
    assert "Growth of" not in page
    assert "Pour voir une évolution" in pages.get("/fr/datasets/visits").text


def test_a_growth_without_its_two_periods_leaves_the_form(pages: TestClient) -> None:
    growth = ("statistic", "growth:count:year=2023")
    for where, stays in (
        ([("where", "year:2024")], True),
        ([("among", "year:2024")], True),
        ([("where", "year:2023")], False),
        ([("where", "kind:a")], False),
        ([], False),
    ):
        assert (growth in tidied([("by", "kind"), *where, growth])) is stays
    assert pages.get("/datasets/visits?by=kind&statistic=growth:count:year=2023").status_code == 200


def test_a_period_is_true_or_false() -> None:
    raw = tomllib.loads(DESCRIPTION.replace("period = true", 'period = "year"'))
    with pytest.raises(DescriptionError, match="'period' is true or false"):
        Dataset.from_mapping(raw)


@pytest.mark.browser
def test_growth_since_last_year_is_chosen_on_the_page(
    browser: Browser, service: TableService
) -> None:
    with served(create_app(service, Settings(rate=""))) as address, visit(browser, address) as page:
        page.goto("/datasets/visits?by=kind&tree=where:year")
        expect(page.locator(".numbers")).to_contain_text("select the later one under Year")
        page.get_by_role("treeitem", name="2024").click()
        # Only the server's new list has the earlier years.
        growth = page.locator("#statistic-1 option[value='growth:count:year=2023']")
        expect(growth).to_be_attached()
        expect(page.locator(".numbers")).not_to_contain_text("select the later one")
        page.get_by_label("Number 1").select_option("growth:count:year=2023")
        expect(page.locator("#statistic-1")).to_have_value("growth:count:year=2023")
        make = page.get_by_role("link", name="Make the table")
        expect(make).to_have_attribute("href", re.compile("statistic="))
        arrive(page, make, "**/table?**")
        assert ("statistic", "growth:count:year=2023") in asked(page)
        expect(page.locator("h1")).to_contain_text("since 2023")
        # 396 visits after 330, 90 after 180 and 300 after 150, each count rounded by 2 at most.
        shown = [
            float(text.replace("\u2212", "-").split()[0].rstrip("%"))
            for text in page.locator("tbody td").all_inner_texts()[:3]
        ]
        assert shown == pytest.approx([20.0, -50.0, 100.0], abs=4.0)
