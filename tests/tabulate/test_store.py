"""A dataset on disk is replaced as a whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lustrum.model import Axis, Dataset, DatasetError, DescriptionError, IngestError, TableQuery
from lustrum.tabulate import FileSource, FrameEngine, FrameSource, Secret, Store, ingest
from tabulate.worlds import SECRET

PARQUET = import_module("lustrum.tabulate.parquet")
STORE = import_module("lustrum.tabulate.store.folder")
DESCRIPTION: dict[str, Any] = {
    "dataset": {"name": "town", "record_id": "id"},
    "variables": [{"name": "area", "codes": ["N", "S"]}],
    "measures": [{"name": "income"}],
}
DATASET = Dataset.from_mapping(DESCRIPTION)
QUERY = TableQuery("town", (Axis("area", total=True),), measure="income")


def frame(rows: int, first: int = 0) -> pa.Table:
    ids = range(first, first + rows)
    return pa.table(
        {"id": list(ids), "area": ["NS"[i % 2] for i in ids], "income": [i * 10 for i in ids]}
    )


def answer(store: Store) -> Any:
    table = store.open("town").tabulate(QUERY, ranks=2)
    assert table.keys is not None
    parts = (table.values, table.keys, table.contributors, table.contributions.holding)
    return [None if part is None else part.tolist() for part in parts]


def entries(root: Path) -> set[str]:
    return {p.name for p in (root / "town").iterdir()} - {".lock"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store with 10 records of a town; later ones come in batches of 4."""
    store = Store(tmp_path / "store")
    ingest(FrameSource(frame(10)), DATASET, store, secret=SECRET)
    monkeypatch.setattr(PARQUET, "BATCH", 4)
    return store


def test_a_new_version_replaces_the_old_one(store: Store) -> None:
    before = answer(store)
    ingest(FrameSource(frame(20)), DATASET, store, secret=SECRET)
    assert answer(store)[0] == [900, 1000, 1900]
    assert answer(store) != before
    assert entries(store.root) == {"current", store.version("town")}
    assert store.names() == ["town"]


def test_a_bad_row_in_the_last_batch_leaves_the_old_dataset(store: Store) -> None:
    before = answer(store)
    files = entries(store.root)
    bad = pa.concat_tables([frame(11), pa.table({"id": [99], "area": ["X"], "income": [1]})])
    with pytest.raises(IngestError, match="column 'area', row 12"):
        ingest(FrameSource(bad), DATASET, store, secret=SECRET)
    assert answer(store) == before
    assert entries(store.root) == files


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError])
def test_an_exception_in_the_middle_leaves_the_old_dataset(
    error: type[BaseException], store: Store
) -> None:
    before = answer(store)
    files = entries(store.root)

    def progress(done: int, total: int | None) -> None:
        assert total == 20
        if done == 8:
            raise error

    with pytest.raises(error):
        ingest(FrameSource(frame(20)), DATASET, store, progress, SECRET)
    assert answer(store) == before
    assert entries(store.root) == files


@pytest.mark.parametrize("step", ["write", "finish", "rename", "sync", "current"])
def test_a_full_disk_leaves_the_old_dataset(
    step: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = answer(store)
    files = entries(store.root)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if step in ("write", "finish"):
            patch.setattr(STORE.Writer, step, full)
        elif step == "sync":
            patch.setattr(os, "fsync", full)
        elif step == "rename":
            patch.setattr(Path, "rename", full)
        else:
            patch.setattr(Path, "replace", full)
        with pytest.raises(DatasetError, match="No space left on device") as caught:
            ingest(FrameSource(frame(20)), DATASET, store, secret=SECRET)
    assert "'town'" in str(caught.value)
    assert "as they were" in str(caught.value)
    assert answer(store) == before
    assert entries(store.root) == files
    ingest(FrameSource(frame(20)), DATASET, store, secret=SECRET)
    assert answer(store)[0] == [900, 1000, 1900]


def test_a_first_ingest_that_fails_leaves_no_dataset(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(IngestError):
        ingest(FrameSource(pa.table({"id": [1], "area": ["X"], "income": [1]})), DATASET, store)
    assert store.names() == []
    assert entries(tmp_path) == set()
    with pytest.raises(DatasetError, match="no dataset 'town'"):
        store.open("town")


KILLED = """
import os, signal, sys
from importlib import import_module
from pathlib import Path
import pyarrow as pa
sys.path.insert(0, sys.argv[3])
from tabulate.test_store import DATASET, SECRET, frame
from lustrum.tabulate import FrameSource, Store, ingest
import_module("lustrum.tabulate.parquet").BATCH = 4
def progress(done, total):
    if done >= int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
ingest(FrameSource(frame(20)), DATASET, Store(Path(sys.argv[1])), progress, SECRET)
"""


@pytest.mark.parametrize("there", [True, False])
def test_a_killed_ingest_leaves_the_old_dataset_and_the_next_one_cleans_up(
    there: bool, store: Store, tmp_path: Path
) -> None:
    if not there:
        store = Store(tmp_path / "other")
    before = answer(store) if there else None
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(store.root), "8", tests],
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert any(name.endswith(".part") for name in entries(store.root))
    if there:
        assert answer(store) == before
    else:
        assert store.names() == []
    ingest(FrameSource(frame(20)), DATASET, store, secret=SECRET)
    assert answer(store)[0] == [900, 1000, 1900]
    assert entries(store.root) == {"current", store.version("town")}


def test_a_reader_of_the_old_version_keeps_answering_after_a_replacement(store: Store) -> None:
    engine = store.open("town")
    before = engine.tabulate(QUERY).values.tolist()
    ingest(FrameSource(frame(20)), DATASET, store, secret=SECRET)
    ingest(FrameSource(frame(30)), DATASET, store, secret=SECRET)
    assert engine.tabulate(QUERY).values.tolist() == before
    assert answer(store)[0] == [2100, 2250, 4350]


def test_opening_while_the_dataset_is_replaced_gives_the_new_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the version and the look at its files, another process replaces both."""
    look = Store.version
    looks = []

    def version(self: Store, name: str) -> str:
        found = look(self, name)
        looks.append(found)
        if len(looks) == 1:
            ingest(FrameSource(frame(20)), DATASET, store, secret=SECRET)
        return found

    monkeypatch.setattr(Store, "version", version)
    assert store.open("town").rows == 20
    assert len(set(looks)) == 2


def test_two_ingests_of_one_dataset_do_not_meet(store: Store) -> None:
    refused = []

    def progress(done: int, total: int | None) -> None:
        if not refused:
            with pytest.raises(DatasetError, match="Another process is writing") as caught:
                ingest(FrameSource(frame(4)), DATASET, store, secret=SECRET)
            refused.append(str(caught.value))

    ingest(FrameSource(frame(20)), DATASET, store, progress, SECRET)
    assert "wait" in refused[0]
    assert answer(store)[0] == [900, 1000, 1900]


def test_only_its_own_files_are_cleaned_away(store: Store) -> None:
    notes = store.root / "town" / "notes.txt"
    notes.write_text("kept")
    (store.root / "town" / "old").mkdir()
    ingest(FrameSource(frame(20)), DATASET, store, secret=SECRET)
    assert notes.read_text() == "kept"
    assert entries(store.root) == {"current", store.version("town"), "notes.txt", "old"}


def test_a_missing_file_is_refused(store: Store) -> None:
    (store.root / "town" / store.version("town") / "keys.arrow").unlink()
    with pytest.raises(DatasetError, match=r"damaged: keys\.arrow is missing; ingest it again"):
        store.open("town")


def test_a_description_changed_beside_the_records_is_refused(store: Store) -> None:
    """With fewer codes than the records have, the kernel would write beyond its cells."""
    path = store.root / "town" / store.version("town") / "dataset.json"
    manifest = json.loads(path.read_text())
    manifest["description"]["variables"][0]["codes"] = ["N"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(DatasetError, match="damaged"):
        store.open("town")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 99}', '{"format": 2}'])
def test_a_damaged_manifest_is_refused(content: str, store: Store) -> None:
    (store.root / "town" / store.version("town") / "dataset.json").write_text(content)
    with pytest.raises(DatasetError, match="ingest it again"):
        store.open("town")


def test_a_wrong_name_is_answered_with_the_names_there_are(store: Store) -> None:
    with pytest.raises(DatasetError, match=r"no dataset 'twon' .* did you mean 'town'"):
        store.open("twon")


def test_a_dataset_without_a_description_is_not_stored(tmp_path: Path) -> None:
    """It could be written but never opened again, in place of one that could."""
    bare = Dataset("town", "Town", DATASET.variables)
    with pytest.raises(DescriptionError, match="'town' does not come from its description"):
        ingest(FrameSource(frame(4)), bare, Store(tmp_path))
    assert not (tmp_path / "town").exists()


def digests(store: Store) -> dict[str, str]:
    folder = store.root / "town" / store.version("town")
    names = ("records.arrow", "keys.arrow", "dataset.json")
    return {n: hashlib.sha256((folder / n).read_bytes()).hexdigest() for n in names}


@pytest.mark.parametrize("ending", ["frame", "csv", "parquet"])
def test_the_same_source_and_secret_give_the_same_bytes(ending: str, tmp_path: Path) -> None:
    rows = frame(30_000)
    source: Any = FrameSource(rows)
    if ending == "csv":
        path = tmp_path / "town.csv"
        lines = [f"{r['id']},{r['area']},{r['income']}" for r in rows.to_pylist()]
        path.write_text("\n".join(["id,area,income", *lines]) + "\n")
        source = FileSource(path)
    elif ending == "parquet":
        pq.write_table(rows, tmp_path / "town.parquet", row_group_size=1000)
        source = FileSource(tmp_path / "town.parquet")
    found = []
    for attempt in range(2):
        store = Store(tmp_path / str(attempt))
        ingest(source, DATASET, store, secret=SECRET)
        found.append(digests(store))
    assert found[0] == found[1]
    store = Store(tmp_path / "third")
    ingest(source, DATASET, store, secret=Secret(b"another secret, also of 32 bytes"))
    other = digests(store)
    assert other["records.arrow"] == found[0]["records.arrow"]
    assert other["keys.arrow"] != found[0]["keys.arrow"]


def test_the_order_of_a_large_file_is_kept(tmp_path: Path) -> None:
    """DuckDB reads with several threads; without a record id the key is that of the row."""
    rows = 300_000
    path = tmp_path / "town.csv"
    lines = (f"{i},{'NS'[i % 2]},{i % 1000}" for i in range(rows))
    path.write_text("id,area,income\n" + "\n".join(lines) + "\n")
    store = Store(tmp_path / "store")
    ingest(FileSource(path), DATASET, store, secret=SECRET)
    engine = store.open("town")
    ids = [i for chunk in engine.chunks for i in chunk.ids["id"].tolist()]
    assert ids == list(range(rows))


def test_neither_records_nor_sources_show_their_content() -> None:
    engine = FrameEngine(frame(10, first=4_711_000), DATASET, SECRET)
    shown = repr(engine._chunks) + repr(engine) + repr(FrameSource(frame(10, first=4_711_000)))
    assert "4711" not in shown
    assert "4_711" not in shown
