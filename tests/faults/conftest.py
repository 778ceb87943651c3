"""What these tests share: a memory that is cheap to clean up and to fork."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from faults.world import build


@pytest.fixture(autouse=True, scope="module")
def _frozen() -> None:
    """Set apart what is there before these tests: it is neither looked through again nor copied in each child.

    Each trial cleans up before it counts calls, and each kill forks; in a process that has run other tests both
    would otherwise go through all that those have left. It stays apart until the end of all tests: to look
    through it takes a second each time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agency's data folder that no test changes."""
    return build(tmp_path_factory.mktemp("house") / "data")
