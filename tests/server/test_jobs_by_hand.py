"""The thread of jobs step by step, with a file, clocks and threads that the test moves by hand."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lustrum.answer.archive import write_decision
from lustrum.model import Decision, LustrumError, QueryError, TableQuery
from lustrum.runtime.stop import check_stop, report_progress
from lustrum.server.http.errors import UNAVAILABLE
from lustrum.server.http.problems import Problem, ProblemError
from lustrum.server.operation.metrics import Metrics
from lustrum.server.service import jobs as jobs_module
from lustrum.server.service.job_store import Job, StoreError, key_of
from lustrum.server.service.jobs import Jobs
from lustrum.server.settings import Settings
from server.test_jobs import OTHER, QUERY, decided

JOB = Job("one", QUERY, "running", "", 0.0, "")


class Bell:
    """An event without threads: it notes how long somebody would have waited, then does what a test says."""

    def __init__(self, *then: Callable[[], object]) -> None:
        self.on, self.waits, self.then = False, list[float](), list(then)
        self.times_set = 0

    def is_set(self) -> bool:
        return self.on

    def set(self) -> None:
        self.on = True
        self.times_set += 1

    def clear(self) -> None:
        self.on = False

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        if self.then:
            self.then.pop(0)()
        return self.on


class Thread:
    """A thread that runs where it is started, or not at all."""

    made: list[Thread]

    def __init__(self, target: Any = None, name: str = "", daemon: bool | None = None) -> None:
        self.target, self.name, self.daemon = target, name, daemon
        self.started, self.joined = 0, list[float | None]()
        self.made.append(self)

    def start(self) -> None:
        self.started += 1
        if self.name == "job claim":
            self.target()

    def join(self, timeout: float | None = None) -> None:
        self.joined.append(timeout)


class Store:
    """A file of jobs of which a test says what it does."""

    def __init__(self) -> None:
        self.claims: list[Job | None] = []
        self.ended: list[tuple[Any, ...]] = []
        self.renewed: list[tuple[Any, ...]] = []
        self.ours: bool = True
        self.renew_says: list[Any] = []
        self.forgot: list[str] = []
        self.text: tuple[str, str] | None = None
        self.forget_fails = False

    def claim(self) -> Job | None:
        return self.claims.pop(0)

    def end(self, *words: Any) -> bool:
        self.ended.append(words)
        return self.ours

    def renew(self, *words: Any) -> bool:
        self.renewed.append(words)
        said = self.renew_says.pop(0)
        if isinstance(said, Exception):
            raise said
        return bool(said)

    def answer(self, name: str) -> tuple[str, str] | None:
        return self.text

    def forget(self, name: str) -> None:
        self.forgot.append(name)
        if self.forget_fails:
            raise StoreError

    def submit(self, *words: Any) -> tuple[Any, ...]:
        return words


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[Thread]:
    Thread.made = []
    monkeypatch.setattr(jobs_module, "threading", SimpleNamespace(Thread=Thread, Event=Bell))
    return Thread.made


def made(
    tmp_path: Path,
    work: Callable[[TableQuery], Decision] = decided,
    metrics: Metrics | None = None,
    **more: Any,
) -> tuple[Any, Store]:
    jobs: Any = Jobs(tmp_path, work, Settings(background_seconds=100.0), metrics, **more)
    jobs.store = Store()
    return jobs, jobs.store


def test_one_thread_works_and_a_stop_waits_for_it(tmp_path: Path, threads: list[Thread]) -> None:
    jobs, _ = made(tmp_path)
    jobs.stop()  # nothing was started
    jobs.start()
    jobs.start()
    (thread,) = threads
    assert (thread.target, thread.name, thread.daemon) == (jobs._loop, "jobs", True)
    assert thread.started == 1
    assert not jobs._over.is_set()  # also after a stop
    jobs._called.clear()
    jobs.stop()
    assert jobs._over.is_set()
    assert jobs._called.is_set()  # or it would sleep on
    assert thread.joined == [15]
    jobs.stop()
    assert thread.joined == [15]
    jobs.start()
    assert len(threads) == 2
    assert not jobs._over.is_set()


def test_a_job_is_handed_in_for_its_asker_and_wakes_the_thread(
    tmp_path: Path, threads: list[Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_module, "current_asker", lambda: "10.0.0.1")
    jobs, _ = made(tmp_path)
    assert not jobs._called.is_set()
    assert jobs.submit(QUERY, "v1") == (QUERY, "v1", "10.0.0.1")
    assert jobs._called.is_set()


def test_jobs_are_taken_one_after_the_other_and_then_somebody_is_waited_for(
    tmp_path: Path, threads: list[Thread], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, store = made(tmp_path)
    ran: list[Job] = []
    monkeypatch.setattr(jobs, "_run", ran.append)
    store.claims = [JOB, JOB, None, JOB, None]
    seen: list[bool] = []

    def claim() -> Job | None:
        seen.append(jobs._called.is_set())
        return store.claims.pop(0)

    monkeypatch.setattr(store, "claim", claim)
    jobs._called.then = [jobs._called.set, jobs._over.set]
    jobs._loop()
    assert len(ran) == 3
    assert jobs._called.waits == [0.5, 0.5]
    assert seen == [False] * 5  # what it was called for is done
    assert store.claims == []


@pytest.mark.parametrize("with_metrics", [True, False])
def test_a_step_is_tried_again_after_longer_and_longer_pauses(
    tmp_path: Path,
    threads: list[Thread],
    caplog: pytest.LogCaptureFixture,
    with_metrics: bool,
) -> None:
    metrics = Metrics()
    jobs, _ = made(tmp_path, metrics=metrics if with_metrics else None)
    errors: list[Exception] = [StoreError() for _ in range(7)]
    errors.insert(3, OSError(errno.ENOSPC, "No space left on device"))

    def step() -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    with caplog.at_level(logging.WARNING):
        assert jobs._retry(step) == "done"
    assert jobs._over.waits == [0.5, 1, 2, 4, 8, 10, 10, 10]
    first, last = caplog.messages  # that the file did not answer was said where it happened
    assert first.startswith("jobs: OSError (No space left on device) at ")
    assert last == "jobs: the file answers again, after 8 tries"
    counted = metrics.registry.get_sample_value("lustrum_job_errors_total")
    assert counted == (8 if with_metrics else 0)


def test_a_step_that_works_says_nothing_and_one_try_is_made_while_the_server_ends(
    tmp_path: Path, threads: list[Thread], caplog: pytest.LogCaptureFixture
) -> None:
    jobs, _ = made(tmp_path)
    jobs._over.set()
    assert jobs._retry(lambda: "done") == "done"
    tried: list[int] = []

    def fails() -> None:
        tried.append(1)
        raise StoreError

    assert jobs._retry(fails) is None
    assert tried == [1]
    assert caplog.messages == []


def test_a_result_is_read_for_its_data_and_policy_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    jobs, store = made(tmp_path)
    assert jobs.result("one") is None
    store.text = write_decision(decided(QUERY)), key_of(QUERY, "v1")
    for mark in ("v1", None):
        found = jobs.result("one", mark)
        assert found is not None
        assert found.query == QUERY
    assert jobs.result("one", "v2") is None
    assert store.forgot == []
    for fails in (False, True):
        store.forget_fails = fails
        store.text = "no answer", key_of(QUERY, "v1")
        caplog.clear()
        assert jobs.result("one", "v1") is None
        assert store.forgot == ["one"]
        (said,) = caplog.messages
        assert said.startswith("jobs: ")
        assert len(said) > 20
        store.forgot.clear()


def run(
    jobs: Any, store: Store, monkeypatch: pytest.MonkeyPatch, renewals: list[Any]
) -> list[Thread]:
    """Run a job; its claim is renewed at once, as often as there is something to say."""
    finished = Bell(*[lambda: None] * len(renewals), lambda: setattr(finished, "on", True))
    events = [Bell(), finished]
    store.renew_says = list(renewals)
    names = SimpleNamespace(Thread=Thread, Event=lambda: events.pop(0) if events else Bell())
    monkeypatch.setattr(jobs_module, "threading", names)
    Thread.made = []
    jobs._run(JOB)
    assert finished.waits == [0.5] * (len(renewals) + 1)
    assert finished.times_set == 1
    (thread,) = Thread.made
    assert (thread.daemon, thread.joined) == (True, [None])
    return Thread.made


def counted(metrics: Metrics) -> dict[str, float]:
    states = ("done", "waiting", "failed")
    found = {
        s: metrics.registry.get_sample_value("lustrum_jobs_total", {"state": s}) for s in states
    }
    return {state: number for state, number in found.items() if number}


def test_a_job_that_is_done_is_written_with_the_mark_of_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()
    jobs, store = made(tmp_path, metrics=metrics, mark=lambda query: f"mark of {query.dataset}")
    run(jobs, store, monkeypatch, [True, OSError(errno.EIO, "Input/output error"), True])
    assert store.ended == [("one", "done", "", write_decision(decided(QUERY)), "mark of demo")]
    assert store.renewed == [("one", "", 0.0)] * 3
    assert counted(metrics) == {"done": 1}
    (said,) = caplog.messages
    assert said.startswith("jobs: OSError (Input/output error) at ")
    # Without a mark none is written, and a job that is no longer ours is not counted.
    jobs, store = made(tmp_path, metrics=metrics)
    store.ours = False
    run(jobs, store, monkeypatch, [])
    assert store.ended == [("one", "done", "", write_decision(decided(QUERY)), None)]
    assert counted(metrics) == {"done": 1}
    jobs, store = made(tmp_path)
    run(jobs, store, monkeypatch, [])
    assert len(store.ended) == 1


def test_a_job_is_made_again_where_its_data_changed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = iter(["old", "new"])
    jobs, store = made(tmp_path, mark=lambda query: next(marks))
    run(jobs, store, monkeypatch, [])
    assert store.ended == [("one", "waiting", "", None, None)]


def test_progress_is_told_with_the_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs, store = made(tmp_path)

    def work(query: TableQuery) -> Decision:
        report_progress("protect", 0.4)
        # The thread that renews the claim comes to its turn.
        store.renew_says = [True]
        finished.on, finished.then = False, [lambda: None, lambda: finished.set()]
        Thread.made[0].target()
        return decided(query)

    jobs._work = work
    finished = Bell(lambda: finished.set())
    events = [Bell(), finished]
    names = SimpleNamespace(Thread=Thread, Event=lambda: events.pop(0) if events else Bell())
    monkeypatch.setattr(jobs_module, "threading", names)
    Thread.made = []
    jobs._run(JOB)
    assert store.renewed == [("one", "protect", 0.4)]


TOO_LONG = "The table took too long; ask for a smaller one."


@pytest.mark.parametrize(
    ("renewals", "over", "seconds", "ended"),
    [
        ([False], False, 0.0, []),  # another process has it
        ([True], False, 100.0, None),  # just in time
        ([True], False, 100.5, [("one", "failed", TOO_LONG, None, None)]),
        ([True], True, 0.0, [("one", "waiting", "", None, None)]),
        ([False], True, 0.0, [("one", "waiting", "", None, None)]),
    ],
)
def test_a_job_stops_where_it_is_lost_late_or_the_server_ends(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    renewals: list[Any],
    over: bool,
    seconds: float,
    ended: list[Any] | None,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(
        jobs_module, "time", SimpleNamespace(**{**vars(time), "monotonic": lambda: now[0]})
    )

    def work(query: TableQuery) -> Decision:
        now[0] += seconds
        jobs._over = Bell()
        jobs._over.on = over
        check_stop()
        return decided(query)

    jobs, store = made(tmp_path, work)
    run(jobs, store, monkeypatch, renewals)
    if ended is None:
        ended = [("one", "done", "", write_decision(decided(QUERY)), None)]
    assert [tuple(words) for words in store.ended] == ended


@pytest.mark.parametrize(
    ("error", "sentence", "logged"),
    [
        (QueryError("There is no level 'x'."), "There is no level 'x'.", False),
        (
            ProblemError(Problem("busy", "Busy", 503, "Please try again.")),
            "Please try again.",
            True,
        ),
        (LustrumError("/srv/secret is gone"), UNAVAILABLE, True),
        (ValueError("4711 people"), "This is our mistake, not yours.", True),
    ],
)
def test_what_goes_wrong_is_written_as_a_sentence_and_its_place_is_logged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    sentence: str,
    logged: bool,
) -> None:
    def work(query: TableQuery) -> Decision:
        raise error

    metrics = Metrics()
    jobs, store = made(tmp_path, work, metrics)
    run(jobs, store, monkeypatch, [])
    assert store.ended == [("one", "failed", sentence, None, None)]
    assert counted(metrics) == {"failed": 1}
    said = caplog.messages
    assert len(said) == logged
    assert all(f"job: {type(error).__name__}" in line and "4711" not in line for line in said)
    assert all("secret" not in line for line in said)


def test_the_settings_of_the_server_hold_for_its_jobs(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, decided, Settings(keep_hours=2.0))
    assert jobs.store._keep == 7200
    assert jobs.find("nowhere") is None
    job = jobs.submit(OTHER, "v1")
    assert jobs.find(job.id) == job
    assert jobs.may_cancel(job.id, job.token)
    assert jobs.cancel(job.id, job.token)
    assert not jobs.cancel(job.id, job.token)
