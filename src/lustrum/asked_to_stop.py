"""Whether the caller of long work asked to stop: what solvers need of :mod:`lustrum.model.stop`."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

asked: ContextVar[Callable[[], bool] | None] = ContextVar("lustrum_stop", default=None)


class Stopped(Exception):  # noqa: N818 - not an error: the caller asked for it
    """The caller asked to stop."""


def stop_asked() -> Callable[[], bool]:
    """How to ask whether to stop; worker threads take it along, as they do not see the context."""
    return asked.get() or (lambda: False)
