"""A second release with sums: the noise of unchanged contributors stays, and both together tell no more."""

from __future__ import annotations

import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from lustrum.cli.protect import protect_dataset
from lustrum.demo import businesses, description_path
from lustrum.model import InputError, PolicyError
from lustrum.protect.population.start import find
from lustrum.publish.bundles import make
from lustrum.publish.bundles.make import MadeBundle
from lustrum.publish.doctor import examine
from lustrum.tabulate import FrameSource, Secret, Store, ingest, read_description
from lustrum.tabulate.store.backup import back_up, restore

POLICY = """dataset = "businesses"
[rules]
nested_only = false
[risk]
limit = 1.0
[[before]]
method = "protected-population"
sweeps = 1
max_variables = 2
extra_tables = 0
[[before]]
method = "protected-magnitudes"
p = 10.0
max_variables = 2
sweeps = 2
existence = "EXISTENCE"
public_classes = ["size"]
[protect]
method = "none"
end = true
"""
COUNT = 900
LARGE, SMALL, GONE = slice(0, 20), slice(20, 40), slice(40, 50)


def corrected(table: pa.Table) -> pa.Table:
    """Some firms grew much, some were corrected by one percent, some are gone."""
    values = {n: np.asarray(table.column(n)).astype(np.int64) for n in MOVED}
    for name, own in values.items():
        new = own.copy()
        new[LARGE] = new[LARGE] * 8 // 5 + 5
        new[SMALL] = np.where(new[SMALL] > 200, new[SMALL] + new[SMALL] // 100, new[SMALL])
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(new))
    total = np.asarray(table.column(MOVED[0])) + np.asarray(table.column(MOVED[1]))
    table = table.set_column(table.schema.get_field_index("turnover"), "turnover", pa.array(total))
    kept = np.ones(table.num_rows, dtype=bool)
    kept[GONE] = False
    return table.filter(pa.array(kept))


MOVED = ("turnover_domestic", "turnover_export")


class House:
    """An agency that releases a register twice."""

    def __init__(self, root: Path, existence: str) -> None:
        self.root = root
        (root / "policies").mkdir(parents=True)
        text = POLICY.replace("EXISTENCE", existence)
        (root / "policies" / "businesses.toml").write_text(text)
        self.said = Console(record=True, width=400, file=StringIO())
        table = businesses(COUNT)
        self.first = self.released(table)
        self.second = self.released(corrected(table))

    def released(self, table: pa.Table, **words: Any) -> MadeBundle:
        dataset = read_description(description_path("businesses"))
        store = Store(self.root)
        ingest(FrameSource(table), dataset, store, secret=Secret(bytes(range(32))))
        return protect_dataset("businesses", self.root, self.said, **words)


@pytest.fixture(scope="module", params=["secret", "public"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> House:
    return House(tmp_path_factory.mktemp(request.param), request.param)


def both(house: House, measure: str) -> tuple[Any, ...]:
    """True and shown values of the records that are in both releases."""
    first, second = house.first.magnitudes, house.second.magnitudes
    before, after = first.memory, second.memory
    place, known = find(before.record, after.record)
    assert known.sum() == COUNT - 10
    return (
        before.true[measure][place][known],
        before.shown[measure][place][known],
        after.true[measure][known],
        after.shown[measure][known],
    )


def test_unchanged_contributions_keep_their_protected_value(house: House) -> None:
    for measure in ("turnover_domestic", "wages", "employees"):
        old, shown_before, new, shown = both(house, measure)
        same = old == new
        assert same.sum() > 800
        assert np.array_equal(shown[same], shown_before[same])


def test_owners_keep_their_direction_and_every_change_draws_a_new_share(house: House) -> None:
    old, shown_before, new, shown = both(house, "turnover_domestic")
    held = (old > 300) & (new > 300)
    assert (np.sign(shown - new)[held] == np.sign(shown_before - old)[held]).all()
    share_before, share = (
        (shown_before - old) / np.maximum(old, 1),
        (shown - new) / np.maximum(new, 1),
    )
    small = held & (old != new) & (np.abs(new - old) <= 0.1 * old)
    large = held & (np.abs(new - old) > 0.1 * old)
    assert small.sum() > 5
    assert large.sum() > 5
    for changed in (small, large):
        assert (np.abs(share - share_before)[changed] > 0.002).mean() > 0.8


def test_cells_whose_records_did_not_change_show_the_same_sums(house: House) -> None:
    first, second = house.first.magnitudes, house.second.magnitudes
    before = {
        tuple(c): s
        for c, s in zip(first.sums.codes.T.tolist(), first.sums.sums["wages"], strict=True)
    }
    after = {
        tuple(c): s
        for c, s in zip(second.sums.codes.T.tolist(), second.sums.sums["wages"], strict=True)
    }
    same = [before[c] == after[c] for c in before if c in after]
    # Wages did not change: only cells of firms that are gone, and what these cells carried, may differ.
    assert np.mean(same) > 0.9


def test_both_releases_together_are_audited(house: House) -> None:
    for one in house.second.both_sums:
        assert one.other == 0
        assert one.unchanged > 0
    export = next(s for s in house.second.both_sums if s.measure == "turnover_domestic")
    assert export.changed > 20
    assert all(audit.safe for audit in house.second.audits), house.second.audits
    report = (house.root / "reports" / "businesses" / "report.html").read_text()
    assert "in this release and in the one before" in report


def test_the_command_line_states_errors_and_the_audit(house: House) -> None:
    text = house.said.export_text(clear=False)
    assert "Sums of turnover: mean relative error" in text
    assert "0 are under-protected; 0 largest contributors are certain" in text


@pytest.mark.parametrize("house", ["secret"], indirect=True)
def test_a_restored_folder_is_corrected_and_protected_as_the_one_that_was_lost(
    house: House, tmp_path: Path
) -> None:
    """The drill: restore, correct, protect. The release is the one that the lost folder would have made."""
    prepared = house.root / "prepared" / "yearly"
    (prepared / "tables").mkdir(parents=True)
    (prepared / "manifest.json").write_text("{}")
    (prepared / "tables" / "one.csv").write_text("a,b\n")
    try:
        back_up(house.root, tmp_path / "backup")
    finally:
        shutil.rmtree(house.root / "prepared")
    root = tmp_path / "restored"
    restore(tmp_path / "backup", root)
    assert (root / "prepared" / "yearly" / "tables" / "one.csv").read_text() == "a,b\n"
    shutil.rmtree(root / "prepared")
    assert not [f for f in examine(root) if "is missing" in f.sentence]
    shutil.copytree(house.root, tmp_path / "kept")
    made = []
    for place in (root, tmp_path / "kept"):
        store = Store(place)
        table = corrected(corrected(businesses(COUNT)))
        dataset = read_description(description_path("businesses"))
        ingest(FrameSource(table), dataset, store, secret=Secret(bytes(range(32))))
        made.append(protect_dataset("businesses", place, house.said))
    assert made[0].digest == made[1].digest
    assert made[0].both_sums is not None


@pytest.mark.parametrize("house", ["public"], indirect=True)
def test_firms_that_come_back_show_the_numbers_that_they_had(house: House, tmp_path: Path) -> None:
    """After a release without them, and one without any sums."""
    root = tmp_path / "data"
    shutil.copytree(house.root, root)
    store, dataset = Store(root), read_description(description_path("businesses"))
    policy = root / "policies" / "businesses.toml"
    text = policy.read_text()
    block = text[
        text.index('[[before]]\nmethod = "protected-magnitudes"') : text.index("[protect]")
    ]
    policy.write_text(text.replace(block, ""))
    assert protect_dataset("businesses", root, house.said).magnitudes is None
    policy.write_text(text)
    ingest(FrameSource(businesses(COUNT)), dataset, store, secret=Secret(bytes(range(32))))
    third = protect_dataset("businesses", root, house.said)
    first, after = house.first.magnitudes.memory, third.magnitudes.memory
    gone = ~find(house.second.magnitudes.memory.record, first.record)[1]
    assert gone.sum() == 10
    assert first.record.tolist() == after.record.tolist()
    for measure in ("turnover_domestic", "wages", "employees"):
        assert after.shown[measure][gone].tolist() == first.shown[measure][gone].tolist()
    assert [one.other for one in third.both_sums] == [0] * len(third.both_sums)


def test_the_doctor_misses_the_memory_of_sums(house: House, tmp_path: Path) -> None:
    root = tmp_path / "data"
    shutil.copytree(house.root, root)
    for path in (root / "reports" / "businesses").glob("sums-memory-*.arrow"):
        path.unlink()
    found = [f for f in examine(root) if f.about == "reports/businesses"]
    assert [f.grade for f in found] == ["note"]
    assert found[0].sentence.startswith("sums-memory-")


def test_another_p_is_refused(house: House) -> None:
    place = house.root / "policies" / "other.toml"
    text = (house.root / "policies" / "businesses.toml").read_text()
    place.write_text(text.replace("p = 10.0", "p = 8.0"))
    with pytest.raises(InputError, match=r"made with p = 10\.0"):
        house.released(corrected(businesses(COUNT)), policy=place)


def test_growth_that_is_certain_stops_a_release_before_anything_is_written(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No register is known whose growth the audit finds certain, so the audit says it here."""
    root = Path(shutil.copytree(house.root, tmp_path / "data"))
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    real = make.audit_contributors

    def certain(*words: Any, **more: Any) -> Any:
        return replace(real(*words, **more), growth=3)

    monkeypatch.setattr(make, "audit_contributors", certain)
    with pytest.raises(PolicyError, match="growth of 3 contributions to 'employees'"):
        protect_dataset("businesses", root, house.said)
    bundles = {path: raw for path, raw in before.items() if "state" not in path.name}
    assert all(path.read_bytes() == raw for path, raw in bundles.items())


@pytest.mark.parametrize("house", ["public"], indirect=True)
def test_fresh_says_that_it_disregards_a_release_and_measures_both(
    house: House, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(house.root, tmp_path / "data"))
    made = protect_dataset("businesses", root, house.said, never_published=True)
    assert "--never-published drew numbers without regard" in house.said.export_text(clear=False)
    assert made.both_sums is not None
    assert sum(one.other for one in made.both_sums) > 0
