"""A small town on disk, with a policy that the tests change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lustrum.answer import answer
from lustrum.model import Dataset, Decision, TableQuery
from lustrum.policy import Policy
from lustrum.publish.records import EngineNumbers, ProtectedInput
from lustrum.tabulate import EmbeddedEngine, Engine, FrameSource, Secret, Store, ingest

SECRET = Secret(bytes(range(32)))


def town() -> Dataset:
    return Dataset.from_mapping(
        {
            "dataset": {"name": "town", "record_id": "id", "units": "people"},
            "variables": [
                {
                    "name": "age",
                    "label": "Age",
                    "codes": [str(i) for i in range(1, 9)],
                    "hierarchies": [
                        {
                            "name": "broad",
                            "levels": [
                                {
                                    "name": "broad",
                                    "label": "Broad age",
                                    "groups": [
                                        {"code": "Y", "label": "Young", "members": ["1", "2", "3"]},
                                        {
                                            "code": "O",
                                            "label": "Old",
                                            "members": ["4", "5", "6", "7", "8"],
                                        },
                                    ],
                                }
                            ],
                        },
                        {
                            "name": "school",
                            "levels": [
                                {
                                    "name": "school",
                                    "groups": [
                                        {"code": "S", "label": "School", "members": ["2", "3", "4"]}
                                    ],
                                }
                            ],
                        },
                    ],
                },
                {"name": "sex", "label": "Sex", "codes": ["1", "2"]},
                {"name": "area", "label": "Area", "codes": ["n", "s", "w"]},
                {"name": "job", "label": "Job", "codes": ["a", "b", "c", "d"]},
            ],
            "measures": [{"name": "income", "unit": "euro"}],
            "structural_zeros": [
                {"reason": "Children do not work.", "where": {"age": ["1"], "job": ["b", "c", "d"]}}
            ],
        }
    )


def people(count: int = 6000, seed: int = 4) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.choice(8, count, p=[0.2, 0.2, 0.2, 0.15, 0.1, 0.1, 0.04, 0.01])
    job = np.where(age == 0, 0, rng.choice(4, count, p=[0.6, 0.3, 0.09, 0.01]))
    return pa.table(
        {
            "id": np.arange(count),
            "age": (age + 1).astype(str),
            "sex": rng.integers(1, 3, count).astype(str),
            "area": rng.choice(["n", "s", "w"], count, p=[0.7, 0.295, 0.005]),
            "job": np.array(["a", "b", "c", "d"])[job],
            "income": rng.integers(0, 5000, count),
        }
    )


def answered(
    query: TableQuery, engine: Engine, policy: Policy, source: ProtectedInput | None = None
) -> Decision:
    """The answer of the five steps, with the engine in the same process."""
    return answer(query, EngineNumbers(engine, policy, source), policy)


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedEngine:
    store = Store(tmp_path_factory.mktemp("store"))
    ingest(FrameSource(people()), town(), store, secret=SECRET)
    return store.open("town")


@pytest.fixture
def policy() -> Any:
    def make(**parts: dict[str, object]) -> Policy:
        return Policy.model_validate(parts)

    return make
