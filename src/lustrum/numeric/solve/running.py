"""Running HiGHS so that a wish to stop is heard in the middle of a program.

One program may take many seconds. The solver asks after every step of the simplex method, and between the
steps of a search for whole numbers, whether to go on. Asking changes nothing about its way, so a run that
nobody stops gives what it gives without the question.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import highspy

from lustrum.runtime.stop import Stopped, stop_asked

_PAUSE = 0.1  # seconds between two questions to the caller


def run(model: Any, stop: Callable[[], bool] | None = None) -> None:
    """Run a model of HiGHS, unless the caller asks to stop.

    Where the caller of all this work asks (:mod:`lustrum.runtime.stop`), :class:`Stopped` is raised; an
    interrupt from the keyboard raises what its handler raises. Where ``stop`` returns True, the model ends
    without an optimum, and the caller reads how.
    """
    gone, errors = stop_asked(), list[BaseException]()
    stopped = ended = False
    again = 0.0

    def look(event: Any) -> None:
        nonlocal stopped, ended, again
        now = time.monotonic()
        if now >= again:
            again = now + _PAUSE
            stopped = stopped or gone()
            ended = ended or (stop is not None and stop())
        if stopped or ended or errors:
            event.data_in.user_interrupt = True

    places = (model.cbSimplexInterrupt, model.cbIpmInterrupt, model.cbMipInterrupt)
    with _keeping_interrupts(errors):
        for callback in places:
            callback.subscribe(look)
        try:
            model.run()
        finally:
            for callback in places:
                callback.unsubscribe(look)
    if model.getModelStatus() == highspy.HighsModelStatus.kInterrupt:
        model.enableCallbacks()  # otherwise HiGHS keeps the interrupt for the next run
    if errors or stopped:
        model.clearSolver()  # another question to this model begins from scratch
        raise errors[0] if errors else Stopped


@contextmanager
def _keeping_interrupts(errors: list[BaseException]) -> Iterator[None]:
    """Keep what the handler of Ctrl-C raises: it must not pass through the compiled solver."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def keep(number: int, frame: Any) -> None:
        try:
            before(number, frame)
        except BaseException as error:
            errors.append(error)

    signal.signal(signal.SIGINT, keep)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is keep:
            signal.signal(signal.SIGINT, before)
