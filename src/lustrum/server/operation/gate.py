"""How many questions are answered at once, and for how long: the others wait, or are asked to come again.

The queue is fair: askers take turns, so that many questions of one asker do not hold up the single question of
another. A question whose asker has left, or that takes too long, is stopped.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lustrum.model.text import say
from lustrum.runtime.stop import Stopped, stop_asked, within
from lustrum.server.http.askers import current_asker
from lustrum.server.http.problems import Problem, ProblemError
from lustrum.server.settings import Settings

MOST_WAITING = 200
"""Each waits in a thread of its own; the others are asked to come again at once."""

THREADS = 2 * MOST_WAITING
"""Threads in which questions wait: there are two queues, one for bundles and one for records."""

MOST_OF_ONE = MOST_WAITING // 2
"""So many places in the queue one asker may hold; the rest stays free for others."""


class Gate:
    """Lets a few questions through at a time; askers take turns, and the questions of one keep their order."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._inside = 0
        self._waiting: OrderedDict[str, deque[threading.Event]] = OrderedDict()

    @property
    def inside(self) -> int:
        """How many are being answered now."""
        return self._inside

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    @contextmanager
    def pass_through(
        self, seconds: float | None = None, patience: float | None = None
    ) -> Iterator[None]:
        """Wait for a turn; then the work inside has limited time, and ends early if its asker leaves."""
        gone = stop_asked()
        self._wait(gone, patience or self._settings.patience)
        try:
            try:
                with within(seconds or self._settings.seconds):
                    yield
            except Stopped:
                if gone():
                    raise
                sentence = say(
                    "The table took longer than {seconds:g} seconds; ask for a smaller one.",
                    seconds=self._settings.seconds,
                )
                raise ProblemError(Problem.of_status(503, sentence)) from None
        finally:
            with self._lock:
                self._leave()

    def _wait(self, gone: Callable[[], bool], patience: float) -> None:
        asker = current_asker()
        with self._lock:
            if self._inside < self._settings.at_once:
                self._inside += 1
                return
            queue = self._waiting.get(asker, ())
            places = sum(map(len, self._waiting.values()))
            if patience < math.inf and (places >= MOST_WAITING or len(queue) >= MOST_OF_ONE):
                raise _busy()
            turn = threading.Event()
            self._waiting.setdefault(asker, deque()).append(turn)
        end = time.monotonic() + patience
        while not turn.wait(0.25):
            left = gone()
            if not left and time.monotonic() <= end:
                continue
            with self._lock:
                # The turn may have come just now; then it goes to the next one.
                if turn.is_set():
                    self._leave()
                else:
                    self._waiting[asker].remove(turn)
                    if not self._waiting[asker]:
                        del self._waiting[asker]
            if left:
                raise Stopped
            raise _busy()

    def _leave(self) -> None:
        """Hand the turn to the asker whose last turn is the longest ago."""
        if not self._waiting:
            self._inside -= 1
            return
        asker, turns = self._waiting.popitem(last=False)
        turns.popleft().set()
        if turns:
            self._waiting[asker] = turns


def _busy() -> ProblemError:
    sentence = say("Too many tables are being made at the moment; please try again soon.")
    return ProblemError(Problem.of_status(503, sentence, retry=5))
