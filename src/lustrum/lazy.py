"""Names that a room offers, imported when they are first used and completed by Tab."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["offer"]


def offer(
    room: str, places: Mapping[str, str], loaded: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a room: ``places`` says in which module each name lies.

    A name whose place is ``""`` is a module of the room itself. ``loaded`` are the names it has already.
    """
    known = sorted({*places, *loaded})

    def found(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        place = places[name]
        module = importlib.import_module(f"{room}.{place}" if place else f"{room}.{name}")
        return getattr(module, name) if place else module

    return found, lambda: known
