"""Small registers with owners, for the tests of protected magnitudes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lustrum.model import Dataset, Measure, Variable
from lustrum.model.records import Records


def variable(name: str, codes: int) -> Variable:
    texts = tuple(f"{name}{c}" for c in range(codes))
    return Variable(name, name, texts, texts)


def register(
    rows: Sequence[tuple[int, int, int, int]],
    *,
    sizes: tuple[int, int] = (2, 2),
    measures: tuple[Measure, ...] = (Measure("turnover", "turnover", holding="owner"),),
    **more: Sequence[int],
) -> Records:
    """A register of records (owner, activity, region, turnover)."""
    dataset = Dataset(
        "firms",
        "Firms",
        (variable("activity", sizes[0]), variable("region", sizes[1])),
        measures,
        record_id="id",
        identifiers=("owner",),
    )
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return Records(
        dataset,
        codes={"activity": table[:, 1].astype(np.uint8), "region": table[:, 2].astype(np.uint8)},
        numbers={
            "turnover": table[:, 3],
            **{name: np.asarray(column, dtype=np.int64) for name, column in more.items()},
        },
        ids={"id": np.arange(len(table)), "owner": table[:, 0]},
    )
