"""A little town that every engine knows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lustrum.model import Dataset
from lustrum.tabulate import Engine, FrameEngine, FrameSource, Store, ingest
from tabulate.sql_engine import SqlEngine
from tabulate.worlds import SECRET

TOWN = {
    "dataset": {"name": "town"},
    "variables": [{"name": "area", "codes": ["N", "S"]}, {"name": "sex", "codes": ["1", "2"]}],
    "measures": [{"name": "income", "decimals": 2}],
    "weights": [{"name": "w"}],
}


@pytest.fixture
def town(tmp_path: Path) -> dict[str, Engine]:
    """The town on disk, in a frame and by SQL."""
    dataset = Dataset.from_mapping(TOWN)
    people = pa.table(
        {
            "area": ["N", "N", "S", "N"],
            "sex": ["1", "2", "2", "2"],
            "income": ["1.50", "2", "3", "4"],
            "w": [1, 2, 3, 4],
        }
    )
    store = Store(tmp_path / "store")
    ingest(FrameSource(people), dataset, store, secret=SECRET)
    frame = FrameEngine(people, dataset, SECRET)
    return {
        "disk": store.open("town"),
        "frame": frame,
        "sql": SqlEngine(dataset, list(frame._chunks)),
    }
