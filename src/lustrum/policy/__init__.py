"""What an agency decides: rules, risk, method and audit."""

from lustrum.policy.parts import Audit, Before, Fallback, Ledger, PolicyMethod, Risk, Rules
from lustrum.policy.policy import Policy
from lustrum.policy.read import check_names, read_policy

__all__ = [
    "Audit",
    "Before",
    "Fallback",
    "Ledger",
    "Policy",
    "PolicyMethod",
    "Risk",
    "Rules",
    "check_names",
    "read_policy",
]
