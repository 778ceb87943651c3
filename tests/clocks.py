"""A clock on which a moment takes a day, for what must not depend on time."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace

import pytest

__all__ = ["bend_clock"]

_TIMES = 100_000


def bend_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Lustrum's own looks at the clock see it run far too fast.

    Only Lustrum's: servers of other tests may run in this process, and their timers would never ring again.
    """
    hasty = SimpleNamespace(**vars(time))
    hasty.time = lambda: time.time() * _TIMES
    hasty.monotonic = lambda: time.monotonic() * _TIMES
    hasty.perf_counter = lambda: time.perf_counter() * _TIMES
    for name, module in list(sys.modules.items()):
        if name.startswith("lustrum.") and getattr(module, "time", None) is time:
            monkeypatch.setattr(module, "time", hasty)
