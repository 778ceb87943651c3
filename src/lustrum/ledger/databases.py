"""Where the book of releases is kept: a SQLite file of the data folder, or a PostgreSQL database.

Both hold the same three tables. One lock of the database lets one process at a time add a line, and a line is
durable when the call returns. SQLAlchemy with Alembic would replace about sixty lines, and take 33 MB and 1.2
seconds of every start, where ``sqlite3`` takes 0.03.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lustrum.model import DatasetError, InputError

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE entries (number BIGINT PRIMARY KEY, line {bytes} NOT NULL, seal TEXT NOT NULL, "
        "audience TEXT NOT NULL, dataset TEXT NOT NULL)",
        "CREATE INDEX entries_by_audience ON entries (dataset, audience, number)",
        "CREATE TABLE contents (digest TEXT PRIMARY KEY, content {bytes} NOT NULL)",
        "CREATE TABLE names (audience TEXT PRIMARY KEY, salt TEXT NOT NULL, name TEXT NOT NULL UNIQUE)",
    ),
    # What was entered last about a dataset, and since, is asked before every line.
    ("CREATE INDEX entries_by_dataset ON entries (dataset, number)",),
)
"""What brings a database from one version of its tables to the next; entries are never changed."""

_PATIENCE = 20.0  # seconds that an entry waits for those of other processes
_LOCK = 0x4C757374  # the number by which processes agree on one lock in PostgreSQL

_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)


class BookDatabase(ABC):
    """One connection, shared by the threads of a process; each block is one transaction."""

    bytes_type: str
    failures: tuple[type[Exception], ...]

    def __init__(self, where: str) -> None:
        self.where = where
        self._lock = threading.RLock()
        self._connection: Any = None

    @abstractmethod
    def _connect(self) -> Any:
        """A connection whose transactions are begun and ended here."""

    @abstractmethod
    def _begin(self, *, alone: bool) -> None:
        """Begin a transaction; ``alone``: no other one adds anything until it ends."""

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement with ``?`` for its values."""

    @contextmanager
    def transaction(self, *, alone: bool = False) -> Iterator[None]:
        """All or nothing; durable at its end. A database that fails is one sentence, and nothing is kept."""
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._connect()
                    self._migrate()
                self._begin(alone=alone)
                try:
                    yield
                except BaseException:
                    self.execute("ROLLBACK")
                    raise
                self.execute("COMMIT")
            except self.failures as error:
                self.close()
                if getattr(error, "sqlite_errorcode", None) in _NO_ROOM:
                    no_room = f"{self.where} cannot be written: {os.strerror(errno.ENOSPC)}."
                    raise DatasetError(no_room) from None
                raise DatasetError(
                    f"The book of releases in {self.where} does not answer; nothing is released meanwhile."
                ) from None

    def close(self) -> None:
        """Let go of the connection; the next transaction opens another."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(*self.failures):
                    connection.close()

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    def _migrate(self) -> None:
        self._begin(alone=True)
        try:
            self.execute("CREATE TABLE IF NOT EXISTS versions (number BIGINT PRIMARY KEY)")
            done = self.execute("SELECT COALESCE(MAX(number), 0) FROM versions")[0][0]
            if done > len(MIGRATIONS):
                raise DatasetError(
                    f"The book of releases in {self.where} was written by a later version of Lustrum; use that."
                )
            for number, statements in enumerate(MIGRATIONS[done:], start=done + 1):
                for statement in statements:
                    self.execute(statement.format(bytes=self.bytes_type))
                self.execute("INSERT INTO versions VALUES (?)", (number,))
        except BaseException:
            self.execute("ROLLBACK")
            raise
        self.execute("COMMIT")


class SQLite(BookDatabase):
    """A file of the data folder."""

    bytes_type = "BLOB"
    failures = (sqlite3.Error,)

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        self._path.chmod(0o600)
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                # A change of the mode does not wait for others that make the same one at a first start.
                code = getattr(error, "sqlite_errorcode", 0)  # not every failure has one
                if code & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(0.01)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cell_size_check = ON")
        return connection

    def _begin(self, *, alone: bool) -> None:
        self.execute("BEGIN IMMEDIATE" if alone else "BEGIN")

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement."""
        return list(self._connection.execute(statement, values))


class PostgreSQL(BookDatabase):
    """A database of a server, by the words of libpq; passwords stand in its own files, never here."""

    bytes_type = "BYTEA"

    def __init__(self, words: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise InputError(
                "A book of releases in PostgreSQL needs psycopg: pip install 'lustrum[ibis]'."
            ) from None
        try:
            given = psycopg.conninfo.conninfo_to_dict(words)
        except psycopg.Error:
            raise InputError(
                "'database' of the ledger is not understood; write it as 'host=... dbname=...'."
            ) from None
        if "password" in given:
            raise InputError(
                "'database' of the ledger holds a password; put it into a file of passwords (PGPASSFILE)."
            )
        self.failures = (psycopg.Error,)
        super().__init__("PostgreSQL")
        self._psycopg, self._words = psycopg, words

    def _connect(self) -> Any:
        return self._psycopg.connect(
            self._words, autocommit=True, connect_timeout=int(_PATIENCE), prepare_threshold=None
        )

    def _begin(self, *, alone: bool) -> None:
        self.execute("BEGIN")
        self.execute("SET LOCAL synchronous_commit = on")
        if alone:
            self.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement."""
        cursor = self._connection.execute(statement.replace("?", "%s"), values)
        return list(cursor.fetchall()) if cursor.description is not None else []
