"""Beliefs: for each cell, the values that a reader considers possible, and how probable each is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.arithmetic import log

_CHUNK = 1 << 20  # values handled at once
_MOST = 10**8  # the most values that one expectation may sum over


def _empty_ints() -> Ints:
    return np.zeros(0, dtype=np.int64)


def _empty_floats() -> Floats:
    return np.zeros(0, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Belief:
    """One discrete distribution for each cell, in units of ``10**-decimals``.

    Cell ``i`` has the values and probabilities from ``indptr[i]`` to ``indptr[i + 1]``; where that range is
    empty, the cell is uniform over ``count[i]`` whole numbers starting at ``low[i]``, which are never
    stored one by one. A count may be infinite.

    >>> belief = Belief.uniform([0, 1131], [406, 1537])
    >>> belief, belief.count.tolist()
    (Belief(2 cells), [407.0, 407.0])
    >>> coin = Belief.explicit([([0, 1], [0.5, 0.5])])
    >>> coin.entropy(2).tolist()
    [1.0]
    """

    low: Floats
    count: Floats
    indptr: Ints
    values: Ints = field(default_factory=_empty_ints)
    probabilities: Floats = field(default_factory=_empty_floats)
    decimals: int = 0

    def __post_init__(self) -> None:
        for name in ("low", "count", "indptr", "values", "probabilities"):
            array = getattr(self, name).view()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        return f"Belief({len(self)} cell{'s' * (len(self) != 1)})"

    def __len__(self) -> int:
        return int(self.low.size)

    @classmethod
    def uniform(cls, low: npt.ArrayLike, high: npt.ArrayLike, decimals: int = 0) -> Belief:
        """Every whole number from low to high is as probable as any other."""
        lows = np.atleast_1d(np.asarray(low, dtype=np.float64)).ravel()
        highs = np.atleast_1d(np.asarray(high, dtype=np.float64)).ravel()
        if lows.shape != highs.shape or np.isnan(lows).any() or np.isnan(highs).any():
            raise InputError("A uniform belief needs a low and a high number for each cell.")
        finite = [a[np.isfinite(a)] for a in (lows, highs)]
        if any(bool((a != np.floor(a)).any()) for a in finite):
            raise InputError(
                "A uniform belief runs over whole numbers; give fractions as decimals."
            )
        if bool((lows > highs).any()):
            raise InputError(
                "A cell has no feasible value: its lower bound is above its upper bound."
            )
        pointer = np.zeros(lows.size + 1, dtype=np.int64)
        return cls(lows, highs - lows + 1.0, pointer, decimals=decimals)

    @classmethod
    def explicit(
        cls, rows: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]], decimals: int = 0
    ) -> Belief:
        """A list of values and one of probabilities for each cell; they must add up to 1."""
        pairs = [(np.asarray(v, np.int64), np.asarray(p, np.float64)) for v, p in rows]
        for values, share in pairs:
            if values.ndim != 1 or values.shape != share.shape:
                raise InputError("A belief needs one probability for each value of a cell.")
            if values.size == 0:
                raise InputError("A belief lists no value; it needs at least one.")
            if np.unique(values).size != values.size:
                raise InputError("A belief lists a value twice; list each value once.")
            if not bool((share >= 0).all()):
                raise InputError("A probability is negative or not a number; it must be 0 or more.")
            if abs(float(share.sum()) - 1.0) > 1e-9:
                raise InputError("The probabilities of a cell must add up to 1.")
        sizes = np.array([v.size for v, _ in pairs], dtype=np.int64)
        return cls.of_lists(
            np.concatenate(([0], np.cumsum(sizes))),
            np.concatenate([v for v, _ in pairs]) if pairs else _empty_ints(),
            np.concatenate([p for _, p in pairs]) if pairs else _empty_floats(),
            decimals=decimals,
        )

    @classmethod
    def of_lists(
        cls,
        indptr: Ints,
        values: Ints,
        probabilities: Floats,
        *,
        rest: Belief | None = None,
        decimals: int = 0,
    ) -> Belief:
        """Explicit cells from flat lists; a cell with an empty list is taken from ``rest``."""
        positive = probabilities > 0
        row = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))[positive]
        order = np.lexsort((values[positive], row))
        values, probabilities = values[positive][order], probabilities[positive][order]
        sizes = np.bincount(row, minlength=indptr.size - 1)
        pointer = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        filled = sizes > 0
        if rest is None and not bool(filled.all()):
            raise InputError("A belief lists no value; it needs at least one.")
        low = np.zeros(sizes.size) if rest is None else rest.low.copy()
        count = sizes.astype(np.float64) if rest is None else rest.count.copy()
        low[filled] = values[pointer[:-1][filled]]
        count[filled] = sizes[filled]
        return cls(low, count, pointer, values, probabilities, decimals)

    def distribution(self, cell: int) -> tuple[Ints, Floats]:
        """The values of one cell and their probabilities."""
        begin, end = self.indptr[cell : cell + 2]
        if end > begin:
            return self.values[begin:end], self.probabilities[begin:end]
        count = self.count[cell]
        if not np.isfinite(count + self.low[cell]) or count > _MOST:
            raise InputError("This cell has too many possible values to write them out.")
        values = int(self.low[cell]) + np.arange(int(count), dtype=np.int64)
        return values, np.full(values.size, 1.0 / count)

    def entropy(self, base: float = 2.0) -> Floats:
        """Shannon's entropy of each cell, ``-sum p log p``: log m for m equally probable values."""
        if not 1 < base < np.inf:
            raise InputError(f"The base of a logarithm must be above 1, not {base!r}.")
        nats = log(self.count)
        terms = -self.probabilities * log(self.probabilities)
        filled = np.diff(self.indptr) > 0
        nats[filled] = np.add.reduceat(terms, self.indptr[:-1][filled])
        # Not below 0 by a rounding error; adding 0 turns a negative zero into a plain one.
        return np.asarray(np.maximum(nats, 0.0) / log(base) + 0.0)

    def expectation(self, function: Callable[[Ints], npt.ArrayLike]) -> Floats:
        """``sum_k f(k) p(k)`` for each cell; the function maps an array to an array."""
        open_rows = np.flatnonzero(np.diff(self.indptr) == 0)
        if not float(self.count[open_rows].sum()) <= _MOST:
            raise InputError(
                "There are too many possible values to sum over; bound the cells more narrowly."
            )
        out = np.zeros(len(self))
        filled = np.flatnonzero(np.diff(self.indptr) > 0)
        if filled.size:
            parts = _applied(function, self.values) * self.probabilities
            out[filled] = np.add.reduceat(parts, self.indptr[:-1][filled])
        for cell in open_rows.tolist():
            count, total = int(self.count[cell]), 0.0
            for start in range(0, count, _CHUNK):
                steps = np.arange(start, min(start + _CHUNK, count), dtype=np.int64)
                total += float(_applied(function, int(self.low[cell]) + steps).sum())
            out[cell] = total / count
        return out

    def mean_squared_error(self, about: float) -> Floats:
        """The mean squared distance of each cell from a value, in units of ``10**-decimals``."""
        return self.expectation(lambda k: (k - about) ** 2)

    def shifted(self, by: npt.ArrayLike) -> Belief:
        """The belief about each cell plus a number that the reader knows."""
        steps = np.broadcast_to(np.asarray(by, dtype=np.int64), self.low.shape)
        moved = self.values + np.repeat(steps, np.diff(self.indptr))
        return replace(self, low=self.low + steps, values=moved)


def _applied(function: Callable[[Ints], npt.ArrayLike], values: Ints) -> Floats:
    numbers = np.asarray(function(values), dtype=np.float64)
    if numbers.shape != values.shape or np.isnan(numbers).any():
        raise InputError("A function of cell values must give one number for each value.")
    return numbers
