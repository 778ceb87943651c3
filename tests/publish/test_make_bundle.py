"""How a bundle is made of real records: what is written where and when, what is kept, and what is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faults.test_bundles import POLICY
from faults.world import build
from lustrum.model import DatasetError, InputError, PolicyError
from lustrum.policy import Policy
from lustrum.policy.read import sealed
from lustrum.public.bundle.files import bundle_digest, read_bundle
from lustrum.publish.bundles import make as module
from lustrum.publish.bundles import people
from lustrum.publish.bundles.make import (
    MadeBundle,
    earlier_memory,
    make_bundle,
    population_of,
    replaced_memory,
)
from lustrum.publish.bundles.memory import memory_path, read_memory
from lustrum.tabulate import Store, finest_cells


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = build(tmp_path_factory.mktemp("bundles") / "data")
    (root / "policies" / "town.toml").write_text(POLICY)
    return root


def make(root: Path, place: Path, **words: Any) -> MadeBundle:
    policy = root / "policies" / "town.toml"
    return make_bundle(Store(root), "town", policy, place / "out", workers=1, **words)


def test_a_bundle_is_written_after_its_memory_and_holds_its_policy(
    house: Path, tmp_path: Path
) -> None:
    folder, steps, seen = tmp_path / "agency" / "own", [], []

    def told(step: str, share: float) -> None:
        steps.append(step)
        if (step, share) == ("writing", 0.8):
            seen.append((bundle_digest(tmp_path / "out"), len(list(folder.glob("memory-*")))))

    made = make(house, tmp_path, folder=folder, progress=told)
    assert seen == [(None, 1)]
    assert steps[-1] == "writing"
    assert folder.stat().st_mode & 0o777 == 0o700
    found = read_bundle(tmp_path / "out")
    assert found.digest == made.digest
    assert (tmp_path / "out" / "policy.toml").read_bytes() == sealed(POLICY.encode(), "it")
    memory = read_memory(memory_path(folder, made.digest))
    assert (memory.digest, memory.method) == (made.digest, made.result.public.method)
    assert memory.cells.keys.any()
    assert earlier_memory(folder, tmp_path / "out") is not None
    assert replaced_memory(folder, tmp_path / "out").digest == made.digest
    # The same records, key and policy give the same bundle; another folder has another memory.
    assert make(house, tmp_path).digest == made.digest
    assert earlier_memory(tmp_path, tmp_path / "none") is None
    assert replaced_memory(tmp_path, tmp_path / "none") is None
    assert replaced_memory(tmp_path, tmp_path / "out") is None
    with pytest.raises(DatasetError, match="does not hold its memory"):
        earlier_memory(tmp_path, tmp_path / "out")


def test_a_release_goes_on_from_the_memory_before_and_is_held_against_what_readers_have(
    house: Path, tmp_path: Path
) -> None:
    made = make(house, tmp_path, folder=tmp_path / "own")
    before = read_memory(memory_path(tmp_path / "own", made.digest))
    again = make(house, tmp_path, previous=before)
    assert again.both.changed == 0
    assert again.result.cells.counts.tolist() == made.result.cells.counts.tolist()
    assert make(house, tmp_path, replaced=before).both is not None
    other = replace(before, method={**before.method, "base": 4})
    assert make(house, tmp_path, replaced=other).both is None
    with pytest.raises(InputError, match="made with base = 4"):
        make(house, tmp_path, previous=other)
    # Sums that earlier releases showed stay remembered by one without sums, for the next that has some.
    sums: Any = SimpleNamespace(name="earlier sums")
    kept = module._remembered(made.result, before.method, "d" * 40, sums, before)
    assert kept.sums is sums


def test_a_release_that_may_not_be_made_leaves_nothing(house: Path, tmp_path: Path) -> None:
    class RefusedError(Exception):
        pass

    def refuse(digest: str, population: str) -> None:
        raise RefusedError

    with pytest.raises(RefusedError):
        make(house, tmp_path, folder=tmp_path / "own", accept=refuse)
    assert bundle_digest(tmp_path / "out") is None
    assert not list((tmp_path / "own").glob("memory-*"))
    seen: list[str] = []
    made = make(
        house, tmp_path, folder=tmp_path / "own", accept=lambda digest, _whose: seen.append(digest)
    )
    assert seen == [made.digest]


def test_records_that_change_while_they_are_protected_are_refused(
    house: Path, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(house, tmp_path / "data"))
    (records,) = root.glob("town/v*/records.arrow")

    def change(step: str, share: float) -> None:
        records.write_bytes(records.read_bytes() + b"0")

    with pytest.raises(DatasetError, match="changed while it was in use"):
        make(root, tmp_path, folder=tmp_path / "own", progress=change)
    assert bundle_digest(tmp_path / "out") is None
    assert not list((tmp_path / "own").glob("memory-*"))


def test_records_of_a_database_are_read_once_more_only_if_needed_and_are_the_same(
    house: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two reads of a database cannot be told to differ from outside: so the private step is asked."""
    keyed = finest_cells(Store(house).open("town", 1))
    changed = [
        replace(keyed, codes=keyed.codes[:, ::-1]),
        replace(keyed, counts=keyed.counts + 1),
        replace(keyed, keys=keyed.keys + type(keyed.keys[0])(1)),
    ]

    class Connected:
        columns = SimpleNamespace(source="the view people")

        def in_memory(self) -> str:
            return "read"

    monkeypatch.setattr(people, "ConnectedEngine", Connected)
    engine: Any = Connected()
    for asked in ({"magnitudes": 1, "weights": None}, {"magnitudes": None, "weights": 1}):
        policy: Any = SimpleNamespace(**asked)
        for found in changed:
            monkeypatch.setattr(people, "finest_cells", lambda _, found=found: found)
            with pytest.raises(DatasetError, match="the view people changed while it was read"):
                module._one_by_one(engine, policy, keyed)
        monkeypatch.setattr(people, "finest_cells", lambda own: keyed if own == "read" else None)
        assert module._one_by_one(engine, policy, keyed) == "read"
    nothing: Any = SimpleNamespace(magnitudes=None, weights=None)
    assert module._one_by_one(engine, nothing, keyed) is None


def test_a_policy_without_a_protected_population_makes_no_bundle() -> None:
    with pytest.raises(PolicyError, match="it does not ask for a protected population"):
        population_of(Policy.model_validate({}), "it")
