"""Protection methods, one a file or a package; each turns a table into a release, or records into safer ones.

Methods are named in policies and loaded by name; those below are the ones most often called from Python.

==========================================  ========================================================
:class:`RandomRounding`                     unbiased random rounding, keyed by records
:class:`ControlledRounding`                 additive rounding, nearest or unbiased, one table or several
:class:`CellKey`                            perturbation by lookup table and record keys
:class:`StochasticPerturbation`             perturbation by any transition matrix
:class:`ControlledAdjustment`               sensitive cells moved away, everything adds up
:class:`RecordSwapping`                     households trade places before anything is counted
:mod:`~lustrum.protect.additive.restore`             a perturbed table fitted to its margins again
==========================================  ========================================================
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from lustrum.protect.method import Method, RecordMethod, Stage
from lustrum.protect.rounding.random import RandomRounding, RoundingChannel

if TYPE_CHECKING:
    from lustrum.protect.adjustment import ControlledAdjustment
    from lustrum.protect.cell_key import CellKey
    from lustrum.protect.perturbation.spec import StochasticPerturbation
    from lustrum.protect.rounding.controlled.method import ControlledRounding
    from lustrum.protect.swapping import RecordSwapping

__all__ = [
    "CellKey",
    "ControlledAdjustment",
    "ControlledRounding",
    "Method",
    "RandomRounding",
    "RecordMethod",
    "RecordSwapping",
    "RoundingChannel",
    "Stage",
    "StochasticPerturbation",
]

_PLACES = {
    "CellKey": "cell_key",
    "ControlledAdjustment": "adjustment",
    "ControlledRounding": "rounding.controlled.method",
    "RecordSwapping": "swapping",
    "StochasticPerturbation": "perturbation.spec",
}


def __getattr__(name: str) -> object:
    """Methods are imported when they are first used: some bring a solver or a compiler along."""
    if name in _PLACES:
        return getattr(importlib.import_module(f"lustrum.protect.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'lustrum.protect' has no attribute {name!r}")
