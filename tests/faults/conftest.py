"""What these tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.world import build


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agency's data folder that no test changes."""
    return build(tmp_path_factory.mktemp("house") / "data")
