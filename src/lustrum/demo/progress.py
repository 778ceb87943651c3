"""How a generator says how far it is."""

from __future__ import annotations

from collections.abc import Callable

#: Called with the share of the work done, from 0 to 1.
Progress = Callable[[float], None]


def silent(_: float) -> None:
    """Tell nobody."""
