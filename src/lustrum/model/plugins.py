"""One door for methods, engines, measures and formats: entry points.

The built-in ones come in by the same door as those of a third party.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from lustrum.model.errors import InputError, choices

__all__ = ["load", "names"]

GROUPS = {
    "lustrum.engines": "engine",
    "lustrum.methods": "protection method",
    "lustrum.rules": "sensitivity rule",
    "lustrum.risks": "risk measure",
    "lustrum.utilities": "utility measure",
    "lustrum.formats": "format",
}


@cache
def names(group: str) -> tuple[str, ...]:
    """What is registered in a group, sorted."""
    return tuple(sorted({entry.name for entry in entry_points(group=group)}))


@cache
def load(group: str, name: str) -> Any:
    """The object registered under a name; a clear error where there is none."""
    for entry in entry_points(group=group, name=name):
        return entry.load()
    raise InputError(f"There is no {GROUPS[group]} {name!r}; {choices(name, names(group))}.")
