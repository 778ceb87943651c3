"""Sampling: only some people are counted, and everybody knows how they were drawn."""

from lustrum.protect.sampling.channels import BinomialThinning, HypergeometricChannel
from lustrum.protect.sampling.estimates import PopulationEstimates, horvitz_thompson
from lustrum.protect.sampling.poisson import PoissonSampling, proportional_to_size
from lustrum.protect.sampling.simple import SimpleSampling
from lustrum.protect.sampling.stratified import StratifiedSampling, allocate

__all__ = [
    "BinomialThinning",
    "HypergeometricChannel",
    "PoissonSampling",
    "PopulationEstimates",
    "SimpleSampling",
    "StratifiedSampling",
    "allocate",
    "horvitz_thompson",
    "proportional_to_size",
]
