"""A fault injector: counts the calls that a piece of work makes to the system, and lets one of them fail.

As SQLite tests itself: run the work once to learn how many calls it makes, then once for each call and each
error, with that call failing; or stop the process with SIGKILL there instead.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import gc
import io
import mmap
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["ERRORS", "Faults"]

_CONNECT = sqlite3.connect
ERRORS = (errno.EIO, errno.ENOSPC, errno.EMFILE)
_OF_OS = (
    *(
        "open", "write", "preadv", "pread", "fsync", "rename", "replace", "link", "unlink", "mkdir",
        "chmod",
    ),
    *("stat", "fstat", "listdir", "scandir"),
)  # fmt: skip
_SYSTEM: tuple[tuple[Any, str], ...] = (
    *((os, name) for name in _OF_OS),
    (io, "open"),
    (builtins, "open"),
    (fcntl, "flock"),
    (mmap, "mmap"),
)


class Faults:
    """Fails at the call of this number, from 1, with an error; or ends the process there."""

    def __init__(
        self, at: int = 0, error: int = errno.EIO, *, kill: bool = False, halves: bool = False
    ) -> None:
        self.at = at
        self.error = error
        self.kill = kill
        self.halves = halves
        """Whether a write that fails has written half of its bytes before."""
        self.calls: list[str] = []
        self._others: set[int] = (
            set()
        )  # threads of earlier tests, whose calls are not those of the work

    @property
    def hit(self) -> bool:
        """Whether the fault was put in."""
        return 0 < self.at <= len(self.calls)

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if threading.current_thread() in self._others:
                return real(*args, **kwargs)
            self.calls.append(name)
            if len(self.calls) == self.at:
                if self.halves and name == "write":
                    real(args[0], memoryview(args[1])[: len(args[1]) // 2])
                if self.kill:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise OSError(self.error, os.strerror(self.error))
            return real(*args, **kwargs)

        return call

    def _connect(self, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        """SQLite makes its own calls to the system: here each of its statements is one that may fail."""
        faults = self
        if threading.current_thread() in self._others:
            return _CONNECT(*args, **kwargs)

        class Counted(sqlite3.Connection):
            def execute(self, *words: Any) -> sqlite3.Cursor:
                faults.calls.append("statement")
                if len(faults.calls) == faults.at:
                    if faults.kill:
                        os.kill(os.getpid(), signal.SIGKILL)
                    full = faults.error == errno.ENOSPC
                    raise sqlite3.OperationalError(
                        "database or disk is full" if full else "disk I/O error"
                    )
                return super().execute(*words)

        return _CONNECT(*args, **kwargs, factory=Counted)

    @contextmanager
    def active(self) -> Iterator[Faults]:
        """Count, and let the chosen call fail, while this is open.

        Threads that run already are left alone, and what earlier tests left to be cleaned up is cleaned up.
        """
        gc.collect()
        # Not by number: a thread may get that of one that has ended.
        self._others = {*threading.enumerate()} - {threading.current_thread()}
        real = [(module, name, getattr(module, name)) for module, name in _SYSTEM]
        try:
            for module, name, function in real:
                setattr(module, name, self._wrapped(name, function))
            sqlite3.connect = self._connect  # type: ignore[assignment]
            yield self
        finally:
            for module, name, function in real:
                setattr(module, name, function)
            sqlite3.connect = _CONNECT
