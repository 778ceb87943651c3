"""The demo data most tests look at, made once, and what the tests ask of them."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
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


def positions(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """A column as positions in its list of codes."""
    return table.column(name).combine_chunks().indices.to_numpy().astype(np.int64)


def content_digest(table: pa.Table) -> str:
    """A digest of the values alone, in hundredths, free of how Arrow happens to frame them."""
    digest = hashlib.sha256()
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        values = column.indices if pa.types.is_dictionary(column.type) else column
        cents = np.rint(values.to_numpy(zero_copy_only=False).astype(float) * 100)
        digest.update(name.encode() + cents.astype("<i8").tobytes())
    return digest.hexdigest()[:16]
