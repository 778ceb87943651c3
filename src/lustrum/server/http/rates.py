"""How often an address may ask for tables, stated in the headers of the IETF's rate limit draft."""

from __future__ import annotations

import hashlib
import logging
import math
import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path

from limits import RateLimitItem, parse_many
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lustrum.model.text import say
from lustrum.server.http.errors import Problem, response
from lustrum.server.http.middleware import HttpLayer, asker_of
from lustrum.server.http.templating import Pages


class Rates(HttpLayer):
    """Counts what costs something: tables and hints. Pages, descriptions and files are free."""

    def __init__(
        self, app: ASGIApp, rate: str, pages: Pages, hits: MemoryStorage | None = None
    ) -> None:
        super().__init__(app)
        self.pages = pages
        self._items: list[RateLimitItem] = parse_many(rate) if rate else []
        self._hits = hits or MemoryStorage()
        self._limiter = MovingWindowRateLimiter(self._hits)
        self._now = time.time()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if its address has not asked too often."""
        if not self._items or not _costs(scope):
            await self.app(scope, receive, send)
            return
        before, self._now = self._now, time.time()
        if self._now < before:
            # The clock was set back: what was asked then would count until it is that late again.
            self._hits.reset()
        asker = asker_of(scope)
        hits = [self._limiter.hit(item, asker) for item in self._items]
        allowed = all(hits)
        item, left, wait = min(
            ((i, *self._left(i, asker)) for i in self._items),
            key=lambda limit_state: limit_state[1],
        )
        policy = f'"asks";q={item.amount};w={item.get_expiry()}'
        if not allowed:
            sentence = say(
                "Too many tables were asked for from this address; please wait {seconds} seconds.",
                seconds=wait,
            )
            problem = Problem.of_status(429, sentence, retry=wait, reason="rate")
            refused = response(Request(scope), problem, self.pages)
            refused.headers["RateLimit-Policy"] = policy
            refused.headers["RateLimit"] = f'"asks";r=0;t={wait}'
            await refused(scope, receive, send)
            return

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["RateLimit-Policy"] = policy
                headers["RateLimit"] = f'"asks";r={left};t={wait}'
            await send(message)

        await self.app(scope, receive, tell)

    def _left(self, item: RateLimitItem, asker: str) -> tuple[int, int]:
        """How many more may be asked for, and in how many seconds there will be more."""
        stats = self._limiter.get_window_stats(item, asker)
        return max(0, stats.remaining), max(1, math.ceil(stats.reset_time - time.time()))


def _costs(scope: Scope) -> bool:
    """Whether something is counted to answer it; a form that was filled in shows a hint, too."""
    path: str = scope["path"]
    if path.startswith(("/api/v1/tables", "/api/v1/hints", "/api/v1/jobs", "/api/dissemination")):
        return True
    if path.startswith("/pxapi/"):
        # Metadata are free, except the selection that is tried before it is offered.
        return (
            path.endswith(("/data", "/defaultselection"))
            or b"defaultselection" in scope["query_string"].lower()
        )
    if path.startswith("/sdmx/"):
        return "/data/" in path
    if not path.startswith("/datasets/"):
        return False
    form = path.count("/") == 2 and bool(scope["query_string"])
    return form or path.endswith(("/table", "/hint"))


# --- What askers have asked for, shared by all processes of one server: a small file that ends with it
# Connections of one asker may reach any process; if each counted for itself, the limit would grow with their
# number. The file holds no address: askers stand in it by a digest under a key that is drawn at every start.
# The library ``limits`` shares hits only by a server of their own, such as Redis.

log = logging.getLogger("lustrum.server")

FILE = "rates.sqlite"
_SECONDS = 2.0  # that a process waits for another one's turn
_AGAIN = 10.0  # seconds after which a file that failed is tried again
_SETTINGS = (
    # It need not outlive a crash of the machine.
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = OFF",
    "CREATE TABLE IF NOT EXISTS hits (asker BLOB, at REAL, ends REAL)",
    "CREATE INDEX IF NOT EXISTS by_asker ON hits (asker, at)",
    "CREATE INDEX IF NOT EXISTS by_end ON hits (ends)",
)


class SharedHits(MemoryStorage):
    """A moving window over the hits of all processes, which fails closed.

    While another process holds the file, nothing is allowed: after a first wait the next hits do not wait for
    it again. While the file cannot be used at all, as on a full disk, each of the processes allows its own
    part of the limit, and tries the file again now and then.
    """

    STORAGE_SCHEME = ["lustrum-shared"]  # noqa: RUF012  # as the library declares it

    def __init__(self, folder: Path, key: str, processes: int = 1) -> None:
        super().__init__()
        self._key = bytes.fromhex(key)
        self._path, self._processes = folder / FILE, processes
        self._turn = threading.Lock()
        self._again = 0.0
        self._file: sqlite3.Connection | None = None
        self._held = False
        with suppress(sqlite3.OperationalError):  # others open it too; the first hit tries again
            self._opened()

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count a hit, unless there were enough of them within the last seconds."""
        with self._turn:
            try:
                file = self._opened()
                if file is not None:
                    allowed = self._allowed(file, self._digest(key), limit, expiry, amount)
                    if self._held:
                        self._held = False
                        file.execute(f"PRAGMA busy_timeout = {int(1000 * _SECONDS)}")
                    return allowed
            except sqlite3.Error as error:
                if self._is_held(error):
                    return False
            return super().acquire_entry(key, self._part(limit), expiry, amount)

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """When the window began that is in force, and how many hits are in it."""
        now = time.time()
        with self._turn:
            try:
                file = self._opened()
                if file is not None:
                    sql = "SELECT min(at), count(*) FROM hits WHERE asker = ? AND at > ?"
                    first, hits = file.execute(sql, (self._digest(key), now - expiry)).fetchone()
                    return (now if first is None else first), hits
            except sqlite3.Error as error:
                if self._is_held(error):
                    return now, limit
            first, hits = super().get_moving_window(key, self._part(limit), expiry)
            # What the other processes may allow is not there to be used here.
            return first, hits + limit - self._part(limit)

    def _allowed(
        self, file: sqlite3.Connection, asker: bytes, limit: int, expiry: int, amount: int
    ) -> bool:
        file.execute("BEGIN IMMEDIATE")
        now = time.time()
        try:
            # One from the future was made before the clock was set back.
            file.execute("DELETE FROM hits WHERE ends <= ? OR at > ?", (now, now))
            sql = "SELECT count(*) FROM hits WHERE asker = ? AND at > ?"
            hits = int(file.execute(sql, (asker, now - expiry)).fetchone()[0])
            if hits + amount <= limit:
                hit = (asker, now, now + expiry)
                file.executemany("INSERT INTO hits VALUES (?, ?, ?)", [hit] * amount)
            file.execute("COMMIT")
        finally:
            if file.in_transaction:
                file.execute("ROLLBACK")
        return hits + amount <= limit

    def _opened(self) -> sqlite3.Connection | None:
        """The file; none while it is too early to try it again."""
        if self._file is None and time.monotonic() >= self._again:
            file = sqlite3.connect(
                self._path, timeout=_SECONDS, isolation_level=None, check_same_thread=False
            )
            for statement in _SETTINGS:
                file.execute(statement)
            self._file = file
        return self._file

    def _part(self, limit: int) -> int:
        return max(1, limit // self._processes)

    def _digest(self, key: str) -> bytes:
        return hashlib.blake2b(key.encode(), key=self._key, digest_size=16).digest()

    def _is_held(self, error: sqlite3.Error) -> bool:
        """Whether another process holds the file; if not, it is left alone for a while."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
            if not self._held:
                log.warning("no table is allowed while another process holds the rates: %s", error)
            self._held = True
            if self._file is not None:
                self._file.execute("PRAGMA busy_timeout = 0")
            return True
        log.warning("each process allows its part of the rates: %s", error)
        self._file, self._again = None, time.monotonic() + _AGAIN
        return False
