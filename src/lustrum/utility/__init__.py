"""Utility measures, one a file: what a release is still worth beside its table."""

from lustrum.utility.hellinger import HellingerUtility, hellinger_counts

__all__ = ["HellingerUtility", "hellinger_counts"]
