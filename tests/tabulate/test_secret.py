"""A dataset is opened with the secret it was made with, or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from lustrum.model import Axis, Dataset, DatasetError, TableQuery
from lustrum.tabulate import FrameSource, Secret, Store, ingest
from lustrum.tabulate.keys import SecretMissingError
from lustrum.tabulate.store import renewal as rotating
from lustrum.tabulate.store.renewal import rotate

OTHER = Secret(b"another secret of 32 bytes......")


def described(name: str, record_id: bool) -> Dataset:
    head = {"name": name} | ({"record_id": "id"} if record_id else {})
    return Dataset.from_mapping(
        {"dataset": head, "variables": [{"name": "area", "codes": ["a", "b", "c"]}]}
    )


def people(count: int = 30) -> pa.Table:
    return pa.table(
        {"id": [7 * i + 1 for i in range(count)], "area": ["abc"[i % 3] for i in range(count)]}
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two datasets: one keyed by record id, one by the place of the row."""
    store = Store(tmp_path / "data")
    for name, record_id in (("one", True), ("two", False)):
        ingest(FrameSource(people()), described(name, record_id), store)
    return store


def keys(store: Store, name: str) -> list[int]:
    found = store.open(name).tabulate(TableQuery(name, (Axis("area"),))).keys
    assert found is not None
    return [int(key) for key in found]


def secret_path(store: Store) -> Path:
    return store.root / "record-keys.secret"


def test_a_missing_secret_is_refused_and_never_made_anew(store: Store) -> None:
    secret_path(store).unlink()
    with pytest.raises(SecretMissingError, match="restore it from a backup"):
        store.open("one")
    with pytest.raises(SecretMissingError):
        ingest(FrameSource(people()), described("three", True), store)
    with pytest.raises(SecretMissingError):
        _ = store.secret
    assert not secret_path(store).exists()


def test_a_missing_secret_is_not_made_anew_where_a_version_lost_its_name(store: Store) -> None:
    for name in ("one", "two"):
        (store.root / name / "current").unlink()
    secret_path(store).unlink()
    assert store.names() == []
    with pytest.raises(SecretMissingError):
        _ = store.secret


def test_another_secret_is_refused_for_reading_and_for_writing(store: Store) -> None:
    secret_path(store).unlink()
    OTHER.write(secret_path(store))
    with pytest.raises(DatasetError, match="not the one that the dataset was made with"):
        store.open("one")
    with pytest.raises(DatasetError, match="not the one that the datasets there were made with"):
        ingest(FrameSource(people()), described("one", True), store)
    with pytest.raises(DatasetError, match="not the one that the datasets there were made with"):
        ingest(FrameSource(people()), described("three", True), store)


def test_a_given_secret_must_be_that_of_the_folder(store: Store) -> None:
    with pytest.raises(DatasetError, match="not the one"):
        ingest(FrameSource(people()), described("one", True), store, secret=OTHER)


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o601, 0o620, 0o666])
def test_a_secret_that_others_can_reach_is_refused(mode: int, store: Store) -> None:
    secret_path(store).chmod(mode)
    with pytest.raises(DatasetError, match=r"is open to others.*chmod 600"):
        store.open("one")
    secret_path(store).chmod(0o640)  # a group of keepers may read it
    store.open("one")


def test_the_fingerprint_tells_secrets_apart_and_holds_nothing_of_them(store: Store) -> None:
    secret = Secret.load(secret_path(store))
    assert secret.fingerprint == Secret(secret.value).fingerprint != OTHER.fingerprint
    assert secret.fingerprint[:8] not in secret.value.hex()
    assert store.open("one").secret == secret.fingerprint


def test_a_rotation_gives_the_keys_of_a_new_ingest(store: Store) -> None:
    before = {name: keys(store, name) for name in store.names()}
    old = Secret.load(secret_path(store))
    assert rotate(store) == ["one", "two"]
    after = {name: keys(store, name) for name in store.names()}
    assert all(before[name] != after[name] for name in before)
    new = Secret.load(secret_path(store))
    assert new != old
    assert not (store.root / "record-keys.secret.next").exists()
    for name, record_id in (("one", True), ("two", False)):
        ingest(FrameSource(people()), described(name, record_id), store)
        assert keys(store, name) == after[name]


def test_a_rotation_also_mends_a_lost_secret(store: Store) -> None:
    secret_path(store).unlink()
    assert rotate(store) == ["one", "two"]
    assert len(keys(store, "one")) == 3


class StopError(Exception):
    """The machine stops here."""


@pytest.mark.parametrize("step", ["secret", "keys of one", "keys of two", "manifest", "end"])
def test_a_stopped_rotation_leaves_every_dataset_with_one_set_of_keys(
    step: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: keys(store, name) for name in store.names()}
    calls: list[str] = []

    def stop(*_: object, **__: object) -> None:
        raise StopError

    with monkeypatch.context() as patch:
        if step == "secret":
            patch.setattr(rotating, "_rekey", stop)
        elif step.startswith("keys of"):
            real = rotating._rekey

            def some(store: Store, name: str, secret: Secret) -> bool:
                if name == step.removeprefix("keys of "):
                    raise StopError
                calls.append(name)
                return real(store, name, secret)

            patch.setattr(rotating, "_rekey", some)
        elif step == "manifest":
            patch.setattr(rotating, "write_manifest", stop)
        else:
            patch.setattr(rotating, "sync", stop)
        with pytest.raises(StopError):
            rotate(store)
    between = {name: keys(store, name) for name in store.names()}
    if step != "end":
        assert {n for n in between if between[n] != before[n]} == set(calls)
        with pytest.raises(DatasetError, match=r"rotation of the secret .* is not finished"):
            ingest(FrameSource(people()), described("one", True), store)
        rotate(store)
    after = {name: keys(store, name) for name in store.names()}
    assert all(after[name] != before[name] for name in before)
    assert all(after[name] == between[name] for name in calls)  # no second rotation of the same
    assert {p.name for p in (store.root / "one").iterdir()} == {
        ".lock",
        "current",
        store.version("one"),
    }


def test_a_rotation_touches_nothing_where_one_dataset_is_damaged(store: Store) -> None:
    before = keys(store, "one")
    path = store.root / "two" / store.version("two") / "records.arrow"
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(DatasetError, match="damaged"):
        rotate(store)
    assert keys(store, "one") == before
    assert not (store.root / "record-keys.secret.next").exists()


def test_a_copied_dataset_is_refused_beside_another_secret(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    ingest(FrameSource(people()), described("three", True), other)
    shutil.copytree(store.root / "one", other.root / "one")
    with pytest.raises(DatasetError, match="not the one that the dataset was made with"):
        other.open("one")
    other.open("three")
