"""Stopping long work, and following its progress.

The caller says how to ask whether to stop and who listens to progress; the code that does the work asks and
reports now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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
