"""Bounds in closed form: formulas for the cells of a hidden cube, given its released margins."""

from lustrum.audit.closed.choose import (
    ClosedForm,
    FormulaChoice,
    applicable,
    closed_bounds,
    knowledge_bounds,
    margins_of,
    reducible,
)
from lustrum.audit.closed.formulas import (
    decomposable,
    dichotomous,
    is_decomposable,
    is_dichotomous,
    project,
)
from lustrum.audit.closed.graphs import CliqueStep, IrreduciblePart, parts, perfect_sequence
from lustrum.audit.closed.margins import Margins

__all__ = [
    "CliqueStep",
    "ClosedForm",
    "FormulaChoice",
    "IrreduciblePart",
    "Margins",
    "applicable",
    "closed_bounds",
    "decomposable",
    "dichotomous",
    "is_decomposable",
    "is_dichotomous",
    "knowledge_bounds",
    "margins_of",
    "parts",
    "perfect_sequence",
    "project",
    "reducible",
]
