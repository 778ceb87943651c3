"""Small datasets and populations for the tests of protected populations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lustrum.model import Dataset
from lustrum.model.finest import FinestCells

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


def counted(sizes: tuple[int, ...], mean: float, seed: int, zeros: bool = True) -> FinestCells:
    """A town in which every cell holds a few people."""
    rng = np.random.default_rng(seed)
    return cells_of(town(sizes, zeros), rng.poisson(mean, sizes), seed)


def divided(sizes: tuple[int, ...]) -> Dataset:
    """The town, where the last code of v1 goes with the last one of v2 alone."""
    source = dict(town(sizes, zeros=False).source)
    source["structural_zeros"] = [
        {"reason": "Only the last.", "where": {"v1": ["13"], "v2": ["20", "21"]}}
    ]
    return Dataset.from_mapping(source)


def second(
    first: np.ndarray, later: np.ndarray, shown: Callable[[np.ndarray], np.ndarray], seed: int
) -> tuple[FinestCells, FinestCells]:
    """A memory of counts by v0 and v1, and later cells by one more variable or the same ones.

    The first row kept its records, the second one has others, and the last one lost all of them.
    """
    rng = np.random.default_rng(seed)
    keys = rng.integers(1, 2**60, later.shape).astype(np.uint64) * (later > 0)
    summed = keys if later.ndim == 2 else keys.sum(axis=2, dtype=np.uint64)
    summed = summed.copy()
    summed[1] += np.uint64(11)
    summed[(first > 0) & (summed == 0)] = 5
    summed[first == 0] = 0
    dataset = town(first.shape, zeros=False)
    # Cells that were empty and showed 0 need not be remembered.
    at = np.nonzero((first > 0) | (shown(first) > 0) | (np.arange(first.shape[1]) == 1))
    memory = FinestCells(dataset, np.stack(at), shown(first)[at], summed[at])
    at = np.nonzero(later)
    own = divided(later.shape) if later.ndim == 3 else town(later.shape, zeros=False)
    cells = FinestCells(own, np.stack(at), later[at], keys[at])
    return cells, memory


def up_to_three(counts: np.ndarray) -> np.ndarray:
    """Adjacent multiples of 3, sometimes the upper one; some empty cells show 3."""
    low = counts // 3 * 3
    odd = np.arange(counts.size).reshape(counts.shape) % 2
    return np.where(counts == 0, 3 * odd, low + 3 * ((counts > low) & (odd > 0)))


EARLIER = np.array([[4, 2, 9, 0], [7, 1, 0, 3], [5, 0, 0, 8], [1, 2, 0, 6]])
SAME = np.array([[4, 2, 9, 0], [8, 1, 2, 0], [5, 0, 0, 8], [0, 0, 0, 0]])
PARTS = np.array(
    [
        [[2, 2, 0], [1, 0, 1], [3, 2, 4], [0, 0, 0]],
        [[3, 3, 2], [1, 0, 0], [0, 1, 1], [0, 0, 0]],
        [[0, 4, 1], [0, 0, 0], [0, 0, 0], [0, 0, 8]],
        [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]],
    ]
)
AGAIN = second(EARLIER, SAME, up_to_three, 3)
REFINED = second(EARLIER, PARTS, up_to_three, 4)
