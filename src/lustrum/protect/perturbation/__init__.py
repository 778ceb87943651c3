"""Stochastic perturbation by a transition matrix, and the design and test of such matrices.

- :class:`StochasticPerturbation` is the method; :func:`perturb_by_words` draws from a matrix by uniform
  words.
- :class:`PerturbationDesign` finds the matrix of largest entropy for a variance and a largest change.
- :func:`differencing_risk` finds which parts and totals drawn by a matrix disclose a count.
- :func:`calibrated` makes a matrix keep the distribution of counts.
"""

from lustrum.protect.perturbation.design import PerturbationDesign
from lustrum.protect.perturbation.differencing import (
    DifferencingReport,
    RevealingPattern,
    differencing_risk,
)
from lustrum.protect.perturbation.invariant import calibrated
from lustrum.protect.perturbation.lookup import perturb_by_words
from lustrum.protect.perturbation.spec import PRESETS, StochasticPerturbation

__all__ = [
    "PRESETS",
    "DifferencingReport",
    "PerturbationDesign",
    "RevealingPattern",
    "StochasticPerturbation",
    "calibrated",
    "differencing_risk",
    "perturb_by_words",
]
