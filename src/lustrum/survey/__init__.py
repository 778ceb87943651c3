"""Estimates from weighted samples, with standard errors that follow from the design.

=============================  =====================================================================
:class:`Design`                weights, strata, clusters and finite populations of a sample
:class:`ReplicateWeights`      replicate weights that came with the data
:func:`jackknife`              replicate weights from a design, by leaving clusters out
:func:`balanced_half_samples`  the same by half-samples, with Fay's factor if wanted
:func:`bootstrap`              the same by drawing clusters again
:func:`estimate_totals`        weighted counts and sums in every cell
:func:`estimate_ratios`        means, shares and ratios of two measures in every cell
:func:`estimate_quotients`     shares, growth and other quotients of sums over different records
:class:`Estimates`             values, standard errors, respondents, and which are unreliable
=============================  =====================================================================
"""

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
