"""Work that runs at the same time on several cores: all of it is done, or all of it stops."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from threading import Event, Thread
from typing import TypeVar

from lustrum.runtime.stop import Stopped, stop_asked, stopping

A = TypeVar("A")
B = TypeVar("B")


def side_by_side(here: Callable[[], A], beside: Callable[[], B]) -> tuple[A, B]:
    """Do one piece of work here and another in a thread, wait for both and give what they return.

    Where one fails, or the caller interrupts, the other is asked to stop and has stopped before the error is
    raised. What takes long must ask now and then, with :func:`lustrum.runtime.stop.check_stop`.

    >>> side_by_side(lambda: 1, lambda: "a")
    (1, 'a')
    """
    asked, halt = stop_asked(), Event()
    first: list[A] = []
    second: list[B] = []
    errors: list[BaseException] = []

    def run(work: Callable[[], A] | Callable[[], B], into: list[A] | list[B]) -> None:
        try:
            with stopping(lambda: halt.is_set() or asked()):
                into.append(work())  # type: ignore[arg-type]
        except BaseException as error:
            errors.append(error)
            halt.set()

    # A thread sees neither who listens to progress nor who may stop the work, unless it takes that along.
    context = copy_context()
    thread = Thread(target=context.run, args=(run, beside, second), name="lustrum work")
    thread.start()
    try:
        run(here, first)
        thread.join()
    except BaseException:  # an interrupt while waiting
        halt.set()
        raise
    finally:
        thread.join()
    # One that stopped because the other failed has nothing to say beside it.
    for error in sorted(errors, key=lambda error: isinstance(error, Stopped)):
        raise error
    return first[0], second[0]
