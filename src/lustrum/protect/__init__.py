"""Protection methods, one a file; each turns a table into a release."""

from lustrum.protect.random_rounding import RandomRounding, RoundingChannel

__all__ = ["RandomRounding", "RoundingChannel"]
