"""How counts made of many finest cells err, as a channel for a reader's belief.

The error of a sum has no closed form, because a search made it. The public report states coarse rates that were
measured once: how often counts of a size err by how much, for tables of one kind. The channel spreads each
rate over the numbers that can be shown. The bounds of a release say what is certain; this channel says what is
likely.

Sizes and errors fall into classes whose ends are multiples of the base. A rate is a power of one half. Only
rates of 1/32 and more are measured; smaller ones are taken from a fixed schedule, the same for all
records, so that nobody learns from a rate how rare an error is, or that there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Transitions
from lustrum.model.arrays import Floats, Ints
from lustrum.model.channel import row_entries
from lustrum.numeric.arithmetic import log2

Rates = tuple[tuple[int, ...], ...]
"""For each class of true counts, and each class of errors, the power of one half: ``2 ** -rate``."""

SIZE_ENDS = (0, 1, 3, 10)
"""True counts of 0, below the base, below three times the base, below ten times, and larger ones."""

ERROR_ENDS = (0, 1, 2, 3, 5, 8, 13, 21)
"""Errors of 0, and below these multiples of the base; larger errors count with the last class."""

SMALL = (6, 6, 7, 8, 9, 10, 11, 12)
"""The rates that are stated where fewer than about one in 32 cells err so."""
_NO_BOUND = 2**62


def size_class(true: npt.ArrayLike, base: int) -> Ints:
    """The class of each true count."""
    ends = base * np.array(SIZE_ENDS)
    ends[0] = 1
    return np.searchsorted(ends, np.asarray(true), side="right").astype(np.int64)


def error_class(error: npt.ArrayLike, base: int) -> Ints:
    """The class of each error, whatever its sign."""
    ends = base * np.array(ERROR_ENDS)
    ends[0] = 1
    classes = np.searchsorted(ends, np.abs(np.asarray(error)), side="right")
    return np.asarray(np.minimum(classes, len(ERROR_ENDS) - 1), dtype=np.int64)


@dataclass(frozen=True)
class PopulationChannel:
    """``P(published | true)`` of counts of one kind, from coarse rates; numbers are multiples of the step.

    >>> channel = PopulationChannel(3, 3, nearest_rates(3, 3))
    >>> rows = channel.transitions(np.array([4]))
    >>> int(rows.published[rows.probability.argmax()])
    3
    """

    base: int
    step: int
    rates: Rates

    def __post_init__(self) -> None:
        for what, value in (("base", self.base), ("step", self.step)):
            if type(value) is not int or value < 1:
                raise InputError(f"The {what} of a channel must be a whole number, not {value!r}.")
        shape = [len(row) for row in self.rates]
        if shape != [len(ERROR_ENDS)] * (len(SIZE_ENDS) + 1) or not all(
            type(rate) is int and 0 <= rate <= max(SMALL) for row in self.rates for rate in row
        ):
            raise InputError(
                f"The rates of a channel are {len(SIZE_ENDS) + 1} rows of {len(ERROR_ENDS)} whole numbers "
                f"from 0 to {max(SMALL)}."
            )

    @property
    def reach(self) -> int:
        """The distance from the true count beyond which a published count has probability 0."""
        return self.base * ERROR_ENDS[-1] - 1

    def transitions(self, true: Ints) -> Transitions:
        """The multiples of the step around each true count, none below 0, weighed by the rates."""
        true = np.asarray(true, dtype=np.int64)
        first, published, probability = self.rows
        row = self._row_of(true)
        origin, entry = row_entries(first[row], first[row + 1] - first[row])
        return Transitions(origin, published[entry] + (true - row)[origin], probability[entry])

    def chances(self, true: Ints, published: Ints) -> Floats:
        """``P(published | true)`` pair by pair: the entries of :meth:`transitions`, without their rows."""
        first, shown, probability = self.rows
        row = self._row_of(true)
        start = first[row]
        ahead = published - (true - row) - shown[start]
        entry = start + ahead // self.step
        reached = (ahead >= 0) & (ahead % self.step == 0) & (entry < first[row + 1])
        return np.where(reached, probability[np.where(reached, entry, start)], 0.0)

    @property
    def repeats_from(self) -> int:
        """The count from which on a step more in the true and the published number changes no chance."""
        return max(self.reach, self.base * SIZE_ENDS[-1])

    def moved_down(self, least: Ints) -> Ints:
        """By how much counts of at least these, and the numbers shown for them, can go down together.

        Then every chance stays what it is, so that large counts need not be looked at one by one.
        """
        return np.maximum(least - self.repeats_from, 0) // self.step * self.step

    def _row_of(self, true: Ints) -> Ints:
        """The row that says what becomes of each true count; from some count on, rows repeat."""
        if true.size and int(true.min()) < 0:
            raise InputError("The channel of a population is for counts of 0 or more.")
        settled = self.repeats_from
        return np.where(true < settled, true, settled + (true - settled) % self.step)

    @cached_property
    def rows(self) -> tuple[Ints, Ints, Floats]:
        """Where each row begins, the numbers that it leads to, and their chances."""
        return _rows(self)

    @cached_property
    def _weights(self) -> Floats:
        """The chance of each single number in a class of errors, for every class of true counts."""
        rates = np.ldexp(1.0, -np.array(self.rates, dtype=np.int64))
        numbers = _numbers(self.base, self.step)
        return np.where(numbers > 0, rates / np.maximum(numbers, 1e-9), 0.0)

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """The number alone rules nothing out; the bounds of a release say more."""
        published = np.asarray(published, dtype=np.int64)
        return np.zeros_like(published), np.full_like(published, _NO_BOUND)

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean probability that a count of a range stays unchanged; an open range has 50 values."""
        return _stays(self, lowest, lowest + 49 if highest is None else highest)


@lru_cache(maxsize=64)
def _rows(channel: PopulationChannel) -> tuple[Ints, Ints, Floats]:
    true = np.arange(channel.repeats_from + channel.step, dtype=np.int64)
    origin, published = _around(true, channel.step, channel.reach)
    error = error_class(published - true[origin], channel.base)
    chance = channel._weights[size_class(true, channel.base)[origin], error]
    total = np.bincount(origin, weights=chance, minlength=true.size)
    first = np.searchsorted(origin, np.arange(true.size + 1)).astype(np.int64)
    return first, published, chance / total[origin]


@lru_cache(maxsize=256)
def _stays(channel: PopulationChannel, lowest: int, highest: int) -> float:
    true = np.arange(lowest, highest + 1, dtype=np.int64)
    rows = channel.transitions(true)
    stays = rows.published == true[rows.origin]
    return float(rows.probability[stays].sum() / true.size)


def nearest_rates(base: int, step: int) -> Rates:
    """Rates of counts that show one of the two numbers next to them, or themselves: no method errs less.

    These stand where too few cells were measured, since they leave a reader least to wonder about.
    """
    rows = []
    for true in _examples(base):
        origin, published = _around(true, step, step - 1)
        chance = 1.0 / np.bincount(origin, minlength=true.size)[origin]
        classes = error_class(published - true[origin], base)
        shares = np.bincount(classes, weights=chance / true.size, minlength=len(ERROR_ENDS))
        rows.append(coarse_rates(shares, 0.5))
    return tuple(rows)


def coarse_rates(shares: npt.ArrayLike, shift: float) -> tuple[int, ...]:
    """Shares of all classes of errors as powers of one half; ``shift``, from 0 to 1, says where steps begin.

    >>> coarse_rates([0.6, 0.3, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0], 0.5)
    (1, 2, 3, 8, 9, 10, 11, 12)
    """
    halved = -log2(np.maximum(np.asarray(shares, dtype=np.float64), 2.0**-20))
    powers = np.floor(halved + shift).astype(int)
    return tuple(np.where(powers > _LAST_MEASURED, SMALL, powers).tolist())


_LAST_MEASURED = 4


def _examples(base: int) -> list[Ints]:
    """True counts of each class; for the open last one, a count of each residue far from 0."""
    ends = [1, *(base * end for end in SIZE_ENDS[1:])]
    starts = [0, *ends[:-1], 3 * ends[-1]]
    stops = [*ends, 3 * ends[-1] + base]
    return [np.arange(first, stop) for first, stop in zip(starts, stops, strict=True)]


def _numbers(base: int, step: int) -> Floats:
    """For each class of true counts, how many numbers of each class of errors can be shown, on average."""
    rows = []
    for true in _examples(base):
        origin, published = _around(true, step, base * ERROR_ENDS[-1] - 1)
        classes = error_class(published - true[origin], base)
        rows.append(np.bincount(classes, minlength=len(ERROR_ENDS)) / max(true.size, 1))
    return np.stack(rows)


def _around(true: Ints, step: int, reach: int) -> tuple[Any, Ints]:
    """For each true count, the multiples of the step that are at most ``reach`` away."""
    first = np.maximum(-(-(true - reach) // step), 0)
    last = (true + reach) // step
    origin, multiple = row_entries(first, last - first + 1)
    return origin, multiple * step
