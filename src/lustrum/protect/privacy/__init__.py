"""Differential privacy: noise from OpenDP, budgets, and post-processing."""

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
