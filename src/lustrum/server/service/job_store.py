"""The file of jobs: one row a job, one row for everybody who may cancel it.

Claims are leases by the clock that counts from the start of the machine: it is the same for all processes and
never jumps. A claim from the future was made before a restart of the machine, and its process is gone.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lustrum.model import LustrumError, TableQuery
from lustrum.model.text import say
from lustrum.policy.policy import Role
from lustrum.runtime.log_lines import where_it_happened
from lustrum.server.http.errors import Problem, ProblemError

log = logging.getLogger("lustrum.server")

ENDED = ("done", "failed", "cancelled")
LEASE = 20.0
"""Seconds that a claim holds without being renewed."""

MOST_WAITING = 200
MOST_OF_ONE = MOST_WAITING // 4
"""How many jobs may wait, and how many of one asker."""

_WAIT = 10.0  # seconds to wait for another process that writes
_TABLES = """
create table if not exists job (
  id text primary key, key text not null, query text not null, state text not null,
  step text not null default '', share real not null default 0, sentence text not null default '',
  created real not null, changed real not null, owner text, claimed real, answer text
);
create table if not exists ticket (job text not null, hash text not null, primary key (job, hash));
create index if not exists job_key on job (key, state);
create index if not exists job_state on job (state, created)
"""
_ADDED = {
    "asker": "text not null default ''",
    "role": "text not null default 'public'",
    "turn": "integer not null default 0",
    "ended": "real",
}
"""Columns that files of the first version do not have yet."""

_BEYOND_REPAIR = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@dataclass(frozen=True)
class Job:
    """How far a job is: ``waiting``, ``running``, ``done``, ``failed`` or ``cancelled``.

    ``token`` lets its holder cancel the job; only the asker gets it, when the job is handed in.
    """

    id: str
    query: TableQuery
    state: str
    step: str
    share: float
    sentence: str
    role: Role = "public"
    """Whom the policy serves under which it is made."""
    token: str = field(default="", compare=False, repr=False)

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class StoreError(ProblemError):
    """The file of jobs does not answer at the moment; the server asks clients to retry."""

    def __init__(self) -> None:
        sentence = say(
            "Tables cannot be made in the background at the moment; please try again later."
        )
        super().__init__(Problem.of_status(503, sentence, retry=30, reason="jobs-file"))


class JobStore:
    """The jobs of all processes over one folder."""

    def __init__(self, folder: Path, keep_hours: float) -> None:
        self._path = folder / "jobs.sqlite"
        self._keep = 3600 * keep_hours
        self._name = secrets.token_hex(8)
        # Askers are told apart while this process runs; nothing that is kept leads back to an address.
        self._blind = secrets.token_bytes(16)

    def submit(self, query: TableQuery, mark: str, asker: str = "", role: Role = "public") -> Job:
        """The job for a question under the data and the policy that ``mark`` names; a new one if need be."""
        key, token = key_of(query, mark), secrets.token_urlsafe(24)
        blind = hmac.digest(self._blind, asker.encode(), "sha256").hex()[:16]
        now = time.time()
        with self._transaction() as base:
            self._clean(base, now)
            row = base.execute(
                "select id from job where key = ? and state in ('waiting', 'running', 'done') "
                "order by rowid desc limit 1",
                (key,),
            ).fetchone()
            if row is None:
                counts = base.execute(
                    "select count(*), coalesce(sum(asker = ?), 0) from job where state = 'waiting'",
                    (blind,),
                ).fetchone()
                if counts[0] >= MOST_WAITING or counts[1] >= MOST_OF_ONE:
                    sentence = say(
                        "Too many tables are waiting to be made; please try again later."
                    )
                    raise ProblemError(Problem.of_status(503, sentence, retry=60, reason="jobs"))
                row = (secrets.token_urlsafe(12),)
                text = json.dumps(query.to_mapping(), sort_keys=True)
                base.execute(
                    "insert into job (id, key, query, state, created, changed, asker, role) "
                    "values (?, ?, ?, 'waiting', ?, ?, ?, ?)",
                    (row[0], key, text, now, now, blind, role),
                )
            base.execute("insert into ticket values (?, ?)", (row[0], _hash(token)))
            job = _read(base, row[0])
        return Job(**{**vars(job), "token": token})

    def find(self, name: str) -> Job | None:
        with self._transaction(write=False) as base:
            row = base.execute("select 1 from job where id = ?", (name,)).fetchone()
            return None if row is None else _read(base, name)

    def may_cancel(self, name: str, token: str) -> bool:
        """Whether a token was given to somebody who still waits for this job."""
        with self._transaction(write=False) as base:
            row = base.execute(
                "select 1 from ticket where job = ? and hash = ?", (name, _hash(token))
            ).fetchone()
        return row is not None

    def cancel(self, name: str, token: str) -> bool:
        """One asker fewer; a job that nobody waits for any more is stopped. False: not this asker's job."""
        with self._transaction() as base:
            gone = base.execute(
                "delete from ticket where job = ? and hash = ?", (name, _hash(token))
            )
            if gone.rowcount != 1:
                return False
            base.execute(
                "update job set state = 'cancelled', changed = ?, ended = ? where id = ? "
                "and state in ('waiting', 'running') "
                "and not exists (select 1 from ticket where job = ?)",
                (time.time(), time.monotonic(), name, name),
            )
        return True

    def answer(self, name: str) -> tuple[str, str] | None:
        """What a job has found, as text, and the key of its question."""
        with self._transaction(write=False) as base:
            row = base.execute("select answer, key from job where id = ?", (name,)).fetchone()
        return None if row is None or row[0] is None else (row[0], row[1])

    def forget(self, name: str) -> None:
        """Remove a job whose answer cannot be read."""
        with self._transaction() as base:
            base.execute("delete from job where id = ?", (name,))

    def claim(self) -> Job | None:
        """The next job that waits, or whose process has died; askers take turns."""
        now = time.monotonic()
        with self._transaction() as base:
            row = base.execute(
                "select id from job where state = 'waiting' "
                "or (state = 'running' and not (claimed between ? and ?)) "
                "order by (select coalesce(max(other.turn), 0) from job as other "
                "          where other.asker = job.asker), rowid limit 1",
                (now - LEASE, now),
            ).fetchone()
            if row is None:
                return None
            base.execute(
                "update job set state = 'running', owner = ?, claimed = ?, changed = ?, share = 0, "
                "turn = (select max(turn) + 1 from job) where id = ?",
                (self._name, now, time.time(), row[0]),
            )
            try:
                return _read(base, row[0])
            except (LustrumError, ValueError):
                # A question that an older version wrote and this one cannot read must not hold up the others.
                sentence = say("The question can no longer be read; ask for the table again.")
                base.execute(
                    "update job set state = 'failed', sentence = ? where id = ?", (sentence, row[0])
                )
                return None

    def renew(self, name: str, step: str, share: float) -> bool:
        """Renew our claim on a job; false if it is no longer ours."""
        with self._transaction() as base:
            done = base.execute(
                "update job set claimed = ?, step = ?, share = ? "
                "where id = ? and owner = ? and state = 'running'",
                (time.monotonic(), step, share, name, self._name),
            )
        return done.rowcount == 1

    def end(
        self,
        name: str,
        state: str,
        sentence: str = "",
        answer: str | None = None,
        mark: str | None = None,
    ) -> bool:
        """Write down how a job of ours ended, or give it back with the state ``waiting``."""
        with self._transaction() as base:
            if mark is not None:
                query = _read(base, name).query
                base.execute(
                    "update job set key = ? where id = ? and owner = ?",
                    (key_of(query, mark), name, self._name),
                )
            done = base.execute(
                "update job set state = ?, sentence = ?, answer = ?, share = ?, changed = ?, ended = ?, "
                "owner = null where id = ? and owner = ? and state = 'running'",
                (
                    state,
                    sentence,
                    answer,
                    float(state == "done"),
                    time.time(),
                    time.monotonic(),
                    name,
                    self._name,
                ),
            )
        return done.rowcount == 1

    def counts(self) -> dict[str, int]:
        """How many jobs there are, by their state."""
        with self._transaction(write=False) as base:
            return dict(base.execute("select state, count(*) from job group by state").fetchall())

    def _clean(self, base: sqlite3.Connection, now: float) -> None:
        """Forget what ended long ago, by the calendar and by the clock that never jumps."""
        running = time.monotonic()
        base.execute(
            "delete from job where state in ('done', 'failed', 'cancelled') and changed < ? "
            "and not coalesce(ended between ? and ?, 0)",
            (now - self._keep, running - self._keep, running),
        )
        base.execute("delete from ticket where job not in (select id from job)")

    @contextlib.contextmanager
    def _transaction(self, *, write: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction that nobody else writes in; all of it or nothing is kept.

        One that only reads writes nothing at all, so that results can be read while the disk is full.
        """
        base = None
        try:
            if not self._path.exists():
                os.close(os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600))
            which = self._path.stat().st_ino
            base = sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None)
            if write or not _is_set_up(base):
                # A journal that is gone after each transaction: with a log beside the file, which an earlier
                # version had, even a reader must write. While another connection changes it, this one need not.
                with contextlib.suppress(sqlite3.OperationalError):
                    base.execute("pragma journal_mode = delete")
                base.execute("begin immediate")
                _set_up(base)
            else:
                base.execute("begin")
            yield base
            base.execute("commit")
        except sqlite3.DatabaseError as error:
            log.error("jobs: %s", where_it_happened(error))
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if base is not None and code in _BEYOND_REPAIR:
                base.close()
                self._set_aside(which)
            raise StoreError from None
        except (OSError, sqlite3.Error) as error:
            log.error("jobs: %s", where_it_happened(error))
            raise StoreError from None
        finally:
            if base is not None:
                base.close()

    def _set_aside(self, which: int) -> None:
        """Keep a damaged file under another name, so that the next job finds a good one."""
        with contextlib.suppress(OSError):
            if self._path.stat().st_ino != which:
                return  # another process did it
            aside = self._path.with_name(f"jobs-damaged-{secrets.token_hex(4)}.sqlite")
            self._path.rename(aside)
            for ending in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    self._path.with_name(self._path.name + ending).unlink()
            log.error("jobs: the file was damaged and is kept as %s", aside.name)


def _is_set_up(base: sqlite3.Connection) -> bool:
    """Whether a reader finds all columns."""
    there = {row[1] for row in base.execute("pragma table_info(job)")}
    return there >= {"id", *_ADDED} and bool(base.execute("pragma table_info(ticket)").fetchall())


def _set_up(base: sqlite3.Connection) -> None:
    for statement in _TABLES.strip().split(";"):
        base.execute(statement)
    there = {row[1] for row in base.execute("pragma table_info(job)")}
    for name, kind in _ADDED.items():
        if name not in there:
            base.execute(f"alter table job add column {name} {kind}")


def _read(base: sqlite3.Connection, name: str) -> Job:
    row = base.execute(
        "select id, query, state, step, share, sentence, role from job where id = ?", (name,)
    ).fetchone()
    return Job(row[0], TableQuery.from_mapping(json.loads(row[1])), *row[2:])


def key_of(query: TableQuery, mark: str) -> str:
    """Names a question under the data and the policy that the mark names."""
    text = json.dumps(query.to_mapping(), sort_keys=True)
    return hashlib.sha256(f"{mark}\n{text}".encode()).hexdigest()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
