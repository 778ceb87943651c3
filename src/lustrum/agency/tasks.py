"""Work that takes longer than a page: commands of Lustrum, each in a process of its own, with what they print.

A page starts the same command that a terminal would, so that both do the same.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lustrum.model import InputError
from lustrum.model.errors import choices

_MOST = 50
_MOST_LINES = 400
_PATIENCE = 20.0  # seconds in which a command that was stopped ends by itself


@dataclass(eq=False)
class Task:
    """One command: what it is for, how far it is, what it has printed."""

    number: int
    title: str
    dataset: str
    arguments: tuple[str, ...]
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended: datetime | None = None
    code: int | None = None
    stopped: bool = False
    lines: list[str] = field(default_factory=list)
    _process: subprocess.Popen[str] | None = None
    _thread: threading.Thread | None = None

    @property
    def state(self) -> str:
        """``running``, ``finished``, ``stopped`` or ``failed``."""
        if self.ended is None:
            return "running"
        if self.code == 0:
            return "finished"
        return "stopped" if self.stopped else "failed"

    @property
    def seconds(self) -> int:
        return int(((self.ended or datetime.now(UTC)) - self.started).total_seconds())

    def stop(self) -> None:
        """End the command; what it replaces as a whole stays as it was."""
        if self.ended is None and self._process is not None:
            self.stopped = True
            self._process.terminate()

    def wait(self, seconds: float) -> bool:
        """Wait until it ended; gives whether it has."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self.ended is not None

    def kill(self) -> None:
        """End the command at once."""
        if self.ended is None and self._process is not None:
            self._process.kill()

    def run(self) -> None:
        """Start the command and read what it prints."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lustrum", *self.arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._thread = threading.Thread(target=self._read, name=f"task {self.number}", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with self._process.stdout as printed:
            for line in printed:
                if line.strip():
                    self.lines = [*self.lines[-_MOST_LINES:], line.rstrip()]
        self.code = self._process.wait()
        self.ended = datetime.now(UTC)


class AgencyTasks:
    """The tasks of one page, by number."""

    def __init__(self) -> None:
        self._tasks: dict[int, Task] = {}
        self._lock = threading.Lock()
        self._next = 1

    def get(self, number: int) -> Task:
        task = self._tasks.get(number)
        if task is None:
            raise InputError(
                f"There is no task {number}; {choices(str(number), map(str, self._tasks))}."
            )
        return task

    def all(self) -> list[Task]:
        return sorted(self._tasks.values(), key=lambda task: -task.number)

    def of(self, dataset: str) -> Task | None:
        return next((t for t in self.all() if t.dataset == dataset and t.state == "running"), None)

    def start(self, title: str, dataset: str, arguments: Sequence[str]) -> Task:
        """Start a command; a dataset has one at a time."""
        with self._lock:
            other = self.of(dataset)
            if other is not None:
                raise InputError(
                    f"{other.title!r} is still running on {dataset!r}; wait for it, or stop it."
                )
            task = Task(self._next, title, dataset, tuple(arguments))
            self._next += 1
            old = [n for n, t in self._tasks.items() if t.state != "running"]
            for number in old[: max(0, len(self._tasks) - _MOST + 1)]:
                del self._tasks[number]
            task.run()
            self._tasks[task.number] = task
        return task

    def stop(self) -> None:
        """End all tasks, and wait for their ends."""
        running = [task for task in self.all() if task.state == "running"]
        for task in running:
            task.stop()
        for task in running:
            if not task.wait(_PATIENCE):
                task.kill()
                task.wait(_PATIENCE)
