"""The room of the records, part by part, with neighbours that are written down: what is read, kept and sent."""

from __future__ import annotations

import json
import logging
import pickle
import sys
import threading
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lustrum.local import local_service
from lustrum.model import (
    Dataset,
    DatasetError,
    InputError,
    PolicyError,
    QueryError,
    Release,
    Table,
    TableAxis,
    TableQuery,
)
from lustrum.model.errors import NotReadyError
from lustrum.model.finest import FinestCells
from lustrum.policy import Policy
from lustrum.protect.magnitudes.remembered import RememberedSums
from lustrum.public.numbers import CannotProtectError, Described
from lustrum.publish.bundles.memory import (
    Memory,
    memory_path,
    read_memory,
    sums_path,
    write_memory,
)
from lustrum.publish.bundles.survey import survey_records
from lustrum.publish.records import local as local_module
from lustrum.publish.records import open_datasets, process
from lustrum.publish.records.local import LocalRecordsService
from lustrum.publish.records.open_datasets import LARGE, OpenDatasets
from lustrum.publish.records.process import RequestHandler
from lustrum.publish.records.views import TrueFigures, true_figures
from lustrum.runtime.stop import Stopped, check_stop
from lustrum.tabulate.store.files import DamagedError

DATASET = Dataset.from_mapping(
    {
        "dataset": {"name": "town"},
        "variables": [
            {"name": "area", "codes": ["n", "s", "w"]},
            {"name": "sex", "codes": ["f", "m"]},
        ],
        "measures": [{"name": "pay"}],
    }
)
QUERY = TableQuery.from_mapping({"dataset": "town", "by": ["area", "sex"]})


# --- true figures ---------------------------------------------------------------------------------


def test_true_figures_compare_the_shown_cells_with_the_same_cells_of_the_truth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    true = Table(
        (TableAxis.plain("area", ["n", "s", "w"]), TableAxis.plain("sex", ["f", "m"])),
        np.array([[4, 9], [100, 6], [3, 1]]),
    )
    own = true.take([[0, 2], [0, 1]])
    release = Release(
        own.axes, np.array([[6, 3], [9, 0]]), np.full((2, 2), "F"), {"method": "made-up"}
    )
    engine: Any = SimpleNamespace(tabulate=lambda query: true if query is QUERY else None)
    policy = Policy.model_validate({})
    found = true_figures(QUERY, engine, release, policy)
    # 4, 9, 3 and 1 are shown as 6, 3, 9 and 0.
    assert found.mean_error == (2 + 6 + 6 + 1) / 4
    assert found.largest_error == 6
    measure = policy.risk.spec
    assert found.risk_before == measure.before(own)
    assert found.risk_after == measure.after(own, release)
    assert 0 < found.utility < 1
    exact = replace(release, published=own.values)
    assert true_figures(QUERY, engine, exact, policy).utility == 1.0
    # Cells that are not shown have no error.
    blank = SimpleNamespace(before=lambda *_: 0.5, after=lambda *_: 0.25, of=lambda *_: 0.75)
    own_module = sys.modules[true_figures.__module__]
    monkeypatch.setattr(own_module, "load", lambda *_: lambda: blank)
    lax: Any = SimpleNamespace(risk=SimpleNamespace(spec=blank))
    part = replace(release, status=np.array([["F", "D"], ["D", "F"]]))
    assert true_figures(QUERY, engine, part, lax) == TrueFigures(0.5, 0.25, 0.75, 1.5, 2)
    hidden = replace(release, status=np.full((2, 2), "D"))
    assert true_figures(QUERY, engine, hidden, lax) == TrueFigures(0.5, 0.25, 0.75, 0.0, 0)


# --- respondents of a survey ----------------------------------------------------------------------


def survey(replicates: dict[str, Any] | None = None, **more: Any) -> Dataset:
    weight = {"name": "w", "decimals": 2, **more}
    if replicates is not None:
        weight["replicates"] = replicates
    return Dataset.from_mapping(
        {
            **DATASET.source,
            "dataset": {"name": "panel", "identifiers": ["stratum", "cluster"]},
            "weights": [weight],
        }
    )


def chunk(low: int, high: int, **more: Any) -> Any:
    """Rows ``low`` to ``high`` of eight respondents."""
    part = slice(low, high)
    halves = np.array([0, 0, 2, 2, 2, 2, 0, 0])
    numbers = {
        "w": np.array([100, 200, 300, 400, 500, 600, 700, 800]),
        "pay": np.arange(8) * 100,
        "r1": np.array([100, 200, 300, 400, 500, 600, 700, 800]) * halves,
        "r2": np.array([100, 200, 300, 400, 500, 600, 700, 800]) * (2 - halves),
    }
    words = {
        "rows": high - low,
        "keys": np.arange(8, dtype=np.uint64)[part] + np.uint64(7),
        "ids": {
            "stratum": np.array([0, 0, 0, 0, 1, 1, 1, 1])[part],
            "cluster": np.array([0, 0, 1, 1, 2, 2, 3, 3])[part],
        },
        "numbers": {name: column[part] for name, column in numbers.items()},
        "codes": {
            "area": np.array([0, 1, 2, 0, 1, 2, 0, 1])[part],
            "sex": np.array([0, 1, 0, 1, 0, 1, 0, 1])[part],
        },
    }
    return SimpleNamespace(**{**words, **more})


def engine_of(dataset: Dataset, *chunks: Any) -> Any:
    return SimpleNamespace(dataset=dataset, chunks=chunks)


def test_respondents_are_those_of_all_chunks_with_the_design_of_their_weight() -> None:
    dataset = survey(strata="stratum", clusters="cluster", total=36)
    empty = chunk(0, 0, keys=None)
    found = survey_records(engine_of(dataset, chunk(0, 3), empty, chunk(3, 8)), "w")
    assert found.design.weights.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert found.design.strata is not None
    assert found.design.clusters is not None
    assert found.design.strata.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert found.design.clusters.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert found.design.lonely == "refuse"
    assert found.codes.tolist() == [[0, 1, 2, 0, 1, 2, 0, 1], [0, 1, 0, 1, 0, 1, 0, 1]]
    assert found.keys.tolist() == list(range(7, 15))
    assert found.total == 36
    assert found.measures["pay"].tolist() == [k * 100 for k in range(8)]
    assert found.replicates is None
    plain = survey_records(engine_of(survey(), chunk(0, 8)), "w")
    assert (plain.design.strata, plain.design.clusters, plain.total) == (None, None, None)
    for chunks in ((), (empty,), (chunk(0, 3), chunk(3, 8, keys=None))):
        with pytest.raises(DatasetError, match="no records with keys"):
            survey_records(engine_of(dataset, *chunks), "w")
    single = chunk(0, 8)
    single.ids["cluster"] = np.array([0, 0, 1, 1, 2, 2, 2, 2])
    with pytest.raises(InputError, match=r"Weight 'w' of 'panel': A stratum has a single cluster"):
        survey_records(engine_of(dataset, single), "w")


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("method", ["jackknife", "BRR"])
def test_replicates_give_the_design_where_it_is_not_named(named: bool, method: str) -> None:
    words = {"strata": "stratum", "clusters": "cluster"} if named else {}
    dataset = survey({"method": method, "columns": ["r1", "r2"]}, **words)
    found = survey_records(engine_of(dataset, chunk(0, 2), chunk(2, 8)), "w")
    if named:
        assert found.design.clusters is not None
        assert found.design.clusters.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    else:
        # Respondents whose weights move alike are one cluster.
        stratum_and_cluster = found.design.clusters
        assert stratum_and_cluster is not None
        alike = [stratum_and_cluster.tolist()[k] for k in (0, 2)]
        assert alike[0] != alike[1]
        assert stratum_and_cluster.tolist() == [alike[k] for k in (0, 0, 1, 1, 1, 1, 0, 0)]
    if method == "jackknife":
        assert found.replicates is None
        assert found.design.lonely == "refuse"
    else:
        assert found.design.lonely == "centre"
        assert found.replicates is not None
        assert found.replicates.scale == 0.5
        assert found.replicates.columns.tolist() == [
            [a / 100, b / 100]
            for a, b in zip(chunk(0, 8).numbers["r1"], chunk(0, 8).numbers["r2"], strict=True)
        ]
    nobody = chunk(0, 8)
    nobody.numbers["w"] = np.array([100, 200, 0, 400, 500, 600, 700, 800])
    with pytest.raises(InputError, match="weight 0"):
        survey_records(engine_of(dataset, nobody), "w")


# --- the memory of a release ----------------------------------------------------------------------


def remembered(with_sums: bool = True) -> Memory:
    cells = FinestCells(
        DATASET,
        np.array([[0, 1, 2], [1, 0, 1]]),
        [3, 0, 6],
        np.array([5, 9, 2**63], dtype=np.uint64),
    )
    sums = RememberedSums(
        {"p": 5.0}, 2, np.array([4, 8], dtype=np.uint64), {"pay": np.array([10, 20])},
        {"pay": np.array([11, 19])}, np.array([[0, 1], [1, 0]]), np.array([0, 1]),
        np.array([[0, 1], [1, 0]]),
    )  # fmt: skip
    method = {"method": "protected-population", "base": 3, "cells": "all"}
    return Memory(cells, method, "d" * 40, sums if with_sums else None)


@pytest.mark.parametrize("with_sums", [False, True])
def test_a_memory_comes_back_from_its_file_for_its_owner_alone(
    tmp_path: Path, with_sums: bool
) -> None:
    own = remembered(with_sums)
    folder = tmp_path / "agency" / "own"
    path = write_memory(folder, own)
    assert path == memory_path(folder, own.digest) == folder / f"memory-{'d' * 16}.arrow"
    assert sums_path(path) == folder / f"sums-memory-{'d' * 16}.arrow"
    assert sums_path(path).exists() == with_sums
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
    assert b"ARROW1" in path.read_bytes()
    found = read_memory(path)
    assert np.array_equal(found.cells.codes, own.cells.codes)
    assert found.cells.counts.tolist() == [3, 0, 6]
    assert found.cells.keys is not None
    assert found.cells.keys.tolist() == [5, 9, 2**63]
    assert (found.method, found.digest) == (own.method, own.digest)
    assert found.cells.dataset.source == DATASET.source
    assert (found.sums is not None) == with_sums
    if found.sums is not None:
        assert found.sums.true["pay"].tolist() == [10, 20]
        assert found.sums.release == 2
    # What was published: cells that show somebody, without keys.
    assert found.shown.counts.tolist() == [3, 6]
    assert found.shown.codes.tolist() == [[0, 2], [1, 1]]
    assert found.shown.keys is None
    assert write_memory(folder, own) == path
    assert (found.bounds, found.earlier) == (None, ())
    # What all releases leave of every cell, and which they were.
    ends = np.array([1, 0, 4]), np.array([5, 2, 8])
    found = read_memory(write_memory(folder, replace(own, bounds=ends, earlier=("a", "b"))))
    assert found.bounds is not None
    assert [bound.tolist() for bound in found.bounds] == [[1, 0, 4], [5, 2, 8]]
    assert found.earlier == ("a", "b")
    # A memory of a version that did not list the releases before.
    table = pa.ipc.open_file(pa.BufferReader(path.read_bytes())).read_all()
    (word, said), *_ = table.schema.metadata.items()
    older = json.loads(said)
    del older["earlier"]
    table = table.replace_schema_metadata({word: json.dumps(older)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    assert read_memory(path).earlier == ()


def test_a_memory_knows_the_records_of_its_release() -> None:
    """Records are those of a release where every cell that holds any has the same ones."""
    every = np.array([[0, 1, 2], [1, 0, 1]])
    keys = np.array([1, 0, 2**63], dtype=np.uint64)  # the second cell shows somebody, and is empty
    own = replace(remembered(), cells=FinestCells(DATASET, every, [3, 3, 0], keys))
    held = np.array([True, False, True])

    def true(codes: Any, keys: Any) -> FinestCells:
        return FinestCells(DATASET, codes, np.ones(codes.shape[1], dtype=int), keys)

    assert own.holds(true(every[:, held], keys[held]))
    assert not own.holds(true(every, np.array([1, 7, 2**63], dtype=np.uint64)))
    assert not own.holds(true(every[:, held], keys[held] + np.uint64(1)))
    assert not own.holds(true(every[:, [0, 1]], keys[held]))
    assert not own.holds(true(every[:, :1], keys[:1]))
    assert not own.holds(FinestCells(DATASET, every[:, held], [1, 1]))


def test_a_later_release_hides_as_many_empty_cells_as_the_one_before() -> None:
    own = remembered()
    words = own.method
    shared = replace(own, method={**words, "empty_share": 0.25})
    own.require_same_method(words)
    own.require_same_method({**words, "empty_share": 0.25})
    shared.require_same_method({**words, "empty_share": 0.25})
    for less in ({**words, "empty_share": 0.2}, words):
        with pytest.raises(InputError, match=r"empty_share = 0\.25, and the policy now says 0"):
            shared.require_same_method(less)


def test_a_memory_that_is_none_or_cannot_continue_is_refused(tmp_path: Path) -> None:
    own = remembered()
    own.require_same_method({"base": 3, "cells": "all", "sweeps": 99})
    for other in ({"base": 4, "cells": "all"}, {"base": 3, "cells": "small"}, {"base": 3}):
        with pytest.raises(InputError, match="The earlier release was made with"):
            own.require_same_method(other)
    bare = FinestCells(DATASET, own.cells.codes, own.cells.counts)
    with pytest.raises(InputError, match="needs the keys of records"):
        write_memory(tmp_path, replace(own, cells=bare))
    path = write_memory(tmp_path, own)
    sums_path(path).write_bytes(b"nonsense")
    with pytest.raises(DatasetError, match="is not the memory of a release"):
        read_memory(path)
    sums_path(path).unlink()
    assert read_memory(path).sums is None
    path.write_bytes(b"nonsense")
    with pytest.raises(DatasetError, match="is not the memory of a release"):
        read_memory(path)
    path.unlink()
    with pytest.raises(DatasetError, match="cannot be reached"):
        read_memory(path)
    wide = FinestCells(DATASET, np.zeros((2, 1), dtype=int), [3], np.array([7], dtype=np.uint64))
    many = np.repeat(np.arange(3), 2)
    path = write_memory(tmp_path, replace(own, cells=FinestCells(
        DATASET, np.stack([many, np.tile([0, 1], 3)]), [3] * 6, np.full(6, 7, dtype=np.uint64)
    )))  # fmt: skip
    assert len(read_memory(path).cells) == 6
    assert len(wide) == 1


# --- open datasets --------------------------------------------------------------------------------


class Files:
    """Files of a version: how large they are, whether their bytes are right, and whether they were closed."""

    def __init__(
        self, version: str, size: int = 1, damaged: str = "", identity: Any = None
    ) -> None:
        self.version, self.size, self.damaged = version, size, damaged
        self.identity = (version, damaged) if identity is None else identity
        self.closed = 0
        self.checked = 0

    def check(self) -> None:
        self.checked += 1
        if self.damaged:
            raise DamagedError(self.damaged)

    def close(self) -> None:
        self.closed += 1


class Shelf:
    """A store with one dataset, whose files are replaced by hand."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.looked: list[Files] = []

    def version(self, name: str) -> str:
        return self.files.version

    def look(self, name: str) -> Files:
        seen = Files(self.files.version, self.files.size, self.files.damaged, self.files.identity)
        self.looked.append(seen)
        return seen


class Opened:
    def __init__(self, files: Files, workers: int | None) -> None:
        self.files, self.workers, self.version = files, workers, files.version
        self.changed = ""

    def require_unchanged(self) -> None:
        if self.changed:
            raise DatasetError(self.changed)


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_datasets, "EmbeddedEngine", Opened)


@pytest.mark.usefixtures("opening")
def test_a_dataset_is_checked_once_and_again_when_it_is_replaced_or_changed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shelf = Shelf(Files("1"))
    own: Any = OpenDatasets(shelf, 3)  # type: ignore[arg-type]
    assert own.background is False
    first = own.engine("town")
    assert (first.version, first.workers) == ("1", 3)
    assert own.engine("town") is first
    assert [f.checked for f in shelf.looked] == [1]
    assert first.files.closed == 0
    shelf.files = Files("2", size=LARGE)
    second = own.engine("town")
    assert second.version == "2"
    assert own.engine("town") is second
    # A file that was changed under the engine ends it, and the version is read anew.
    second.changed = "cells were cut"
    with caplog.at_level(logging.ERROR, "lustrum.publish"):
        third = own.engine("town")
    assert third is not second
    assert "cells were cut" in caplog.text
    assert own.engine("town") is third

    def found_by_two() -> None:
        own._engines.clear()
        raise DatasetError("another thread was here")

    third.require_unchanged = found_by_two
    assert own.engine("town") is not third


@pytest.mark.usefixtures("opening")
def test_files_that_failed_are_not_read_again_until_they_change() -> None:
    shelf = Shelf(Files("1", damaged="a byte is wrong"))
    own: Any = OpenDatasets(shelf)  # type: ignore[arg-type]
    for _ in range(3):
        with pytest.raises(DamagedError, match="a byte is wrong"):
            own.engine("town")
    assert [f.checked for f in shelf.looked] == [1, 0, 0]
    assert [f.closed for f in shelf.looked] == [1, 1, 1]
    shelf.files = Files("1", damaged="another byte", identity=("1", "touched"))
    with pytest.raises(DamagedError, match="another byte"):
        own.engine("town")
    shelf.files = Files("1", identity=("1", "mended"))
    assert own.engine("town").version == "1"
    # Once it was right, an earlier failure is forgotten.
    own._engines.clear()
    shelf.files = Files("1", identity=("1", "touched"))
    assert own.engine("town").version == "1"

    class Stopping(Files):
        def check(self) -> None:
            raise Stopped

    stopped = Stopping("2")
    with pytest.raises(Stopped):
        own._open("town", stopped)
    assert stopped.closed == 1
    assert own._open("town", Files("2")).version == "2"
    late = Files("2")
    assert own._open("town", late).version == "2"
    assert (late.closed, late.checked) == (1, 0)


@pytest.mark.usefixtures("opening")
def test_a_large_dataset_is_checked_in_the_background_while_the_earlier_version_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waiting: list[Any] = []

    class Thread:
        def __init__(self, target: Any, args: Any, name: str, daemon: bool) -> None:
            assert daemon
            assert name == "check town"
            self.run = lambda: target(*args)

        def start(self) -> None:
            waiting.append(self)

    monkeypatch.setattr(
        open_datasets, "threading", SimpleNamespace(Thread=Thread, Lock=threading.Lock)
    )
    shelf = Shelf(Files("1", size=LARGE - 1))
    own: Any = OpenDatasets(shelf)  # type: ignore[arg-type]
    own.background = True
    first = own.engine("town")
    assert (first.version, waiting) == ("1", [])
    shelf.files = Files("2", size=LARGE)
    assert own.engine("town") is first
    assert own.engine("town") is first
    assert len(waiting) == 1
    # Looked at twice; the second look was not needed and is closed.
    assert [f.closed for f in shelf.looked[1:]] == [0, 1]
    with caplog.at_level(logging.INFO, "lustrum.publish"):
        waiting.pop().run()
    assert "checked and ready" in caplog.text
    assert own.engine("town").version == "2"
    assert own._checking == {}
    # Without an earlier version nothing answers meanwhile; a failure is said once it is known.
    fresh: Any = OpenDatasets(Shelf(Files("1", size=LARGE, damaged="cut")))  # type: ignore[arg-type]
    fresh.background = True
    with pytest.raises(NotReadyError, match="still being checked"):
        fresh.engine("town")
    caplog.clear()
    with caplog.at_level(logging.ERROR, "lustrum.publish"):
        waiting.pop().run()
    assert "cut" in caplog.text
    assert fresh._checking == {}
    with pytest.raises(DamagedError, match="cut"):
        fresh.engine("town")
    assert waiting == []
    assert fresh._store.looked[-1].closed == 1
    # A check of an earlier state does not end the mark of a later one.
    fresh._checking["town"] = ("later",)
    fresh._check("town", Files("9"))
    assert fresh._checking == {"town": ("later",)}


# --- records of a folder --------------------------------------------------------------------------


class Store:
    """A store of two datasets, with the secret of each version."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.secrets: dict[str, str] = {"one": "s1"}

    def names(self) -> list[str]:
        return ["town", "village"]

    def secret_of(self, name: str) -> str:
        if name not in self.secrets:
            raise DatasetError(f"no secret {name}")
        return self.secrets[name]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The records of a folder with an engine that is written down; it lists what was made."""
    monkeypatch.setattr(local_module, "Store", Store)
    monkeypatch.setattr(local_module, "ProtectedInput", lambda *a, **k: ("input", a, k))
    made = SimpleNamespace(prepared=[], means=[], views=[], unchanged=0, fail=None)
    engine: Any = SimpleNamespace(version="v1", dataset=DATASET, secret="one")

    def require_unchanged() -> None:
        made.unchanged += 1

    def prepared(*words: Any) -> Any:
        if made.fail:
            raise made.fail
        made.prepared.append(words)
        return ("prepared", len(made.prepared))

    engine.require_unchanged = require_unchanged
    monkeypatch.setattr(local_module, "prepared", prepared)
    monkeypatch.setattr(
        local_module, "mean_weights", lambda *w: made.means.append(w) or ("mean", len(made.means))
    )
    monkeypatch.setattr(local_module, "counted_views", lambda *w: made.views.append(w) or "views")
    service = LocalRecordsService(Path("root"), 2)
    opened = SimpleNamespace(background=False, engine=lambda name: engine, workers=None)
    assert service._open._workers == 2
    service._open = opened  # type: ignore[assignment]
    return SimpleNamespace(service=service, made=made, engine=engine, opened=opened)


def test_numbers_are_made_from_the_policys_input_once_for_each_version(folder: Any) -> None:
    service, made, engine = folder.service, folder.made, folder.engine
    assert service.names() == ["town", "village"]
    described = service.describe("town")
    assert (described.version, described.dataset) == ("v1", DATASET)
    plain = Policy.model_validate({})
    assert service.views(QUERY, plain) == "views"
    assert made.views.pop() == (QUERY, ("input", (engine,), {"secret": "s1"}), plain, None)
    assert made.unchanged == 1
    changed = Policy.model_validate({"before": [{"method": "random-rounding", "base": 5}]})
    for _ in range(2):
        service.views(QUERY, changed)
        assert made.views.pop()[1] == ("prepared", 1)
    assert made.prepared == [(engine, changed.before, "s1")]
    assert made.unchanged == 1 + 3
    other = Policy.model_validate({"before": [{"method": "random-rounding", "base": 3}]})
    assert service.source(engine, other) == ("prepared", 2)
    engine.version = "v2"
    assert service.source(engine, other) == ("prepared", 3)
    assert service.source(engine, other) == ("prepared", 3)
    service.close()
    assert service.source(engine, other) == ("prepared", 4)
    made.fail = InputError("too few records")
    with pytest.raises(PolicyError, match=r"policy of 'town' cannot protect the input: too few"):
        service.source(engine, changed)


def test_mean_weights_are_made_once_for_each_version_and_policy(folder: Any) -> None:
    service, made, engine = folder.service, folder.made, folder.engine
    weighted, plain = replace(QUERY, weight="w"), Policy.model_validate({})
    for _ in range(2):
        service.views(weighted, plain)
        assert made.views.pop()[3] == ("mean", 1)
    source = ("input", (engine,), {"secret": "s1"})
    assert made.means == [(source, plain)]
    other = Policy.model_validate({"risk": {"limit": 0.5}})
    service.views(weighted, other)
    assert made.views.pop()[3] == ("mean", 2)
    engine.version = "v2"
    service.views(weighted, other)
    assert made.views.pop()[3] == ("mean", 3)
    service.close()
    service.views(weighted, other)
    assert made.views.pop()[3] == ("mean", 4)


def test_a_dataset_without_its_secret_or_that_is_not_there_answers_nothing(folder: Any) -> None:
    service = folder.service
    with pytest.raises(QueryError, match="There is no dataset 'twon'"):
        service.engine("twon")
    service.store.secrets.clear()
    with pytest.raises(DatasetError, match="no secret"):
        service.describe("town")
    service.check_in_background()
    assert folder.opened.background is True
    assert service.revive() is True, "in one process nothing has to come back"
    made = local_service(Path("root"), 3)
    assert made._records.store.root == Path("root")  # type: ignore[union-attr]
    assert made._records._open._workers == 3  # type: ignore[union-attr]


# --- the process of the records -------------------------------------------------------------------


class Service:
    """Records that answer or fail as they are told."""

    def __init__(self) -> None:
        self.fails: BaseException | None = None
        self.asked: list[Any] = []
        self.background = False

    def names(self) -> list[str]:
        return ["town"]

    def describe(self, name: str) -> Described:
        return Described("v1", DATASET)

    def views(self, query: TableQuery, policy: Policy) -> Any:
        self.asked.append((query, policy))
        if self.fails is not None:
            raise self.fails
        return "views"

    def check_in_background(self) -> None:
        self.background = True


POLICY = Policy.model_validate({"risk": {"limit": 0.5}})
ASK = ("views", QUERY.to_mapping(), POLICY.model_dump_json())


def test_a_request_is_answered_or_fails_as_one_of_a_few_kinds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    own = Service()
    handler = RequestHandler(own)  # type: ignore[arg-type]
    kind, described = handler.reply(("describe", "town", "v0"))
    assert (kind, described.version) == ("answer", "v1")
    assert handler.reply(("describe", "town", "v1")) == ("answer", None)
    assert handler.reply(("describe", "village", None)) == ("answer", None)
    assert handler.reply(ASK) == ("answer", "views")
    assert own.asked == [(QUERY, POLICY)]
    secret = "4711 people"
    for error, kind, said in (
        (Stopped(), "stopped", ""),
        (CannotProtectError(secret), "protect", ""),
        (QueryError(secret), "size", ""),
        (PolicyError(secret), "policy", "the policy cannot protect the input"),
        (NotReadyError("soon"), "checking", ""),
        (DatasetError("town/cells.arrow is cut"), "data", "town/cells.arrow is cut"),
        (RuntimeError(secret), "broken", "cannot answer"),
    ):
        caplog.clear()
        own.fails = error
        with caplog.at_level(logging.INFO, "lustrum.publish"):
            assert handler.reply(ASK) == (kind, None)
        assert secret not in caplog.text
        assert said in caplog.text
        assert "%s" not in caplog.text
        assert bool(caplog.text) == bool(said)


def test_the_process_answers_each_question_by_its_number_and_stops_those_that_were_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, own = threading.Event(), Service()

    def views(query: TableQuery, policy: Policy) -> Any:
        begun.set()
        while True:
            check_stop()

    monkeypatch.setattr(own, "views", views)
    given: list[Any] = []
    monkeypatch.setattr(process, "LocalRecordsService", lambda *words: given.append(words) or own)
    here, there = Pipe()
    handle = there.fileno()
    monkeypatch.setattr(process, "Connection", lambda number: there if number == handle else None)
    serving = threading.Thread(target=process.main, args=(handle, Path("root"), 2), daemon=True)
    serving.start()

    def ask(*words: Any) -> None:
        here.send_bytes(pickle.dumps(words))

    signs: list[Any] = []

    def reply() -> Any:
        while True:
            assert here.poll(60)
            found = pickle.loads(here.recv_bytes())
            if found[1] != "alive":
                return found
            signs.append(found)

    ask(7, "describe", "town", "v1")
    assert reply() == (7, "answer", None)
    assert given == [(Path("root"), 2)]
    assert own.background
    ask(8, *ASK)
    assert begun.wait(60)
    ask(99, "stop")  # nobody asked that
    ask(9, "describe", "town", "v1")
    assert reply() == (9, "answer", None)
    ask(8, "stop")
    assert reply() == (8, "stopped", None)
    ask(8, "stop")  # too late, which is no failure
    # As many tables as are counted at the same time, and a description does not wait for them.
    tables = range(20, 20 + process._AT_ONCE)
    for number in tables:
        begun.clear()
        ask(number, *ASK)
        assert begun.wait(60)
    ask(11, "describe", "town", "v1")
    assert reply() == (11, "answer", None)
    for number in tables:
        ask(number, "stop")
    assert sorted(reply() for _ in tables) == [(number, "stopped", None) for number in tables]
    begun.clear()
    ask(10, *ASK)
    assert begun.wait(60)
    assert set(signs) == {(0, "alive", None)}
    # The other side has gone: what is still being counted stops, and the process ends.
    here.close()
    serving.join(60)
    assert not serving.is_alive()
