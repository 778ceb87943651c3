"""What an agency decides: rules, risk, method, audit and how exactly figures are told."""

from lustrum.policy.policy import (
    Audit,
    Before,
    Fallback,
    Method,
    Policy,
    Report,
    Risk,
    Rules,
    read_policy,
)

__all__ = [
    "Audit",
    "Before",
    "Fallback",
    "Method",
    "Policy",
    "Report",
    "Risk",
    "Rules",
    "read_policy",
]
