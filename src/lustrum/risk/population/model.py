"""What every model of an unseen population can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.model.chance import Seed
from lustrum.risk.counts import Cells, CountsLike


class PopulationModel(Protocol):
    """A frozen description of how a population of known size may look behind a sample of it."""

    @property
    def label(self) -> str:
        """The model in a few words, for tables of results."""
        ...

    def draw(self, sample: CountsLike, N: int, rng: Seed, draws: int = 1000) -> Ints:
        """Random populations of ``N`` people, along a first axis, in the sample's shape."""
        ...

    def expected(self, sample: CountsLike, N: int) -> Floats:
        """The mean of :meth:`draw` in every cell."""
        ...

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
