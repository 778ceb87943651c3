"""Small true tables, a small data folder, the agency's pages on a real port, and a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from starlette.applications import Starlette

from agency.towns import town
from lustrum.agency import create_agency_app
from server.conftest import served


def csv_of(counts: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> str:
    """A two-way table with totals as a file."""
    rows = ["area,faith,value"]
    for i in range(counts.shape[0] + 1):
        for j in range(counts.shape[1] + 1):
            part = counts[
                i if i < counts.shape[0] else slice(None), j if j < counts.shape[1] else slice(None)
            ]
            area = f"A{i + 1}" if i < counts.shape[0] else "Total"
            faith = f"F{j + 1}" if j < counts.shape[1] else "Total"
            rows.append(f"{area},{faith},{int(np.sum(part))}")
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="session")
def table_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A true table on disk."""
    counts = np.random.default_rng(3).negative_binomial(1, 0.08, size=(6, 5))
    path = tmp_path_factory.mktemp("agency") / "faith.csv"
    path.write_text(csv_of(counts), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def policy_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page writes its policy."""
    return tmp_path_factory.mktemp("policy") / "policy.toml"


@pytest.fixture(scope="session")
def app(policy_path: Path) -> Starlette:
    """The application of the page."""
    return create_agency_app(policy=policy_path)


@pytest.fixture(scope="session")
def address(app: Starlette) -> Iterator[str]:
    """The page on a real port of this machine."""
    with served(app) as found:  # type: ignore[arg-type]
        yield found


@pytest.fixture
def enter(app: Starlette) -> str:
    """The address that lets one browser in."""
    return str(app.state.door.address(""))


@pytest.fixture(scope="session")
def town_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a protected town; no test changes it."""
    return town(tmp_path_factory.mktemp("town") / "data")


@pytest.fixture
def own_town(town_data: Path, tmp_path: Path) -> Path:
    """The same, for a test that changes it."""
    return Path(shutil.copytree(town_data, tmp_path / "data"))
