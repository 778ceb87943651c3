"""Few arenas of the C library: with one for each thread a server holds what many threads once needed."""

from __future__ import annotations

import ctypes
import sys

_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h
_FEW = 2


def keep_arenas_few() -> bool:
    """Let all threads of this process share two arenas, where the C library is glibc; whether it does."""
    if sys.platform != "linux":
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    return set_option is not None and set_option(_ARENA_MAX, _FEW) == 1
