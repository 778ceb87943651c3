"""Estimates from weighted samples, with standard errors that follow from the design.

=============================  =====================================================================
:class:`Design`                weights, strata, clusters and finite populations of a sample
:class:`ReplicateWeights`      replicate weights that came with the data
:func:`estimate_totals`        weighted counts and sums in every cell
:func:`estimate_ratios`        means, shares and ratios of two measures in every cell
:class:`Estimates`             values, standard errors, respondents, and which are unreliable
=============================  =====================================================================
"""

from lustrum.survey.design import Design, ReplicateWeights
from lustrum.survey.estimates import Estimates, Reliability
from lustrum.survey.linearised import estimate_ratios, estimate_totals

__all__ = [
    "Design",
    "Estimates",
    "Reliability",
    "ReplicateWeights",
    "estimate_ratios",
    "estimate_totals",
]
