"""Models of a population that is seen through a sample only."""

from lustrum.numeric.loglinear import LogLinearFit
from lustrum.risk.population.loglinear import LogLinear
from lustrum.risk.population.model import (
    KnownPopulation,
    KnownProbabilities,
    PopulationModel,
    simple_random_samples,
)
from lustrum.risk.population.polya import PolyaUrn

__all__ = [
    "KnownPopulation",
    "KnownProbabilities",
    "LogLinear",
    "LogLinearFit",
    "PolyaUrn",
    "PopulationModel",
    "simple_random_samples",
]
