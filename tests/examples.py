"""How many examples a property is tried on: a few in every run of the tests, many in ``make deep``."""

from __future__ import annotations

import os

DEEP = os.environ.get("HYPOTHESIS_PROFILE") in ("deep", "explore")


def examples(usual: int, deep: int) -> int:
    """The number for every run, or the larger one where there is time for it."""
    return deep if DEEP else usual
