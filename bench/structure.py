"""How fast the incidence matrix is built, beside Kronecker products of scipy, as a markdown table.

Run it from the root of the project: ``python bench/structure.py``. Both ways build the same matrix,
which is checked; the times are the best of a few runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
from parts.figures import record
from scipy import sparse

from lustrum.model import Category, TableAxis
from lustrum.numeric.structure import Structure, propagate


def with_total(name: str, size: int) -> TableAxis:
    """Single codes and their total."""
    codes = [Category(str(i), str(i), (i,)) for i in range(size)]
    return TableAxis(name, name, (*codes, Category("T", "Total", tuple(range(size)))))


def all_margins(axes: Sequence[int] | Sequence[TableAxis]) -> Structure:
    """A cube and every margin of it."""
    names = "ABCDEFGH"[: len(axes)]
    margins = [m for k in range(len(axes) + 1) for m in combinations(names, k)]
    return Structure.margins(axes, margins)


def one_table(sizes: Sequence[int]) -> Structure:
    """One table with a total on every axis."""
    return Structure.of_tables(
        [[with_total(n, s) for n, s in zip("ABCDEFGH", sizes, strict=False)]]
    )


CASES: tuple[tuple[str, Callable[[], Structure]], ...] = (
    ("30 x 30 x 30, all margins", lambda: all_margins((30, 30, 30))),
    ("10^5 with totals", lambda: one_table((10,) * 5)),
    ("60 x 60 x 60, all margins", lambda: all_margins((60, 60, 60))),
    ("60 x 60 x 60 with totals", lambda: one_table((60, 60, 60))),
    ("100 x 100 x 100, all margins", lambda: all_margins((100, 100, 100))),
    ("100 x 100 x 100 with totals", lambda: one_table((100, 100, 100))),
    ("the same, all margins with totals", lambda: all_margins([with_total(n, 100) for n in "ABC"])),
    ("15^5 with totals", lambda: one_table((15,) * 5)),
)


def plain_way(structure: Structure) -> Any:
    """Kronecker products of one matrix a variable, stacked, as one would write it first."""
    blocks = []
    for table in range(len(structure.tables)):
        factors = [
            sparse.csr_array(
                (np.ones(lists.items.size), lists.items, lists.indptr), shape=(lists.count, atoms)
            )
            for lists, atoms in zip(structure.memberships(table), structure.shape, strict=True)
        ]
        blocks.append(reduce(lambda a, b: sparse.kron(a, b, format="csr"), factors))
    return sparse.vstack(blocks, format="csr")


def best(runs: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """The least seconds of so many runs, and the last result."""
    seconds, result = float("inf"), None
    for _ in range(runs):
        result = None  # let go of the last matrix before the next is made
        start = time.perf_counter()
        result = work()
        seconds = min(seconds, time.perf_counter() - start)
    return seconds, result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each way; the best counts")
    parser.add_argument("--most", type=int, default=10**9, help="leave out larger matrices")
    arguments = parser.parse_args()
    for name, make in CASES:
        if make().matrix.nnz > arguments.most:
            continue
        own, structure = best(arguments.runs, lambda make=make: _built(make()))
        plain, other = best(arguments.runs, lambda structure=structure: plain_way(structure))
        matrix = structure.matrix
        other.sort_indices()
        same = np.array_equal(matrix.indptr, other.indptr) and np.array_equal(
            matrix.indices, other.indices
        )
        assert same, f"{name}: the two ways differ"
        assert np.all(other.data == 1), f"{name}: the plain way is not 0/1"
        record(
            "From axes to the incidence matrix",
            {
                "structure": name,
                "rows": structure.rows,
                "inner cells": structure.inner,
                "nonzeros": matrix.nnz,
                "ours (s)": own,
                "Kronecker products in scipy (s)": plain,
                "times faster": plain / own,
            },
        )
        del structure, matrix, other
    _other_work(arguments.runs)


def _built(structure: Structure) -> Structure:
    _ = structure.matrix
    return structure


def _other_work(runs: int) -> None:
    """Relations, roll-up, rank and intervals of tables of a hundred thousand to a million cells."""
    sizes = (100, 100, 100)
    values = np.random.default_rng(1).poisson(3, sizes)
    structure = one_table(sizes)
    seconds, _ = best(runs, lambda: structure.published(values))
    _other("roll up", f"{structure.rows:,} cells", seconds)
    seconds, relations = best(runs, lambda: one_table(sizes).relations)
    _other("relations", f"{relations.count:,} relations", seconds)
    seconds, rank = best(runs, lambda: all_margins(sizes).rank)
    _other("rank, closed form", f"{rank:,}", seconds)
    table = one_table((46, 46, 46))
    truth = table.published(np.random.default_rng(2).poisson(2, table.shape))[0].ravel()
    low, high = np.maximum(0, truth - 2), truth + 2
    relations = table.relations
    propagate(relations, low, high, rounds=1)  # compiles
    seconds, _ = best(runs, lambda: propagate(relations, low, high))
    _other("propagate intervals", f"{table.rows:,} cells", seconds)


def _other(work: str, size: str, seconds: float) -> None:
    record("Work on structures", {"work": work, "size": size, "took (s)": seconds})


if __name__ == "__main__":
    main()
