"""The parent of several processes: who hangs or dies is replaced, and nobody else is kept waiting."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from lustrum.server.operation import processes
from lustrum.server.operation.processes import Processes

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
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Made]:
    """A parent with two workers, and what it told."""

    def make() -> Made:
        monkeypatch.setattr(processes, "Process", Worker)
        # Signals are those of the tests.
        monkeypatch.setattr("uvicorn.supervisors.multiprocess.SIGNALS", {})
        told: list[str] = []
        config = uvicorn.Config("nothing", workers=2)
        parent = Processes(config, None, lambda: told.append("started"), SIGN)  # type: ignore[arg-type]
        parent.processes = [Worker(), Worker()]  # type: ignore[list-item]
        return parent, list(parent.processes), told

    return make


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
    for name in ("keep_subprocess_alive", "join_all", "handle_hup"):
        assert callable(getattr(Multiprocess, name))
