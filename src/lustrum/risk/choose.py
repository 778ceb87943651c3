"""Which model fits a sample best: by Akaike's criterion, or by predicting people held back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.model.chance import Seed, any_generator
from lustrum.numeric.arithmetic import log
from lustrum.risk.counts import Cells, CountsLike, cells_of, check_size
from lustrum.risk.population import LogLinear, PopulationModel


@dataclass(frozen=True, eq=False)
class ModelChoice:
    """The best of the candidates, and the score of each; the smaller a score the better.

    By "aic" a score is Akaike's criterion. By "cv" it is the mean of ``-log p`` over all people, each
    predicted from a fit without the fold they are in.
    """

    by: Literal["aic", "cv"]
    best: PopulationModel
    scores: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        return "\n".join(
            f"{label}: {score:.4f}{' *' if label == self.best.label else ''}"
            for label, score in self.scores
        )


def choose_model(
    sample: CountsLike,
    candidates: Sequence[PopulationModel],
    by: Literal["aic", "cv"] = "aic",
    rng: Seed = None,
    folds: int = 10,
    N: int | None = None,
) -> ModelChoice:
    """The candidate that fits a sample of any dimension best; the first of equals.

    Akaike's criterion is for log-linear models. Cross-validation puts people into folds at random and
    adds up the multinomial log-likelihood of each fold under the model fitted to the others. So that
    one person in a cell that the others miss does not rule a model out, each fit is mixed with one more
    person spread evenly over the possible cells. The Pólya urn needs ``N`` for that.

    >>> sample = [[[30, 10], [10, 30]], [[30, 10], [10, 30]]]
    >>> models = [LogLinear(), LogLinear([(0,), (1, 2)]), LogLinear(order=3)]
    >>> choose_model(sample, models).best.label
    'log-linear, 0 + 1 x 2'
    """
    cells = cells_of(sample, "sample")
    models = tuple(candidates)
    if not models:
        raise InputError("There is no model to choose from; give one or more.")
    if N is not None:
        check_size(cells, N)
    if by == "aic":
        scores = [_aic(model, sample) for model in models]
    elif by == "cv":
        parts = _folds(cells, folds, any_generator(rng))
        scores = [_cross_validated(model, cells, parts, N) for model in models]
    else:
        raise InputError(f"A model is chosen by 'aic' or 'cv', not by {by!r}.")
    best = models[int(np.argmin(scores))]
    labels = [model.label for model in models]
    return ModelChoice(by, best, tuple(zip(labels, scores, strict=True)))


def _aic(model: PopulationModel, sample: CountsLike) -> float:
    if not isinstance(model, LogLinear):
        raise InputError(
            f"The model ({model.label}) has no likelihood on the sample's cells; choose by 'cv'."
        )
    fit = model.fit(sample)
    if not fit.converged:
        raise InputError(f"The model ({model.label}) did not converge; allow more rounds.")
    return fit.aic


def _folds(cells: Cells, folds: int, rng: np.random.Generator) -> list[Ints]:
    """Everybody in one of this many parts of nearly equal size, at random."""
    if not 2 <= folds <= cells.total:
        raise InputError(
            "The number of folds must be 2 or more, and no more than people in the sample."
        )
    people = np.repeat(np.arange(cells.counts.size), cells.counts.ravel())
    rng.shuffle(people)
    parts = np.array_split(people, folds)
    return [np.bincount(part, minlength=cells.counts.size).astype(np.int64) for part in parts]


def _cross_validated(
    model: PopulationModel, cells: Cells, parts: Sequence[Ints], N: int | None
) -> float:
    if N is None and not isinstance(model, LogLinear):
        raise InputError(f"The model ({model.label}) needs the population size 'N'.")
    even = cells.possible / cells.possible.sum()
    loss = 0.0
    for part in parts:
        held = part.reshape(cells.counts.shape)
        rest = Cells(cells.counts - held, cells.possible, cells.names)
        p = model.predictive(rest, N if N is not None else cells.total)
        mixed = (rest.total * p + even) / (rest.total + 1)
        loss -= float((held[held > 0] * log(mixed[held > 0])).sum())
    return loss / cells.total
