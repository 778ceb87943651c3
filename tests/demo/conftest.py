"""The demo data most tests look at, made once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lustrum.demo import businesses, people, survey


@pytest.fixture(scope="session")
def census() -> pa.Table:
    """The default census at full size."""
    return people()


@pytest.fixture(scope="session")
def register() -> pa.Table:
    """The default business register at full size."""
    return businesses()


@pytest.fixture(scope="session")
def sample() -> pa.Table:
    """The default survey at full size."""
    return survey()
