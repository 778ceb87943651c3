"""Expected numbers of people in all finest cells that agree with the linear estimate, none of them negative.

Of all such numbers ``x`` the fit is near to those with the least ``KL(x | base) + sum k (table(x) - target)^2
/ 2`` over all tables, ``k`` being the precision of a table's cells: what noise can explain stays as the base
has it, what it cannot explain is followed. Then ``x = base * exp(pulls)`` with one *pull* for each cell of each
table. Tables take turns: while the others stand, the pull of a cell solves
``pull + k (sum * exp(pull - old) - target) = 0``, one equation each. The base is flat at first, raked to one-
and two-way tables; after each round it is what came out.

Only sums, products and our own exponential are used, in a fixed order: the same bytes on every processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any

import numpy as np

from lustrum.model.arrays import Array, Floats
from lustrum.numeric.arithmetic_loops import exp
from lustrum.numeric.compiled import compiled
from lustrum.protect.proven.domain import Domain, Subset
from lustrum.protect.proven.plan import LinearEstimate
from lustrum.runtime.stop import check_stop, report_progress, side_by_side

_STRENGTH = 0.3
"""How strongly tables pull, beside the precision of their noise; tuned on invented people."""
_RANKS = (1000.0, 5.0, 1.0)
"""How much more tables of one, two and three axes pull than those of the most."""
_BASE_TURNS, _ROUNDS, _TURNS, _LAST_TURNS = 6, 3, 5, 4


def fit(
    domain: Domain, estimate: LinearEstimate, max_variables: int, base: Array | None = None
) -> Floats:
    """Expected counts of all finest cells: (major codes, combinations); they add up to the number of people.

    The base is flat over all cells that can exist, or as given.
    """
    fitting = _Fit(domain, estimate, max_variables, domain.possible if base is None else base)
    if estimate.people == 0:
        return fitting.cells
    low = range(1, min(2, max_variables) + 1)
    turns = [(low, _BASE_TURNS)]
    for _ in range(_ROUNDS):
        turns.append((range(1, max_variables + 1), _TURNS))
    turns += [(low, _LAST_TURNS), (range(1, 2), _LAST_TURNS)]
    done, every = 0, sum(count for _, count in turns)
    for ranks, count in turns:
        fitting.absorb()
        for _ in range(count):
            check_stop()
            report_progress("fitting people", done / every)
            fitting.turn(ranks)
            done += 1
    return fitting.cells


class _Fit:
    """The numbers in the making, and the tables that pull them."""

    def __init__(
        self, domain: Domain, estimate: LinearEstimate, max_variables: int, base: Array
    ) -> None:
        self.people = estimate.people
        self.cells: Floats = base.astype(np.float64) * (self.people / max(int(base.sum()), 1))
        self.ranks = {
            rank: (
                _Pulls(domain, estimate, [s for s in subsets if 0 not in s]),
                _Pulls(domain, estimate, [s for s in subsets if 0 in s]),
            )
            for rank in range(1, max_variables + 1)
            for subsets in [[s for s in domain.subsets(max_variables) if len(s) == rank]]
        }

    def absorb(self) -> None:
        """What came out is the base from now on."""
        for pulls in self.ranks.values():
            for part in pulls:
                part.pull[:] = 0.0

    def turn(self, ranks: Sequence[int]) -> None:
        """Every table of these numbers of axes pulls once, those of the fewest at last."""
        for rank in reversed(ranks):
            across, within = self.ranks[rank]
            if across.first.size > 1:
                summed = self.cells.sum(axis=0)
                before = summed.copy()
                across.rake(summed[None], 0, 1)
                grown = np.divide(summed, before, out=np.zeros_like(summed), where=before > 0)
                self.cells *= grown
            within.rake_side_by_side(self.cells)
        self.cells *= self.people / fsum(self.cells.sum(axis=0).tolist())


class _Pulls:
    """Tables that pull in turn, all of them with the major axis or all without."""

    def __init__(self, domain: Domain, estimate: LinearEstimate, subsets: Sequence[Subset]) -> None:
        rows = domain.shape[0] if subsets and 0 in subsets[0] else 1
        targets = [estimate.table(subset).reshape(rows, -1) for subset in subsets]
        self.groups = np.array([domain.groups(s) for s in subsets], dtype=np.int32)
        self.first = np.cumsum([0, *(target.shape[1] for target in targets)]).astype(np.int64)
        self.target = np.concatenate(targets, axis=1) if targets else np.zeros((rows, 0))
        self.pull = np.zeros_like(self.target)
        self.strength = np.array(
            [
                _STRENGTH * _RANKS[min(len(s), len(_RANKS)) - 1] / estimate.variance(s)
                for s in subsets
            ]
        )

    def rake(self, cells: Floats, start: int, stop: int) -> None:
        """Pull some rows of the cells."""
        if self.first.size > 1:
            _rake(
                cells, start, stop, self.groups, self.first, self.target, self.pull, self.strength
            )

    def rake_side_by_side(self, cells: Floats) -> None:
        """Pull all rows, which have nothing to do with each other, in two halves."""
        rows = cells.shape[0]
        side_by_side(
            lambda: self.rake(cells, 0, rows // 2), lambda: self.rake(cells, rows // 2, rows)
        )


@compiled
def _rake(
    cells: Array,
    start: int,
    stop: int,
    groups: Array,
    first: Array,
    target: Array,
    pull: Array,
    strength: Array,
) -> None:  # pragma: no cover
    """Let each table in turn pull the cells of each row."""
    factor = np.zeros(first[-1])
    for row in range(start, stop):
        line = cells[row]
        for table in range(first.size - 1):
            begin, end = first[table], first[table + 1]
            group = groups[table]
            factor[begin:end] = 0.0
            for cell in range(line.size):
                factor[begin + group[cell]] += line[cell]
            for place in range(begin, end):
                if factor[place] > 0.0:
                    step = _step(
                        pull[row, place], factor[place], target[row, place], strength[table]
                    )
                    pull[row, place] += step
                    factor[place] = exp(step)
            for cell in range(line.size):
                line[cell] *= factor[begin + group[cell]]


@compiled
def _step(pull: float, total: float, target: float, strength: float) -> Any:  # pragma: no cover
    """By how much a pull changes: the root of a rising, convex function, by Newton's method in short steps."""
    step = 0.0
    for _ in range(60):
        pulled = strength * total * exp(step)
        change = (pull + step + pulled - strength * target) / (1.0 + pulled)
        change = min(max(change, -2.0), 2.0)
        step -= change
        if abs(change) < 1e-6:
            break
    return step
