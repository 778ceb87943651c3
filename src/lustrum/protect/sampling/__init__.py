"""Sampling: only some people are counted, and everybody knows how they were drawn."""

from lustrum.protect.sampling.channels import BinomialThinning, HypergeometricChannel
from lustrum.protect.sampling.designs import (
    PoissonSampling,
    SimpleSampling,
    StratifiedSampling,
    allocate,
    proportional_to_size,
)
from lustrum.protect.sampling.estimates import PopulationEstimates, horvitz_thompson

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
