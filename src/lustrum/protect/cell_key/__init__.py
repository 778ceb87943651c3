"""The cell key method, for counts and for magnitudes."""

from lustrum.protect.cell_key.additive import Restored, restore
from lustrum.protect.cell_key.channel import LookupChannel
from lustrum.protect.cell_key.counts import CellKey, ZeroKeys
from lustrum.protect.cell_key.magnitudes import CellKeyMagnitude
from lustrum.protect.cell_key.ptable import (
    PTable,
    key_words,
    read_ptable,
    read_transitions,
    transitions_text,
)
from lustrum.protect.cell_key.ratios import Ratios, mean, percentages, ratio
from lustrum.protect.cell_key.words import Additive, Lookup, Versions

__all__ = [
    "Additive",
    "CellKey",
    "CellKeyMagnitude",
    "Lookup",
    "LookupChannel",
    "PTable",
    "Ratios",
    "Restored",
    "Versions",
    "ZeroKeys",
    "key_words",
    "mean",
    "percentages",
    "ratio",
    "read_ptable",
    "read_transitions",
    "restore",
    "transitions_text",
]
