"""Stopping long work, and following its progress.

The caller says how to ask whether to stop and who listens to progress; the code that does the work asks and
reports now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Event, Thread
from typing import TypeVar

_asked: ContextVar[Callable[[], bool] | None] = ContextVar("lustrum_stop", default=None)


class Stopped(Exception):  # noqa: N818 - not an error: the caller asked for it
    """The caller asked to stop."""


def stop_asked() -> Callable[[], bool]:
    """How to ask whether to stop; worker threads take it along, as they do not see the context."""
    return _asked.get() or (lambda: False)


@contextmanager
def stopping(asked: Callable[[], bool]) -> Iterator[None]:
    """Code that runs inside stops soon after ``asked`` returns True.

    >>> with stopping(lambda: False):
    ...     check_stop()
    """
    token = _asked.set(asked)
    try:
        yield
    finally:
        _asked.reset(token)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Code that runs inside also stops after so many seconds.

    >>> with within(60):
    ...     check_stop()
    """
    gone, end = stop_asked(), time.monotonic() + seconds
    with stopping(lambda: gone() or time.monotonic() > end):
        yield


_enough: ContextVar[Callable[[], bool] | None] = ContextVar("lustrum_enough", default=None)


@contextmanager
def taking_best(enough: Callable[[], bool]) -> Iterator[None]:
    """Searches that run inside end soon after ``enough`` returns True, with the best that they have found.

    >>> with taking_best(lambda: False), keeping_best():
    ...     check_stop()
    """
    token = _enough.set(enough)
    try:
        yield
    finally:
        _enough.reset(token)


@contextmanager
def keeping_best() -> Iterator[None]:
    """A search that holds its best at any moment runs inside, and is left where somebody takes that.

    >>> with taking_best(lambda: True):
    ...     with keeping_best():
    ...         check_stop()
    ...         print("not reached")
    """
    gone, enough = stop_asked(), _enough.get()
    if enough is None:
        yield
        return
    try:
        with stopping(lambda: gone() or enough()):
            yield
    except Stopped:
        if gone() or not enough():
            raise


def best_is_taken() -> bool:
    """Whether somebody takes the best that searches have found so far.

    >>> with taking_best(lambda: True):
    ...     best_is_taken()
    True
    """
    enough = _enough.get()
    return enough is not None and enough()


def check_stop() -> None:
    """Raise :class:`Stopped` if the caller asked for it."""
    if stop_asked()():
        raise Stopped


class _ProgressHeard:
    """Who listens to progress, and what was said last."""

    def __init__(self, listener: Callable[[str, float], None]) -> None:
        self.listener = listener
        self.last: tuple[str, float] | None = None

    def say(self, step: str, share: float) -> None:
        """Pass on how far a step is."""
        self.last = (step, share)
        self.listener(step, share)


_listening: ContextVar[_ProgressHeard | None] = ContextVar("lustrum_progress", default=None)


@contextmanager
def reporting_progress(listener: Callable[[str, float], None]) -> Iterator[None]:
    """Code that runs inside reports its progress: the name of the step, and the share that is done.

    >>> with reporting_progress(lambda step, share: print(step, share)):
    ...     report_progress("risk", 0.4)
    risk 0.4
    """
    token = _listening.set(_ProgressHeard(listener))
    try:
        yield
    finally:
        _listening.reset(token)


@contextmanager
def one_part(done: int, parts: int) -> Iterator[None]:
    """Progress of code that runs inside is that of one of several equal parts, of which so many are done.

    >>> with reporting_progress(lambda step, share: print(step, share)), one_part(1, 2):
    ...     report_progress("protecting", 0.5)
    protecting 0.75
    """
    outer = _listening.get()
    if outer is None:
        yield
        return
    with reporting_progress(lambda step, share: outer.say(step, (done + share) / parts)):
        yield


def report_progress(step: str, share: float) -> None:
    """Report how far the work is, if anybody listens."""
    listening = _listening.get()
    if listening is not None:
        listening.say(step, share)


def still_working() -> None:
    """Stop if the caller asked for it, and otherwise say again how far the work is.

    It is for work that does not know which step it is part of.

    >>> with reporting_progress(lambda step, share: print(step, share)):
    ...     report_progress("risk", 0.4)
    ...     still_working()
    risk 0.4
    risk 0.4
    """
    check_stop()
    listening = _listening.get()
    if listening is not None and listening.last is not None:
        listening.say(*listening.last)


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
