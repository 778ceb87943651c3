"""How methods, engines, measures and formats are found: by entry points of installed packages.

The built-in ones are found as those of a third party are.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from lustrum.model.errors import InputError, choices

GROUPS = {
    "lustrum.engines": "engine",
    "lustrum.methods": "protection method",
    "lustrum.rules": "sensitivity rule",
    "lustrum.risks": "risk measure",
    "lustrum.utilities": "utility measure",
    "lustrum.formats": "format",
    "lustrum.frames": "maker of frames",
}


@cache
def _registered(group: str) -> dict[str, EntryPoint]:
    """What a group holds, by name; of several with one name the first counts."""
    return {entry.name: entry for entry in reversed(list(entry_points(group=group)))}


def names(group: str) -> tuple[str, ...]:
    return tuple(sorted(_registered(group)))


@cache
def load(group: str, name: str) -> Any:
    """The object registered under a name; a clear error where there is none."""
    entry = _registered(group).get(name)
    if entry is None:
        shown = name if len(name) <= 80 else f"{name[:60]} ..."
        raise InputError(f"There is no {GROUPS[group]} {shown!r}; {choices(name, names(group))}.")
    return entry.load()
