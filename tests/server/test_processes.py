"""The parent of several processes: who hangs or dies is replaced, and nobody else is kept waiting."""

from __future__ import annotations

import contextlib
import logging
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from lustrum.server.operation import processes
from lustrum.server.operation.processes import Acceptor, Handed, Processes
from waiting import LONG

SIGN = 60.0


class System:
    """What a process is to the system."""

    def __init__(self) -> None:
        self.lives = True
        self.ends_by_itself = True
        self.waited: list[float | None] = []
        self.killed = False

    def is_alive(self) -> bool:
        return self.lives

    def join(self, timeout: float | None = None) -> None:
        self.waited.append(timeout)
        if self.ends_by_itself or self.killed:
            self.lives = False

    def kill(self) -> None:
        self.killed = True
        self.lives = False


class Worker:
    """A process that answers when the test lets it."""

    pids = iter(range(1000, 2000))

    def __init__(self, config: object = None, sockets: object = None) -> None:
        self.parent_conn, self.child_conn = Pipe()
        self.kept = self.child_conn
        self.child_conn = type("Closed", (), {"close": lambda self: None})()
        self.process, self.pid, self.exitcode = System(), next(self.pids), 0
        self.started = False

    def start(self) -> None:
        self.started = True

    def pong(self, ready: bool = True) -> int:
        """Answer all that was asked; how much it was."""
        count = 0
        while self.kept.poll():
            assert self.kept.recv() == b"ping"
            self.kept.send(ready)
            count += 1
        return count

    def kill(self) -> None:
        self.process.kill()

    def join(self) -> None:
        self.process.join()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=found))
    return found


Made = tuple[Processes, list[Any], list[str]]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Made]]:
    """A parent with two workers, and what it told."""
    parents: list[Processes] = []

    def make() -> Made:
        monkeypatch.setattr(processes, "Process", Worker)
        # Signals are those of the tests.
        monkeypatch.setattr("uvicorn.supervisors.multiprocess.SIGNALS", {})
        told: list[str] = []
        config = uvicorn.Config("nothing", workers=2)
        parent = Processes(config, socket.socket(), lambda: told.append("started"), SIGN)
        parent.processes = [Worker(), Worker()]  # type: ignore[list-item]
        parents.append(parent)
        return parent, list(parent.processes), told

    yield make
    for parent in parents:
        assert parent._acceptor is not None
        parent._acceptor.close()


def test_nobody_waits_for_a_sign_and_a_process_that_gives_none_is_replaced(
    made: Callable[[], Made], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    parent, (one, two), told = made()
    parent.keep_subprocess_alive()
    assert told == []
    assert [one.pong(), two.pong()] == [1, 1]
    parent.keep_subprocess_alive()
    assert told == ["started"]
    # Both fall silent: nothing happens before the time is over, and then both are replaced at once.
    clock.now += SIGN - 1
    parent.keep_subprocess_alive()
    assert parent.processes == [one, two]
    assert [one.kept.poll(), two.kept.poll()] == [True, True]
    clock.now += 1
    parent.keep_subprocess_alive()
    assert all(new not in (one, two) and new.started for new in parent.processes)  # type: ignore[attr-defined]
    assert one.process.killed
    assert two.process.killed
    assert caplog.messages == [
        f"process {one.pid} was silent and is started again",
        f"process {two.pid} was silent and is started again",
    ]
    # It was announced once, and is not announced again.
    for new in parent.processes:
        new.pong()
    parent.keep_subprocess_alive()
    assert told == ["started"]


def test_the_server_is_there_when_all_answer_and_waits_for_a_late_one_only_so_long(
    made: Callable[[], Made], clock: Clock
) -> None:
    parent, (one, two), told = made()
    parent.keep_subprocess_alive()
    one.pong()
    two.pong(ready=False)
    parent.keep_subprocess_alive()
    clock.now += processes.OTHERS - 1
    parent.keep_subprocess_alive()
    assert told == []
    clock.now += 1
    parent.keep_subprocess_alive()
    assert told == ["started"]


def test_a_server_whose_processes_cannot_start_ends(
    made: Callable[[], Made], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    parent, (one, two), told = made()
    one.process.lives, one.exitcode = False, STARTUP_FAILURE
    parent.keep_subprocess_alive()
    assert parent.should_exit.is_set()
    assert parent.processes == [one, two]
    assert "could not start" in caplog.text
    assert told == []


def test_a_hangup_reaches_those_that_answer_and_the_others_when_they_do(
    made: Callable[[], Made], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int]] = []
    kill = SimpleNamespace(kill=lambda pid, what: sent.append((pid, what)))
    monkeypatch.setattr(processes, "os", kill)
    parent, (one, two), told = made()
    parent.keep_subprocess_alive()
    one.pong()
    two.pong(ready=False)  # it lives, and is still starting
    parent.handle_hup()
    parent.keep_subprocess_alive()
    assert sent == [(one.pid, signal.SIGHUP)]
    parent.keep_subprocess_alive()
    assert len(sent) == 1
    two.pong()
    parent.keep_subprocess_alive()
    assert sent[1:] == [(two.pid, signal.SIGHUP)]
    assert told == ["started"]


def test_a_hangup_is_not_passed_on_to_a_process_that_took_the_place_of_another(
    made: Callable[[], Made], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    kill = SimpleNamespace(kill=lambda pid, what: sent.append(pid))
    monkeypatch.setattr(processes, "os", kill)
    parent, (one, two), _ = made()
    parent.keep_subprocess_alive()
    parent.handle_hup()
    one.process.lives = False
    for _ in range(3):
        parent.keep_subprocess_alive()
        for worker in parent.processes:
            worker.pong()
    assert sent == [two.pid]


def test_a_process_that_hangs_does_not_keep_the_server_from_ending(
    made: Callable[[], Made], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    parent, (one, two), _ = made()
    two.process.ends_by_itself = False
    with caplog.at_level(logging.ERROR):
        parent.join_all()
    assert not one.process.killed
    assert two.process.killed
    assert one.process.waited == [processes.LEAVE]
    assert caplog.messages == [f"process {two.pid} does not end and is killed"]


def test_the_parent_is_that_of_uvicorn() -> None:
    """What is overridden is there to be called."""
    for name in (
        "run",
        "init_processes",
        "terminate_all",
        "keep_subprocess_alive",
        "join_all",
        "handle_hup",
    ):
        assert callable(getattr(Multiprocess, name))


def test_a_process_that_dies_or_takes_nothing_leaves_connections_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listening, goes_on = processes.tcp_socket("127.0.0.1"), threading.Event()

    class ConnectionsFirst(selectors.DefaultSelector):
        """Whatever comes while the acceptor waits for its turn, a connection is named first."""

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            goes_on.wait(LONG)
            return sorted(
                super().select(timeout), key=lambda ready: ready[0].fileobj is not listening
            )

    monkeypatch.setattr(selectors, "DefaultSelector", ConnectionsFirst)
    goes_on.set()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    acceptor = Acceptor(listening)
    acceptor.start()
    address = listening.getsockname()
    dead, alive = (acceptor.line().__reduce__()[1][0] for _ in range(2))
    dead, alive = Handed(dead), Handed(alive)
    with socket.create_connection(address) as early:
        dead.listen()
        first, peer = (
            dead.accept()
        )  # who came before anybody accepted was kept waiting, not refused
        assert peer == early.getsockname()
        goes_on.clear()
        time.sleep(0.3)  # until it waits
        alive.listen()
        dead.close()
        first.close()
        held = []
        with contextlib.ExitStack() as clients:
            for _ in range(6):
                client = clients.enter_context(socket.create_connection(address))
                goes_on.set()
                client.settimeout(LONG)
                alive.settimeout(LONG)
                held.append(alive.accept()[0])
                held[-1].sendall(b"x")
                assert client.recv(1) == b"x"
            for connection in held:
                connection.close()
    acceptor.close()
    alive.close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(address)
