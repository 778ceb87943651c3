"""How a bundle is made: which key and which memory each part gets, what is kept, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from answer.test_service_by_hand import STRICT, made_by, packed
from lustrum.model import DatasetError, InputError, PolicyError
from lustrum.model.finest import FinestCells
from lustrum.policy import Policy
from lustrum.policy.read import sealed
from lustrum.public.bundle.files import bundle_digest, read_bundle
from lustrum.publish.bundles import make as module
from lustrum.publish.bundles import people
from lustrum.publish.bundles.make import (
    MadeBundle,
    _require_same_sums,
    _SumsOf,
    earlier_memory,
    make_bundle,
    population_of,
    replaced_memory,
)
from lustrum.publish.bundles.memory import Memory, memory_path, read_memory
from lustrum.publish.bundles.write import write_bundle
from lustrum.runtime.stop import report_progress
from public_room.test_bundle_files_by_hand import survey
from public_room.test_bundle_numbers import DATASET

KEYS = np.arange(1, 40, dtype=np.uint64)


class Secret:
    def derive(self, purpose: str) -> bytes:
        return purpose.encode()


class Counts:
    """A method for counts that shows the cells of the town, and lists what it was given."""

    base = 3

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.own = made_by()

    def to_mapping(self) -> dict[str, Any]:
        return dict(self.own.report.method)

    def protect(
        self,
        cells: Any,
        key: bytes,
        *,
        previous: Any = None,
        progress: Any = None,
        state: Any = None,
        held: Any = None,
    ) -> Any:
        self.given = {
            "cells": cells, "key": key, "previous": previous, "state": state, "held": held
        }  # fmt: skip
        progress("searching", 0.5)
        cells = self.own.cells
        memory = FinestCells(DATASET, cells.codes, cells.counts, KEYS[: len(cells)])
        return SimpleNamespace(cells=cells, public=self.own.report, memory=memory)


class Unheld(Counts):
    def protect(self, cells: Any, key: bytes, **words: Any) -> Any:
        assert "held" not in words
        return super().protect(cells, key, **words)


class Sums:
    """A method for sums, likewise."""

    factors, share, max_variables, tables = "factors", 0.25, 2, (("area",),)

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        own = made_by(existence="secret").sums
        assert own is not None
        self.own = own

    def held(self, records: Any, cells: Any, base: int, key: bytes) -> Any:
        self.given["held"] = (records, cells, base, key)
        return np.array([5], dtype=np.uint64)

    def protect(self, records: Any, key: bytes, *, shown: Any, previous: Any, progress: Any) -> Any:
        self.given["protect"] = (records, key, shown, previous)
        progress("summing", 1.0)
        memory = SimpleNamespace(true={"pay": 1}, resting={"gain": 1}, name="sums")
        return SimpleNamespace(
            sums=self.own.sums,
            public=self.own.public,
            memory=memory,
            records={"pay": "values of pay", "gain": "values of gain"},
            carried="carried",
        )


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A store and everything that reads records, written down."""
    counts, sums = Counts(), Sums()
    held = SimpleNamespace(
        counts=counts,
        sums=sums,
        magnitudes=None,
        weights=None,
        opened=[],
        unchanged=0,
        steps=[],
        memories=[],
    )
    policy = tmp_path / "policy.toml"
    policy.write_bytes(STRICT)

    def decided(path: Path) -> Any:
        assert path == policy
        return SimpleNamespace(
            population=held.counts, magnitudes=held.magnitudes, weights=held.weights
        )

    def require_unchanged() -> None:
        held.unchanged += 1

    engine = SimpleNamespace(secret="s1", require_unchanged=require_unchanged, dataset=DATASET)
    monkeypatch.setattr(Memory, "holds", lambda *_: True)

    def opened(name: str, workers: int | None) -> Any:
        held.opened.append((name, workers))
        return engine

    def finest(own: Any) -> str:
        assert own is engine
        report_progress("counting", 0.25)
        return "true cells"

    store = SimpleNamespace(
        root=Path(),
        names=lambda: [],
        open=opened,
        secret_of=lambda name: Secret() if name == "s1" else None,
    )
    monkeypatch.setattr(module, "read_policy", decided)
    monkeypatch.setattr(module, "finest_cells", finest)
    monkeypatch.setattr(module, "records_of", lambda own: "records" if own is engine else None)
    monkeypatch.setattr(
        module, "survey_records", lambda own, name: (own is engine, name, "respondents")
    )
    monkeypatch.setattr(module, "audit_contributors", lambda *w, **more: audited(w, more))
    monkeypatch.setattr(module, "sums_together", lambda *words: ("together", words))
    real = module.write_memory

    def remember(folder: Path, memory: Memory) -> Path:
        held.memories.append(memory)
        # The memory is there before the bundle is.
        held.before = bundle_digest(tmp_path / "out")
        return real(folder, replace(memory, sums=None))

    monkeypatch.setattr(module, "write_memory", remember)

    def make(**words: Any) -> MadeBundle:
        held.steps.clear()
        return make_bundle(
            store,  # type: ignore[arg-type]
            "town",
            policy,
            tmp_path / "out",
            **{"progress": lambda step, share: held.steps.append((step, share)), **words},
        )

    held.make, held.out, held.policy, held.engine = make, tmp_path / "out", policy, engine
    return held


def test_counts_are_protected_by_the_key_of_their_dataset_and_written_beside_a_memory(
    house: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "agency" / "own"
    made = house.make(folder=folder, workers=3)
    assert house.opened == [("town", 3)]
    given = house.counts.given
    assert given == {
        "cells": "true cells",
        "key": b"lustrum protected population town",
        "previous": None,
        "state": folder / "search.state",
        "held": None,
    }
    assert folder.stat().st_mode & 0o777 == 0o700
    assert house.steps[:2] == [("counting", 0.25), ("searching", 0.5)]
    assert house.steps[2:] == [("writing", share) for share in (0.0, 0.3, 0.8, 1.0)]
    assert house.unchanged == 1
    found = read_bundle(house.out)
    assert found.digest == made.digest
    assert found.cells.counts.tolist() == house.counts.own.cells.counts.tolist()
    assert found.sums is None
    assert found.respondents is None
    assert (house.out / "policy.toml").read_bytes() == sealed(STRICT, "it")
    memory = read_memory(memory_path(folder, made.digest))
    assert memory.digest == made.digest
    assert memory.method == house.counts.own.report.method
    assert memory.cells.keys.tolist() == KEYS[: len(memory.cells)].tolist()
    assert house.before is None
    assert (made.cells, made.both, made.magnitudes, made.audits) == ("true cells", None, None, ())
    assert made.both_sums is None
    assert made.result.cells is house.counts.own.cells
    assert earlier_memory(folder, house.out) is not None
    again = replaced_memory(folder, house.out)
    assert again.digest == made.digest
    assert house.make(folder=folder).digest == made.digest
    # Without a folder nothing is remembered; without a progress nobody is told.
    house.memories.clear()
    house.make(progress=None)
    assert house.memories == []
    assert house.counts.given["state"] is None
    assert earlier_memory(tmp_path, tmp_path / "none") is None
    assert replaced_memory(tmp_path, tmp_path / "none") is None
    assert replaced_memory(tmp_path, house.out) is None
    with pytest.raises(DatasetError, match="does not hold its memory"):
        earlier_memory(tmp_path, house.out)


def test_a_release_goes_on_from_the_memory_before_and_is_held_against_it(house: Any) -> None:
    own = house.counts.own
    method = dict(own.report.method)
    half = FinestCells(DATASET, own.cells.codes, own.cells.counts + 9, KEYS[: len(own.cells)])
    before = Memory(half, method, "b" * 40)
    made = house.make(previous=before)
    assert house.counts.given["previous"] is half
    assert made.both.changed == len(half)
    other = Memory(own.cells, {**method, "base": 3}, "c" * 40)
    replaced = house.make(previous=before, replaced=other)
    assert replaced.both.changed == 0, "readers hold the one that is replaced"
    assert house.make(replaced=other).both is not None
    larger = Memory(own.cells, {**method, "base": 4}, "c" * 40)
    assert house.make(replaced=larger).both is None
    kept = house.make(previous=before, replaced=larger)
    assert kept.both.changed == len(half)
    with pytest.raises(InputError, match="made with base = 4"):
        house.make(previous=Memory(half, {**method, "base": 4}, "b" * 40))


def test_a_release_without_sums_hands_on_the_memory_of_those_before(
    house: Any, tmp_path: Path
) -> None:
    """The next release with sums would draw them anew otherwise, and two of a contribution narrow it."""
    own = house.counts.own
    keyed = FinestCells(DATASET, own.cells.codes, own.cells.counts, KEYS[: len(own.cells)])
    sums: Any = SimpleNamespace(true={"pay": 1}, resting={}, name="earlier sums")
    before = Memory(keyed, dict(own.report.method), "b" * 40, sums)
    made = house.make(folder=tmp_path / "agency", previous=before)
    assert made.magnitudes is None
    assert house.memories[-1].sums is sums
    house.make(folder=tmp_path / "agency")
    assert house.memories[-1].sums is None


def test_a_release_that_may_not_be_made_leaves_nothing(house: Any, tmp_path: Path) -> None:
    class RefusedError(Exception):
        pass

    seen = []

    def refuse(digest: str) -> None:
        seen.append(digest)
        raise RefusedError

    with pytest.raises(RefusedError):
        house.make(folder=tmp_path / "agency", accept=refuse)
    assert bundle_digest(house.out) is None
    assert not house.memories
    made = house.make(folder=tmp_path / "agency", accept=seen.append)
    assert seen == [made.digest] * 2


def test_records_of_a_database_are_read_once_more_only_if_needed_and_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells = made_by().cells
    keyed = FinestCells(DATASET, cells.codes, cells.counts, KEYS[: len(cells)])
    changed = [
        FinestCells(DATASET, cells.codes[:, ::-1], cells.counts, keyed.keys),
        FinestCells(DATASET, cells.codes, cells.counts + 1, keyed.keys),
        FinestCells(DATASET, cells.codes, cells.counts, keyed.keys + np.uint64(1)),
    ]

    class Connected:
        columns = SimpleNamespace(source="the view people")

        def in_memory(self) -> str:
            return "read"

    monkeypatch.setattr(module, "ConnectedEngine", Connected)
    engine: Any = Connected()
    asked: Any
    for asked in ({"magnitudes": 1, "weights": None}, {"magnitudes": None, "weights": 1}):
        policy: Any = SimpleNamespace(**asked)
        for found in changed:
            monkeypatch.setattr(module, "finest_cells", lambda _, found=found: found)
            with pytest.raises(DatasetError, match="the view people changed while it was read"):
                module._one_by_one(engine, policy, keyed)
        monkeypatch.setattr(module, "finest_cells", lambda own: keyed if own == "read" else None)
        read: Any = module._one_by_one(engine, policy, keyed)
        assert read == "read"
        embedded: Any = object()
        assert module._one_by_one(embedded, policy, keyed) is embedded
    nothing: Any = SimpleNamespace(magnitudes=None, weights=None)
    assert module._one_by_one(engine, nothing, keyed) is None


def test_a_dataset_is_opened_in_the_folder_or_else_in_its_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store: Any = SimpleNamespace(
        root="root",
        names=lambda: ["here", "both"],
        open=lambda name, workers: ("folder", name, workers),
    )
    monkeypatch.setattr(people, "connected_names", lambda root: {"root": ["there", "both"]}[root])
    monkeypatch.setattr(people, "open_connected", lambda own, name: (own is store, name))
    for name, found in {
        "here": ("folder", "here", 2),
        "both": ("folder", "both", 2),
        "there": (True, "there"),
        "nowhere": ("folder", "nowhere", 2),
    }.items():
        opened: Any = people.opened(store, name, 2)
        assert opened == found


def audited(words: Any, more: Any, growth: int = 0) -> Any:
    return SimpleNamespace(measure=words[2], growth=growth, words=words, more=more)


def test_growth_that_is_certain_stops_a_release_before_anything_is_written(
    house: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.magnitudes = house.sums
    house.sums.p = 5.0
    monkeypatch.setattr(module, "audit_contributors", lambda *w, **more: audited(w, more, 3))
    with pytest.raises(PolicyError, match="growth of 3 contributions to 'pay' would be certain"):
        house.make(folder=tmp_path / "own")
    assert not house.out.exists()
    assert not house.memories


def test_sums_have_a_key_of_their_own_are_tied_to_shown_counts_and_audited(
    house: Any, tmp_path: Path
) -> None:
    sums = house.magnitudes = house.sums
    made = house.make(folder=tmp_path / "own")
    key = b"lustrum protected magnitudes town"
    assert sums.given["held"] == ("records", "true cells", 3, key)
    assert house.counts.given["held"].tolist() == [5]
    assert sums.given["protect"] == ("records", key, house.counts.own.cells, None)
    assert ("summing", 1.0) in house.steps
    assert house.memories[0].sums.name == "sums"
    found = read_bundle(house.out).sums
    assert np.array_equal(found.sums.sums["pay"], sums.own.sums.sums["pay"])
    assert made.magnitudes is not None
    assert made.both_sums is None
    others = {name: f"values of {name}" for name in ("pay", "gain")}
    words = {"max_variables": 2, "tables": (("area",),), "carried": "carried", "others": others}
    assert made.audits == tuple(
        audited(("records", values, name, "factors", 0.25), words)
        for name, values in others.items()
    )
    earlier: Any = SimpleNamespace(true={"pay": 1}, resting={"gain": 1})
    own = house.counts.own
    method = dict(own.report.method)
    cells = FinestCells(DATASET, own.cells.codes, own.cells.counts, KEYS[: len(own.cells)])
    second = house.make(previous=Memory(cells, method, "b" * 40, earlier))
    assert sums.given["protect"][3] is earlier
    assert second.magnitudes is not None
    assert second.both_sums == tuple(
        ("together", (earlier, second.magnitudes.memory, name, "factors", 0.25))
        for name in ("pay", "gain")
    )
    none: Any = SimpleNamespace(true={}, resting={})
    assert house.make(previous=Memory(cells, method, "b" * 40, none)).both_sums == ()
    # A memory without sums continues only sums that stay the same.
    bare = Memory(cells, method, "b" * 40)
    assert house.make(previous=bare).both_sums is None
    changed = sums.own.sums.sums["pay"] + 1
    sums.own = replace(
        sums.own,
        sums=type(sums.own.sums)(
            DATASET, sums.own.sums.codes, {**sums.own.sums.sums, "pay": changed}
        ),
    )
    with pytest.raises(DatasetError, match="would be others for the same contributors"):
        house.make(previous=bare)
    house.make()
    # A method for counts that can hold nothing is not asked to.
    house.counts = Unheld()
    house.make()
    assert house.counts.given["held"] is None
    del sums.given["held"]
    house.counts = Counts()
    house.counts.base = None
    house.make()
    assert house.counts.given["held"] is None
    assert "held" not in sums.given


def test_other_sums_of_the_same_contributors_are_found_by_their_cells_and_measures(
    tmp_path: Path,
) -> None:
    out = tmp_path / "town"
    own = made_by(existence="public")
    plain, values = own.sums.sums, own.sums.sums.sums

    def made(codes: Any, sums: Any) -> Any:
        return SimpleNamespace(sums=SimpleNamespace(codes=codes, sums=sums))

    _require_same_sums(out, made(plain.codes, values))
    write_bundle(out, packed(own))
    _require_same_sums(out, made(plain.codes, values))
    _require_same_sums(out, made(plain.codes, {**values, "more": values["pay"]}))
    for wrong in (
        made(plain.codes, {"pay": values["pay"]}),
        made(plain.codes, {**values, "gain": values["gain"] + 1}),
        made(plain.codes[:, 1:], {name: column[1:] for name, column in values.items()}),
    ):
        with pytest.raises(DatasetError, match="holds protected sums already"):
            _require_same_sums(out, wrong)
    write_bundle(out, packed())
    _require_same_sums(out, made(plain.codes, {"pay": values["pay"]}))


def test_respondents_of_a_survey_are_protected_beside_the_counts(house: Any) -> None:
    cells, respondents = survey()
    given: list[Any] = []
    house.counts.own = replace(house.counts.own, cells=cells)

    def with_counts(records: Any, result: Any, key: bytes) -> Any:
        given.append((records, result.cells is cells, key))
        return respondents

    house.weights = SimpleNamespace(weight="weight", spec=SimpleNamespace(with_counts=with_counts))
    house.make()
    assert given == [((True, "weight", "respondents"), True, b"lustrum protected survey town")]
    found = read_bundle(house.out)
    assert np.array_equal(found.respondents.weights, respondents.weights)


def test_a_policy_without_a_protected_population_makes_no_bundle() -> None:
    with pytest.raises(PolicyError, match="it does not ask for a protected population"):
        population_of(Policy.model_validate({}), "it")
    strict = Policy.model_validate(
        {"before": [{"method": "protected-population"}], "protect": {"method": "none"}}
    )
    assert population_of(strict, "it") == strict.population
    nothing: Any = None
    assert _SumsOf.policy(strict, nothing, nothing) is None
