"""Estimates from weighted samples, with standard errors that follow from the design."""

from lustrum.survey.design import (
    Design,
    Estimates,
    Reliability,
    ReplicateWeights,
    balanced_half_samples,
    bootstrap,
    jackknife,
)
from lustrum.survey.linearised import Sums, estimate_quotients, estimate_ratios, estimate_totals

__all__ = [
    "Design",
    "Estimates",
    "Reliability",
    "ReplicateWeights",
    "Sums",
    "balanced_half_samples",
    "bootstrap",
    "estimate_quotients",
    "estimate_ratios",
    "estimate_totals",
    "jackknife",
]
