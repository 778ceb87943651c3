"""Memory of the C library: few arenas, and what is free in them goes back to the system.

With an arena for each thread a server would hold what many threads once needed. What is freed between things
that are kept, such as remembered answers, is not given back by itself: holes are left, more with time.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys

from starlette.concurrency import run_in_threadpool

_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h
_FEW = 2
_PAUSE = (
    30.0  # seconds between two times that memory is given back, which takes some hundredths of one
)


def keep_arenas_few() -> bool:
    """Let all threads of this process share two arenas, where the C library is glibc; whether it does."""
    if sys.platform != "linux":
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    return set_option is not None and set_option(_ARENA_MAX, _FEW) == 1


def give_back() -> bool:
    """Give free memory back to the system, where the C library is glibc; whether any was."""
    if sys.platform != "linux":
        return False
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return trim is not None and trim(0) == 1


async def keep_memory_small() -> None:
    """Give free memory back now and then, for as long as the server runs."""
    while True:
        await asyncio.sleep(_PAUSE)
        await run_in_threadpool(give_back)
