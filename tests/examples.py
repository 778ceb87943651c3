"""How many examples a property is tried on: a few in every run of the tests, many in ``make deep``."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE")


def examples(usual: int, deep: int) -> int:
    """The number for every run, twice that for mutants, or the larger one where there is time for it."""
    if PROFILE in ("deep", "explore"):
        return deep
    return min(deep, 2 * usual) if PROFILE == "mutants" else usual
