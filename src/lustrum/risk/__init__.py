"""Risk measures, one a file: pure functions on arrays and small frozen specs."""

from lustrum.risk.table_entropy import EntropyRisk, RiskTerms, entropy_term, size_term

__all__ = ["EntropyRisk", "RiskTerms", "entropy_term", "size_term"]
