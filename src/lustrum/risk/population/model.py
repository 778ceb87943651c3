"""What every model of an unseen population can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.model.chance import Seed, required_generator
from lustrum.risk.counts import Cells, CountsLike, cells_of, check_draws, check_size, same_cells
from lustrum.risk.population.kernels import draw_multinomials


class PopulationModel(Protocol):
    """A frozen description of how a population of known size may look behind a sample of it."""

    @property
    def label(self) -> str: ...

    def draw(self, sample: CountsLike, N: int, rng: Seed, draws: int = 1000) -> Ints:
        """Random populations of ``N`` people, along a first axis, in the sample's shape."""
        ...

    def expected(self, sample: CountsLike, N: int) -> Floats: ...

    def predictive(self, sample: CountsLike, N: int) -> Floats:
        """The probability of each cell for the next person beyond the sample."""
        ...

    def details(self, sample: CountsLike, N: int) -> Mapping[str, Any]:
        """Fitted parameters worth telling."""
        ...


def grown(sample: Cells, probabilities: Floats, N: int) -> Floats:
    """The sample plus the ``N - n`` others, spread by their probabilities."""
    return np.asarray(sample.counts + (N - sample.total) * probabilities)


def fitting_mask(cells: Cells, structural: object) -> Cells:
    """The cells with further ones marked as impossible."""
    if structural is None:
        return cells
    mask = np.asarray(structural)
    if mask.dtype != np.bool_ or mask.shape != cells.counts.shape:
        raise InputError(
            "The structural zeros must be an array of true and false in the shape of the sample."
        )
    if np.any(cells.counts[mask]):
        raise InputError(
            "The sample holds people in a cell marked as impossible; such a cell must be 0."
        )
    return Cells(cells.counts, cells.possible & ~mask, cells.names)


# Populations of which more is known than a sample: all counts, or all cell probabilities.


@dataclass(frozen=True, eq=False)
class KnownPopulation:
    """The population's own table: nothing is left to chance.

    >>> KnownPopulation([[8, 2], [4, 6]]).draw([[1, 0], [1, 1]], 20, np.random.default_rng(), 2).shape
    (2, 2, 2)
    """

    table: CountsLike

    @property
    def label(self) -> str:
        return "known population"

    def draw(self, sample: CountsLike, N: int, rng: Seed, draws: int = 1000) -> Ints:
        """The same table again and again; the generator is not used."""
        counts = self._cells(sample, N).counts
        return np.broadcast_to(counts, (check_draws(draws), *counts.shape))

    def expected(self, sample: CountsLike, N: int) -> Floats:
        return self._cells(sample, N).counts.astype(np.float64)

    def predictive(self, sample: CountsLike, N: int) -> Floats:
        """The shares of the people who are not in the sample, or of all where everybody is."""
        whole, part = self._cells(sample, N), cells_of(sample, "sample")
        rest = whole.counts - part.counts
        return np.asarray(rest / rest.sum() if rest.any() else whole.counts / whole.total)

    def details(self, sample: CountsLike, N: int) -> Mapping[str, Any]:
        return {}

    def _cells(self, sample: CountsLike, N: int) -> Cells:
        whole, part = cells_of(self.table, "population table"), cells_of(sample, "sample")
        same_cells(whole, part, "population table and the sample")
        if check_size(part, N) != whole.total:
            raise InputError("The population size differs from the number of people in its table.")
        if np.any(part.counts > whole.counts):
            raise InputError(
                "The sample has a cell with more people than the population; a sample is a part of it."
            )
        return whole


@dataclass(frozen=True, eq=False)
class KnownProbabilities:
    """The sample plus a multinomial draw with cell probabilities that are given, not fitted.

    >>> model = KnownProbabilities([[0.4, 0.1], [0.2, 0.3]])
    >>> model.expected([[1, 0], [1, 0]], N=12).tolist()
    [[5.0, 1.0], [3.0, 3.0]]
    """

    probabilities: npt.ArrayLike

    def __post_init__(self) -> None:
        p = np.array(self.probabilities, dtype=np.float64)
        if not (np.all(np.isfinite(p)) and np.all(p >= 0) and abs(float(p.sum()) - 1.0) <= 1e-9):
            raise InputError("Cell probabilities must be 0 or more and add up to 1.")
        p.setflags(write=False)
        object.__setattr__(self, "probabilities", p)

    @property
    def label(self) -> str:
        return "known probabilities"

    def draw(self, sample: CountsLike, N: int, rng: Seed, draws: int = 1000) -> Ints:
        """The sample plus ``Multinomial(N - n, p)``, many times."""
        cells = self._cells(sample, N)
        p = np.asarray(self.probabilities).ravel()
        flat = np.ascontiguousarray(cells.counts).ravel()
        rows = draw_multinomials(
            flat, p, N - cells.total, check_draws(draws), required_generator(rng)
        )
        return rows.reshape(-1, *cells.counts.shape)

    def expected(self, sample: CountsLike, N: int) -> Floats:
        return grown(self._cells(sample, N), np.asarray(self.probabilities), N)

    def predictive(self, sample: CountsLike, N: int) -> Floats:
        self._cells(sample, N)
        return np.asarray(self.probabilities)

    def details(self, sample: CountsLike, N: int) -> Mapping[str, Any]:
        return {}

    def _cells(self, sample: CountsLike, N: int) -> Cells:
        cells = cells_of(sample, "sample")
        check_size(cells, N)
        if cells.counts.shape != np.shape(self.probabilities):
            raise InputError(
                "The sample and the probabilities have different shapes; they must be equal."
            )
        return cells


def simple_random_samples(
    population: CountsLike, fraction: float, rng: Seed, samples: int = 1
) -> Ints:
    """Simple random samples without replacement, along a first axis.

    The sample size is the fraction of the population, rounded.

    >>> simple_random_samples([[80, 20], [40, 60]], 0.1, np.random.default_rng(1), 5).sum(axis=(1, 2))
    array([20, 20, 20, 20, 20])
    """
    cells = cells_of(population, "population table")
    if not 0 < fraction <= 1:
        raise InputError("The sampling fraction must be above 0 and at most 1.")
    size = round(fraction * cells.total)
    if size == 0:
        raise InputError("The sampling fraction leaves nobody in the sample; it must be larger.")
    rows = required_generator(rng).multivariate_hypergeometric(
        cells.counts.ravel(), size, size=check_draws(samples)
    )
    return np.asarray(rows.reshape(-1, *cells.counts.shape))
