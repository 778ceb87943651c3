"""The counter that every answer of a server is compared with counts cell by cell."""

from __future__ import annotations

import random

import numpy as np

from bench.conftest import bench as load_bench
from lustrum.model import Dataset

bench = load_bench("one_population")
DATASET = Dataset.from_mapping(
    {
        "dataset": {"name": "town"},
        "variables": [
            {"name": "area", "codes": ["a", "b", "c", "d", "e"]},
            {"name": "sex", "codes": ["f", "m"]},
            {"name": "job", "codes": ["1", "2", "3"]},
        ],
    }
)


def test_a_table_is_counted_as_a_loop_over_people_counts_it() -> None:
    chance = random.Random(7)
    people = [{"area": chance.randrange(5), "sex": chance.randrange(2), "job": chance.randrange(3)}
              for _ in range(200)]  # fmt: skip
    columns = {name: np.array([one[name] for one in people]) for name in ("area", "sex", "job")}
    questions = bench.Questions(DATASET, chance)
    groups = 0
    for _ in range(200):
        asked, axes, where = questions.table()
        groups += any("groups" in axis for axis in asked["by"])
        found = bench.counted(columns, np.ones(200, dtype=np.int64), axes, where)
        expected = np.zeros([len(members) for members in axes.values()], dtype=np.int64)
        for one in people:
            if all(one[name] in codes for name, codes in where.items()):
                places = [
                    [at for at, codes in enumerate(members) if one[name] in codes]
                    for name, members in axes.items()
                ]
                if all(places):
                    expected[tuple(place[0] for place in places)] += 1
        assert found.tolist() == expected.ravel().tolist()
    assert groups > 20
