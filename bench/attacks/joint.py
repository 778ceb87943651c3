"""A joint attack on one release: all true counts of an area, sampled from everything that everybody can know.

The reader has the whole file, so the numbers of all finest cells, of those that show 0 as well, and every table
of up to three variables; knows the method; and knows that its search made the errors of these tables small. The
reader is given more than is published: the true counts of all other areas, from which it learns how probable
each count is behind a shown number, where so many people are to be expected by the rest of the country (the
*prior*), and how large errors are in tables of each kind. The true counts of the area are then sampled from

    product over finest cells of P(count | shown, expected)
        * product over table cells of exp(-error**2 / 2 s**2)

by Gibbs steps of single cells and by moves of one person from a cell to another that differs in one variable.
Tables overlap, so that one factor on all spreads ``s`` is chosen where the truth is known: on another area. A
claim is a count of 1 or 2 with a probability of 95 or 99 %. It is held against the truth, beside the claims of
the prior alone. The control publishes exact tables: there the same attack must name many counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from lustrum.model.finest import FinestCells, possible_cells
from lustrum.numeric.compiled import compiled

__all__ = ["Joint", "joint_attack"]

Array = np.ndarray[Any, Any]
SPREADS = (0.7, 1.0, 1.5, 2.5, 4.0)
EXACT = 0.35
EXPECTED = (0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5, 4.0, 8.0)
"""Where bins of expected people in a cell end."""
VALUES = 6
"""A shown number leaves at most so many counts open."""
CHAINS = 8
LEVELS = (95, 99)


@dataclass(frozen=True)
class Joint:
    """Cells of the areas attacked, ones and twos among them, and claims at 95 and 99 % with the right ones.

    ``better`` is by how much the mean probability of the true count of occupied cells exceeds the prior's.
    """

    cells: int
    small: int
    claims: dict[int, int]
    right: dict[int, int]
    prior_claims: dict[int, int]
    prior_right: dict[int, int]
    better: float

    @property
    def succeeds(self) -> bool:
        """Whether it names more than 2 % of all ones and twos at 99 % that the prior does not, most rightly.

        A sampler that stays near one of several solutions is too sure of it: four in five are enough.
        """
        beyond = self.right[99] - self.prior_right[99]
        return beyond > 0.02 * self.small and self.right[99] > 0.8 * self.claims[99]


@dataclass(frozen=True)
class _World:
    """One file as dense tables by area: (areas, cells), and where each cell lies in the tables of an area."""

    true: Array
    shown: Array
    codes: Array
    places: Array
    kinds: Array
    beside: Array
    base: int

    @classmethod
    def of(cls, true: FinestCells, shown: FinestCells, base: int, variable: str) -> _World:
        """Lay the possible cells of all areas out."""
        dataset = true.dataset
        place = [v.name for v in dataset.variables].index(variable)
        sizes = [len(v.codes) for v in dataset.variables]
        rows = [p for p in range(len(sizes)) if p != place]
        inner = [sizes[p] for p in rows]
        count = int(np.prod(inner))
        grids = []
        for cells in (true, shown):
            at = np.ravel_multi_index(tuple(cells.codes[rows].astype(np.int64)), inner)
            grid = np.zeros((sizes[place], count), dtype=np.int64)
            np.add.at(grid, (cells.codes[place].astype(np.int64), at), cells.counts)
            grids.append(grid)
        codes = np.stack(np.unravel_index(np.arange(count), inner))
        whole = np.zeros((len(sizes), count), dtype=np.int64)
        whole[rows] = codes
        kept = possible_cells(dataset, whole)
        codes = codes[:, kept]
        places, kinds = _tables(codes)
        return cls(
            grids[0][:, kept], grids[1][:, kept], codes, places, kinds, _beside(codes, inner), base
        )

    def expected(self, area: int) -> Array:
        """How many people the rest of the file says are in each cell of an area."""
        rest = self.shown.sum(axis=0) - self.shown[area]
        share = self.shown[area].sum() / max(rest.sum(), 1)
        return np.asarray(np.searchsorted(EXPECTED, share * rest))

    def sums(self, counts: Array) -> Array:
        """The table cells of an area."""
        out = np.zeros(self.kinds.size)
        for t in range(self.places.shape[1]):
            np.add.at(out, self.places[:, t], counts)
        return out

    def prior(self, area: int, without: Sequence[int]) -> tuple[Array, Array]:
        """Possible counts of every cell of an area, and their chances by the other areas."""
        shown, bins = self.shown[area], self.expected(area)
        first = np.where(shown <= self.base, 0, shown - self.base + 1)
        others = [a for a in range(self.true.shape[0]) if a not in without]
        seen = np.zeros((len(EXPECTED) + 1, 3, VALUES))
        for other in others:
            number = self.shown[other]
            above = self.true[other] - np.where(number <= self.base, 0, number - self.base + 1)
            step = np.minimum(number // self.base, 2)
            np.add.at(seen, (self.expected(other), step, np.clip(above, 0, VALUES - 1)), 1.0)
        most = np.where(shown == self.base, 2 * self.base, 2 * self.base - 1)
        most = np.where(shown == 0, self.base, most)
        chance = seen[bins, np.minimum(shown // self.base, 2)] + 0.01
        chance = np.where(np.arange(VALUES) < most[:, None], chance, 0.0)
        return first, chance / chance.sum(axis=1, keepdims=True)

    def errors(self, without: Sequence[int]) -> Array:
        """The root mean square error of each kind of table, over all other areas."""
        total = np.zeros(int(self.kinds.max()) + 1)
        areas = [a for a in range(self.true.shape[0]) if a not in without]
        for area in areas:
            square = self.sums(self.shown[area] - self.true[area]) ** 2
            total += np.bincount(self.kinds, weights=square) / np.bincount(self.kinds)
        return np.asarray(np.sqrt(total / len(areas)) + 0.3)


def joint_attack(
    true: FinestCells,
    shown: FinestCells,
    base: int,
    variable: str,
    areas: Sequence[int],
    *,
    exact: bool = False,
    sweeps: int,
) -> Joint:
    """Attack some areas, one after the other; one more of the same size teaches how far to trust tables."""
    world = _World.of(true, shown, base, variable)
    *attacked, teacher = areas
    spreads: Sequence[float] = (EXACT,)
    if not exact:
        spreads = SPREADS
        scores = [
            _score(world, teacher, _sampled(world, teacher, areas, s, False, sweeps // 6)[1:])
            for s in spreads
        ]
        spreads = (spreads[int(np.argmax(scores))],)
    counts = {name: dict.fromkeys(LEVELS, 0) for name in ("c", "r", "pc", "pr")}
    cells = small = 0
    gains = []
    for area in attacked:
        prior, first, found = _sampled(world, area, areas, spreads[0], exact, sweeps)
        truth = world.true[area]
        cells, small = cells + truth.size, small + int(((truth > 0) & (truth < 3)).sum())
        for belief, said, good in ((found, "c", "r"), (prior, "pc", "pr")):
            for level in LEVELS:
                for value in (1, 2):
                    at = value - first
                    named = (at >= 0) & (at < VALUES)
                    rows = np.arange(truth.size)
                    named &= belief[rows, np.clip(at, 0, VALUES - 1)] >= level / 100
                    counts[said][level] += int(named.sum())
                    counts[good][level] += int((named & (truth == value)).sum())
        rows = np.flatnonzero(truth > 0)
        at = np.clip(truth - first, 0, VALUES - 1)
        gains += (found - prior)[rows, at[rows]].tolist()
    return Joint(cells, small, *counts.values(), float(np.mean(gains)))


def _sampled(
    world: _World, area: int, without: Sequence[int], spread: float, exact: bool, sweeps: int
) -> tuple[Array, Array, Array]:
    """The prior, the first possible count of every cell, and what the sampler makes of both."""
    first, prior = world.prior(area, without)
    published = world.sums((world.true if exact else world.shown)[area])
    errors = np.full(world.kinds.size, spread)
    if not exact:
        errors *= world.errors(without)[world.kinds]
    with np.errstate(divide="ignore"):
        chance = np.log(prior)
    found = np.zeros_like(prior)
    weight = 0.5 / errors**2
    # A chain may stay near one of several solutions for ever; many of them together are honest.
    for seed in range(CHAINS):
        state = prior.argmax(axis=1)
        args = (world.places, published, weight, chance, first, world.beside, state, found)
        _sample(*args, sweeps // CHAINS, seed)
    return prior, first, found / found.sum(axis=1, keepdims=True)


def _score(world: _World, area: int, sampled: tuple[Array, Array]) -> float:
    """The mean logarithm of what the true counts of an area were given."""
    first, found = sampled
    at = np.clip(world.true[area] - first, 0, VALUES - 1)
    return float(np.log(found[np.arange(at.size), at] + 1e-3).mean())


def _tables(codes: Array) -> tuple[Array, Array]:
    """Where each cell lies in the tables of up to two more variables, and how many each table cell has."""
    places, kinds, begin = [], [], 0
    for size in (0, 1, 2):
        for chosen in combinations(range(codes.shape[0]), size):
            numbers = np.zeros(codes.shape[1], dtype=np.int64)
            for row in chosen:
                numbers = numbers * (int(codes[row].max()) + 1) + codes[row]
            groups, place = np.unique(numbers, return_inverse=True)
            places.append(begin + place.ravel())
            kinds.append(np.full(groups.size, size))
            begin += groups.size
    return np.stack(places, axis=1), np.concatenate(kinds)


def _beside(codes: Array, sizes: Sequence[int]) -> Array:
    """For every cell and variable, the next possible cell that differs in this variable alone; -1 if none."""
    numbers = np.ravel_multi_index(tuple(codes), tuple(sizes))
    at = {int(n): k for k, n in enumerate(numbers)}
    beside = np.full((codes.shape[1], len(sizes)), -1, dtype=np.int64)
    for v, size in enumerate(sizes):
        stride = int(np.prod(sizes[v + 1 :]))
        for k, number in enumerate(numbers.tolist()):
            own = int(codes[v, k])
            for step in range(1, size):
                other = at.get(number + ((own + step) % size - own) * stride, -1)
                if other >= 0:
                    beside[k, v] = other
                    break
    return beside


@compiled
def _sample(
    places: Any,
    published: Any,
    weight: Any,
    chance: Any,
    first: Any,
    beside: Any,
    state: Any,
    found: Any,
    sweeps: Any,
    seed: Any,
) -> None:  # pragma: no cover
    """Gibbs steps and moves of one person; the first half of the sweeps is not counted and begins wide."""
    np.random.seed(seed)
    cells, tables = places.shape
    values = chance.shape[1]
    left = published.copy()
    for i in range(cells):
        for t in range(tables):
            left[places[i, t]] -= first[i] + state[i]
    odds = np.empty(values)
    for sweep in range(sweeps):
        wide = min(1.0, 0.02 + 2.2 * sweep / sweeps)
        for i in range(cells):
            best = -np.inf
            for v in range(values):
                odds[v] = chance[i, v]
                if odds[v] > -np.inf:
                    by = v - state[i]
                    for t in range(tables):
                        e = left[places[i, t]] - by
                        odds[v] -= wide * weight[places[i, t]] * e * e
                best = max(best, odds[v])
            total = 0.0
            for v in range(values):
                odds[v] = np.exp(odds[v] - best)
                total += odds[v]
            drawn = np.random.random() * total
            v = 0
            while v < values - 1 and drawn >= odds[v]:
                drawn -= odds[v]
                v += 1
            by = v - state[i]
            if by != 0:
                state[i] = v
                for t in range(tables):
                    left[places[i, t]] -= by
            # One person goes to the cell beside, or comes from there.
            variable = np.random.randint(0, beside.shape[1])
            j = beside[i, variable]
            for _ in range(np.random.randint(0, 4)):
                if j >= 0:
                    j = beside[j, variable]
            if j >= 0 and j != i:
                sign = 1 if np.random.random() < 0.5 else -1
                a, b = state[i] + sign, state[j] - sign
                if 0 <= a < values and 0 <= b < values:
                    gain = chance[i, a] - chance[i, state[i]] + chance[j, b] - chance[j, state[j]]
                    for t in range(tables):
                        p, q = places[i, t], places[j, t]
                        if p != q:
                            gain -= wide * weight[p] * ((left[p] - sign) ** 2 - left[p] ** 2)
                            gain -= wide * weight[q] * ((left[q] + sign) ** 2 - left[q] ** 2)
                    if np.log(np.random.random()) < gain:
                        state[i], state[j] = a, b
                        for t in range(tables):
                            left[places[i, t]] -= sign
                            left[places[j, t]] += sign
            if 2 * sweep >= sweeps:
                found[i, state[i]] += 1
