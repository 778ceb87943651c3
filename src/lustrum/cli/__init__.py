"""The command line: a thin layer over the library and the server."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Import modules, which stay: searching them for garbage takes a tenth of the time of a small command."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.freeze()
            gc.enable()


with without_collection():
    from lustrum.cli.application import app, main

__all__ = ["app", "main"]
