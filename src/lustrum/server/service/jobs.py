"""Tables that take long: made in the background, with progress, and not lost in a restart.

A job is a row in a small SQLite file beside the data. Whichever process is free claims it for a while and
renews its claim; if the process dies, the claim runs out and another one starts the job again. What is kept
of a finished job is the decision, which holds nothing confidential.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lustrum.model import Decision, LustrumError, QueryError, TableQuery
from lustrum.model.stop import Stopped, reporting_progress, stopping
from lustrum.model.text import say
from lustrum.release.archive import read_decision, write_decision
from lustrum.server.http.errors import UNAVAILABLE, where_it_happened
from lustrum.server.http.problems import Problem, ProblemError
from lustrum.server.operation.metrics import Metrics
from lustrum.server.settings import Settings

__all__ = ["ENDED", "Job", "Jobs"]

log = logging.getLogger("lustrum.server")

ENDED = ("done", "failed", "cancelled")
_CLAIM = 20.0  # seconds that a claim holds without being renewed
_TURN = 0.5  # seconds between two looks for work
_MOST_WAITING = 200
_TABLES = """
create table if not exists job (
  id text primary key, key text not null, query text not null, state text not null,
  step text not null default '', share real not null default 0, sentence text not null default '',
  askers integer not null default 1, created real not null, changed real not null,
  owner text, claimed real, answer text
);
create index if not exists job_key on job (key, state);
create index if not exists job_state on job (state, created);
"""


@dataclass(frozen=True)
class Job:
    """How far a job is: ``waiting``, ``running``, ``done``, ``failed`` or ``cancelled``."""

    id: str
    query: TableQuery
    state: str
    step: str
    share: float
    sentence: str

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in ENDED


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
        self._mark = mark
        self._path = folder / "jobs.sqlite"
        self._work = work
        self._settings = settings
        self._metrics = metrics
        self._name = secrets.token_hex(8)
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

    def submit(self, query: TableQuery, mark: str) -> Job:
        """The job for a question under the data and the policy that ``mark`` names; a new one if need be."""
        text, key = json.dumps(query.to_mapping(), sort_keys=True), _key(query, mark)
        now = time.time()
        with self._open() as base:
            self._clean(base, now)
            row = base.execute(
                "select id from job where key = ? and state in ('waiting', 'running', 'done') "
                "order by created desc limit 1",
                (key,),
            ).fetchone()
            if row is not None:
                base.execute("update job set askers = askers + 1 where id = ?", row)
                return self._read(base, row[0])
            waiting = base.execute("select count(*) from job where state = 'waiting'").fetchone()[0]
            if waiting >= _MOST_WAITING:
                sentence = say("Too many tables are waiting to be made; please try again later.")
                raise ProblemError(Problem.of_status(503, sentence, retry=60))
            name = secrets.token_urlsafe(12)
            base.execute(
                "insert into job (id, key, query, state, created, changed) values (?, ?, ?, ?, ?, ?)",
                (name, key, text, "waiting", now, now),
            )
            job = self._read(base, name)
        self._called.set()
        return job

    def find(self, name: str) -> Job | None:
        """A job by its id."""
        with self._open() as base:
            row = base.execute("select id from job where id = ?", (name,)).fetchone()
            return None if row is None else self._read(base, name)

    def result(self, name: str, mark: str | None = None) -> Decision | None:
        """What a job has found, if it is done, and still under the data and the policy that ``mark`` names."""
        with self._open() as base:
            row = base.execute("select answer, key from job where id = ?", (name,)).fetchone()
        if row is None or row[0] is None:
            return None
        decision = read_decision(row[0])
        if mark is not None and row[1] != _key(decision.query, mark):
            return None
        return decision

    def cancel(self, name: str) -> None:
        """One asker fewer; a job that nobody waits for any more is stopped."""
        with self._open() as base:
            base.execute("update job set askers = askers - 1 where id = ?", (name,))
            base.execute(
                "update job set state = 'cancelled', changed = ? where id = ? and askers <= 0 "
                "and state in ('waiting', 'running')",
                (time.time(), name),
            )

    def _loop(self) -> None:
        while not self._over.is_set():
            try:
                job = self._claim()
                if job is not None:
                    self._run(job)
                    continue
            except (sqlite3.Error, OSError) as error:
                log.error("jobs: %s", where_it_happened(error))
            self._called.wait(_TURN)
            self._called.clear()

    def _claim(self) -> Job | None:
        """The oldest job that waits, or whose process has died."""
        now = time.time()
        with self._open() as base:
            row = base.execute(
                "select id from job where state = 'waiting' or (state = 'running' and claimed < ?) "
                "order by created limit 1",
                (now - _CLAIM,),
            ).fetchone()
            if row is None:
                return None
            base.execute(
                "update job set state = 'running', owner = ?, claimed = ?, changed = ?, share = 0 "
                "where id = ?",
                (self._name, now, now, row[0]),
            )
            return self._read(base, row[0])

    def _run(self, job: Job) -> None:
        end = time.monotonic() + self._settings.background_seconds
        lost, finished = threading.Event(), threading.Event()
        far: list[tuple[str, float]] = [("", 0.0)]

        def renew() -> None:
            while not finished.wait(0.5):
                with contextlib.suppress(sqlite3.Error):
                    if not self._renew(job.id, *far[0]):
                        lost.set()

        renewer = threading.Thread(target=renew, name="job claim", daemon=True)
        renewer.start()
        try:
            with (
                stopping(lambda: lost.is_set() or self._over.is_set() or time.monotonic() > end),
                reporting_progress(lambda step, share: far.__setitem__(0, (step, share))),
            ):
                before = self._mark and self._mark(job.query)
                decision = self._work(job.query)
                after = self._mark and self._mark(job.query)
            if before != after:
                self._end(job.id, "waiting")  # data or policy changed meanwhile
                return
            self._end(job.id, "done", answer=write_decision(decision), mark=after)
        except Stopped:
            if self._over.is_set():
                self._end(job.id, "waiting")
            elif not lost.is_set():
                self._end(job.id, "failed", say("The table took too long; ask for a smaller one."))
        except QueryError as error:
            self._end(job.id, "failed", str(error))
        except (LustrumError, ProblemError) as error:
            log.error("job: %s", where_it_happened(error))
            self._end(job.id, "failed", UNAVAILABLE)
        except Exception as error:  # its text may hold data
            log.error("job: %s", where_it_happened(error))
            self._end(job.id, "failed", say("This is a mistake of ours, not of yours."))
        finally:
            finished.set()
            renewer.join()

    def _renew(self, name: str, step: str, share: float) -> bool:
        """Renew the claim; false if the job is no longer ours."""
        with self._open() as base:
            now = time.time()
            done = base.execute(
                "update job set claimed = ?, step = ?, share = ? "
                "where id = ? and owner = ? and state = 'running'",
                (now, step, share, name, self._name),
            )
            return done.rowcount == 1

    def _end(
        self,
        name: str,
        state: str,
        sentence: str = "",
        answer: str | None = None,
        mark: str | None = None,
    ) -> None:
        with self._open() as base:
            if mark is not None:
                query = self._read(base, name).query
                base.execute("update job set key = ? where id = ?", (_key(query, mark), name))
            done = base.execute(
                "update job set state = ?, sentence = ?, answer = ?, share = ?, changed = ?, owner = null "
                "where id = ? and owner = ? and state = 'running'",
                (state, sentence, answer, float(state == "done"), time.time(), name, self._name),
            )
        if done.rowcount and self._metrics is not None:
            self._metrics.jobs.labels(state).inc()

    def _clean(self, base: sqlite3.Connection, now: float) -> None:
        base.execute(
            "delete from job where state in ('done', 'failed', 'cancelled') and changed < ?",
            (now - 3600 * self._settings.keep_hours,),
        )

    def _read(self, base: sqlite3.Connection, name: str) -> Job:
        row = base.execute(
            "select id, query, state, step, share, sentence from job where id = ?", (name,)
        ).fetchone()
        return Job(row[0], TableQuery.from_mapping(json.loads(row[1])), *row[2:])

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody else writes in; all of it or nothing is kept."""
        new = not self._path.exists()
        try:
            if new:
                os.close(os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600))
            base = sqlite3.connect(self._path, timeout=10, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise _unavailable(error) from None
        try:
            # Stays as it is once it is set; while another connection sets it, this one need not.
            with contextlib.suppress(sqlite3.OperationalError):
                base.execute("pragma journal_mode = wal")
            base.execute("begin immediate")
            for statement in _TABLES.strip().split(";"):
                base.execute(statement)
            yield base
            base.execute("commit")
        except sqlite3.Error as error:
            raise _unavailable(error) from None
        finally:
            base.close()


def _key(query: TableQuery, mark: str) -> str:
    """Names a question under the data and the policy that the mark names."""
    text = json.dumps(query.to_mapping(), sort_keys=True)
    return hashlib.sha256(f"{mark}\n{text}".encode()).hexdigest()


def _unavailable(error: Exception) -> ProblemError:
    log.error("jobs: %s", where_it_happened(error))
    sentence = say("Tables cannot be made in the background at the moment; please try again later.")
    return ProblemError(Problem.of_status(503, sentence, retry=30))
