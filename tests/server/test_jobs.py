"""Jobs: progress, cancelling, and what a crash, a full disk or a restart leaves of them."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from lustrum.model import (
    Decision,
    LustrumError,
    QueryError,
    Release,
    TableAxis,
    TableQuery,
    Verdict,
)
from lustrum.runtime.stop import check_stop, report_progress
from lustrum.server.http.errors import UNAVAILABLE, Problem, ProblemError
from lustrum.server.operation.metrics import Metrics
from lustrum.server.service import job_store
from lustrum.server.service import jobs as jobs_module
from lustrum.server.service.job_store import JobStore
from lustrum.server.service.jobs import Job, Jobs
from lustrum.server.settings import Settings
from waiting import LONG

QUERY = TableQuery.from_mapping({"dataset": "demo", "by": ["age", "sex"]})
OTHER = TableQuery.from_mapping({"dataset": "demo", "by": ["age"]})


def decided(query: TableQuery) -> Decision:
    axes = (TableAxis.plain("age", ["1", "2"]),)
    release = Release(axes, np.array([3, 6]), np.full(2, "F"), {"method": "none"})
    return Decision(query, Verdict.ANSWER, release=release)


def until(jobs: Jobs, job: Job, *states: str) -> Job:
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        found = jobs.store.find(job.id)
        assert found is not None
        if found.state in states:
            return found
        time.sleep(0.02)
    raise AssertionError(f"the job is {found.state}")


@contextmanager
def working(jobs: Jobs) -> Iterator[None]:
    """The jobs are worked on meanwhile."""
    jobs.start()
    try:
        yield
    finally:
        jobs.stop()


def test_a_job_is_done_in_the_background_and_its_answer_kept(tmp_path: Path) -> None:
    metrics = Metrics()
    jobs = Jobs(tmp_path, decided, Settings(), metrics)
    job = jobs.submit(QUERY, "v1")
    assert job.state == "waiting"
    assert jobs.result(job.id) is None
    with working(jobs):
        until(jobs, job, "done")
    found = jobs.result(job.id)
    assert found is not None
    assert found.release is not None
    assert found.release.published.tolist() == [3, 6]
    assert jobs.result(job.id, "v1") is not None
    assert jobs.result(job.id, "v2") is None  # of other data or another policy
    assert metrics.registry.get_sample_value("lustrum_jobs_total", {"state": "done"}) == 1


def test_the_same_question_is_one_job_until_data_or_policy_change(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, decided, Settings())
    first = jobs.submit(QUERY, "v1")
    assert jobs.submit(QUERY, "v1").id == first.id
    assert jobs.submit(QUERY, "v2").id != first.id
    assert jobs.submit(OTHER, "v1").id != first.id
    assert jobs.store.find("nowhere") is None


def test_progress_is_told_and_a_job_can_be_cancelled_unless_others_wait(tmp_path: Path) -> None:
    begun = threading.Event()

    def slow(query: TableQuery) -> Decision:
        report_progress("protect", 0.4)
        begun.set()
        while True:
            check_stop()
            time.sleep(0.01)

    jobs = Jobs(tmp_path, slow, Settings())
    with working(jobs):
        job = jobs.submit(QUERY, "v1")
        other = jobs.submit(QUERY, "v1")
        assert other.id == job.id
        assert other.token != job.token
        assert begun.wait(LONG)
        end = time.monotonic() + LONG
        while (found := jobs.store.find(job.id)) and found.share == 0 and time.monotonic() < end:
            time.sleep(0.05)
        assert found is not None
        assert (found.step, found.share) == ("protect", 0.4)
        assert not jobs.store.cancel(job.id, "guessed")
        assert jobs.store.cancel(job.id, job.token)
        assert not jobs.store.cancel(job.id, job.token)  # nobody leaves twice, for others
        assert until(jobs, job, "running").state == "running"
        assert jobs.store.may_cancel(job.id, other.token)
        assert jobs.store.cancel(job.id, other.token)
        until(jobs, job, "cancelled")
        # The thread is free again for another one.
        begun.clear()
        jobs.submit(OTHER, "v1")
        assert begun.wait(LONG)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (QueryError("There is no level 'x'."), "There is no level 'x'."),
        (ProblemError(Problem("busy", "Busy", 503, "Please try again.")), "Please try again."),
        (LustrumError("/srv/secret is gone"), str(UNAVAILABLE)),
        (ValueError("4711 people"), "This is our mistake, not yours."),
    ],
)
def test_what_goes_wrong_is_a_sentence_and_no_word_of_an_exception_gets_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception, sentence: str
) -> None:
    def broken(query: TableQuery) -> Decision:
        raise error

    metrics = Metrics()
    jobs = Jobs(tmp_path, broken, Settings(), metrics)
    with working(jobs):
        assert until(jobs, jobs.submit(QUERY, "v1"), "failed").sentence == sentence
    assert metrics.registry.get_sample_value("lustrum_jobs_total", {"state": "failed"}) == 1
    assert len(caplog.messages) == (not isinstance(error, QueryError))
    assert not re.search("4711|secret", caplog.text)


def test_a_job_that_takes_too_long_fails(tmp_path: Path) -> None:
    def endless(query: TableQuery) -> Decision:
        while True:
            check_stop()
            time.sleep(0.01)

    jobs = Jobs(tmp_path, endless, Settings(background_seconds=0.2))
    with working(jobs):
        assert "too long" in until(jobs, jobs.submit(QUERY, "v1"), "failed").sentence


def test_a_job_under_way_waits_for_the_next_start(tmp_path: Path) -> None:
    begun = threading.Event()

    def slow(query: TableQuery) -> Decision:
        begun.set()
        while True:
            check_stop()
            time.sleep(0.01)

    jobs = Jobs(tmp_path, slow, Settings())
    jobs.start()
    job = jobs.submit(QUERY, "v1")
    assert begun.wait(LONG)
    jobs.stop()
    assert until(jobs, job, "waiting").state == "waiting"
    again = Jobs(tmp_path, decided, Settings())
    with working(again):
        until(again, job, "done")


CRASHING = """
import sys, time
from pathlib import Path
from lustrum.model import TableQuery
from lustrum.server.service.jobs import Jobs
from lustrum.server.settings import Settings

def work(query):
    print("begun", flush=True)
    time.sleep(600)

jobs = Jobs(Path(sys.argv[1]), work, Settings())
print(jobs.submit(TableQuery.from_mapping({"dataset": "demo", "by": ["age", "sex"]}), "v1").id, flush=True)
jobs.start()
time.sleep(600)
"""


def test_a_job_of_a_process_that_was_killed_is_taken_up_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", CRASHING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert process.stdout.readline().strip() == "begun"
        os.kill(process.pid, signal.SIGKILL)
    jobs = Jobs(tmp_path, decided, Settings())
    job = jobs.store.find(name)
    assert job is not None
    assert job.state == "running"
    monkeypatch.setattr(job_store, "LEASE", 3600.0)
    assert jobs.store.claim() is None  # the claim of the dead still holds
    monkeypatch.setattr(job_store, "LEASE", 0.5)
    time.sleep(0.6)
    with working(jobs):
        until(jobs, job, "done")
    assert jobs.result(name) is not None


@contextmanager
def full_disk(most: int) -> Iterator[None]:
    """No file may be written beyond so many bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_finished_results_can_be_read_while_the_disk_is_full(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, decided, Settings())
    job = jobs.submit(QUERY, "v1")
    with working(jobs):
        until(jobs, job, "done")
    for fresh in (jobs, Jobs(tmp_path, decided, Settings())):  # also after a restart
        with full_disk(0):
            with pytest.raises(ProblemError):
                fresh.submit(OTHER, "v1")
            found = fresh.store.find(job.id)
            result = fresh.result(job.id, "v1")
            assert fresh.store.may_cancel(job.id, job.token)
            assert fresh.store.find("nowhere") is None
        assert found is not None
        assert found.state == "done"
        assert result is not None
        assert result.query == QUERY


def test_a_damaged_result_on_a_full_disk_is_no_error_of_the_reader(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, decided, Settings())
    job = jobs.submit(QUERY, "v1")
    with sqlite3.connect(tmp_path / "jobs.sqlite") as base:
        base.execute("update job set state = 'done', answer = 'no answer'")
    base.close()
    with full_disk(0):
        assert jobs.result(job.id) is None
    assert jobs.store.find(job.id) is not None
    assert jobs.result(job.id) is None
    assert jobs.store.find(job.id) is None


def test_a_full_disk_is_a_sentence_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, decided, Settings())
    kept = jobs.submit(QUERY, "v1")
    with full_disk(4096), pytest.raises(ProblemError) as caught:
        jobs.submit(OTHER, "v1")
    assert caught.value.problem.status == 503
    assert caught.value.problem.retry
    assert jobs.store.find(kept.id) == kept
    assert not jobs.store.find(kept.id).token  # type: ignore[union-attr]
    assert jobs.submit(OTHER, "v1").state == "waiting"


def test_old_jobs_are_forgotten(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, decided, Settings(keep_hours=1e-9))
    with working(jobs):
        job = until(jobs, jobs.submit(QUERY, "v1"), "done")
    time.sleep(0.01)
    jobs.submit(OTHER, "v1")
    assert jobs.store.find(job.id) is None


def test_the_file_of_jobs_is_for_its_keeper_only(tmp_path: Path) -> None:
    Jobs(tmp_path, decided, Settings()).submit(QUERY, "v1")
    assert (tmp_path / "jobs.sqlite").stat().st_mode & 0o077 == 0


class Faulty:
    """Makes every statement that begins with a word fail so many times, as SQLite would say it."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, word: str, times: int, error: Exception
    ) -> None:
        self.left = times
        real = sqlite3.connect
        faults = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
                if faults.left and sql.startswith(word):
                    faults.left -= 1
                    raise error
                return super().execute(sql, *values)

        monkeypatch.setattr(
            sqlite3, "connect", lambda *args, **options: real(*args, factory=Connection, **options)
        )


@pytest.mark.parametrize(
    "error",
    [
        sqlite3.OperationalError("database is locked"),
        sqlite3.OperationalError("database or disk is full"),
        sqlite3.OperationalError("disk I/O error"),
        OSError(28, "No space left on device"),
        MemoryError(),
    ],
)
@pytest.mark.parametrize("word", ["begin", "select", "update", "commit", "create"])
def test_the_thread_of_jobs_survives_any_error_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, error: Exception
) -> None:
    monkeypatch.setattr(jobs_module, "_TURN", 0.002)
    metrics = Metrics()
    jobs = Jobs(tmp_path, decided, Settings(), metrics)
    job = jobs.submit(QUERY, "v1")
    faults = Faulty(monkeypatch, word, 5, error)
    with working(jobs):
        end = time.monotonic() + LONG
        while faults.left and time.monotonic() < end:
            time.sleep(0.01)
        until(jobs, job, "done")
    assert jobs.result(job.id) is not None
    failed = metrics.registry.get_sample_value("lustrum_job_errors_total")
    assert failed is not None
    assert failed >= 1


def test_a_file_of_jobs_that_is_locked_for_long_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program holds the file for longer than a writer waits; then the job is done after all."""
    monkeypatch.setattr(job_store, "_WAIT", 0.05)
    jobs = Jobs(tmp_path, decided, Settings())
    job = jobs.submit(QUERY, "v1")
    other = sqlite3.connect(tmp_path / "jobs.sqlite", isolation_level=None)
    other.execute("begin exclusive")
    jobs.start()
    try:
        time.sleep(0.5)
        with pytest.raises(ProblemError) as caught:
            jobs.submit(OTHER, "v1")
        assert caught.value.problem.status == 503
        monkeypatch.setattr(
            job_store, "_WAIT", LONG
        )  # from here on only the jobs themselves hold it
        other.execute("rollback")
        until(jobs, job, "done")
    finally:
        other.close()
        jobs.stop()


def test_a_damaged_file_of_jobs_is_set_aside(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, decided, Settings())
    jobs.submit(QUERY, "v1")
    for path in tmp_path.glob("jobs.sqlite-*"):
        path.unlink()
    (tmp_path / "jobs.sqlite").write_bytes(b"no database at all" * 500)
    with working(jobs):
        end = time.monotonic() + LONG
        while not list(tmp_path.glob("jobs-damaged-*")) and time.monotonic() < end:
            time.sleep(0.02)
        until(jobs, jobs.submit(QUERY, "v1"), "done")
    assert len(list(tmp_path.glob("jobs-damaged-*"))) == 1


def test_a_file_of_the_first_version_is_taken_over(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "jobs.sqlite", isolation_level=None)
    base.execute(
        "create table job (id text primary key, key text not null, query text not null, "
        "state text not null, step text not null default '', share real not null default 0, "
        "sentence text not null default '', askers integer not null default 1, created real not null, "
        "changed real not null, owner text, claimed real, answer text)"
    )
    query = json.dumps(QUERY.to_mapping())
    for name, text in (("bad", '{"by": 3}'), ("old", query)):
        base.execute(
            "insert into job (id, key, query, state, created, changed, owner, claimed) "
            "values (?, 'k', ?, 'running', 1.7e9, 1.7e9, 'gone', 1.7e9)",
            (name, text),
        )
    base.close()
    jobs = Jobs(tmp_path, decided, Settings())
    with working(jobs):
        old = jobs.store.find("old")
        assert old is not None
        until(jobs, old, "done")


def claimed(store: JobStore) -> str | None:
    job = store.claim()
    return job and job.id


@pytest.mark.parametrize("jump", [-1e9, -3600.0, 3600.0, 1e9])
def test_a_clock_that_jumps_neither_loses_a_job_nor_starts_it_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    mine, other = JobStore(tmp_path, 24.0), JobStore(tmp_path, 24.0)
    job = mine.submit(QUERY, "v1")
    done = mine.submit(OTHER, "v1")
    assert {claimed(mine), claimed(mine)} == {job.id, done.id}
    assert mine.end(done.id, "done", answer="{}")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    assert other.claim() is None  # the claim still holds
    assert mine.renew(job.id, "protect", 0.5)
    assert other.claim() is None
    other.submit(QUERY, "v2")  # cleans up
    assert other.answer(done.id) is not None
    # The machine starts again: its running clock begins at 0, and all claims are of dead processes.
    running = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: 5.0 if running > 5 else 0.0)
    assert job.id in {claimed(other), claimed(other)}
    assert not mine.renew(job.id, "", 0.0)


def test_a_claim_runs_out_when_its_process_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = JobStore(tmp_path, 24.0), JobStore(tmp_path, 24.0)
    job = mine.submit(QUERY, "v1")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    assert claimed(mine) == job.id
    monkeypatch.setattr(time, "monotonic", lambda: now + job_store.LEASE + 1)
    assert job.id in {claimed(other), claimed(other)}
    assert not mine.renew(job.id, "", 0.0)
    assert not mine.end(job.id, "done", answer="{}")
    assert other.end(job.id, "done", answer="{}")


def questions(many: int) -> list[TableQuery]:
    return [
        TableQuery.from_mapping({"dataset": "demo", "by": ["age"], "where": {"area": [str(i)]}})
        for i in range(many)
    ]


def test_askers_take_turns_in_the_queue_of_jobs(tmp_path: Path) -> None:
    store = JobStore(tmp_path, 24.0)
    many = [store.submit(query, "v1", "10.0.0.1").id for query in questions(6)]
    one = store.submit(QUERY, "v1", "10.0.0.2").id
    two = store.submit(OTHER, "v1", "10.0.0.2").id
    order = []
    while (job := store.claim()) is not None:
        order.append(job.id)
        store.end(job.id, "done", answer="{}")
    assert order == [many[0], one, many[1], two, *many[2:]]


def test_one_asker_cannot_fill_the_queue_of_jobs(tmp_path: Path) -> None:
    store = JobStore(tmp_path, 24.0)
    asked = questions(job_store.MOST_OF_ONE + 1)
    for query in asked[:-1]:
        store.submit(query, "v1", "10.0.0.1")
    with pytest.raises(ProblemError) as caught:
        store.submit(asked[-1], "v1", "10.0.0.1")
    assert caught.value.problem.status == 503
    assert store.submit(asked[-1], "v1", "10.0.0.2").state == "waiting"
    kept = (tmp_path / "jobs.sqlite").read_bytes()
    kept += (
        (tmp_path / "jobs.sqlite-wal").read_bytes()
        if (tmp_path / "jobs.sqlite-wal").exists()
        else b""
    )
    assert b"10.0.0" not in kept


def test_an_answer_made_while_data_or_policy_changed_is_made_again(tmp_path: Path) -> None:
    marks = iter(["old", "new", "new", "new"])
    made: list[TableQuery] = []

    def work(query: TableQuery) -> Decision:
        made.append(query)
        return decided(query)

    jobs = Jobs(tmp_path, work, Settings(), mark=lambda _: next(marks))
    job = jobs.submit(QUERY, "old")
    with working(jobs):
        until(jobs, job, "done")
    assert len(made) == 2
