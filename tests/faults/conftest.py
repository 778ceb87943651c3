"""What these tests share: a memory that is cheap to clean up and to fork."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _frozen() -> Iterator[None]:
    """Set apart what is there before a test: it is neither looked through again nor copied in each child.

    Each trial cleans up before it counts calls, and each kill forks; in a process that has run other tests both
    would otherwise go through all that those have left.
    """
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
