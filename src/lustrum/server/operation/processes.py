"""Several processes on one port: those that die or hang are started again, and all of them end together.

The parent asks each process for a sign of life and never waits for it: signals are heard meanwhile, and several
processes that hang at the same time are found at the same time.
"""

from __future__ import annotations

import logging
import os
import pickle
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, cast

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

log = logging.getLogger("lustrum.server")

LEAVE = 25.0
"""Seconds for all processes to finish what is under way and to end."""
OTHERS = 15.0
"""Seconds that the first process that answers waits for the others before the server says that it is there."""


def tcp_socket(host: str) -> socket.socket:
    """A socket of the family of an address, ready to be bound."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, for asyncio switches off the delay of small packets only where it reads so.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


# --- Connections are accepted once, and each is handed to the process that has the fewest of them
# Processes that listen on one socket leave all connections to the one that wakes first, and with sockets of
# their own chance decides; both leave processes idle beside busy ones for as long as connections are kept.

_READY, _CLOSED = b"+", b"-"


class Handed(socket.socket):
    """Looks to the event loop like a socket that listens: what it accepts is handed over by the parent."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__(fileno=end.detach())

    def listen(self, backlog: int = 0) -> None:
        """Tell the parent that connections are accepted from now on."""
        self.send(_READY)

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection, and the address at its other end."""
        _, files, _, _ = socket.recv_fds(self, 1, 1)
        if not files:
            raise BlockingIOError  # the parent is gone, which this process notices elsewhere
        connection = _Counted(files[0], self)
        try:
            return connection, connection.getpeername()
        except OSError:
            connection.close()
            raise ConnectionAbortedError from None


class _Counted(socket.socket):
    """A connection whose end is told to the parent."""

    def __init__(self, file: int, line: Handed) -> None:
        super().__init__(fileno=file)
        self._line: Handed | None = line

    def close(self) -> None:
        """Close it, and tell the parent once."""
        super().close()
        line, self._line = self._line, None
        if line is not None:
            with suppress(OSError):
                line.send(_CLOSED)


class HandedEnd:
    """The end of a line to the parent, on its way to a process."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def __reduce__(self) -> tuple[Any, ...]:
        return Handed, (self.end,)


class Acceptor(threading.Thread):
    """Accepts connections in the parent, and hands each to the process that has the fewest open ones."""

    def __init__(self, listening: socket.socket) -> None:
        super().__init__(name="acceptor", daemon=True)
        self._listening = listening
        listening.setblocking(False)
        self._new: SimpleQueue[socket.socket] = SimpleQueue()
        self._open: dict[socket.socket, int] = {}
        """How many connections each process has that accepts some; who was served last stands last."""
        self._lines = selectors.DefaultSelector()
        self._ended = False

    def line(self) -> HandedEnd:
        """A line to one more process."""
        here, there = socket.socketpair()
        here.setblocking(False)
        self._new.put(here)
        return HandedEnd(there)

    def stop(self) -> None:
        """Accept no more."""
        self._ended = True
        if self.is_alive():
            self.join()
        self._listening.close()

    def close(self) -> None:
        """Stop, and let go of all lines."""
        self.stop()
        while not self._new.empty():
            self._new.get().close()
        for key in list(self._lines.get_map().values()):
            cast("socket.socket", key.fileobj).close()
        self._lines.close()

    def run(self) -> None:
        """Accept and hand out until the server ends."""
        while not self._ended:
            while not self._new.empty():
                self._lines.register(self._new.get(), selectors.EVENT_READ)
            ready = [key.fileobj for key, _ in self._lines.select(0.1)]
            # Who accepts, and who is gone, is known before a connection is handed to one of them.
            for line in ready:
                if line is not self._listening:
                    self._hear(cast("socket.socket", line))
            if self._listening in ready and self._open:
                self._hand_out()

    def _hear(self, line: socket.socket) -> None:
        """Learn that a process accepts, that it closed connections, or that it is gone."""
        try:
            told = line.recv(4096)
        except OSError:
            told = b""
        if not told:
            self._lines.unregister(line)
            self._open.pop(line, None)
            line.close()
            if not self._open and self._listening.fileno() in self._lines.get_map():
                self._lines.unregister(self._listening)  # connections wait for the next process
            return
        if _READY in told:
            if not self._open:
                self._lines.register(self._listening, selectors.EVENT_READ)
            self._open.setdefault(line, 0)
        if line in self._open:
            self._open[line] -= told.count(_CLOSED)

    def _hand_out(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:  # whoever called has left, or no file can be opened just now
            time.sleep(0.001)
            return
        with connection:
            for line in sorted(self._open, key=self._open.__getitem__):
                with suppress(OSError):  # its queue is full, or it is about to be found gone
                    socket.send_fds(line, [b"c"], [connection.fileno()])
                    self._open[line] = self._open.pop(line) + 1
                    return


class Processes(Multiprocess):
    """The parent of the processes that answer; ``started`` is called once one of them does."""

    def __init__(
        self,
        config: uvicorn.Config,
        listening: socket.socket,
        started: Callable[[], None],
        sign_of_life: float,
        restarted: Callable[[int | None, str], None] = lambda pid, why: None,
    ) -> None:
        super().__init__(config, [listening])
        self._acceptor = Acceptor(listening) if hasattr(socket, "send_fds") else None
        self._tell: Callable[[], None] | None = started
        self._sign_of_life, self._restarted = sign_of_life, restarted
        self._asked: dict[int, float] = {}
        """By the pid of a process, since when a question for a sign of life is open."""
        self._ready: set[int] = set()
        """The pids of those that said that they answer."""
        self._first_ready: float | None = None
        self._to_hang_up: set[int] = set()

    def run(self) -> None:
        """Start all processes and keep them alive until the server ends."""
        if self._acceptor is None:
            return super().run()
        self._acceptor.start()
        try:
            super().run()
        finally:
            self._acceptor.close()

    def init_processes(self) -> None:
        """Start all processes."""
        self.processes += [self._started() for _ in range(self.processes_num)]

    def terminate_all(self) -> None:
        """Accept no more connections, and let all processes end."""
        if self._acceptor is not None:
            self._acceptor.stop()
        super().terminate_all()

    def _started(self) -> Process:
        """A new process, with a line on which it is handed connections."""
        if self._acceptor is None:
            process = Process(self.config, self.sockets)
            process.start()
            return process
        line = self._acceptor.line()
        process = Process(self.config, [line])  # type: ignore[list-item]  # it arrives as a socket
        process.start()
        line.end.close()
        return process

    def keep_subprocess_alive(self) -> None:
        """Start again what died or hangs, and say once that they answer: all of them, or some after a while."""
        for index, process in enumerate(self.processes):
            # The other end of its pipe is the process's alone: it closes when that ends.
            process.child_conn.close()
            if self.should_exit.is_set():
                return
            if not self._lives(process):
                self._replace(index, process)
        if self._tell and self._ready:
            self._first_ready = self._first_ready or time.monotonic()
            patient = time.monotonic() < self._first_ready + OTHERS
            if len(self._ready) == len(self.processes) or not patient:
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
        self.processes[index] = self._started()

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
