"""The process that holds the records, as the part that answers sees it: requests and replies over a pipe.

The other process holds the records and the secret. Questions go one way as words; protected numbers come
back, or one of a few fixed kinds of failure without a word about the data. This side has no way to the records:
it imports nothing that reads them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillWaiting
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from lustrum.log_lines import level_in_force
from lustrum.model import DatasetError, LustrumError, PolicyError, QueryError, TableQuery
from lustrum.model.errors import NotReadyError, choices
from lustrum.model.stop import Stopped, stop_asked
from lustrum.policy import Policy
from lustrum.public.numbers import CannotProtectError, Described, Views

__all__ = ["MODULE", "SeparateRecordsService"]

MODULE = "lustrum.publish.records.process"
"""What the other process runs; it is named here, never imported."""

_LOOK = 0.05  # seconds between two looks whether the asker has left
_PATIENCE = 20.0  # seconds for the process to end by itself

FAILURES: dict[str, LustrumError] = {
    "protect": CannotProtectError("The method of the policy cannot protect such a table."),
    "size": QueryError(
        "The table has more cells than can be counted at once; ask for fewer variables or coarser levels."
    ),
    "policy": PolicyError("The policy cannot protect the input; 'lustrum table' says why."),
    "checking": NotReadyError("The dataset is still being checked; ask again soon."),
    "data": DatasetError("The records of the dataset cannot be read at the moment."),
    "broken": DatasetError("The protected numbers cannot be made at the moment."),
}
"""What the other process may say instead of numbers; the sentences are made on this side."""


class SeparateRecordsService:
    """Starts the process when it is first needed, and again where it has died."""

    def __init__(self, root: Path, workers: int | None = None) -> None:
        self._root, self._workers = root, workers
        self._lock = threading.Lock()
        self._line: _Line | None = None
        self._described: dict[str, Described] = {}

    def names(self) -> list[str]:
        """The datasets that are there."""
        found: list[str] = self._ask("names")
        return found

    def describe(self, name: str) -> Described:
        """A dataset and its version in force; the description comes over once for each version."""
        known = self._described.get(name)
        fresh: Described | None = self._ask("describe", name, known and known.version)
        if fresh is None:
            if known is None:
                raise QueryError(f"There is no dataset {name!r}; {choices(name, self.names())}.")
            return known
        self._described[name] = fresh
        return fresh

    def views(self, query: TableQuery, policy: Policy) -> Views:
        """The protected numbers of a question."""
        found: Views = self._ask("views", query.to_mapping(), policy.model_dump_json())
        return found

    def check_in_background(self) -> None:
        """Nothing to say: the other process always does, since it serves."""

    def close(self) -> None:
        """End the process."""
        with self._lock:
            line, self._line = self._line, None
        if line is not None:
            line.end()

    def _ask(self, *words: Any) -> Any:
        with self._lock:
            if self._line is not None and self._line.is_broken:
                self._line.end()
                self._line = None
            if self._line is None:
                self._line = _Line(self._root, self._workers)
            line = self._line
        return line.ask(words)


class _Line:
    """One process and the pipe to it; answers are told apart by numbers, so that many may ask at once."""

    def __init__(self, root: Path, workers: int | None) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", MODULE, str(theirs.fileno()), str(root)]
            command += [] if workers is None else ["--workers", str(workers)]
            logs = level_in_force()
            self._process = subprocess.Popen(
                command + ([] if logs is None else ["--logs", logs]),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # an interrupt at the terminal is for the server, which ends this one
            )
        self._socket, self._pipe = ours, Connection(os.dup(ours.fileno()))
        self._numbers = itertools.count(1)
        self._sending = threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self._over = False
        self._listener = threading.Thread(target=self._listen, name="records", daemon=True)
        self._listener.start()

    @property
    def is_broken(self) -> bool:
        """Whether the process has died."""
        return self._over

    def ask(self, words: tuple[Any, ...]) -> Any:
        """The answer to a question; stops waiting if its asker has left, and says so to the other side."""
        gone = stop_asked()
        number, answer = next(self._numbers), Future[Any]()
        self._waiting[number] = answer
        self._send((number, *words))
        if self._over:
            self._broke()  # the thread that listens may have ended before this question waited
        while True:
            try:
                kind, value = answer.result(timeout=_LOOK)
                break
            except StillWaiting:
                if gone():
                    self._waiting.pop(number, None)
                    self._send((number, "stop"))
                    raise Stopped from None
        if kind == "stopped":
            raise Stopped
        if kind == "answer":
            return value
        raise FAILURES[kind if kind in FAILURES else "broken"]

    def end(self) -> None:
        """Close the pipe, at which the process ends."""
        self._over = True
        with contextlib.suppress(OSError):
            # Closing alone would not do: the thread that listens still holds the pipe while it reads.
            self._socket.shutdown(socket.SHUT_RDWR)
        # It may be about to read: the number of a closed pipe would soon stand for the next one.
        self._listener.join()
        with self._sending:
            self._pipe.close()
            self._socket.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, words: tuple[Any, ...]) -> None:
        try:
            with self._sending:
                self._pipe.send_bytes(pickle.dumps(words))
        except OSError:
            self._broke()

    def _listen(self) -> None:
        try:
            while True:
                number, kind, value = pickle.loads(self._pipe.recv_bytes())
                answer = self._waiting.pop(number, None)
                if answer is not None:
                    answer.set_result((kind, value))
        except Exception:  # the pipe has ended, or what came over it cannot be read
            self._broke()

    def _broke(self) -> None:
        self._over = True
        for number in list(self._waiting):
            answer = self._waiting.pop(number, None)
            if answer is not None:  # another thread may have taken it
                answer.set_result(("broken", None))
