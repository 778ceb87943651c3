"""Formats in which a release leaves the house."""

from lustrum.formats.csv import Csv
from lustrum.formats.jsonstat import JsonStat

__all__ = ["Csv", "JsonStat"]
