"""What an agency decides: rules, risk, method and how exactly figures are told."""

from lustrum.policy.policy import Method, Policy, Report, Risk, Rules, read_policy

__all__ = ["Method", "Policy", "Report", "Risk", "Rules", "read_policy"]
