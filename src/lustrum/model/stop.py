"""How long work is told to stop: whoever starts it says how to ask, and whoever does it asks now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Stopped", "check_stop", "stop_asked", "stopping"]

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
