"""`lustrum protect`: a confidential report in the agency's own folder, and releases that keep numbers."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from browsing import axe_complaints, context_of
from lustrum.cli.protect import protect_dataset
from lustrum.model import Dataset, DatasetError, InputError
from lustrum.policy import read_policy
from lustrum.protect.population.attributes import AttributeRisk
from lustrum.public.bundle import read_bundle
from lustrum.publish.bundles.make import MadeBundle
from lustrum.publish.bundles.memory import memory_path, read_memory
from lustrum.publish.report import findings, write_report
from lustrum.publish.report.page import page as report_page
from lustrum.tabulate import FrameSource, Secret, Store, ingest

POLICY = """dataset = "town"
[rules]
nested_only = false
[risk]
limit = 1.0
[[before]]
method = "protected-population"
base = {base}
sweeps = 1
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


def release(root: Path, names: list[str], moved: int = 0, **options: Any) -> tuple[MadeBundle, str]:
    """Ingest and protect; gives what was made, and what was said."""
    secret = Secret(bytes(range(32)))
    ingest(FrameSource(people(names, moved)), described(names), Store(root), secret=secret)
    (root / "policies").mkdir(exist_ok=True)
    path = root / "policies" / "town.toml"
    path.write_text(POLICY.format(base=options.pop("base", 3)))
    said = io.StringIO()
    made = protect_dataset("town", root, Console(file=said, width=2000), workers=1, **options)
    return made, said.getvalue()


def numbers(made: MadeBundle) -> dict[tuple[int, ...], int]:
    cells = made.result.cells
    return {
        tuple(int(c) for c in code): int(n)
        for code, n in zip(cells.codes.T, cells.counts, strict=True)
    }


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, MadeBundle]:
    root = tmp_path_factory.mktemp("report") / "data"
    return root, release(root, ["area", "job", "sex"])[0]


def test_the_report_says_what_the_agency_must_know(first: tuple[Path, MadeBundle]) -> None:
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


@pytest.mark.parametrize(("named", "over"), [(0.61, True), (0.6, False)])
def test_rows_that_name_an_attribute_too_often_are_warned_of(
    first: tuple[Path, MadeBundle], named: float, over: bool
) -> None:
    """The page states the highest rate of the file, and whether it is within the limit."""
    root, made = first
    risks = (
        AttributeRisk("job", 0.0, 300, named, 0.3),
        AttributeRisk("sex", 0.0, 300, 0.9, 0.5),
        AttributeRisk("area", 0.0, 100, 0.9, 0.1),
    )
    agency = replace(made.result.agency, attributes=risks)
    changed = replace(made, result=replace(made.result, agency=agency))
    found = findings(changed, read_policy(root / "policies" / "town.toml"))
    told = [w for w in found.warnings if "all other variables" in w]
    assert len(told) == over
    assert all("reads job off the file, rightly for 61% of 300 people" in w for w in told)
    page = report_page(found)
    assert (
        f"the highest is job: {named:.1%} of 300 people are named right and 30.0% guessed" in page
    )
    assert f"That is {'over' if over else 'within'} the limit of 60%." in page


@pytest.mark.parametrize(
    ("ones", "method", "warned"),
    [(31, {}, True), (30, {}, False), (31, {"sparse_siblings": 32.0}, False)],
)
def test_a_file_of_people_who_are_alone_is_called_sparse(
    first: tuple[Path, MadeBundle], ones: int, method: dict[str, float], warned: bool
) -> None:
    """More than half are alone, and nobody was invented beside them."""
    root, made = first
    counts = np.zeros_like(made.cells.counts)
    counts[:ones], counts[ones] = 1, 30
    public = replace(made.result.public, method=dict(made.result.public.method) | method)
    changed = replace(
        made, cells=replace(made.cells, counts=counts), result=replace(made.result, public=public)
    )
    found = findings(changed, read_policy(root / "policies" / "town.toml"))
    assert any("51% of the people are alone" in w for w in found.warnings) == warned


def test_a_file_without_enough_people_in_similar_rows_says_so(
    first: tuple[Path, MadeBundle],
) -> None:
    page = (first[0] / "reports" / "town" / "report.html").read_text()
    assert "There are no bins of 200 people or more" in page


def test_the_page_needs_no_other_file_and_no_script(first: tuple[Path, MadeBundle]) -> None:
    page = (first[0] / "reports" / "town" / "report.html").read_text()
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="|url\(|@import', page)
    assert page.count("<svg") >= 4
    assert "prefers-color-scheme: dark" in page


def test_nothing_of_the_report_comes_into_the_bundle(first: tuple[Path, MadeBundle]) -> None:
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


def test_the_same_records_make_the_same_bundle_again(first: tuple[Path, MadeBundle]) -> None:
    root, made = first
    again, said = release(root, ["area", "job", "sex"])
    assert again.digest == made.digest
    assert "0 did not" in said
    assert again.both.changed == 0


def test_a_correction_changes_other_cells_too(tmp_path: Path) -> None:
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
    differs = {c for c in before | after if before.get(c, 0) != after.get(c, 0)}
    assert 0 < len(differs & touched) <= len(differs - touched)
    assert "It continues an earlier release" in said
    assert f"{len(differs)} cells show another number" in said
    words = json.loads((root / "reports" / "town" / "report.json").read_text())
    assert words["together"]["differing"] == words["agency"]["differences"]["cells"] == len(differs)
    assert words["agency"]["differences"]["changed"] == len(differs & touched)
    assert json.loads((root / "bundles" / "town" / "report.json").read_text())["releases"] == {
        "version": 2,
        "odds": 0.5,
        "left": {
            "first": {"0": [0, 2], "3": [0, 5], "6": [4, 8]},
            "later": {"0": [0, 5], "3": [0, 8], "6": [1, 11]},
        },
    }
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
        release(root, names, previous=tmp_path / "kept.arrow", never_published=True)
    (tmp_path / "other.arrow").write_bytes(b"ARROW1 and no more")
    with pytest.raises(DatasetError, match="is not the memory of a release"):
        release(root, names, previous=tmp_path / "other.arrow")
    fresh, _ = release(root, names, base=5, never_published=True)
    assert fresh.both is None
    assert fresh.result.public.support.base == 5


def test_bounds_count_every_earlier_release(tmp_path: Path) -> None:
    """A cell that kept its records for three releases lies in what its first number leaves."""
    root, names = tmp_path / "data", ["area", "job", "sex"]
    made = [release(root, names, moved=moved)[0] for moved in (0, 4, 8)]
    folder = root / "reports" / "town"
    kept = [read_memory(memory_path(folder, one.digest)) for one in made]
    assert [one.earlier for one in kept] == [
        (),
        (made[0].digest,),
        (made[0].digest, made[1].digest),
    ]
    for one, read in zip(made, kept, strict=True):
        for name in ("counts", "keys", "offset", "shift", "odds", "wide", "share"):
            known = getattr(one.result.memory, name)
            assert np.array_equal(known, getattr(read.cells, name)), name
    shown = [numbers(one) for one in made]
    keys = [
        dict(zip(map(tuple, one.cells.codes.T.tolist()), one.cells.keys.tolist(), strict=True))
        for one in kept
        if one.cells.keys is not None
    ]
    last = kept[-1]
    assert last.bounds is not None
    narrowed = 0
    for place, cell in enumerate(map(tuple, last.cells.codes.T.tolist())):
        ends = [made[2].result.public.support.bounds(shown[2].get(cell, 0))]
        for before in (1, 0):
            if keys[before].get(cell, 0) != keys[2][cell]:
                break
            ends.append(made[before].result.public.support.bounds(shown[before].get(cell, 0)))
        low, high = max(int(a) for a, _ in ends), min(int(b) for _, b in ends)
        assert (last.bounds[0][place], last.bounds[1][place]) == (low, high)
        if len(ends) == 3:
            assert (low, high) == tuple(int(end) for end in ends[-1])
            narrowed += shown[2].get(cell, 0) != shown[0].get(cell, 0)
    assert narrowed > 0
    # The same records are the same release, not one more.
    again, _ = release(root, names, moved=8)
    assert read_memory(memory_path(folder, again.digest)).earlier == last.earlier


def test_without_identifiers_there_is_a_first_release_and_no_second(tmp_path: Path) -> None:
    root, names = tmp_path / "data", ["area", "job", "sex"]

    def released(rows: int, named: bool = False) -> str:
        source = {"name": "town"} | ({"record_id": "id"} if named else {})
        variables = [{"name": name, "codes": CODES[name]} for name in names]
        dataset = Dataset.from_mapping({"dataset": source, "variables": variables})
        table = people(names).slice(260 - rows)
        ids = pa.array(np.arange(261 - rows, 261))
        table = table.set_column(0, "id", ids) if named else table.drop(["id"])
        ingest(FrameSource(table), dataset, Store(root), secret=Secret(bytes(range(32))))
        said = io.StringIO()
        protect_dataset("town", root, Console(file=said, width=2000), workers=1)
        return said.getvalue()

    (root / "policies").mkdir(parents=True)
    (root / "policies" / "town.toml").write_text(POLICY.format(base=3))
    assert "a later release of these people cannot be made" in released(260)
    assert "0 did not" in released(260)
    with pytest.raises(
        DatasetError, match=r"no identifiers.*'record_id'.*row numbers there, from 1"
    ):
        released(259)
    # Row numbers as identifiers match the records again.
    assert "cells kept their records, 1 did not" in released(259, named=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_read_on_a_phone_by_everybody(
    first: tuple[Path, MadeBundle], browser: Any, scheme: str
) -> None:
    phone = {"width": 390, "height": 800}
    with context_of(browser, viewport=phone, color_scheme=scheme) as context:
        page = context.new_page()
        page.goto((first[0] / "reports" / "town" / "report.html").as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert axe_complaints(page) == []
