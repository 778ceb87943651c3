"""A long search: what goes on, and a way to stop with the best pattern so far."""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Callable, Iterator

from lustrum.runtime.log_lines import tell_person
from lustrum.runtime.stop import taking_best

log = logging.getLogger("lustrum.suppression")

_SOON = 20.0  # processor seconds after which a search says that it goes on


class StoppableSearch:
    """Shows the progress of a search, and says after a while that Ctrl-C ends it with its best pattern.

    Before that, and the second time, Ctrl-C ends everything, as it does elsewhere.
    Without Ctrl-C nothing here changes what a search finds: the clock only decides when a sentence is printed.
    By default sentences go to the log, and to standard error where that is a terminal or a notebook.
    """

    def __init__(
        self,
        show: Callable[[str], None] = lambda text: None,
        line: Callable[[str], None] = lambda text: tell_person(log, text),
    ) -> None:
        self.show, self.line = show, line
        self.stopped = self._told = False
        self._begin = time.process_time()

    def tell(self, what: str, cost: float, bound: float) -> bool:
        """Is told what goes on; gives whether the search shall end."""
        self.show(f"{what}: cost {cost:,.0f}, at least {bound:,.0f}")
        if not self._told and time.process_time() - self._begin > _SOON:
            self._told = True
            self.line(
                "A safe pattern is found. The search goes on to find a cheaper one or to prove that there is "
                "none; Ctrl-C takes the best so far."
            )
        return self.stopped

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Take Ctrl-C for the wish to stop, once that was offered."""

        def stop(number: int, frame: object) -> None:
            if self.stopped or not self._told:
                raise KeyboardInterrupt
            self.stopped = True
            self.show("stopping with the best pattern so far")

        try:
            before = signal.signal(signal.SIGINT, stop)
        except ValueError:  # not the main thread, where nobody presses keys
            yield
            return
        try:
            with taking_best(lambda: self.stopped):
                yield
        finally:
            signal.signal(signal.SIGINT, before)
