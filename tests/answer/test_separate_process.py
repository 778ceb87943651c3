"""The records service in a separate process: the same numbers, fixed failures, no way to the records."""

from __future__ import annotations

import os
import pickle
import socket
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from answer.conftest import SECRET, people, town
from lustrum.answer import TableService
from lustrum.answer.records_line import FAILURES
from lustrum.answer.separate_process import SeparateRecordsService
from lustrum.local import local_service
from lustrum.model import DatasetError, QueryError, TableQuery
from lustrum.policy import Policy
from lustrum.public.numbers import Described, Views
from lustrum.publish.records import LocalRecordsService, process
from lustrum.publish.records.process import RequestHandler
from lustrum.runtime.stop import Stopped, stopping
from lustrum.tabulate import FrameSource, Store, ingest
from waiting import LONG, until

POLICY = 'dataset = "town"\n[rules]\n[risk]\nlimit = 1.0\n[protect]\nmethod = "random-rounding"\nend = true\n'
QUERY = {"dataset": "town", "by": ["age", "job"], "where": {"area": ["n"]}, "totals": True}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("apart")
    ingest(FrameSource(people()), town(), Store(root), secret=SECRET)
    (root / "policies").mkdir()
    (root / "policies" / "town.toml").write_text(POLICY)
    return root


@pytest.fixture(scope="module")
def apart(root: Path) -> Iterator[TableService]:
    service = TableService(root, workers=1)
    yield service
    service.close()


def test_the_answer_is_the_same_from_a_process_of_its_own(root: Path, apart: TableService) -> None:
    query = TableQuery.from_mapping(QUERY)
    near, far = local_service(root, workers=1).answer(query), apart.answer(query)
    for name in ("published", "status", "low", "high", "structural"):
        assert np.array_equal(getattr(near.release, name), getattr(far.release, name))
    assert near.trace == far.trace
    assert near.release.notes == far.release.notes
    assert (near.risk_before, near.risk_after, near.utility) == (
        far.risk_before, far.risk_after, far.utility,
    )  # fmt: skip


def test_many_may_ask_at_once_and_each_gets_its_own_answer(apart: TableService) -> None:
    codes = [str(i) for i in range(1, 9)]
    found: dict[str, Any] = {}

    def ask(code: str) -> None:
        words = {"dataset": "town", "by": ["sex"], "where": {"age": [code]}}
        found[code] = apart.answer(TableQuery.from_mapping(words)).release

    threads = [threading.Thread(target=ask, args=(code,)) for code in codes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for code in codes:
        words = {"dataset": "town", "by": ["sex"], "where": {"age": [code]}}
        again = apart.answer(TableQuery.from_mapping(words)).release
        assert np.array_equal(again.published, found[code].published)


def test_a_process_that_died_is_started_again(root: Path) -> None:
    service = TableService(root, workers=1)
    query = TableQuery.from_mapping(QUERY)
    assert service.answer(query).released
    records = service._records
    assert isinstance(records, SeparateRecordsService)
    records._line._process.kill()
    records._line._process.wait()
    line = records._line
    until(lambda: line.is_broken)
    assert service.answer(query).released
    service.close()


def test_a_question_whose_asker_has_left_is_stopped(apart: TableService) -> None:
    with stopping(lambda: True), pytest.raises(Stopped):
        apart.answer(TableQuery.from_mapping(QUERY))
    assert apart.answer(TableQuery.from_mapping(QUERY)).released


class Busy(LocalRecordsService):
    """A records service all of whose tables take until somebody lets them go."""

    go_on = threading.Event()

    def __init__(self, *_: object) -> None:
        """Nothing is opened."""

    def check_in_background(self) -> None:
        """Nothing is checked."""

    def names(self) -> list[str]:
        return ["town"]

    def describe(self, name: str) -> Described:
        return Described("version", town())

    def views(self, query: TableQuery, policy: Policy) -> Views:
        self.go_on.wait(LONG)
        raise QueryError("too large")


def test_a_description_never_waits_for_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many are being counted: pages, the catalogue and readiness need nothing else."""
    monkeypatch.setattr(process, "LocalRecordsService", Busy)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        other = threading.Thread(target=process.main, args=(os.dup(theirs.fileno()), tmp_path))
        other.start()
        with Connection(os.dup(ours.fileno())) as pipe:
            policy = Policy.model_validate({}).model_dump_json()
            for number in range(1, 3 * process._AT_ONCE):
                pipe.send_bytes(pickle.dumps((number, "views", QUERY, policy)))
            pipe.send_bytes(pickle.dumps((1000, "describe", "town", None)))
            heard: list[tuple[int, str, Any]] = []
            try:
                until(lambda: heard.append(pickle.loads(pipe.recv_bytes())) or heard[-1][0], 90)  # type: ignore[func-returns-value]
                assert heard[-1][:2] == (1000, "answer")
            finally:
                Busy.go_on.set()
                ours.shutdown(socket.SHUT_RDWR)
                other.join(LONG)
    assert not other.is_alive()


SECRETS = "4711 people, key 12345678901234567890"


class Telling(LocalRecordsService):
    """A records service with a bug whose messages hold data."""

    def __init__(self, error: type[Exception]) -> None:
        self._error = error

    def names(self) -> list[str]:
        raise self._error(SECRETS)

    def views(self, query: TableQuery, policy: Policy) -> Views:
        raise self._error(SECRETS)


@pytest.mark.parametrize(
    "error",
    [ValueError, KeyError, QueryError, DatasetError, RuntimeError, MemoryError, ZeroDivisionError],
)
def test_a_failure_is_one_of_a_few_kinds_without_a_word_of_the_data(
    error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    handler = RequestHandler(Telling(error))
    for words in (
        ("describe", "town", None),
        ("views", QUERY, Policy.model_validate({}).model_dump_json()),
        ("?",),
    ):
        kind, value = handler.reply(words)
        assert kind in FAILURES
        assert value is None
        assert SECRETS not in str(FAILURES[kind])
    if error is not DatasetError:
        # The sentences of the agency's own errors name files; all others may hold data.
        assert SECRETS not in caplog.text


def test_what_comes_over_the_pipe_are_names_descriptions_and_releases(root: Path) -> None:
    handler = RequestHandler(LocalRecordsService(root, workers=1))
    policy = Policy.model_validate({}).model_dump_json()
    kind, described = handler.reply(("describe", "town", None))
    assert kind == "answer"
    assert isinstance(described, Described)
    assert handler.reply(("describe", "town", described.version)) == ("answer", None)
    kind, views = handler.reply(("views", QUERY, policy))
    assert isinstance(views, Views)
    raw = pickle.dumps(views)
    engine = LocalRecordsService(root, workers=1).engine("town")
    for release in (views.everybody, views.selected, views.shown):
        assert not release.published[~release.shown].any()
        assert release.provenance == {}
    keys = engine.cube(TableQuery.from_mapping(QUERY)).shown().keys
    for key in keys.ravel()[:50].tolist():
        assert not key or key.to_bytes(8, "little") not in raw


def test_the_answering_side_does_not_load_what_reads_records() -> None:
    """The contract holds the imports; this holds that the process is named, not imported."""
    import subprocess

    script = (
        "import sys, lustrum.server, lustrum.answer.separate_process\n"
        "rooms = ('lustrum.publish', 'lustrum.tabulate')\n"
        "loaded = [m for m in sys.modules if m.startswith(rooms)]\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
