"""Small tables and registers for golden results, by seeds and whole-number arithmetic alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def skewed(seed: int, shape: Any, most: int = 60) -> Any:
    """Counts of which many are small, by whole-number arithmetic."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, most, shape) * rng.integers(0, most, shape) ** 2 // most**2


def axis_of(name: str, size: int, total: bool = True) -> Any:
    from lustrum.model import Category, TableAxis

    parts = tuple(Category(f"{name}{i}", f"{name}{i}", (i,)) for i in range(size))
    whole = (Category("_T", "Total", tuple(range(size))),) if total else ()
    return TableAxis(name, name, (*parts, *whole))


def with_totals(inner: Any) -> Any:
    for place in range(inner.ndim):
        inner = np.concatenate([inner, inner.sum(axis=place, keepdims=True)], axis=place)
    return inner


def counted(seed: int, sizes: tuple[int, ...], most: int = 30) -> Any:
    """A table of counts with totals and keys."""
    from lustrum.model import Table

    inner = skewed(seed, sizes, most)
    keys = np.random.default_rng(seed + 1).integers(0, 2**40, sizes) * (inner > 0)
    axes = tuple(axis_of(f"v{i}", size) for i, size in enumerate(sizes))
    values = with_totals(inner)
    return Table(axes, values, contributors=values, keys=with_totals(keys).astype(np.uint64))


def magnitudes(seed: int, sizes: tuple[int, ...], ranks: int = 3, total: bool = True) -> Any:
    """A table of sums with its largest contributions."""
    from lustrum.model import Contributions, Table

    rng = np.random.default_rng(seed)
    held = 1 + rng.integers(0, 400, (*sizes, 6)) ** 2 // 40
    held[rng.random((*sizes, 6)) < 0.4] = 0
    owner = np.arange(held.size).reshape(held.shape)
    shape = tuple(n + 1 for n in sizes)
    if not total:
        shape = sizes
    largest, holding = (np.zeros((*shape, ranks), dtype=np.int64) for _ in range(2))
    number = np.zeros(shape, dtype=np.int64)
    for place in np.ndindex(*shape):
        picks = tuple(slice(None) if p == n else p for p, n in zip(place, sizes, strict=True))
        values, owners = held[picks].ravel(), owner[picks].ravel()
        order = np.argsort(-values, kind="stable")[:ranks]
        largest[place], holding[place] = (
            values[order],
            np.where(values[order] > 0, owners[order], -1),
        )
        number[place] = np.count_nonzero(values)
    inner = held.sum(axis=-1)
    return Table(
        tuple(axis_of(f"v{i}", size, total) for i, size in enumerate(sizes)),
        with_totals(inner) if total else inner,
        kind="magnitude",
        contributors=number,
        keys=rng.integers(1, 2**63, shape).astype(np.uint64),
        contributions=Contributions(largest, holding),
    )


def town() -> Any:
    from lustrum.model import Dataset

    broad = [
        {"code": "Y", "label": "Young", "members": ["1", "2", "3"]},
        {"code": "O", "label": "Old", "members": ["4", "5", "6", "7", "8"]},
    ]
    age = {
        "name": "age",
        "codes": [str(i) for i in range(1, 9)],
        "hierarchies": [{"name": "broad", "levels": [{"name": "broad", "groups": broad}]}],
    }
    return Dataset.from_mapping(
        {
            "dataset": {"name": "town", "record_id": "id", "units": "people"},
            "variables": [
                age,
                {"name": "sex", "codes": ["1", "2"]},
                {"name": "area", "codes": ["n", "s", "w"]},
                {"name": "job", "codes": ["a", "b", "c", "d"]},
            ],
            "measures": [{"name": "income", "unit": "euro"}],
        }
    )


def people(count: int) -> Any:
    import pyarrow as pa

    rng = np.random.default_rng(4)
    rows = {n: rng.integers(0, m, count) * rng.integers(0, m, count) // m for n, m in
            (("age", 8), ("sex", 2), ("area", 3), ("job", 4))}  # fmt: skip
    codes = {v.name: np.array(v.codes)[rows[v.name]] for v in town().variables}
    return pa.table(
        {"id": np.arange(count), **codes, "income": rng.integers(0, 300, count) ** 2 // 18}
    )


def firms(count: int, seed: int = 13) -> Any:
    """A register of owners with tied cells and tied amounts."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(count),
            "owner": rng.integers(0, count * 2 // 3, count),
            "activity": np.array(["a", "b", "c", "d"])[rng.integers(0, 4, count)],
            "region": np.array(["x", "y", "z"])[rng.integers(0, 3, count)],
            "legal": np.array(["p", "q"])[rng.integers(0, 2, count)],
            "home": rng.integers(0, 12, count) ** 3,
            "wages": rng.integers(0, 30, count) ** 2 // 9,
        }
    )


def register() -> Any:
    from lustrum.model import Dataset

    return Dataset.from_mapping(
        {
            "dataset": {
                "name": "firms", "record_id": "id", "identifiers": ["owner"], "units": "firms",
            },
            "variables": [
                {"name": "activity", "codes": ["a", "b", "c", "d"]},
                {"name": "region", "codes": ["x", "y", "z"]},
                {"name": "legal", "codes": ["p", "q"]},
            ],
            "measures": [
                {"name": "home", "holding": "owner", "unit": "euro"},
                {"name": "wages", "holding": "owner", "unit": "euro"},
            ],
        }
    )  # fmt: skip


def stored(root: Path, frame: Any, dataset: Any) -> Any:
    from lustrum.tabulate import FrameSource, Secret, Store, ingest

    store = Store(root)
    ingest(FrameSource(frame), dataset, store, secret=Secret(bytes(range(32))))
    return store
