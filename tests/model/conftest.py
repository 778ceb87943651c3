"""A small description that most tests of the model change in one place."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lustrum.model import Dataset

DESCRIPTION: dict[str, Any] = {
    "dataset": {"name": "town", "title": "The town", "record_id": "id", "identifiers": ["firm"]},
    "variables": [
        {
            "name": "age",
            "label": "Age",
            "codes": [[str(i), f"{i} years"] for i in range(6)],
            "hierarchies": [
                {
                    "name": "stages",
                    "levels": [
                        {
                            "name": "pairs",
                            "groups": [
                                {"code": "0-1", "label": "babies", "members": ["0", "1"]},
                                {"code": "2-3", "members": ["2", "3"]},
                            ],
                        },
                        {"name": "halves", "groups": [{"code": "0-3", "members": ["0-1", "2-3"]}]},
                    ],
                },
                {
                    "name": "school",
                    "levels": [
                        {
                            "name": "schooling",
                            "groups": [
                                {"code": "pre", "members": ["0", "1", "2"]},
                                {"code": "in", "members": ["3", "4", "5"]},
                            ],
                        }
                    ],
                },
            ],
        },
        {"name": "sex", "codes": ["f", "m"]},
    ],
    "measures": [{"name": "income", "decimals": 2, "holding": "firm"}],
    "weights": [{"name": "weight", "decimals": 1}],
    "structural_zeros": [{"reason": "no boys of 5", "where": {"age": ["5"], "sex": ["m"]}}],
}


@pytest.fixture
def description() -> dict[str, Any]:
    """The description, to be changed."""
    return copy.deepcopy(DESCRIPTION)


@pytest.fixture
def dataset() -> Dataset:
    """The description, frozen."""
    return Dataset.from_mapping(DESCRIPTION)
