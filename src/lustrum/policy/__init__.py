"""What an agency decides: rules, risk, method and audit."""

from lustrum.policy.check import check_names
from lustrum.policy.policy import (
    Audit,
    Before,
    Fallback,
    Method,
    Policy,
    Risk,
    Rules,
)
from lustrum.policy.read import read_policy

__all__ = [
    "Audit",
    "Before",
    "Fallback",
    "Method",
    "Policy",
    "Risk",
    "Rules",
    "check_names",
    "read_policy",
]
