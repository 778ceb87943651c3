"""Servers for the tests of engines over databases. A build that should test them may not skip them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import services


def _started(kind: Any) -> Iterator[Any]:
    try:
        with kind() as server:
            yield server
    except FileNotFoundError as error:
        pytest.skip(f"{error} is not here; run scripts/ensure_services.py")


@pytest.fixture(scope="session")
def postgres() -> Iterator[services.Postgres]:
    for server in _started(services.postgres):
        with pytest.MonkeyPatch.context() as patch:
            for role, word in server.passwords.items():
                patch.setenv(f"LUSTRUM_TEST_{role.upper()}", word)
            yield server


@pytest.fixture(scope="session")
def spark() -> Iterator[services.Spark]:
    yield from _started(services.spark)
