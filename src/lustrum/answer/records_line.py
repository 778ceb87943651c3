"""One process that holds records, and the pipe to it: questions, replies and signs of life.

The process sends a sign of life each second, from a thread of its own, so that a long computation is not taken
for a hang. Without any sign and without any use of the processor, for as long as silence is allowed, it is
ended: whoever waits hears that the numbers are not available now.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
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

from lustrum.model import DatasetError, LustrumError, PolicyError, QueryError
from lustrum.model.errors import NotAnsweringError, NotReadyError
from lustrum.public.numbers import CannotProtectError
from lustrum.runtime.log_lines import level_in_force
from lustrum.runtime.stop import Stopped, stop_asked

log = logging.getLogger("lustrum.answer")

MODULE = "lustrum.publish.records.process"
"""What the other process runs; it is named here, never imported."""

START = 60.0
"""Seconds that a process may take until its first sign of life, where the silence allowed is shorter."""

_LOOK = 0.05  # seconds between two looks whether the asker has left
_WATCH = 0.5  # seconds between two looks at the process
_QUIET = 2.5  # seconds without a sign after which a question that can be put off is
_PATIENCE = 5.0  # seconds for the process to end by itself; it keeps nothing that would be lost

FAILURES: dict[str, LustrumError] = {
    "protect": CannotProtectError("The method of the policy cannot protect such a table."),
    "size": QueryError(
        "The table has more cells than can be counted at once; ask for fewer variables or coarser levels."
    ),
    "policy": PolicyError("The policy cannot protect the input; 'lustrum table' says why."),
    "checking": NotReadyError("The dataset is still being checked; ask again soon."),
    "data": DatasetError("The records of the dataset cannot be read at the moment."),
    "broken": DatasetError("The protected numbers cannot be made at the moment."),
    "silent": NotAnsweringError(
        "The process that holds the records does not answer and is started again; ask again soon."
    ),
}
"""What may be said instead of numbers; the sentences are made on this side."""


class RecordsLine:
    """One process and the pipe to it; answers are told apart by numbers, so that many may ask at once."""

    def __init__(self, root: Path, workers: int | None, silence: float) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", MODULE, str(theirs.fileno()), str(root)]
            command += [] if workers is None else ["--workers", str(workers)]
            logs = level_in_force()
            self._process = subprocess.Popen(
                command + ([] if logs is None else ["--logs", logs]),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                # Only those that serve may say to the system that the server lives.
                env={k: v for k, v in os.environ.items() if k != "NOTIFY_SOCKET"},
                start_new_session=True,  # an interrupt at the terminal is for the server, which ends this one
            )
        self._socket, self._pipe = ours, Connection(os.dup(ours.fileno()))
        self._numbers = itertools.count(1)
        self._sending = threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self._silence = silence
        self._signs = 0  # messages that came, replies and signs of life
        self._quiet = 0.0  # seconds since the last sign, as far as they were watched
        self._doubted = 0  # signs that had come when the process was last taken for silent
        self._why = "broken"
        self._over = threading.Event()
        self._listener = threading.Thread(target=self._listen, name="records", daemon=True)
        self._watcher = threading.Thread(target=self._watch, name="records watch", daemon=True)
        self._listener.start()
        self._watcher.start()

    @property
    def is_broken(self) -> bool:
        return self._over.is_set()

    @property
    def is_lively(self) -> bool:
        """Whether the process has just given a sign of life."""
        return self._signs > self._doubted and not self.is_broken and self._quiet < _QUIET

    def doubt(self) -> None:
        """Take the process for silent until its next sign: it did not answer a short question in time."""
        self._doubted = self._signs

    def ask(self, request: tuple[Any, ...]) -> Any:
        """The answer to a question; stops waiting if its asker has left, and says so to the other side."""
        gone = stop_asked()
        number, answer = next(self._numbers), Future[Any]()
        self._waiting[number] = answer
        self._send((number, *request))
        if self.is_broken:
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
        """Close the pipe, at which the process ends; one that does not is killed."""
        broken = self.is_broken
        self._over.set()
        with contextlib.suppress(OSError):
            # Closing alone would not do: the thread that listens still holds the pipe while it reads.
            self._socket.shutdown(socket.SHUT_RDWR)
        # It may be about to read: the number of a closed pipe would soon stand for the next one.
        self._listener.join()
        with self._sending:
            self._pipe.close()
            self._socket.close()
        self._watcher.join()
        if broken:
            self._process.kill()  # nobody can ask it any more
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
            return
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            # One that waits for a dead disk cannot even be killed; nobody waits for it here.
            self._process.wait(_PATIENCE)

    def _send(self, message: tuple[Any, ...]) -> None:
        try:
            with self._sending:
                self._pipe.send_bytes(pickle.dumps(message))
        except OSError:
            self._broke()

    def _listen(self) -> None:
        try:
            while True:
                number, kind, value = pickle.loads(self._pipe.recv_bytes())
                self._signs += 1
                self._quiet = 0.0
                answer = self._waiting.pop(number, None)
                if answer is not None:
                    answer.set_result((kind, value))
        except Exception:  # the pipe has ended, or what came over it cannot be read
            self._broke()

    def _watch(self) -> None:
        """End the process where it is silent for too long.

        Time is counted in looks of our own: where this process itself stood still, that is one look.
        """
        signs, used = 0, _processor_time(self._process.pid)
        still = 0.0
        while not self._over.wait(_WATCH):
            seen, now = self._signs, _processor_time(self._process.pid)
            if seen != signs:
                still = self._quiet = 0.0
            else:
                self._quiet += _WATCH
                # A loop that holds the interpreter's lock keeps the thread of signs waiting, and works.
                still = still + _WATCH if now == used else 0.0
            signs, used = seen, now
            if still >= (self._silence if signs else max(self._silence, START)):
                log.error("the process that holds the records is silent; it is started again")
                self._why = "silent"
                self._process.kill()  # at which the thread that listens hears the end of the pipe
                return

    def _broke(self) -> None:
        self._over.set()
        for number in list(self._waiting):
            answer = self._waiting.pop(number, None)
            if answer is not None:  # another thread may have taken it
                answer.set_result((self._why, None))


def _processor_time(pid: int) -> int | None:
    """How much of the processor a process has used, in ticks; None where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return None
