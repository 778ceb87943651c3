"""The log-linear model of a population (Antal, Shlomo and Elliot 2015, section 5.1).

The sample's margins give cell probabilities ``p``, which are positive in many cells that the
sample happens to miss. The unseen ``N - n`` people follow ``Multinomial(N - n, p)``, so a population is
the sample plus such a draw. In two dimensions the paper fits the main effects,
``p_ij = n_i. n_.j / n**2``; here the table may have any number of dimensions and the model any
hierarchical set of interactions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.model.chance import Seed, required_generator
from lustrum.model.errors import check_known, choices
from lustrum.numeric.loglinear import Generators, LogLinearFit, fit_generators, maximal
from lustrum.risk.counts import Cells, CountsLike, cells_of, check_draws, check_size
from lustrum.risk.population.kernels import draw_multinomials
from lustrum.risk.population.model import fitting_mask, grown

_ORDERS = {"independence": 1, "two-way": 2}


@dataclass(frozen=True, eq=False)
class LogLinear:
    """A hierarchical log-linear model.

    ``margins`` is "independence", "two-way" or a list of margins, each a tuple of axis names or
    numbers; ``order`` instead asks for all interactions of this many variables. ``structural`` marks cells that
    cannot hold anybody; a :class:`~lustrum.model.Table` brings its own.

    >>> sample = [[8, 2], [4, 6]]
    >>> LogLinear().expected(sample, N=120).tolist()
    [[38.0, 22.0], [34.0, 26.0]]
    >>> populations = LogLinear().draw(sample, 120, np.random.default_rng(1), draws=3)
    >>> populations.shape, populations.sum(axis=(1, 2)).tolist()
    ((3, 2, 2), [120, 120, 120])
    """

    margins: str | Sequence[Sequence[str | int]] = "independence"
    order: int | None = None
    structural: npt.ArrayLike | None = None
    tolerance: float = 1e-9
    rounds: int = 1000

    def __post_init__(self) -> None:
        if isinstance(self.margins, str) and self.margins not in _ORDERS:
            raise InputError(
                f"The margins {self.margins!r} are unknown; {choices(self.margins, _ORDERS)}, or a "
                "list of tuples of axes."
            )
        if not isinstance(self.margins, str):
            object.__setattr__(self, "margins", _listed(self.margins))
        if self.order is not None:
            if self.margins != "independence":
                raise InputError(
                    "A log-linear model is given by its margins or its order; not both."
                )
            if type(self.order) is not int or self.order < 1:
                raise InputError(
                    "The order of a log-linear model must be a whole number of 1 or more."
                )
        if not 0 < self.tolerance < 1 or self.rounds < 1:
            raise InputError("The fit needs a tolerance between 0 and 1, and one round or more.")

    @property
    def label(self) -> str:
        """The model in a few words."""
        if self.order is not None:
            return f"log-linear, order {self.order}"
        if isinstance(self.margins, str):
            return f"log-linear, {self.margins}"
        return "log-linear, " + " + ".join(" x ".join(str(a) for a in m) for m in self.margins)

    def generators(self, sample: CountsLike) -> Generators:
        """The margins that are kept, as axis numbers."""
        return self._generators(cells_of(sample, "sample"))

    def fit(self, sample: CountsLike) -> LogLinearFit:
        return self._fit(self._cells(sample))

    def predictive(self, sample: CountsLike, N: int | None = None) -> Floats:
        """The fitted cell probabilities; they do not depend on the size of the population."""
        return self._converged(self._cells(sample)).probabilities

    def expected(self, sample: CountsLike, N: int) -> Floats:
        """``f + (N - n) p``."""
        cells = self._cells(sample)
        return grown(cells, self._converged(cells).probabilities, check_size(cells, N))

    def draw(self, sample: CountsLike, N: int, rng: Seed, draws: int = 1000) -> Ints:
        """The sample plus ``Multinomial(N - n, p)``, many times."""
        cells = self._cells(sample)
        people = check_size(cells, N) - cells.total
        p = self._converged(cells).probabilities
        flat = np.ascontiguousarray(cells.counts).ravel()
        rows = draw_multinomials(
            flat, p.ravel(), people, check_draws(draws), required_generator(rng)
        )
        return rows.reshape(-1, *cells.counts.shape)

    def details(self, sample: CountsLike, N: int) -> Mapping[str, Any]:
        """Degrees of freedom, deviance and AIC."""
        fit = self.fit(sample)
        return {"degrees": fit.degrees, "deviance": fit.deviance, "aic": fit.aic}

    def _cells(self, sample: CountsLike) -> Cells:
        cells = fitting_mask(cells_of(sample, "sample"), self.structural)
        if cells.total == 0:
            raise InputError("The sample has nobody in it; a model needs at least one person.")
        return cells

    def _fit(self, cells: Cells) -> LogLinearFit:
        return fit_generators(
            cells.counts, cells.possible, self._generators(cells), self.tolerance, self.rounds
        )

    def _converged(self, cells: Cells) -> LogLinearFit:
        fit = self._fit(cells)
        if not fit.converged:
            raise InputError(
                f"The model ({self.label}) did not converge in {self.rounds} rounds; allow more "
                "rounds or a larger tolerance."
            )
        return fit

    def _generators(self, cells: Cells) -> Generators:
        dimensions = cells.counts.ndim
        if isinstance(self.margins, str):
            order = self.order if self.order is not None else _ORDERS[self.margins]
            return tuple(combinations(range(dimensions), min(order, dimensions)))
        return maximal([_axis(a, cells.names) for a in margin] for margin in self.margins)


def _listed(margins: object) -> tuple[tuple[str | int, ...], ...]:
    wrong = InputError("Margins must be a non-empty list of tuples of axis names or numbers.")
    if not isinstance(margins, Sequence) or not margins:
        raise wrong
    for margin in margins:
        if not isinstance(margin, Sequence) or isinstance(margin, str):
            raise wrong
        if not margin or not all(isinstance(axis, str | int) for axis in margin):
            raise wrong
    return tuple(tuple(margin) for margin in margins)


def _axis(axis: str | int, names: Sequence[str]) -> int:
    if isinstance(axis, str):
        check_known((axis,), names, "The sample has no axis")
        return list(names).index(axis)
    if not 0 <= axis < len(names):
        raise InputError(
            f"The sample has no axis {axis}; they are numbered from 0 to {len(names) - 1}."
        )
    return axis
