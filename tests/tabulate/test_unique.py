"""Identifiers are compared without doubt in bounded memory, and the first repeated one has its place."""

from __future__ import annotations

import errno
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faults.injector import Faults
from lustrum.model import DatasetError, IngestError
from lustrum.tabulate import FrameSource, Store, ingest
from lustrum.tabulate.store.writer import first_repeated
from small import described
from tabulate.worlds import SECRET

UNIQUE = import_module("lustrum.tabulate.store.writer")
Ids = np.ndarray[tuple[int], np.dtype[np.int64]]
HIGHEST = 2**63 - 1


def plain_way(ids: list[int]) -> tuple[int, int] | None:
    """By a look at every identifier: the lowest that is there twice, and its first two places."""
    twice = [one for one in set(ids) if ids.count(one) > 1]
    if not twice:
        return None
    first = ids.index(min(twice))
    return first, ids.index(min(twice), first + 1)


def in_batches(ids: list[int], cuts: list[int]) -> list[Ids]:
    ends = sorted(min(cut, len(ids)) for cut in cuts)
    return [
        np.array(ids[start:end], dtype=np.int64)
        for start, end in zip([0, *ends], [*ends, len(ids)], strict=True)
    ]


few = st.lists(st.integers(0, 30), max_size=40)
many = st.lists(st.integers(0, HIGHEST), max_size=60, unique=True)
nearly = st.builds(lambda ids, again: ids + ids[:again], many, st.integers(0, 2))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ids=few | many | nearly | nearly.flatmap(st.permutations),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    room=st.integers(1, 70),
    samples=st.integers(1, 8),
)
def test_the_lowest_repeated_identifier_is_found_whatever_the_room(
    ids: list[int],
    cuts: list[int],
    room: int,
    samples: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(UNIQUE, "ROOM", room)
    monkeypatch.setattr(UNIQUE, "_SAMPLES", samples)
    batches = in_batches(ids, cuts)
    before = [batch.copy() for batch in batches]
    assert first_repeated(lambda: iter(batches), len(ids), tmp_path) == plain_way(ids)
    assert all(map(np.array_equal, batches, before)), "what was written is not sorted in place"
    assert list(tmp_path.iterdir()) == []


def test_the_rows_of_a_repeated_record_id_are_named_across_batches_and_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UNIQUE, "ROOM", 16)
    monkeypatch.setattr(import_module("lustrum.tabulate.parquet"), "BATCH", 10)
    dataset = described("town", {"area": "N"}, head={"record_id": "id"})
    store = Store(tmp_path / "store")

    def read(ids: list[object]) -> int:
        return ingest(
            FrameSource({"id": ids, "area": ["N"] * len(ids)}), dataset, store, secret=SECRET
        )

    shuffled: list[object] = [(i * 37) % 101 for i in range(100)]
    assert read(shuffled) == 100
    version = store.version("town")
    again = shuffled.copy()
    again[90] = again[3]
    again[95] = again[3]
    again[50] = 100  # a higher one is there twice too
    with pytest.raises(IngestError, match=r"column 'id': rows 4 and 91 have the same record id"):
        read(again)
    words: list[object] = [f"person {i}" for i in shuffled]
    assert read(words) == 100
    version = store.version("town")
    words[70] = words[20]
    with pytest.raises(
        IngestError, match=r"rows 21 and 71 have the same record id; every"
    ) as caught:
        read(words)
    assert "person" not in str(caught.value)
    assert store.version("town") == version
    assert {path.name for path in (store.root / "town").iterdir()} == {".lock", "current", version}


@pytest.mark.parametrize("halves", [False, True], ids=["nothing", "half"])
def test_a_full_disk_while_ids_are_set_aside_leaves_the_old_dataset_and_no_file(
    halves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UNIQUE, "ROOM", 16)
    dataset = described("town", {"area": "N"}, head={"record_id": "id"})
    store = Store(tmp_path / "store")

    def run() -> int:
        ids = [(i * 37) % 101 for i in range(60)]
        return ingest(FrameSource({"id": ids, "area": ["N"] * 60}), dataset, store, secret=SECRET)

    run()
    counted = Faults()
    with counted.active():
        run()
    # The spill file is opened, loses its name, takes four runs and gives them back.
    first, last = counted.calls.index("unlink"), counted.calls[::-1].index("preadv")
    spilled = range(first, len(counted.calls) - last + 1)
    assert [counted.calls[at - 1] for at in spilled].count("write") == 4
    for at in spilled:
        before = store.version("town")
        faults = Faults(at, errno.ENOSPC, halves=halves)
        said = "done."
        with faults.active():
            try:
                run()
            except DatasetError as error:
                said = str(error)
        assert said.endswith(".")
        done = said == "done."
        assert done or "No space left on device" in said
        there = {path.name for path in (store.root / "town").iterdir()}
        assert done or store.version("town") == before, (at, faults.calls)
        assert {name for name in there if name.endswith(".part")} == set()
        store.open("town")
