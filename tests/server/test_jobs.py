"""Jobs: progress, cancelling, and what a crash, a full disk or a restart leaves of them."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from lustrum.model import Decision, QueryError, Release, TableAxis, TableQuery, Verdict
from lustrum.model.stop import check_stop, report_progress
from lustrum.server.http.problems import ProblemError
from lustrum.server.operation.metrics import Metrics
from lustrum.server.service import jobs as jobs_module
from lustrum.server.service.jobs import Job, Jobs
from lustrum.server.settings import Settings

QUERY = TableQuery.from_mapping({"dataset": "demo", "by": ["age", "sex"]})
OTHER = TableQuery.from_mapping({"dataset": "demo", "by": ["age"]})


def decided(query: TableQuery) -> Decision:
    axes = (TableAxis.plain("age", ["1", "2"]),)
    release = Release(axes, np.array([3, 6]), np.full(2, "F"), {"method": "none"})
    return Decision(query, Verdict.ANSWER, release=release)


def until(jobs: Jobs, job: Job, *states: str, seconds: float = 20.0) -> Job:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = jobs.find(job.id)
        assert found is not None
        if found.state in states:
            return found
        time.sleep(0.02)
    raise AssertionError(f"the job is {found.state}")


def test_a_job_is_done_in_the_background_and_its_answer_kept(tmp_path: Path) -> None:
    metrics = Metrics()
    jobs = Jobs(tmp_path, decided, Settings(), metrics)
    job = jobs.submit(QUERY, "v1")
    assert job.state == "waiting"
    assert jobs.result(job.id) is None
    jobs.start()
    try:
        until(jobs, job, "done")
    finally:
        jobs.stop()
    found = jobs.result(job.id)
    assert found is not None
    assert found.release is not None
    assert found.release.published.tolist() == [3, 6]
    assert metrics.registry.get_sample_value("lustrum_jobs_total", {"state": "done"}) == 1


def test_the_same_question_is_one_job_until_data_or_policy_change(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, decided, Settings())
    first = jobs.submit(QUERY, "v1")
    assert jobs.submit(QUERY, "v1").id == first.id
    assert jobs.submit(QUERY, "v2").id != first.id
    assert jobs.submit(OTHER, "v1").id != first.id
    assert jobs.find("nowhere") is None


def test_progress_is_told_and_a_job_can_be_cancelled_unless_others_wait(tmp_path: Path) -> None:
    begun = threading.Event()

    def slow(query: TableQuery) -> Decision:
        report_progress("protect", 0.4)
        begun.set()
        while True:
            check_stop()
            time.sleep(0.01)

    jobs = Jobs(tmp_path, slow, Settings())
    jobs.start()
    try:
        job = jobs.submit(QUERY, "v1")
        jobs.submit(QUERY, "v1")
        assert begun.wait(10)
        end = time.monotonic() + 10
        while (found := jobs.find(job.id)) and found.share == 0 and time.monotonic() < end:
            time.sleep(0.05)
        assert found is not None
        assert (found.step, found.share) == ("protect", 0.4)
        jobs.cancel(job.id)
        assert until(jobs, job, "running").state == "running"
        jobs.cancel(job.id)
        until(jobs, job, "cancelled")
        # The thread is free again for another one.
        begun.clear()
        jobs.submit(OTHER, "v1")
        assert begun.wait(10)
    finally:
        jobs.stop()


def test_what_goes_wrong_is_a_sentence_without_a_word_of_the_exception(tmp_path: Path) -> None:
    def broken(query: TableQuery) -> Decision:
        if query == QUERY:
            raise ValueError("4711 people")
        raise QueryError("There is no level 'x'.")

    jobs = Jobs(tmp_path, broken, Settings())
    jobs.start()
    try:
        ours = until(jobs, jobs.submit(QUERY, "v1"), "failed")
        theirs = until(jobs, jobs.submit(OTHER, "v1"), "failed")
    finally:
        jobs.stop()
    assert "4711" not in ours.sentence
    assert ours.sentence.startswith("This is a mistake of ours")
    assert theirs.sentence == "There is no level 'x'."


def test_a_job_that_takes_too_long_fails(tmp_path: Path) -> None:
    def endless(query: TableQuery) -> Decision:
        while True:
            check_stop()
            time.sleep(0.01)

    jobs = Jobs(tmp_path, endless, Settings(background_seconds=0.2))
    jobs.start()
    try:
        assert "too long" in until(jobs, jobs.submit(QUERY, "v1"), "failed").sentence
    finally:
        jobs.stop()


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
    assert begun.wait(10)
    jobs.stop()
    assert until(jobs, job, "waiting").state == "waiting"
    again = Jobs(tmp_path, decided, Settings())
    again.start()
    try:
        until(again, job, "done")
    finally:
        again.stop()


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
    job = jobs.find(name)
    assert job is not None
    assert job.state == "running"
    assert jobs._claim() is None  # the claim of the dead still holds
    monkeypatch.setattr(jobs_module, "_CLAIM", 0.5)
    time.sleep(0.6)
    jobs.start()
    try:
        until(jobs, job, "done")
    finally:
        jobs.stop()
    assert jobs.result(name) is not None


def test_a_full_disk_is_a_sentence_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    """No file may grow beyond a few blocks, as on a disk that is full."""
    jobs = Jobs(tmp_path, decided, Settings())
    kept = jobs.submit(QUERY, "v1")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        with pytest.raises(ProblemError) as caught:
            jobs.submit(OTHER, "v1")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert caught.value.problem.status == 503
    assert caught.value.problem.retry
    assert jobs.find(kept.id) == kept
    assert jobs.submit(OTHER, "v1").state == "waiting"


def test_old_jobs_are_forgotten(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, decided, Settings(keep_hours=1e-9))
    jobs.start()
    try:
        job = until(jobs, jobs.submit(QUERY, "v1"), "done")
    finally:
        jobs.stop()
    time.sleep(0.01)
    jobs.submit(OTHER, "v1")
    assert jobs.find(job.id) is None


def test_the_file_of_jobs_is_for_its_keeper_only(tmp_path: Path) -> None:
    Jobs(tmp_path, decided, Settings()).submit(QUERY, "v1")
    assert (tmp_path / "jobs.sqlite").stat().st_mode & 0o077 == 0
