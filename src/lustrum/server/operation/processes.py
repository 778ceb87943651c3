"""Several processes on one port: those that die or hang are started again, and all of them end together.

The parent asks each process for a sign of life and never waits for it: signals are heard meanwhile, and several
processes that hang at the same time are found at the same time.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

# --- Sockets to listen on; several processes may each have one on the same port


class OwnSocket:
    """A socket that every process makes for itself: the system spreads connections over all of them.

    It is sent to a process as the words that make it.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    def __reduce__(self) -> tuple[Any, ...]:
        return own_socket, (self.host, self.port)


def own_socket(host: str, port: int) -> socket.socket:
    """A socket on a port that other sockets of this user may have too; it does not listen yet."""
    sock = tcp_socket(host)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock


def tcp_socket(host: str) -> socket.socket:
    """A socket of the family of an address, ready to be bound."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, for asyncio switches off the delay of small packets only where it reads so.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


log = logging.getLogger("lustrum.server")

LEAVE = 25.0
"""Seconds for all processes to finish what is under way and to end."""


class Processes(Multiprocess):
    """The parent of the processes that answer; ``started`` is called once one of them does."""

    def __init__(
        self,
        config: uvicorn.Config,
        listening: socket.socket | OwnSocket,
        started: Callable[[], None],
        sign_of_life: float,
        restarted: Callable[[int | None, str], None] = lambda pid, why: None,
    ) -> None:
        super().__init__(config, [listening])  # type: ignore[list-item]  # see OwnSocket
        self._tell: Callable[[], None] | None = started
        self._sign_of_life, self._restarted = sign_of_life, restarted
        self._asked: dict[int, float] = {}
        """By the pid of a process, since when a question for a sign of life is open."""
        self._ready: set[int] = set()
        """The pids of those that said that they answer."""
        self._to_hang_up: set[int] = set()

    def keep_subprocess_alive(self) -> None:
        """Start again what died or hangs, and say so once one of them answers, however long that takes."""
        for index, process in enumerate(self.processes):
            # The other end of its pipe is the process's alone: it closes when that ends.
            process.child_conn.close()
            if self.should_exit.is_set():
                return
            if not self._lives(process):
                self._replace(index, process)
        if self._tell and self._ready:
            tell, self._tell = self._tell, None
            tell()
        self._pass_hangup_on()

    def _lives(self, process: Process) -> bool:
        """Whether a process lives and has not been silent for too long."""
        if not process.process.is_alive() or process.pid is None:
            return False
        now, pid = time.monotonic(), process.pid
        try:
            while process.parent_conn.poll():
                self._asked.pop(pid, None)
                if process.parent_conn.recv():
                    self._ready.add(pid)
            if pid not in self._asked:
                process.parent_conn.send(b"ping")
                self._asked[pid] = now
        except (OSError, EOFError, pickle.UnpicklingError):
            return False
        return now - self._asked[pid] < self._sign_of_life

    def _replace(self, index: int, process: Process) -> None:
        hung = process.process.is_alive()
        process.kill()
        process.join()
        if process.pid is not None:
            self._asked.pop(process.pid, None)
            self._ready.discard(process.pid)
        if process.exitcode == STARTUP_FAILURE:
            # The next one would fail in the same way.
            log.error("process %s could not start; the server ends", process.pid)
            self.should_exit.set()
            return
        self._restarted(process.pid, "silent" if hung else "died")
        log.error(
            "process %s %s and is started again", process.pid, "was silent" if hung else "died"
        )
        new = Process(self.config, self.sockets)
        new.start()
        self.processes[index] = new

    def join_all(self) -> None:
        """Wait for all to end; one that hangs does not hear that it should, and is killed."""
        end = time.monotonic() + LEAVE
        for process in self.processes:
            process.process.join(max(0.0, end - time.monotonic()))
            if process.process.is_alive():
                log.error("process %s does not end and is killed", process.pid)
                process.process.kill()
                process.process.join()

    def handle_hup(self) -> None:
        """Let every process read the policies again."""
        self._to_hang_up = {process.pid for process in self.processes if process.pid is not None}

    def _pass_hangup_on(self) -> None:
        """A hangup ends a process that is still starting, so that such a one hears of it later."""
        self._to_hang_up &= {process.pid for process in self.processes if process.pid is not None}
        for pid in self._to_hang_up & self._ready:
            os.kill(pid, signal.SIGHUP)
            self._to_hang_up.discard(pid)
