"""`lustrum protect`: a confidential report in the agency's own folder, and releases that keep numbers."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from browsing import context_of
from lustrum.cli.protect import protect_dataset
from lustrum.model import Dataset, DatasetError, InputError
from lustrum.public.bundle import read_bundle
from lustrum.publish.bundles.make import Made
from lustrum.publish.bundles.memory import memory_path, read_memory
from lustrum.publish.report import findings, write_report
from lustrum.tabulate import FrameSource, Secret, Store, ingest

POLICY = """dataset = "town"
[rules]
nested_only = false
[risk]
limit = 1.0
[[before]]
method = "protected-population"
base = {base}
sweeps = 2
known_totals = [["area"]]
[protect]
method = "none"
end = true
"""
CODES = {
    "area": ["a", "b", "c", "d", "e"],
    "job": ["1", "2", "3", "4"],
    "sex": ["f", "m"],
    "age": ["x", "y", "z"],
}


def described(names: list[str]) -> Dataset:
    return Dataset.from_mapping(
        {
            "dataset": {"name": "town", "record_id": "id"},
            "variables": [{"name": name, "codes": CODES[name]} for name in names],
        }
    )


def people(names: list[str], moved: int = 0) -> pa.Table:
    """Some people; of the first few the job is another one."""
    rng = np.random.default_rng(8)
    columns: dict[str, Any] = {name: rng.choice(codes, 260) for name, codes in CODES.items()}
    columns["job"][:moved] = "4"
    return pa.table({"id": np.arange(260), **{name: columns[name] for name in names}})


def release(root: Path, names: list[str], moved: int = 0, **options: Any) -> tuple[Made, str]:
    """Ingest and protect; gives what was made, and what was said."""
    secret = Secret(bytes(range(32)))
    ingest(FrameSource(people(names, moved)), described(names), Store(root), secret=secret)
    (root / "policies").mkdir(exist_ok=True)
    path = root / "policies" / "town.toml"
    path.write_text(POLICY.format(base=options.pop("base", 3)))
    said = io.StringIO()
    made = protect_dataset("town", root, Console(file=said, width=2000), workers=1, **options)
    return made, said.getvalue()


def numbers(made: Made) -> dict[tuple[int, ...], int]:
    cells = made.result.cells
    return {
        tuple(int(c) for c in code): int(n)
        for code, n in zip(cells.codes.T, cells.counts, strict=True)
    }


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Made]:
    root = tmp_path_factory.mktemp("report") / "data"
    return root, release(root, ["area", "job", "sex"])[0]


def test_the_report_says_what_the_agency_must_know(first: tuple[Path, Made]) -> None:
    root, made = first
    words = json.loads((root / "reports" / "town" / "report.json").read_text())
    page = (root / "reports" / "town" / "report.html").read_text()
    for heading in (
        "Read this first",
        "Errors by table and level",
        "Worst cells",
        "Risk before and after",
        "From true counts to shown ones",
        "What is left to a reader",
        "Group disclosure",
        "Beside keyed rounding and cell key",
    ):
        assert f">{heading}</h" in page, heading
    assert words["confidential"]
    assert words["records"] == 260
    # Errors are those between the true cells and the published ones.
    error = words["errors"][0]
    shown, true = made.result.cells.counts.sum(), made.cells.counts.sum()
    assert error["variables"] == 0
    assert error["largest"] == abs(int(shown) - int(true))
    # A coalition of two is told plainly that one count is left, and the cells are counted in truth.
    rows = {row["who"]: row for row in words["readers"]}
    assert rows["an outsider"]["shown"]["0"] == [0, 2, 3]
    assert rows["an insider, one person of the cell"]["shown"]["0"] == [1, 2, 2]
    coalition = rows["a coalition of 2 people of the cell"]
    assert coalition["shown"]["0"] == [2, 2, 1]
    held = words["agency"]["transitions"]["2"].get("0", 0)
    assert coalition["pinned_in_truth"] == held
    assert any("exactly 2" in sentence for sentence in words["warnings"])
    assert any("with the exact totals" in who for who in rows)
    bits = [b for b in words["beliefs"] if b["bits_in_truth"] is not None]
    assert {b["cells"] for b in bits} >= {"finest cells", "tables of 2 variables"}
    risk = words["risk"][0]["measures"]
    assert {"table-entropy", "certainty of an insider about small cells"} <= set(risk)
    assert {row["questions"] for row in words["comparison"]} == {
        "tables of up to three variables",
        "tables with own groups",
        "differences of nested tables",
    }


def test_the_page_needs_no_other_file_and_no_script(first: tuple[Path, Made]) -> None:
    page = (first[0] / "reports" / "town" / "report.html").read_text()
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="|url\(|@import', page)
    assert page.count("<svg") >= 4
    assert "prefers-color-scheme: dark" in page


def test_nothing_of_the_report_comes_into_the_bundle(first: tuple[Path, Made]) -> None:
    root, made = first
    bundle = root / "bundles" / "town"
    assert sorted(p.name for p in bundle.iterdir()) == [
        "cells.arrow", "dataset.json", "manifest.json", "policy.toml", "report.json",
    ]  # fmt: skip
    public = (bundle / "report.json").read_text()
    for word in ("worst", "transitions", "risk", "single_columns", "readers", "confidential"):
        assert word not in public
    for path in (root / "reports" / "town").iterdir():
        assert path.stat().st_mode & 0o077 == 0, path.name
    with pytest.raises(InputError, match="in the bundle"):
        release(root, ["area", "job", "sex"], report=bundle / "reports")
    found = findings(made, read_bundle(bundle).policy)
    with pytest.raises(InputError, match="lies in a bundle"):
        write_report(bundle / "inside", found)
    assert "hidden" in repr(found)


def test_the_same_records_make_the_same_bundle_again(first: tuple[Path, Made]) -> None:
    root, made = first
    again, said = release(root, ["area", "job", "sex"])
    assert again.digest == made.digest
    assert "0 did not" in said
    assert again.both is not None
    assert again.both.changed == 0


def test_a_correction_changes_only_cells_whose_records_changed(tmp_path: Path) -> None:
    root = tmp_path / "data"
    names = ["area", "job", "sex"]
    one, _ = release(root, names)
    two, said = release(root, names, moved=6)
    before, after = numbers(one), numbers(two)
    frames = [people(names, moved).drop(["id"]).to_pylist() for moved in (0, 6)]
    touched = {
        tuple(CODES[name].index(row[name]) for name in names)
        for old, new in zip(*frames, strict=True)
        if old != new
        for row in (old, new)
    }
    assert {c for c in before | after if before.get(c, 0) != after.get(c, 0)} <= touched
    assert "It continues an earlier release" in said
    words = json.loads((root / "reports" / "town" / "report.json").read_text())
    assert words["together"]["changed"] == sum(
        before.get(c, 0) != after.get(c, 0) for c in before | after
    )
    page = (root / "reports" / "town" / "report.html").read_text()
    assert ">Beside the release before</h2>" in page


def test_a_new_variable_refines_the_numbers_that_were_published(tmp_path: Path) -> None:
    root = tmp_path / "data"
    one, _ = release(root, ["area", "job", "sex"])
    two, _ = release(root, ["area", "job", "sex", "age"])
    sums: dict[tuple[int, ...], int] = {}
    for code, count in numbers(two).items():
        sums[code[:3]] = sums.get(code[:3], 0) + count
    assert sums == numbers(one)
    assert two.both is not None


def test_the_next_month_goes_on_from_a_memory_that_is_named(tmp_path: Path) -> None:
    one, _ = release(tmp_path / "may", ["area", "job", "sex"])
    memory = memory_path(tmp_path / "may" / "reports" / "town", one.digest)
    assert read_memory(memory).digest == one.digest
    two, _ = release(tmp_path / "june", ["area", "job", "sex"], moved=3, previous=memory)
    assert two.result.agency.unchanged > 0.8 * (
        two.result.agency.unchanged + two.result.agency.changed
    )


def test_a_release_is_not_drawn_anew_by_mistake(tmp_path: Path) -> None:
    root = tmp_path / "data"
    names = ["area", "job", "sex"]
    release(root, names)
    with pytest.raises(InputError, match="was made with base = 3"):
        release(root, names, base=5)
    for path in (root / "reports" / "town").glob("memory-*"):
        path.rename(tmp_path / "kept.arrow")
    with pytest.raises(DatasetError, match="does not hold its memory"):
        release(root, names)
    with pytest.raises(InputError, match="leave it out"):
        release(root, names, previous=tmp_path / "kept.arrow", fresh=True)
    (tmp_path / "other.arrow").write_bytes(b"ARROW1 and no more")
    with pytest.raises(DatasetError, match="is not the memory of a release"):
        release(root, names, previous=tmp_path / "other.arrow")
    fresh, _ = release(root, names, base=5, fresh=True)
    assert fresh.both is None
    assert fresh.result.public.support.base == 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_read_on_a_phone_by_everybody(
    first: tuple[Path, Made], browser: Any, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    phone = {"width": 390, "height": 800}
    with context_of(browser, viewport=phone, color_scheme=scheme) as context:
        page = context.new_page()
        page.goto((first[0] / "reports" / "town" / "report.html").as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        found = Axe().run(page)
        assert [v["id"] for v in found.response["violations"]] == []
