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


def stop_asked() -> Callable[[], bool]:
    """How to ask whether to stop; worker threads take it along, as they do not see the context."""
    return _asked.get() or (lambda: False)


def check_stop() -> None:
    """Raise :class:`Stopped` if the caller asked for it."""
    if stop_asked()():
        raise Stopped


_listener: ContextVar[Callable[[str, float], None] | None] = ContextVar(
    "lustrum_progress", default=None
)


@contextmanager
def reporting_progress(listener: Callable[[str, float], None]) -> Iterator[None]:
    """Code that runs inside reports its progress: the name of the step, and the share that is done.

    >>> with reporting_progress(lambda step, share: print(step, share)):
    ...     report_progress("risk", 0.4)
    risk 0.4
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_progress(step: str, share: float) -> None:
    """Report how far the work is, if anybody listens."""
    listener = _listener.get()
    if listener is not None:
        listener(step, share)
