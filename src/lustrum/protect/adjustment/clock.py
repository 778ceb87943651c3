"""How much time is left."""

from __future__ import annotations

import time

__all__ = ["Clock"]


class Clock:
    """So many seconds from now on.

    >>> Clock(1000.0).late
    False
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.perf_counter() + seconds

    @property
    def left(self) -> float:
        """Seconds left, never below 0."""
        return max(0.0, self._end - time.perf_counter())

    @property
    def late(self) -> bool:
        """Whether none are left."""
        return self.left <= 0.0
