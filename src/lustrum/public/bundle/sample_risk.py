"""The risk of a table from a sample, with estimated populations: what sampling protects by itself.

Antal, Shlomo and Elliot (2015) measure a table of a sample by ``R2`` against the population that it is from.
The population is not known, so it is estimated many times over from the sample's table. Here that table is of
protected respondents, and the size of the population is the sum of their shared weights: both are public, and
so is the figure. The less favourable of two models counts.

The figure is stated and never loosens a rule: others can know that somebody took part in a survey, and for them
the sample is the population.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.model import InputError, Table
from lustrum.model.arrays import Ints
from lustrum.risk.batch import risks_of_many
from lustrum.risk.counts import cells_of, check_scale
from lustrum.risk.population import LogLinear, PolyaUrn

_DRAWS = 40
_SEED = 2015
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
    models = (LogLinear(), PolyaUrn())
    risks = []
    try:
        cells = cells_of(respondents, "sample")
        check_scale(cells.measured, "sample")
        for model, stream in zip(models, np.random.default_rng(_SEED).spawn(2), strict=True):
            drawn = model.draw(cells, people, stream, _DRAWS)[:, cells.possible]
            risks.append([float(values.mean()) for values in risks_of_many(drawn, cells.measured)])
    except InputError:
        return None  # a table in which a model cannot be fitted
    everybody, sample = (max(model_risks) for model_risks in zip(*risks, strict=True))
    return PublishedSampleRisk(number, people, sample, everybody)
