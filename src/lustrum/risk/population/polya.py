"""The Pólya urn model of a population (Antal, Shlomo and Elliot 2015, section 5.2).

The urn starts with one ball for each person of the sample, coloured by cell, and ``theta`` black
ones. A ball is drawn ``N - n`` times. A coloured one goes back with another of its colour; a black one goes
back with a ball of a new colour, which is a cell that the sample misses. The expected number of new
colours sets ``theta`` (equations 5 and 6):

    |E| - |D| = sum over z = 1 .. N - n of theta / (n + theta + z - 1)
              = theta (psi(N + theta) - psi(n + theta))

with ``|E|`` empty cells in the sample and ``|D|`` in the population, which is either known or estimated by
``sum (1 - p_i) ** N`` with the probabilities of independence. ``psi`` is the digamma function.

The model says nothing about where new colours go. Here each takes a cell of its own, at random among
the sample's empty cells that are not structural. The urn may bring more colours than there are such
cells; a colour too many then joins one of these cells at random. That leaves the other cells' counts,
the total and the equal treatment of unseen cells as the urn has them, and only fills the last free cells
a little sooner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.model.chance import Seed, required_generator
from lustrum.numeric.arithmetic import exp, log1p
from lustrum.numeric.arithmetic_loops import digamma
from lustrum.numeric.loglinear import fit_generators
from lustrum.risk.counts import Cells, CountsLike, cells_of, check_draws, check_size
from lustrum.risk.population.kernels import draw_urns
from lustrum.risk.population.model import fitting_mask, grown

_ALL_NEW = 1e6
"""So many black balls per person that practically everybody new is of a new colour."""


@dataclass(frozen=True, eq=False)
class PolyaUrn:
    """The urn; ``zeros`` is the population's number of empty cells where that is known.

    >>> sample = [[8, 2], [4, 0]]
    >>> urn = PolyaUrn(zeros=0)
    >>> round(urn.theta(sample, N=140), 3)
    0.434
    >>> urn.draw(sample, 140, np.random.default_rng(1), draws=2).sum(axis=(1, 2)).tolist()
    [140, 140]
    """

    zeros: int | None = None
    structural: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        if self.zeros is not None and (type(self.zeros) is not int or self.zeros < 0):
            raise InputError("The number of empty cells must be a whole number of 0 or more.")

    @property
    def label(self) -> str:
        return "Pólya urn" if self.zeros is None else f"Pólya urn, {self.zeros} empty cells"

    def theta(self, sample: CountsLike, N: int) -> float:
        """The number of black balls, from equation 5 or 6."""
        cells = self._cells(sample)
        return self._theta(cells, check_size(cells, N))

    def empty_cells(self, sample: CountsLike, N: int) -> float:
        """The population's empty cells: known, or estimated as ``sum (1 - p_i) ** N``."""
        cells = self._cells(sample)
        return self._empty_cells(cells, check_size(cells, N))

    def predictive(self, sample: CountsLike, N: int) -> Floats:
        """``f / (n + theta)``, and the black balls' part shared evenly by the unseen cells."""
        cells = self._cells(sample)
        theta = self._theta(cells, check_size(cells, N))
        unseen = cells.possible & (cells.counts == 0)
        weights = cells.counts + unseen * (theta / max(1, int(unseen.sum())))
        return np.asarray(weights / (cells.total + theta))

    def expected(self, sample: CountsLike, N: int) -> Floats:
        """``f + (N - n) f / (n + theta)``, and likewise for the unseen: an urn is a martingale."""
        return grown(self._cells(sample), self.predictive(sample, N), N)

    def draw(self, sample: CountsLike, N: int, rng: Seed, draws: int = 1000) -> Ints:
        cells = self._cells(sample)
        people = check_size(cells, N) - cells.total
        theta = self._theta(cells, N)
        counts = np.ascontiguousarray(cells.counts).ravel()
        unseen = np.flatnonzero(cells.possible.ravel() & (counts == 0))
        rows = draw_urns(counts, unseen, theta, people, check_draws(draws), required_generator(rng))
        return rows.reshape(-1, *cells.counts.shape)

    def details(self, sample: CountsLike, N: int) -> Mapping[str, Any]:
        """The black balls and the empty cells they were set by."""
        return {"theta": self.theta(sample, N), "empty_cells": self.empty_cells(sample, N)}

    def _cells(self, sample: CountsLike) -> Cells:
        return fitting_mask(cells_of(sample, "sample"), self.structural)

    def _empty_cells(self, cells: Cells, N: int) -> float:
        if self.zeros is not None:
            return float(self.zeros)
        generators = tuple((axis,) for axis in range(cells.counts.ndim))
        p = fit_generators(cells.counts, cells.possible, generators, 1e-9, 1000).probabilities[
            cells.possible
        ]
        return float(exp(N * log1p(-p)).sum())

    def _theta(self, cells: Cells, N: int) -> float:
        unseen = int((cells.measured == 0).sum())
        if self.zeros is not None and self.zeros > unseen:
            raise InputError(
                "The population cannot have more empty cells than its sample; give fewer 'zeros'."
            )
        return solve_theta(cells.total, N, unseen - self._empty_cells(cells, N))


def new_colours(theta: float, n: int, N: int) -> float:
    """The expected number of new colours, ``theta (psi(N + theta) - psi(n + theta))``.

    >>> round(new_colours(2.0, 3, 5), 12) == round(2 / 5 + 2 / 6, 12)
    True
    """
    if theta > 1e4 * N:
        # The digammas agree in too many digits; the terms of the sum are nearly equal here.
        return theta * (N - n) / (theta + 0.5 * (N + n - 1))
    return theta * (digamma(float(N + theta)) - digamma(float(n + theta)))


def solve_theta(n: int, N: int, wanted: float) -> float:
    """The ``theta`` that brings this many new colours on average (equations 5 and 6).

    None are wanted where the sample has no more empty cells than the population: no black ball then.
    There cannot be more than people; where as many are wanted, ``theta`` is a large number.

    >>> round(solve_theta(3, 5, 2 / 5 + 2 / 6), 9), solve_theta(3, 5, -1.0), solve_theta(3, 5, 2.0)
    (2.0, 0.0, 5000000.0)
    """
    if wanted <= 0 or n == N:
        return 0.0
    largest = _ALL_NEW * N
    if wanted >= new_colours(largest, n, N):
        return largest
    # Each term is at most 1 and at most theta / n, so theta is at least wanted n / (N - n).
    least = wanted * n / (N - n) * (1 - 1e-9)
    # Halved until no number lies between: the same theta on every processor.
    most = largest
    while least < (middle := 0.5 * (least + most)) < most:
        if new_colours(middle, n, N) < wanted:
            least = middle
        else:
            most = middle
    return most
