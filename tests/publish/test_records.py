"""The room of the records: what is read of a folder, kept of a release, and sent to the side that answers."""

from __future__ import annotations

import json
import logging
import os
import pickle
import threading
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

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
from lustrum.publish.bundles.make import survey_records
from lustrum.publish.bundles.memory import Memory, memory_path, read_memory, sums_path, write_memory
from lustrum.publish.records import local as local_module
from lustrum.publish.records import local as open_datasets
from lustrum.publish.records import process
from lustrum.publish.records.local import LocalRecordsService, OpenDatasets
from lustrum.publish.records.process import RequestHandler
from lustrum.publish.records.views import true_figures
from lustrum.runtime.stop import Stopped, check_stop
from lustrum.tabulate import FrameSource, Secret, Store, ingest
from lustrum.tabulate.store.files import DamagedError
from small import described
from waiting import LONG, until

DATASET = described("town", {"area": "nsw", "sex": "fm"}, measures=[{"name": "pay"}])
SECRET = Secret(bytes(range(32)))
QUERY = TableQuery.from_mapping({"dataset": "town", "by": ["area", "sex"]})


# --- true figures ---------------------------------------------------------------------------------


def test_true_figures_compare_the_shown_cells_with_the_same_cells_of_the_truth() -> None:
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
    measure = policy.risk.spec
    found = true_figures(QUERY, engine, release, policy)
    # 4, 9, 3 and 1 are shown as 6, 3, 9 and 0.
    assert (found.mean_error, found.largest_error) == (15 / 4, 6)
    assert found.risk_before == measure.before(own)
    assert found.risk_after == measure.after(own, release)
    assert 0 < found.utility < 1
    exact = replace(release, numbers=own.values)
    assert true_figures(QUERY, engine, exact, policy).utility == 1.0


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
        assert found.design.clusters.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    else:
        # Respondents whose weights move alike are one cluster.
        stratum_and_cluster = found.design.clusters
        alike = [stratum_and_cluster.tolist()[k] for k in (0, 2)]
        assert alike[0] != alike[1]
        assert stratum_and_cluster.tolist() == [alike[k] for k in (0, 0, 1, 1, 1, 1, 0, 0)]
    if method == "jackknife":
        assert found.replicates is None
        assert found.design.lonely == "refuse"
    else:
        assert found.design.lonely == "centre"
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


# --- the records of a folder ----------------------------------------------------------------------

ROUNDED, COARSER = (
    Policy.model_validate(
        {"before": [{"method": "random-rounding", "base": base}], "protect": {"method": "none"}}
    )
    for base in (5, 11)
)
WEIGHTED, NOISIER = (
    Policy.model_validate(
        {
            "protect": {"method": "random-rounding"},
            "weights": {"weight": "w", "classes": ["area"], "noise": noise, "decimals": 3},
        }
    )
    for noise in (0.05, 0.3)
)


def told(root: Path, women: int) -> None:
    """Put a version of the town into the folder: more or fewer women."""
    rows = [
        {
            "id": str(k),
            "area": "nsw"[k % 3],
            "sex": "f" if k < women else "m",
            "pay": k,
            "w": 1 + k % 4,
        }
        for k in range(90)
    ]
    source = {**DATASET.source, "weights": [{"name": "w"}]}
    source["dataset"] = {"name": "town", "record_id": "id"}
    described = Dataset.from_mapping(source)
    ingest(FrameSource(pa.Table.from_pylist(rows)), described, Store(root), secret=SECRET)


def test_a_service_that_has_answered_before_answers_as_a_new_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was prepared for one policy or version of the data is never used for another."""
    told(tmp_path, 30)
    old = LocalRecordsService(tmp_path, 1)
    weighted = replace(QUERY, weight="w")
    asked = [(QUERY, Policy.model_validate({})), (QUERY, ROUNDED), (QUERY, COARSER)]
    asked += [(weighted, WEIGHTED), (weighted, NOISIER)]
    seen = []
    for women in (30, 70):
        told(tmp_path, women)
        for query, policy in (*asked, *reversed(asked)):
            one, two = (s.views(query, policy) for s in (old, LocalRecordsService(tmp_path, 1)))
            assert np.array_equal(one.shown.published, two.shown.published)
            seen.append(one.shown.published.tolist())
    assert len({str(numbers) for numbers in seen}) == 2 * len(asked)
    source = old.source(old.engine("town"), ROUNDED)
    assert old.source(old.engine("town"), ROUNDED) is source, "prepared once"

    engine, real = old.engine("town"), local_module.prepared

    def touched(*words: Any) -> Any:
        os.utime(engine.files.folder / "records.arrow", ns=(1, 1))
        return real(*words)

    monkeypatch.setattr(local_module, "prepared", touched)
    with pytest.raises(DatasetError, match="changed while it was in use"):
        old.source(engine, COARSER)  # what was made of damaged files is not kept

    def refused(*_: Any) -> Any:
        raise InputError("too few records")

    monkeypatch.setattr(local_module, "prepared", refused)
    with pytest.raises(PolicyError, match=r"policy of 'town' cannot protect the input: too few"):
        old.views(QUERY, COARSER)
    with pytest.raises(QueryError, match="There is no dataset 'twon'"):
        old.engine("twon")


def test_an_earlier_version_answers_while_a_large_one_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()
    check = open_datasets.VersionFiles.check

    def slow(files: open_datasets.VersionFiles) -> None:
        assert go_on.wait(LONG)
        check(files)

    told(tmp_path, 30)
    own = OpenDatasets(Store(tmp_path), 1)
    first = own.engine("town")
    assert own.engine("town") is first
    monkeypatch.setattr(open_datasets, "LARGE", 0)
    monkeypatch.setattr(open_datasets.VersionFiles, "check", slow)
    own.background = True
    told(tmp_path, 70)
    assert own.engine("town") is first
    fresh = OpenDatasets(Store(tmp_path), 1)
    fresh.background = True
    with pytest.raises(NotReadyError, match="still being checked"):
        fresh.engine("town")
    with caplog.at_level(logging.INFO, "lustrum.publish"):
        go_on.set()
        second = until(lambda: (now := own.engine("town")) is not first and now)
    assert second.version != first.version
    # A byte that changes under the engine ends it, and so does every later version with a wrong byte.
    records = second.files.folder / "records.arrow"
    raw = bytearray(records.read_bytes())
    raw[len(raw) // 2] ^= 1
    records.chmod(0o600)
    records.write_bytes(raw)
    with pytest.raises(NotReadyError):
        own.engine("town")

    def damaged() -> bool:
        try:
            own.engine("town")
        except DamagedError:
            return True
        except NotReadyError:
            return False
        raise AssertionError("a damaged dataset answers")

    until(damaged)
    raw[len(raw) // 2] ^= 1
    records.write_bytes(raw)

    def mended() -> bool:
        try:
            return own.engine("town").version == second.version
        except NotReadyError:
            return False

    until(mended)


# --- the process of the records -------------------------------------------------------------------


class Service:
    """Records that answer or fail as they are told."""

    fails: BaseException | None = None
    background = False

    def names(self) -> list[str]:
        return ["town"]

    def describe(self, name: str) -> Described:
        return Described("v1", DATASET)

    def views(self, query: TableQuery, policy: Policy) -> Any:
        if self.fails is not None:
            raise self.fails
        return query, policy

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
    assert handler.reply(ASK) == ("answer", (QUERY, POLICY))
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
    monkeypatch.setattr(process, "LocalRecordsService", lambda *words: own)
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
    assert own.background
    ask(8, *ASK)
    assert begun.wait(60)
    ask(99, "stop")  # nobody asked that
    ask(9, "describe", "town", "v1")
    assert reply() == (9, "answer", None)
    ask(8, "stop")
    assert reply() == (8, "stopped", None)
    ask(8, "stop")  # too late, which is no failure
    begun.clear()
    ask(10, *ASK)
    assert begun.wait(60)
    assert set(signs) == {(0, "alive", None)}
    # The other side has gone: what is still being counted stops, and the process ends.
    here.close()
    serving.join(60)
    assert not serving.is_alive()
