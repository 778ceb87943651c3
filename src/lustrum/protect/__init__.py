"""Protection methods, one a file; each turns a table into a release, or records into safer ones."""

from lustrum.protect.method import Method, RecordMethod, Stage
from lustrum.protect.random_rounding import RandomRounding, RoundingChannel

__all__ = ["Method", "RandomRounding", "RecordMethod", "RoundingChannel", "Stage"]
