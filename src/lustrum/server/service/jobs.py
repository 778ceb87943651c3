"""Tables that take long: made in the background, with progress, and not lost in a restart.

A job is a row in a small SQLite file beside the data. Whichever process is free claims it for a while and
renews its claim; if the process dies, the claim runs out and another one starts the job again. What is kept
of a finished job is the decision, which holds nothing confidential. Where the file does not answer, because
it is locked or the disk is full, the work waits and tries again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from lustrum.answer.archive import read_decision, write_decision
from lustrum.answer.readers import Reader, reading_as
from lustrum.model import Decision, InputError, LustrumError, QueryError, TableQuery
from lustrum.model.text import say
from lustrum.policy.policy import Role
from lustrum.runtime.log_lines import where_it_happened
from lustrum.runtime.stop import Stopped, reporting_progress, stopping
from lustrum.server.http.errors import UNAVAILABLE, ProblemError
from lustrum.server.http.middleware import current_asker
from lustrum.server.operation.metrics import Metrics
from lustrum.server.service.job_store import ENDED, Job, JobStore, StoreError, key_of
from lustrum.server.settings import Settings

__all__ = ["ENDED", "Job", "Jobs"]

log = logging.getLogger("lustrum.server")
T = TypeVar("T")

_TURN = 0.5  # seconds between two looks for work
_LONGEST_PAUSE = 10.0  # seconds between two tries while the file of jobs does not answer


class Jobs:
    """The jobs of all processes over one folder; each process has one thread that works on them."""

    def __init__(
        self,
        folder: Path,
        work: Callable[[TableQuery], Decision],
        settings: Settings,
        metrics: Metrics | None = None,
        mark: Callable[[TableQuery], str] | None = None,
    ) -> None:
        self.store = JobStore(folder, settings.keep_hours)
        self._mark = mark
        self._work = work
        self._settings = settings
        self._metrics = metrics
        self._over = threading.Event()
        self._called = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to work."""
        if self._thread is None:
            self._over.clear()
            self._thread = threading.Thread(target=self._loop, name="jobs", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop working; a job under way goes back to the others."""
        self._over.set()
        self._called.set()
        if self._thread is not None:
            self._thread.join(timeout=15)
            self._thread = None

    def submit(self, query: TableQuery, mark: str, role: Role = "public") -> Job:
        """The job for a question under the policy for a role, with a token by which its asker can cancel it."""
        job = self.store.submit(query, mark, current_asker(), role)
        self._called.set()
        return job

    def result(self, name: str, mark: str | None = None) -> Decision | None:
        """What a job has found, if it is done, and still under the data and the policy that ``mark`` names."""
        stored_answer = self.store.answer(name)
        if stored_answer is None:
            return None
        try:
            decision = read_decision(stored_answer[0])
        except (
            InputError
        ) as error:  # damaged, or of another version: made anew when it is asked for
            log.error("jobs: %s", error)
            with suppress(StoreError):  # on a full disk it stays, and is read again
                self.store.forget(name)
            return None
        if mark is not None and stored_answer[1] != key_of(decision.query, mark):
            return None
        return decision

    def _loop(self) -> None:
        while not self._over.is_set():
            job = self._retry(self.store.claim)
            if job is not None:
                self._run(job)
                continue
            self._called.wait(_TURN)
            self._called.clear()

    def _retry(self, step: Callable[[], T]) -> T | None:
        """Do a step on the file of jobs, again and again until it works or the server ends."""
        failed = 0
        while not self._over.is_set() or not failed:
            try:
                done = step()
            except Exception as error:  # whatever it is, this thread must go on
                if not isinstance(error, StoreError):  # that one is in the log already
                    log.error("jobs: %s", where_it_happened(error))
                failed += 1
                if self._metrics is not None:
                    self._metrics.job_errors.inc()
                self._over.wait(min(_TURN * 2 ** min(failed - 1, 8), _LONGEST_PAUSE))
                continue
            if failed:
                log.warning("jobs: the file answers again, after %d tries", failed)
            return done
        return None

    def _run(self, job: Job) -> None:
        end = time.monotonic() + self._settings.background_seconds
        lost, finished = threading.Event(), threading.Event()
        far: list[tuple[str, float]] = [("", 0.0)]

        def renew() -> None:
            while not finished.wait(0.5):
                try:
                    if not self.store.renew(job.id, *far[0]):
                        lost.set()
                except Exception as error:  # the claim may run out, but not this thread
                    log.error("jobs: %s", where_it_happened(error))

        renewer = threading.Thread(target=renew, name="job claim", daemon=True)
        renewer.start()
        try:
            with (
                stopping(lambda: lost.is_set() or self._over.is_set() or time.monotonic() > end),
                reporting_progress(lambda step, share: far.__setitem__(0, (step, share))),
                reading_as(Reader(role=job.role)),
            ):
                before = self._mark and self._mark(job.query)
                decision = self._work(job.query)
                after = self._mark and self._mark(job.query)
            if before != after:
                self._end(job, "waiting")  # data or policy changed meanwhile
                return
            self._end(job, "done", answer=write_decision(decision), mark=after)
        except Stopped:
            if self._over.is_set():
                self._end(job, "waiting")
            elif not lost.is_set():
                self._end(job, "failed", say("The table took too long; ask for a smaller one."))
        except QueryError as error:
            self._end(job, "failed", str(error))
        except ProblemError as error:
            log.error("job: %s", where_it_happened(error))
            self._end(job, "failed", error.problem.detail)
        except LustrumError as error:
            log.error("job: %s", where_it_happened(error))
            self._end(job, "failed", UNAVAILABLE)
        except Exception as error:  # its text may hold data
            log.error("job: %s", where_it_happened(error))
            self._end(job, "failed", say("This is our mistake, not yours."))
        finally:
            finished.set()
            renewer.join()

    def _end(
        self,
        job: Job,
        state: str,
        sentence: str = "",
        answer: str | None = None,
        mark: str | None = None,
    ) -> None:
        ours = self._retry(lambda: self.store.end(job.id, state, sentence, answer, mark))
        if ours and self._metrics is not None:
            self._metrics.jobs.labels(state).inc()
