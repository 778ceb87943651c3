"""Long work: how it is told to stop, and how it tells how far it is.

Whoever starts it says how to ask and who listens; whoever does it asks and tells now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Stopped", "check_stop", "stop_asked", "stopping", "tell", "telling"]

_asked: ContextVar[Callable[[], bool] | None] = ContextVar("lustrum_stop", default=None)


class Stopped(Exception):  # noqa: N818 - not an error: somebody asked for it
    """Somebody asked to stop."""


@contextmanager
def stopping(asked: Callable[[], bool]) -> Iterator[None]:
    """Whatever runs inside stops soon after ``asked`` says so.

    >>> with stopping(lambda: False):
    ...     check_stop()
    """
    token = _asked.set(asked)
    try:
        yield
    finally:
        _asked.reset(token)


def stop_asked() -> Callable[[], bool]:
    """How to ask whether to stop; worker threads take it along, as they do not see the context."""
    return _asked.get() or (lambda: False)


def check_stop() -> None:
    """Raise :class:`Stopped` if somebody asked for it."""
    if stop_asked()():
        raise Stopped


_told: ContextVar[Callable[[str, float], None] | None] = ContextVar("lustrum_told", default=None)


@contextmanager
def telling(told: Callable[[str, float], None]) -> Iterator[None]:
    """Whatever runs inside tells how far it is: a word for the step, and the share that is done.

    >>> with telling(lambda step, share: print(step, share)):
    ...     tell("risk", 0.4)
    risk 0.4
    """
    token = _told.set(told)
    try:
        yield
    finally:
        _told.reset(token)


def tell(step: str, share: float) -> None:
    """Say how far the work is, if anybody listens."""
    told = _told.get()
    if told is not None:
        told(step, share)
