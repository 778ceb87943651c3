"""Finest cells counted by hashing are those that a plain dictionary counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from lustrum.model import InputError, Variable
from lustrum.model.dataset import Dataset
from lustrum.model.finest import FinestCells
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.tabulate import FrameEngine, Secret
from lustrum.tabulate.encode import Chunk
from lustrum.tabulate.finest import finest_cells
from lustrum.tabulate.frame import describe_frame


def test_counts_and_keys_are_those_of_a_dictionary() -> None:
    rng = np.random.default_rng(1)
    rows = 40_000
    frame = pa.table(
        {
            n: [f"{c}" for c in rng.integers(0, s, rows)]
            for n, s in (("a", 40), ("b", 30), ("c", 12))
        }
    )
    engine = FrameEngine(frame, describe_frame(frame, ["a", "b", "c"]), Secret(b"s" * 32))
    cells = finest_cells(engine)
    (chunk,) = engine.chunks
    counts: Counter[tuple[int, ...]] = Counter()
    keys: dict[tuple[int, ...], int] = {}
    for row, key in zip(
        zip(*(chunk.codes[n].tolist() for n in "abc"), strict=True),
        chunk.keys.tolist(),
        strict=True,
    ):
        counts[row] += 1
        keys[row] = (keys.get(row, 0) + key) % 2**64
    expected = sorted(counts)
    assert [tuple(c) for c in cells.codes.T.tolist()] == expected
    assert cells.counts.tolist() == [counts[c] for c in expected]
    assert cells.keys.tolist() == [keys[c] for c in expected]


def test_cells_of_a_hypercube_are_added_up_and_empty_ones_left_out() -> None:
    dataset = Dataset("d", "d", (Variable("a", "a", ("x", "y"), ("x", "y")),))
    chunk = Chunk(
        3, {"a": np.array([0, 1, 0], np.uint8)}, counts=np.array([2, 0, 5], dtype=np.int64)
    )
    cells = finest_cells(KernelEngine(dataset, [chunk]))
    assert cells.codes.tolist() == [[0]]
    assert cells.counts.tolist() == [7]
    assert cells.keys is None


def test_more_combinations_than_64_bits_are_refused() -> None:
    codes = tuple(str(i) for i in range(1000))
    dataset = Dataset("d", "d", tuple(Variable(f"v{i}", "", codes, codes) for i in range(7)))
    with pytest.raises(InputError, match="64 bits"):
        finest_cells(KernelEngine(dataset, []))


def test_cells_are_put_in_order_and_may_not_repeat() -> None:
    two = ("x", "y")
    dataset = Dataset("d", "d", (Variable("a", "a", two, two), Variable("b", "b", two, two)))
    cells = FinestCells(dataset, [[1, 0], [0, 1]], [4, 3], np.array([9, 8], np.uint64))
    assert cells.codes.tolist() == [[0, 1], [1, 0]]
    assert cells.counts.tolist() == [3, 4]
    assert cells.keys.tolist() == [8, 9]
    with pytest.raises(InputError, match="twice"):
        FinestCells(dataset, [[1, 1], [0, 0]], [4, 3])
    with pytest.raises(InputError, match="outside"):
        FinestCells(dataset, [[2], [0]], [4])
    with pytest.raises(InputError, match="negative"):
        FinestCells(dataset, [[1], [0]], [-1])
