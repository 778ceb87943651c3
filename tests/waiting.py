"""Waiting in tests: for a condition, never for a time that should be enough on a quiet machine.

A test may run on a machine many times slower than ours, beside other tests. A deadline here says only that
something hangs; what is right never depends on it.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

__all__ = ["LONG", "has_ended", "unshared_port", "until"]

T = TypeVar("T")

LONG = 300.0
"""Seconds after which a test takes something for hung."""


def until(condition: Callable[[], T], seconds: float = LONG, pause: float = 0.02) -> T:
    """Wait for a condition; what it has found."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(pause)
    return found


def has_ended(pid: int) -> bool:
    """Whether a process is gone; one that its parent, or nobody, has still to bury is."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return True
    return fields[0] in ("Z", "X")


def unshared_port() -> int:
    """A free port that the system gives to nobody who asks for any port, as servers of other tests do."""
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        first = 32768
    # Processes that run tests side by side begin at different places.
    start = time.monotonic_ns() // 1000
    for step in range(2000):
        port = 10_000 + (start + step) % (first - 10_000)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
