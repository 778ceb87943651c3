"""Names that a room offers, imported when they are first used and completed by Tab."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def offer(
    room: str, modules: Mapping[str, str], loaded: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a room: ``modules`` lists the names that each module defines.

    Under ``""`` stand modules that the room offers as they are. ``loaded`` are the names it has already.
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}
    known = sorted({*module_of, *loaded})

    def attribute(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module = importlib.import_module(f"{room}.{module_of[name] or name}")
        return getattr(module, name) if module_of[name] else module

    return attribute, lambda: known
