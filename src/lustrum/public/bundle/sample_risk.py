"""The risk of a table from a sample, with estimated populations: what sampling protects by itself.

Antal, Shlomo and Elliot (2015) measure a table of a sample by ``R2`` against the population that it is from.
The population is not known, so it is estimated many times over from the sample's table. Here that table is of
protected respondents, and the size of the population is the sum of their shared weights: both are public, and
so is the figure. The less favourable of two models counts.

The figure is stated and never loosens a rule: others can know that somebody took part in a survey, and for them
the sample is the population.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from lustrum.model import InputError, Table
from lustrum.model.arrays import Ints
from lustrum.risk.batch import risks_of_many
from lustrum.risk.counts import Cells, cells_of, check_scale
from lustrum.risk.population import LogLinear, PolyaUrn
from lustrum.runtime.remembered import Remembered

_DRAWS = 40
_SEED = 2015
_known = Remembered[tuple[float, float]](1 << 14)
"""By the digest of a table: many questions show the same counts with other totals or statistics."""
_MOST = 1000
"""Cells of a table whose populations are estimated."""


@dataclass(frozen=True)
class PublishedSampleRisk:
    """The risk of a table from a sample, and that of the same table of everybody."""

    respondents: int
    people: int
    sample: float
    everybody: float


def sample_risk(respondents: Table | Ints, people: int) -> PublishedSampleRisk | None:
    """The risk of a table of protected respondents from this many people; None where it is not measured.

    Cells of a table that cannot exist do not count.

    >>> found = sample_risk(np.array([[20, 3], [11, 0]]), 340)
    >>> found.sample < found.everybody
    True
    """
    counts = respondents.values if isinstance(respondents, Table) else np.asarray(respondents)
    number = int(counts.sum())
    if not 2 <= counts.size <= _MOST or not 0 < number < people:
        return None
    try:
        cells = cells_of(respondents, "sample")
        check_scale(cells.measured, "sample")
        held = repr(counts.shape).encode() + cells.counts.tobytes() + cells.possible.tobytes()
        risk, everybody = _known.get(
            (hashlib.sha256(held).digest(), people), lambda: _worse(cells, people)
        )
    except InputError:
        return None  # a table in which a model cannot be fitted
    return PublishedSampleRisk(number, people, risk, everybody)


def _worse(cells: Cells, people: int) -> tuple[float, float]:
    """``R2`` and ``R1``, each by the less favourable model, from the same populations."""
    models = (LogLinear(), PolyaUrn())
    risks = []
    for model, stream in zip(models, np.random.default_rng(_SEED).spawn(2), strict=True):
        drawn = model.draw(cells, people, stream, _DRAWS)[:, cells.possible]
        risks.append([float(values.mean()) for values in risks_of_many(drawn, cells.measured)])
    everybody, sample = (max(model_risks) for model_risks in zip(*risks, strict=True))
    return sample, everybody
