"""Small datasets and populations for the tests of protected populations."""

from __future__ import annotations

import numpy as np

from lustrum.model import Dataset
from lustrum.protect.population.cells import FinestCells

KEY = b"a key of the agency of 32 bytes."


def town(sizes: tuple[int, ...] = (4, 3, 2), zeros: bool = True) -> Dataset:
    """Variables v0, v1, ...; the first one has a level, and one combination cannot exist."""
    variables = [
        {"name": f"v{i}", "codes": [f"{i}{c}" for c in range(n)]} for i, n in enumerate(sizes)
    ]
    if sizes[0] > 2:
        variables[0]["hierarchies"] = [
            {
                "name": "broad",
                "levels": [{"name": "half", "groups": [{"code": "h", "members": ["00", "01"]}]}],
            }
        ]
    description: dict[str, object] = {"dataset": {"name": "town"}, "variables": variables}
    if zeros:
        description["structural_zeros"] = [
            {"reason": "Nobody is both.", "where": {"v0": [f"0{sizes[0] - 1}"], "v1": ["10"]}}
        ]
    return Dataset.from_mapping(description)


def cells_of(dataset: Dataset, counts: np.ndarray, seed: int = 1) -> FinestCells:
    """The occupied possible cells of a dense array of counts, with a key for each cell."""
    codes = np.stack(np.nonzero(counts))
    values = counts[tuple(codes)]
    made = FinestCells(dataset, codes, values)
    keep = made.possible
    keys = np.random.default_rng(seed).integers(1, 2**63, counts.shape).astype(np.uint64)
    kept = made.codes[:, keep]
    return FinestCells(dataset, kept, made.counts[keep], keys[tuple(kept.astype(np.intp))])


def dense(cells: FinestCells) -> np.ndarray:
    """The counts of all combinations."""
    out = np.zeros(tuple(len(v.codes) for v in cells.dataset.variables), dtype=np.int64)
    out[tuple(cells.codes.astype(np.intp))] = cells.counts
    return out
