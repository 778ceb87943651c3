"""Files of few variables: does the search pull finest cells to their nearest number?

Where one controlled table holds all variables, a search that makes its errors small moves each finest cell
to the number next to it: 1 to 0, 2 to the base. A shown 0 then tells somebody in the cell that nobody else is
there. The transition from true to shown must stay near the keyed start, which is public. The control rounds to
the nearest number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lustrum.model import Dataset
from lustrum.model.finest import FinestCells
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.prepare import prepare

Array = np.ndarray[Any, Any]
BASE = 3
LIMIT = 0.05
"""So far may the share of cells at the upper number be from the start, plus part of a cell."""
INSIDER = 0.05
"""So much more often than by the start may an insider at a shown 0 be alone."""
KINDS = ((24,), (20, 30), (12, 8, 6))


@dataclass
class Pooled:
    """Files of one kind: cells by true count (1 and 2), those at the upper number, expected and nearest."""

    sizes: tuple[int, ...]
    empty: float
    cells: Array = field(default_factory=lambda: np.zeros(2))
    up: Array = field(default_factory=lambda: np.zeros(2))
    expected: Array = field(default_factory=lambda: np.zeros(2))
    farthest: float = 0.0
    beyond: int = 0
    files: int = 0

    def add(self, true: Array, shown: Array, start: Array, begins: Array) -> None:
        """One file: ``start`` is the chance of the upper number, ``begins`` how many cells began there."""
        for place in range(2):
            there = true == place + 1
            number, up = int(there.sum()), int((shown[there] > 0).sum())
            expected = number * start[place]
            self.cells[place] += number
            self.up[place] += up
            self.expected[place] += expected
            # The start itself is a draw, and may be farther away.
            allowed = max(abs(begins[place] - expected), LIMIT * number + 1)
            self.beyond += abs(up - expected) > allowed
            if number >= 100:
                self.farthest = max(self.farthest, abs(up - expected) / number)
        self.files += 1

    def alone(self, up: Array) -> float:
        """Of people in cells of one or two that show 0, the share that is alone."""
        ones, twos = self.cells - up
        return float(ones / max(ones + 2 * twos, 1))


@dataclass(frozen=True)
class SmallReport:
    """All kinds of small files."""

    kinds: tuple[Pooled, ...]

    @property
    def holds(self) -> bool:
        """Every file is near its start, and the control is not."""
        return all(self._near(k, k.up) and not k.beyond for k in self.kinds) and not any(
            self._near(k, self._nearest(k)) for k in self.kinds
        )

    @staticmethod
    def _nearest(kind: Pooled) -> Array:
        return np.array([0.0, kind.cells[1]])

    @staticmethod
    def _near(kind: Pooled, up: Array) -> bool:
        # Part of a cell in every file, which is much in a file of few cells.
        away = (np.abs(up - kind.expected) - kind.files) / np.maximum(kind.cells, 1)
        # Four standard errors of a share over all files, for kinds of few cells.
        error = 4 * np.sqrt(0.25 / np.maximum(kind.cells, 1))
        gain = kind.alone(up) - kind.alone(kind.expected)
        return bool((away <= LIMIT + error).all() and gain <= INSIDER + error.max())

    def rows(self) -> Iterator[tuple[str, str]]:
        """The report, line by line."""
        for k in self.kinds:
            shares, start = k.up / k.cells, k.expected / k.cells
            near = k.alone(k.up), k.alone(k.expected), k.alone(self._nearest(k))
            yield (
                f"{k.files} files of {' x '.join(map(str, k.sizes))} cells, empty share {k.empty}",
                f"1 shows 3 in {shares[0]:.1%} (start {start[0]:.1%}, nearest 0 %), 2 in {shares[1]:.1%} "
                f"({start[1]:.1%}, 100 %); farthest in a file {100 * k.farthest:.1f} points, {k.beyond} beyond "
                f"the limit; an insider at a shown 0 is alone in {near[0]:.1%} ({near[1]:.1%}, {near[2]:.0%})",
            )


def attack_small_files(keys: int, files: int, sweeps: int = 12) -> SmallReport:
    """So many files of every kind under each of so many keys."""
    found = []
    for sizes in KINDS:
        for empty in (0.0, 0.1):
            pooled = Pooled(sizes, empty)
            for number in range(keys):
                for seed in range(files if len(sizes) > 1 else 10 * files):
                    _one(pooled, seed, bytes([number + 1]) * 16, sweeps)
            found.append(pooled)
    return SmallReport(tuple(found))


def _one(pooled: Pooled, seed: int, key: bytes, sweeps: int) -> None:
    rng = np.random.default_rng(seed)
    true = rng.poisson(rng.gamma(0.6, 2.0, pooled.sizes))
    variables = [
        {"name": f"v{k}", "codes": [str(c) for c in range(n)]} for k, n in enumerate(pooled.sizes)
    ]
    dataset = Dataset.from_mapping({"dataset": {"name": "small"}, "variables": variables})
    at = np.nonzero(true)
    keys = rng.integers(1, 2**62, at[0].size).astype(np.uint64)
    cells = FinestCells(dataset, np.stack(at), true[at], keys)
    method = ProtectedPopulation(base=BASE, sweeps=sweeps, empty_share=pooled.empty)
    made = method.protect(cells, key).cells
    shown = np.zeros_like(true)
    shown[tuple(made.codes.astype(np.intp))] = made.counts
    problem = prepare(
        cells, key, base=BASE, small_only=False, empty_share=pooled.empty, sparse_siblings=1.0
    ).problem
    assert problem.start_share is not None
    share, of = problem.start_share
    start = np.array([1, 2]) * share / (BASE * of)
    small = problem.low == 0
    begins = np.array([problem.up[small & (problem.residue == r)].sum() for r in (1, 2)])
    pooled.add(true, shown, start, begins)
