"""Say that loops are being compiled, where a person waits for it."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from numba.core import event

from lustrum.runtime.log_lines import tell_person

log = logging.getLogger("lustrum.numeric.compiled")

SOON = 1.0
"""Seconds of compiling after which the first sentence comes."""
_AGAIN = 10.0  # seconds between later sentences
_FIRST = "Loops are compiled when they are first used on a machine; this can take half a minute."
_KEPT = " Later runs find them compiled."
_NOT_KEPT = (
    " They cannot be kept here, so that every process compiles them again: set NUMBA_CACHE_DIR to a folder "
    "that may be written."
)


class CompileNotice(event.Listener):
    """Adds up the time that loops take to compile, and says so once it is long and now and then after that.

    The sentence goes to the log ``lustrum.numeric.compiled``, and to standard error where that is a terminal
    or a notebook. Loops are compiled one at a time, under a lock of the compiler.
    """

    def __init__(self) -> None:
        self.stored = True
        self._depth = self._loops = 0
        self._spent = self._begun = 0.0
        self._next = SOON
        self._timer: threading.Timer | None = None

    @property
    def is_long(self) -> bool:
        """Whether a loop is being compiled, and compiling has taken long already."""
        return self._depth > 0 and self._spent + time.monotonic() - self._begun >= SOON

    def on_start(self, event: Any) -> None:
        """Begin to wait; loops that a loop calls are part of it."""
        self._depth += 1
        if self._depth == 1:
            self._begun = time.monotonic()
            self._wait()

    def on_end(self, event: Any) -> None:
        """Add the time of a loop that is compiled now."""
        self._depth -= 1
        if self._depth == 0:
            assert self._timer is not None
            self._timer.cancel()
            self._spent += time.monotonic() - self._begun
            self._loops += 1
            if self._spent >= self._next:
                self._say(self._spent)

    def _wait(self) -> None:
        self._timer = threading.Timer(max(self._next - self._spent, 0.0), self._due)
        self._timer.daemon = True
        self._timer.start()

    def _due(self) -> None:
        spent = self._spent + time.monotonic() - self._begun
        if self._depth and spent >= self._next:
            self._say(spent)
            self._wait()

    def _say(self, spent: float) -> None:
        first = self._next == SOON
        self._next = spent + _AGAIN
        sentence = f"Still compiling: {self._loops} loops in {spent:.0f} s."
        if first:
            sentence = _FIRST + (_KEPT if self.stored else _NOT_KEPT)
        tell_person(log, sentence)


notice = CompileNotice()
event.register("numba:compile", notice)  # type: ignore[no-untyped-call]  # numba is not typed
