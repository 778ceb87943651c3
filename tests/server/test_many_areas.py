"""A journey through a census of as many areas as a large country has: find one, look at all, take them away."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from browsing import arrive, expect, visit
from lustrum.answer import TableService
from lustrum.model import Dataset, TableQuery
from lustrum.publish.bundles.make import make_bundle
from lustrum.server import create_app
from lustrum.server.settings import Settings
from lustrum.tabulate import Secret, Store
from lustrum.tabulate.encode import Chunk
from server.conftest import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.deep, pytest.mark.browser]

AREAS = int(os.environ.get("LUSTRUM_TEST_AREAS", "190000"))
CHOSEN = range(0, AREAS, AREAS // 500)
POLICY = """dataset = "land"
rules = {max_dimensions = 4, max_filters = 20, max_cells = 20000000, nested_only = false}
risk = {limit = 1.0}
before = [{method = "protected-population", sweeps = 1, extra_tables = 0, max_variables = 1}]
protect = {method = "none"}
end = true
"""


def code(area: int) -> str:
    return f"E{area:08d}"


def description() -> dict[str, Any]:
    """Areas in districts, and two variables more."""
    groups = [
        {
            "code": f"D{first // 400}",
            "label": f"District {first // 400}",
            "members": [code(i) for i in range(first, min(first + 400, AREAS))],
        }
        for first in range(0, AREAS, 400)
    ]
    return {
        "dataset": {"name": "land", "title": "The land", "units": "people"},
        "variables": [
            {
                "name": "area",
                "label": "Area",
                "codes": [[code(i), f"Area {i} of the land"] for i in range(AREAS)],
                "hierarchies": [
                    {"name": "geography", "levels": [{"name": "district", "groups": groups}]}
                ],
            },
            {"name": "sex", "label": "Sex", "codes": [["1", "Female"], ["2", "Male"]]},
            {"name": "age", "label": "Age", "codes": ["young", "grown", "old"]},
        ],
    }


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableService]:
    """A bundle of two people an area, made as every bundle is, without its records."""
    folder = tmp_path_factory.mktemp("land")
    chance = np.random.default_rng(17)
    people = 2 * AREAS
    codes = {
        "area": chance.integers(0, AREAS, people).astype(np.uint32),
        "sex": chance.integers(0, 2, people).astype(np.uint8),
        "age": chance.integers(0, 3, people).astype(np.uint8),
    }
    store = Store(folder / "data")
    with store.replace(Dataset.from_mapping(description()), Secret(bytes(range(32)))) as writer:
        writer.write(Chunk(people, codes, keys=chance.integers(0, 2**64, people, dtype=np.uint64)))
    (folder / "land.toml").write_text(POLICY)
    make_bundle(store, "land", folder / "land.toml", folder / "land", workers=2)
    service = TableService(bundles=[folder / "land"], workers=2)
    yield service
    service.close()


@pytest.fixture(scope="module")
def address(service: TableService) -> Iterator[str]:
    with served(create_app(service, Settings(rate="", background_cells=100_000))) as url:
        yield url


def numbers(service: TableService, **words: Any) -> dict[tuple[str, ...], int]:
    """What the bundle holds, by codes."""
    query = TableQuery.from_mapping({"dataset": "land", **words})
    release = service.answer(query).release
    assert release is not None
    shown = np.asarray(release.published).reshape(release.shape)
    lists = [axis.codes for axis in release.axes]
    return {
        tuple(lists[a][i] for a, i in enumerate(at)): int(shown[at])
        for at in np.ndindex(*release.shape)
    }


def downloaded(page: Page, folder: Path) -> dict[tuple[str, ...], int]:
    """The numbers of the file behind the button for CSV, by codes."""
    with page.expect_download() as waiting:
        page.locator("#get-csv").click()
    path = folder / "land.csv"
    waiting.value.save_as(path)
    with path.open(newline="", encoding="utf-8") as file:
        return {(row["area"], row["sex"]): int(row["value"]) for row in csv.DictReader(file)}


def test_one_area_is_found_and_all_are_looked_at_and_taken_away(
    browser: Browser, service: TableService, address: str, tmp_path: Path
) -> None:
    with visit(browser, address) as page:
        page.goto("/")
        arrive(page, page.get_by_role("link", name="The land", exact=True), "**/datasets/land")
        expect(page.get_by_role("table")).to_be_visible()

        # One area of all of them, by a word of its name.
        wanted = AREAS * 2 // 3
        page.locator("#find-words").fill(f"area {wanted}")
        page.locator("#found a", has_text=f"Area {wanted} of the land").first.click()
        page.wait_for_url(f"**where=area:{code(wanted)}**")
        expect(page.locator(".chip.filter")).to_contain_text(f"Area {wanted} of the land")
        expect(page.get_by_role("table")).to_be_visible()

        # All of them by sex: made in the background, shown in pages.
        page.goto("/datasets/land?by=area&by=sex")
        page.get_by_role("link", name="Make the table").click()
        expect(page.locator("nav.pages").first).to_contain_text(f"of {AREAS:,} are shown")
        every = numbers(service, by=["area", "sex"])
        row = page.locator("tbody tr").nth(1)
        expect(row.locator("th")).to_contain_text("Area 1 of the land")
        cells = [int(text.strip()) for text in row.locator("td").all_inner_texts()]
        assert cells == [every[code(1), "1"], every[code(1), "2"]]
        page.locator("nav.pages").first.get_by_role("link", name="2", exact=True).click()
        page.wait_for_url("**page=2**")
        expect(page.locator("tbody tr").first.locator("th")).not_to_contain_text("Area 0 of")
        assert downloaded(page, tmp_path) == every

        # Five hundred that somebody has a list of.
        some = ",".join(code(i) for i in CHOSEN)
        page.goto(f"/datasets/land/table?by=area&by=sex&codes=area:{some}")
        expect(page.get_by_role("table")).to_be_visible()
        chosen = downloaded(page, tmp_path)
        assert len(chosen) == 2 * len(CHOSEN)
        assert all(every[key] == value for key, value in chosen.items())
