"""Files of a bundle: what stands in them, what is refused, and how a bundle comes to its place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from answer.test_service_by_hand import STRICT, made_by, packed, rewritten
from lustrum.model import Dataset, DatasetError
from lustrum.model.finest import FinestCells
from lustrum.policy import Policy
from lustrum.protect.population import public as public_module
from lustrum.protect.population.public import SEARCH
from lustrum.protect.weighted import ProtectedRespondents
from lustrum.public.bundle import read_bundle
from lustrum.public.bundle.agreement import is_made_by
from lustrum.public.bundle.files import other_search, stated_method
from lustrum.publish import prepared as folders_module
from lustrum.publish.bundles import write as write_module
from lustrum.publish.bundles.write import pack_bundle, write_bundle
from lustrum.runtime.data_folder import MANIFEST, bundles_in, standing
from public_room.test_bundle_numbers import DATASET

OTHER = STRICT.replace(b"limit = 1.0", b"limit = 0.5")


def arrow(columns: dict[str, Any]) -> bytes:
    """An Arrow file as anybody could write it."""
    table = pa.table(columns)
    out = pa.BufferOutputStream()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    data: bytes = out.getvalue().to_pybytes()
    return data


def table_of(data: bytes) -> dict[str, list[int]]:
    columns: dict[str, list[int]] = pa.ipc.open_file(pa.BufferReader(data)).read_all().to_pydict()
    return columns


def test_the_bytes_of_a_bundle_are_those_that_its_layout_states() -> None:
    """A reader in another language computes the digests from the words of the manual."""
    words = dict(DATASET.source)
    words["dataset"] = {**words["dataset"], "title": "Zürich"}
    own = made_by(existence="public")
    dataset = Dataset.from_mapping(words)
    cells = FinestCells(dataset, own.cells.codes, own.cells.counts)
    files = pack_bundle(cells, STRICT, own.report, None, own.sums).files
    assert list(files) == [
        "dataset.json",
        "cells.arrow",
        "policy.toml",
        "report.json",
        "sums.arrow",
        "sums.json",
        "manifest.json",
    ]
    assert files["policy.toml"] == STRICT
    for name in ("dataset.json", "report.json", "sums.json", "manifest.json"):
        said = json.loads(files[name])
        assert files[name].decode() == (
            json.dumps(said, ensure_ascii=False, sort_keys=True, indent=1) + "\n"
        )
    assert "Zürich" in files["dataset.json"].decode()
    manifest = json.loads(files["manifest.json"])
    stated = {
        name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        for name, data in files.items()
        if name != "manifest.json"
    }
    text = json.dumps([4, "lustrum public bundle", "town", stated], sort_keys=True)
    assert manifest == {
        "format": 4,
        "kind": "lustrum public bundle",
        "dataset": "town",
        "files": stated,
        "digest": hashlib.sha256(text.encode("ascii")).hexdigest(),
    }
    shown = table_of(files["cells.arrow"])
    assert list(shown) == ["area", "sex", "job", "count"]
    assert shown["count"] == own.cells.counts.tolist()
    many = {"v": np.zeros(50_000, dtype=np.uint8)}
    assert len(write_module._arrow(many, {"count": np.full(50_000, 3)})) < 20_000


def test_texts_that_are_not_published_do_not_come_back_with_their_translations() -> None:
    words = {
        **DATASET.source,
        "measures": [
            {"name": "pay", "label": "Pay", "unit": "crowns"},
            {"name": "debt", "label": "Debt", "unit": "crowns"},
        ],
        "weights": [{"name": "weight", "label": "Chance of a visit"}],
        "translations": {
            "fr": {
                "Pay": "Salaire",
                "Debt": "Dette",
                "crowns": "couronnes",
                "A note.": "Une note.",
            },
            "de": {"Chance of a visit": "Besuchschance", "Debt": "Schulden"},
        },
    }
    public = write_module.public_description(Dataset.from_mapping(words), measures=["pay"])
    assert public["translations"] == {
        "fr": {"Pay": "Salaire", "crowns": "couronnes", "A note.": "Une note."},
        "de": {},
    }
    assert public["measures"] == [{"name": "pay", "label": "Pay", "unit": "crowns"}]
    assert "weights" not in public
    del words["translations"]
    assert "translations" not in write_module.public_description(Dataset.from_mapping(words))


def survey() -> tuple[FinestCells, ProtectedRespondents]:
    """Cells of the town and one respondent for each person that they show."""
    own = made_by()
    words = {
        **DATASET.source,
        "weights": [
            {"name": "second", "decimals": 3},
            {"name": "weight", "label": "Weight", "decimals": 2},
        ],
    }
    dataset = Dataset.from_mapping(words)
    cells = FinestCells(dataset, own.cells.codes, own.cells.counts)
    people = int(cells.counts.sum())
    made = ProtectedRespondents(
        dataset=dataset,
        codes=np.repeat(cells.codes, cells.counts, axis=1),
        weights=np.arange(people) + 5,
        strata=np.zeros(people, dtype=np.int64),
        clusters=np.arange(people) % 7,
        count_errors={1: 0.5},
        weight_spread=0.25,
        weight_noise=0.125,
        decimals=1,
        values={"gain": np.arange(people) * 3},
        value_spreads={"gain": 0.5},
        value_noise=0.0625,
    )
    return cells, made


def test_a_bundle_of_a_survey_has_its_respondents_and_the_words_of_their_weight(
    tmp_path: Path,
) -> None:
    cells, made = survey()
    own = made_by()
    place = tmp_path / "deep" / "down" / "panel"
    write_bundle(place, pack_bundle(cells, STRICT, own.report, made))
    found = read_bundle(place)
    for name in ("codes", "weights", "strata", "clusters"):
        assert np.array_equal(getattr(found.respondents, name), getattr(made, name))
    assert np.array_equal(found.respondents.values["gain"], made.values["gain"])
    assert found.respondents.decimals == 1
    assert found.sums is None
    # The weight has the decimals that its protected values have, and the other weight is gone.
    assert [(w.name, w.label, w.decimals) for w in found.dataset.weights] == [
        ("weight", "Weight", 1)
    ]
    assert [m.name for m in found.dataset.measures] == ["gain"]
    both = pack_bundle(cells, STRICT, own.report, made, made_by(existence="secret").sums)
    write_bundle(place, both)
    found = read_bundle(place)
    assert found.respondents is not None
    assert found.sums is not None
    assert [m.name for m in found.dataset.measures] == ["pay", "gain"]
    # Respondents of other cells do not fit.
    fewer = replace(made, weights=made.weights[1:], strata=made.strata[1:])
    fewer = replace(fewer, clusters=made.clusters[1:], values={"gain": made.values["gain"][1:]})
    write_bundle(place, pack_bundle(cells, STRICT, own.report, fewer))
    with pytest.raises(DatasetError, match=r"another version .*its files do not fit each other"):
        read_bundle(place)


def changed(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    columns: dict[str, Any] = table_of(data)
    change(columns)
    return arrow(columns)


def more(columns: dict[str, Any]) -> None:
    columns["more"] = columns["area"]


def missing(column: str) -> Callable[[dict[str, Any]], None]:
    def change(columns: dict[str, Any]) -> None:
        columns[column] = [None, *columns[column][1:]]

    return change


def fractions(column: str) -> Callable[[dict[str, Any]], None]:
    def change(columns: dict[str, Any]) -> None:
        columns[column] = list(map(float, columns[column]))

    return change


def first(column: str, value: int) -> Callable[[dict[str, Any]], None]:
    def change(columns: dict[str, Any]) -> None:
        columns[column] = [value, *columns[column][1:]]

    return change


def test_cells_and_sums_with_other_columns_or_gaps_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "town"
    own = made_by(existence="public")
    whole = packed(own).files
    wrong = [
        ("cells.arrow", more),
        ("cells.arrow", missing("count")),
        ("cells.arrow", missing("area")),
        ("cells.arrow", fractions("count")),
        ("cells.arrow", fractions("area")),
        ("cells.arrow", first("count", 0)),
        ("cells.arrow", first("count", 2)),  # no multiple of the base
        ("sums.arrow", more),
        ("sums.arrow", missing("pay")),
        ("sums.arrow", missing("sex")),
        ("sums.arrow", lambda columns: columns.pop("pay")),
        ("sums.arrow", lambda columns: columns.pop("sex")),
    ]
    for name, change in wrong:
        write_bundle(place, packed(own))
        rewritten(place, name, changed(whole[name], change))
        with pytest.raises(DatasetError, match="another version"):
            read_bundle(place)
    # Columns in another order are the same sums; a file that anybody wrote is read.
    rewritten(place, "sums.arrow", whole["sums.arrow"])
    columns = table_of(whole["sums.arrow"])
    rewritten(place, "sums.arrow", arrow({k: columns[k] for k in reversed(columns)}))
    found = read_bundle(place).sums
    assert np.array_equal(found.sums.sums["pay"], own.sums.sums.sums["pay"])
    # The message of the part that refused, where it has one.
    write_bundle(place, packed(own, policy=STRICT.replace(b'"town"', b'"city"')))
    with pytest.raises(DatasetError, match=r"another version of Lustrum \(.*'city'"):
        read_bundle(place)


def test_sums_of_fewer_measures_and_counts_of_one_are_read(tmp_path: Path) -> None:
    """A description may name a measure that only respondents have, and counts may be exact."""
    cells, made = survey()
    own = made_by(existence="public")
    only = {"pay": own.sums.sums.sums["pay"]}
    held = type(own.sums.sums)(own.sums.sums.dataset, own.sums.sums.codes, only)
    public = replace(own.sums.public, errors={"pay": own.sums.public.errors["pay"]})
    place = tmp_path / "town"
    sums = replace(own.sums, sums=held, public=public)
    write_bundle(place, pack_bundle(cells, STRICT, own.report, made, sums))
    found = read_bundle(place)
    assert list(found.sums.sums.sums) == ["pay"]
    # A base of 1 moves nothing: every count may stand.
    small = type(own.report.support)(3, small_only=True)
    counts = np.where(np.arange(len(own.cells)) % 2, 3, 4)
    for counted in (counts, own.cells.counts):
        shown = FinestCells(DATASET, own.cells.codes, counted)
        report = replace(own.report, support=small)
        write_bundle(place, pack_bundle(shown, STRICT, report))
        assert read_bundle(place).cells.counts.tolist() == counted.tolist()


def test_a_bundle_states_its_method_and_its_search_only_as_a_whole(tmp_path: Path) -> None:
    place = tmp_path / "town"
    own = made_by()
    write_bundle(place, packed(own))
    assert own.report.search == SEARCH
    assert other_search(place) is None
    older = replace(own, report=replace(own.report, search=SEARCH - 2))
    write_bundle(place, packed(older))
    assert other_search(place) == SEARCH - 2
    assert stated_method(place) == own.report.method
    words = json.loads((place / "report.json").read_bytes())
    for search in ("newest", None, [1]):
        (place / "report.json").write_text(json.dumps({**words, "search": search}))
        assert other_search(place) is None
    (place / "report.json").write_text(json.dumps({**words, "method": ["none"]}))
    assert stated_method(place) is None
    (place / "report.json").write_text("{}")
    assert (other_search(place), stated_method(place)) == (None, None)
    (place / "report.json").unlink()
    assert (other_search(place), stated_method(place)) == (None, None)
    # A report beside a manifest of another layout is not one of this version.
    write_bundle(place, packed(older))
    (place / MANIFEST).write_text("{}")
    assert (other_search(place), stated_method(place)) == (None, None)


def test_few_sweeps_over_very_many_codes_are_another_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From 2,048 codes on, and with less than eight sweeps.
    for sweeps, codes, version in ((7, 2048, 9), (8, 2048, 10), (7, 2047, 10), (1, 190_000, 9)):
        assert public_module.search_version(sweeps, codes) == version
    place = tmp_path / "town"
    own = made_by()
    most = max(len(v.codes) for v in own.cells.dataset.variables)
    few = {**own.report.method, "sweeps": public_module.FEW_SWEEPS}
    write_bundle(place, packed(replace(own, report=replace(own.report, method=few))))
    assert other_search(place) is None
    monkeypatch.setattr(public_module, "MANY_CODES", most)
    assert other_search(place) == SEARCH
    now = replace(own.report, method=few, search=public_module.SEARCH_OF_MANY_CODES)
    write_bundle(place, packed(replace(own, report=now)))
    assert other_search(place) is None
    many = {**few, "sweeps": public_module.FEW_SWEEPS + 1}
    write_bundle(place, packed(replace(own, report=replace(own.report, method=many))))
    assert other_search(place) is None


def test_a_parameter_that_an_earlier_version_did_not_write_has_its_default() -> None:
    mends = Policy.model_validate(
        {
            "before": [{"method": "protected-population", "if_fewer": "larger-base"}],
            "protect": {"method": "none"},
        }
    )
    wanted = mends.population.to_mapping()
    for key in set(wanted) - {"method", "if_fewer"}:
        assert is_made_by({k: v for k, v in wanted.items() if k != key}, mends)
    assert not is_made_by({k: v for k, v in wanted.items() if k != "if_fewer"}, mends)
    assert not is_made_by({**wanted, "no_such": 1}, mends)


def test_a_bundle_is_made_durable_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files first, then the exchange, then the names of the folder; nothing is left beside it."""
    steps: list[str] = []
    real_exchange = folders_module.exchange
    monkeypatch.setattr(
        folders_module,
        "sync",
        lambda path: steps.append("draft" if path.suffix == ".part" else path.name),
    )

    def exchange(one: Path, other: Path) -> bool:
        steps.append("exchange")
        return real_exchange(one, other)

    monkeypatch.setattr(folders_module, "exchange", exchange)
    place = tmp_path / "town"
    files = [*packed().files]
    write_bundle(place, packed())
    assert steps == [*files, "draft", tmp_path.name]
    steps.clear()
    write_bundle(place, packed(policy=OTHER))
    assert steps == [*files, "draft", "exchange", tmp_path.name]
    assert [path.name for path in tmp_path.iterdir()] == ["town"]
    assert (place / "policy.toml").read_bytes() == OTHER


@pytest.mark.parametrize("name", ["town", "a.b", "to*n", "w[x]y", "q?!"])
def test_without_an_exchange_the_earlier_bundle_is_moved_aside_and_then_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(folders_module, "exchange", lambda *_: False)
    place, neighbour = tmp_path / name, tmp_path / "tower"
    write_bundle(place, packed())
    write_bundle(neighbour, packed(policy=OTHER))
    # A neighbour that stands aside is not taken for this one, and is not removed with it.
    aside = tmp_path / ".tower.0000.old"
    neighbour.rename(aside)
    write_bundle(place, packed(policy=OTHER))
    assert (place / "policy.toml").read_bytes() == OTHER
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, aside.name])
    assert bundles_in(tmp_path) == {name, "tower"}
    assert standing(neighbour) == aside

    # The machine stops before anything can be put back: the one aside is read, and found by its name.
    place.rename(tmp_path / f".{name}.1111.old")
    assert standing(place) == tmp_path / f".{name}.1111.old"
    assert bundles_in(tmp_path) == {name, "tower"}
    assert read_bundle(place).policy.risk.limit == 0.5
    write_bundle(place, packed())
    # While one stands in its place, one aside is not read.
    (tmp_path / f".{name}.2222.old").mkdir()
    (tmp_path / f".{name}.2222.old" / MANIFEST).write_text("{}")
    assert standing(place) == place


def test_an_earlier_bundle_that_cannot_be_removed_does_not_stop_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders_module, "exchange", lambda *_: False)
    removed: list[tuple[str, bool]] = []

    def remove(path: Path, ignore_errors: bool = False) -> None:
        removed.append((Path(path).name, ignore_errors))

    place = tmp_path / "town"
    write_bundle(place, packed())
    with monkeypatch.context() as broken:
        broken.setattr(folders_module.shutil, "rmtree", remove)
        write_bundle(place, packed(policy=OTHER))
    assert all(ignored for _, ignored in removed)
    assert [name.endswith(".old.part") for name, _ in removed] == [True, False]
    # What is left of it is taken neither for a bundle nor for one that stands aside.
    assert bundles_in(tmp_path) == {"town"}
    place.rename(tmp_path / "away")
    assert standing(place) == place


def test_a_bundle_states_the_protection_that_its_policy_asks_for(tmp_path: Path) -> None:
    place = tmp_path / "town"
    write_bundle(place, packed())
    stated = json.loads((place / "report.json").read_bytes())
    assert read_bundle(place).protection == stated["protection"]
    assert stated["protection"]
    rewritten(place, "report.json", json.dumps(stated | {"protection": "another"}).encode())
    with pytest.raises(DatasetError, match="means another protection than"):
        read_bundle(place)
    del stated["protection"]
    rewritten(place, "report.json", json.dumps(stated).encode())
    assert read_bundle(place).protection is None
