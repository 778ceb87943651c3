"""The risk of a sample when the population behind it is unknown (Antal, Shlomo and Elliot 2015).

Populations are drawn from a model of what may lie behind the sample, and the risk is averaged over
them; section 6.2 of the paper. Several models side by side show how much hangs on the choice. The same average
as a measure, :class:`SampleRisk`, compares methods that protect the sample's own table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from lustrum._version import __version__
from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Ints
from lustrum.model.chance import Seed, any_generator
from lustrum.model.parameters import floats, parameter
from lustrum.model.release import check_release
from lustrum.model.table import check_table
from lustrum.model.text import html_table
from lustrum.risk.batch import risks_of_many
from lustrum.risk.counts import (
    Cells,
    CountsLike,
    cells_of,
    check_draws,
    check_scale,
    check_size,
    check_weights,
    same_cells,
)
from lustrum.risk.measure import RiskSpec
from lustrum.risk.population import LogLinear, PolyaUrn, PopulationModel
from lustrum.risk.r1 import R1, WEIGHTS
from lustrum.risk.r2 import R2, r2_values

if TYPE_CHECKING:
    import pyarrow as pa
from lustrum.numeric.arithmetic import log

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_CELLS_AT_ONCE = 1 << 22
"""Draws are made in portions of this many cells, which bounds the memory."""


@dataclass(frozen=True)
class ModelRisk:
    """The risk under one model: over its draws, the mean, the spread and some quantiles."""

    model: str
    mean: float
    sd: float
    quantiles: tuple[tuple[float, float], ...]
    draws: int
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def standard_error(self) -> float:
        """The Monte Carlo error of the mean; the model's own error is not in it."""
        return float(self.sd / np.sqrt(self.draws))


@dataclass(frozen=True)
class RiskEstimate:
    """The risk under each model, with what it was computed from."""

    measure: str
    people: int
    sampled: int
    models: tuple[ModelRisk, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, model: str) -> ModelRisk:
        for model_risk in self.models:
            if model_risk.model == model:
                return model_risk
        raise KeyError(model)

    def __str__(self) -> str:
        width = max(len(m.model) for m in self.models)
        lines = [f"{self.measure} of a sample of {self.sampled} from {self.people} people"]
        lines += [f"{m.model:{width}}  {m.mean:.4f} (sd {m.sd:.4f})" for m in self.models]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(m.model, f"{m.mean:.4f}", f"{m.sd:.4f}") for m in self.models]
        said = f"{self.measure} of a sample of {self.sampled} from {self.people} people"
        return html_table(said, ("model", "mean", "sd"), rows)

    @property
    def fraction(self) -> float:
        return self.sampled / self.people

    @property
    def spread(self) -> float:
        """How far the models' means lie apart: what the choice of a model is worth."""
        means = [m.mean for m in self.models]
        return max(means) - min(means)

    def comparison(self) -> tuple[Mapping[str, Any], ...]:
        """One row for each model: mean, sd, standard error and quantiles."""
        return tuple(
            {
                "model": m.model,
                "mean": m.mean,
                "sd": m.sd,
                "standard_error": m.standard_error,
                **{f"q{level:g}": value for level, value in m.quantiles},
            }
            for m in self.models
        )

    def to_arrow(self) -> pa.Table:
        import pyarrow as pa

        return pa.Table.from_pylist([dict(row) for row in self.comparison()])


def estimate_risk(
    sample: CountsLike,
    N: int,
    models: Sequence[PopulationModel] | None = None,
    measure: R1 | R2 | None = None,
    draws: int = 1000,
    rng: Seed = None,
) -> RiskEstimate:
    """The risk of a sample from a population of ``N``, under one model or several.

    By default these are the independence model and the Pólya urn, and the measure is ``R2``. With
    ``R1`` the figure is the risk of the population's table itself. Each model has a random stream
    of its own, so that leaving out a later one changes nothing.

    >>> estimate = estimate_risk([[20, 3], [11, 0]], N=340, draws=500, rng=1)
    >>> [m.model for m in estimate.models]
    ['log-linear, independence', 'Pólya urn']
    >>> all(0 < m.mean < 1 for m in estimate.models)
    True
    """
    cells = cells_of(sample, "sample")
    check_scale(cells.measured, "sample")
    people, count = check_size(cells, N), check_draws(draws)
    chosen = (LogLinear(), PolyaUrn()) if models is None else tuple(models)
    if not chosen:
        raise InputError("There is no model to estimate the risk with; give one or more.")
    how = R2() if measure is None else measure
    if not isinstance(how, R1 | R2):
        raise InputError("The measure must be R1 or R2.")
    streams = any_generator(rng).spawn(len(chosen))
    model_risks = tuple(
        _model_risk(model, sample, cells, people, how, count, stream)
        for model, stream in zip(chosen, streams, strict=True)
    )
    digest = hashlib.sha256(repr(cells.counts.shape).encode() + cells.counts.tobytes())
    provenance = {
        "lustrum": __version__,
        "numpy": np.__version__,
        "measure": how.to_mapping(),
        "models": [model.label for model in chosen],
        "draws": count,
        "seed": rng if isinstance(rng, int) else None,
        "sample_sha256": digest.hexdigest(),
    }
    return RiskEstimate(how.name.upper(), people, cells.total, model_risks, provenance)


def draw_risks(
    model: PopulationModel,
    sample: CountsLike,
    N: int,
    measure: R1 | R2,
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    """The risk of each of many populations drawn from a model, unchecked."""
    cells = cells_of(sample, "sample")
    portion = max(1, _CELLS_AT_ONCE // cells.counts.size)
    which = 0 if isinstance(measure, R1) else 1
    if measure.weights == "l2":
        raise InputError("The risk of a sample is estimated with three weights, not the L2 norm.")
    risks = []
    for start in range(0, draws, portion):
        populations = model.draw(sample, N, rng, min(portion, draws - start))
        rows = populations[:, cells.possible]
        risks.append(risks_of_many(rows, cells.measured, measure.weights)[which])
    return np.concatenate(risks)


def _model_risk(
    model: PopulationModel,
    sample: CountsLike,
    cells: Cells,
    N: int,
    measure: R1 | R2,
    draws: int,
    rng: np.random.Generator,
) -> ModelRisk:
    risks = draw_risks(model, sample, N, measure, draws, rng)
    levels = np.quantile(risks, QUANTILES)
    return ModelRisk(
        model=model.label,
        mean=float(risks.mean()),
        sd=float(risks.std(ddof=1)) if draws > 1 else 0.0,
        quantiles=tuple(zip(QUANTILES, levels.tolist(), strict=True)),
        draws=draws,
        details=model.details(sample, N),
    )


@dataclass(frozen=True)
class SampleRisk(RiskSpec):
    """``R2`` of what is published of a sample, averaged over populations that may lie behind it.

    Only the sample is known. Populations follow from ``seed``, so that all methods of a map are judged by the
    same ones; ``"log-linear"`` is independence.

    >>> sample = Table.from_counts([[20, 3], [11, 0]])
    >>> 0 < SampleRisk(fraction=0.1).before(sample) < SampleRisk(fraction=0.9).before(sample) < 1
    True
    """

    name: ClassVar[str] = "sample-r2"
    measures_releases: ClassVar[bool] = True
    fraction: float | None = parameter(
        None, "The share of the population that was sampled; it has to be given.", above=0, most=1
    )
    model: Literal["polya-urn", "log-linear"] | PopulationModel = parameter(
        "polya-urn", "The model of the population behind the sample: a word, or an object."
    )
    weights: tuple[float, float, float] = parameter(
        WEIGHTS, "Weights of zeros, entropy and size, which add up to 1.", least=0, read=floats
    )
    draws: int = parameter(200, "Populations that are drawn.", least=1, most=100_000)
    seed: int = parameter(0, "The same seed gives the same populations.", least=0)

    def check_together(self) -> None:
        """The fraction is given, and the weights add up."""
        if self.fraction is None:
            raise InputError(
                "The risk of a sample needs the share of the population that was sampled, as fraction=0.05."
            )
        check_weights(self.weights)

    def before(self, table: Table) -> float:
        check_table(table, f"The risk measure {self.name!r}")
        return self._mean(table, cells_of(table, "sample").measured)

    def after(self, table: Table, release: Release) -> float:
        check_table(table, f"The risk measure {self.name!r}")
        check_release(release, f"The risk measure {self.name!r}")
        whole, part = cells_of(table, "sample"), cells_of(release, "published table")
        same_cells(whole, part, "sample and the published table")
        return self._mean(table, part.counts[whole.possible])

    def _mean(self, table: Table, published: Ints) -> float:
        cells = cells_of(table, "sample")
        check_scale(cells.measured, "sample")
        assert self.fraction is not None
        people = max(round(cells.total / self.fraction), cells.total)
        sample = _Behind(table, cells, self.model)
        populations = _populations(sample, people, check_draws(self.draws), self.seed)
        return float(r2_values(populations, published, self.weights).mean())


class _Behind:
    """A sample and a model of what is behind it, told apart from others by counts and model."""

    def __init__(self, table: Table, cells: Cells, model: str | PopulationModel) -> None:
        self.table, self.model = table, model
        model_key = model if isinstance(model, str) else id(model)
        self._key = (
            model_key,
            cells.counts.shape,
            cells.counts.tobytes(),
            cells.possible.tobytes(),
        )

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Behind) and self._key == other._key


@lru_cache(maxsize=4)
def _populations(sample: _Behind, people: int, draws: int, seed: int) -> Ints:
    """Populations behind a sample, one a row; drawn once for all methods that are compared."""
    model = sample.model
    if isinstance(model, str):
        model = PolyaUrn() if model == "polya-urn" else LogLinear()
    drawn = model.draw(sample.table, people, np.random.default_rng(seed), draws)
    return np.asarray(drawn[:, cells_of(sample.table, "sample").possible])


# Which model fits a sample best: by Akaike's criterion, or by predicting people held back.


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
