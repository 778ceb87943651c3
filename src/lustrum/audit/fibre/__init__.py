"""How probable each value of a hidden cell is, from all tables of a fibre or from a sample of them.

A fibre is the set of all tables of whole numbers that fit what is known.
"""

from lustrum.audit.fibre.distribution import (
    CellDistributions,
    Unimodal,
    distribution,
    effective_size,
    split_rhat,
    unimodal,
)
from lustrum.audit.fibre.enumerate import Fibre, enumerate_fibre
from lustrum.audit.fibre.margins import FibreMargins
from lustrum.audit.fibre.sampler import sample_fibre
from lustrum.audit.fibre.two_way import count_tables

__all__ = [
    "CellDistributions",
    "Fibre",
    "FibreMargins",
    "Unimodal",
    "count_tables",
    "distribution",
    "effective_size",
    "enumerate_fibre",
    "sample_fibre",
    "split_rhat",
    "unimodal",
]
