"""Bounds in closed form: formulas for the cells of a hidden cube, given its released margins.

===========================  ======================================================================
:class:`Margins`             released margins of a hidden cube, checked
:func:`applicable`           which closed form is sharp for them
:func:`closed_bounds`        sharp bounds, by formula where there is one
:func:`knowledge_bounds`     the same for knowledge that consists of margins
:func:`decomposable`         for the cliques of a chordal graph
:func:`dichotomous`          for two categories a variable and all margins of one less
:func:`reducible`            from the bounds of its parts
:func:`project`              bounds of a hidden margin
===========================  ======================================================================
"""

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
