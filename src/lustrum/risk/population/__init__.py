"""Models of a population that is seen through a sample only.

==============================  ==============================================================
:class:`LogLinear`              the sample's margins, by iterative proportional fitting
:class:`PolyaUrn`               an urn that starts with the sample and some black balls
:class:`KnownPopulation`        the population's own table
:class:`KnownProbabilities`     cell probabilities that are given
:class:`PopulationModel`        what each of them can do
==============================  ==============================================================
"""

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
