"""Differential privacy: noise from OpenDP, budgets, and post-processing.

======================================  ===========================================================
:class:`DifferentialPrivacy`            the method
:class:`Budget`, :class:`Cost`          the total cost of releases, in epsilon or in rho
:class:`BudgetSpentError`               a release that the budget does not allow
:func:`epsilon_of_rho`                  from rho and delta to epsilon
:func:`delta_of_rho`                    from rho and epsilon to delta
:func:`rho_of`                          from epsilon and delta to rho
:func:`power_of_rho`                    how often the best test finds one record, from rho
:class:`DiscreteNoiseChannel`           the exact channel of the noise
======================================  ===========================================================
"""

from lustrum.protect.privacy.budget import (
    Budget,
    BudgetSpentError,
    Cost,
    delta_of_rho,
    epsilon_of_rho,
    power_of_rho,
    rho_of,
)
from lustrum.protect.privacy.mechanism import DiscreteNoiseChannel
from lustrum.protect.privacy.spec import DifferentialPrivacy

__all__ = [
    "Budget",
    "BudgetSpentError",
    "Cost",
    "DifferentialPrivacy",
    "DiscreteNoiseChannel",
    "delta_of_rho",
    "epsilon_of_rho",
    "power_of_rho",
    "rho_of",
]
