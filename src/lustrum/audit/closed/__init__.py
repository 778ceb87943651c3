"""Bounds in closed form: formulas for the cells of a hidden cube, given its released margins.

===========================  ======================================================================
:class:`Margins`             released margins of a hidden cube, checked
:func:`applicable`           which closed form is sharp for them
:func:`closed_bounds`        bounds by the best closed form
:func:`knowledge_bounds`     the same for knowledge that consists of margins
:func:`frechet`              any margins; sharp for one-way and for decomposable ones
:func:`bonferroni`           tighter from two-way margins
:func:`decomposable`         sharp, for the cliques of a chordal graph
:func:`dichotomous`          sharp, for two categories a variable and all margins of one less
:func:`reducible`            from the bounds of its parts
:func:`project`              bounds of a hidden margin; :func:`operator` for two matrices
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
    bonferroni,
    decomposable,
    dichotomous,
    frechet,
    is_decomposable,
    is_dichotomous,
    operator,
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
    "bonferroni",
    "closed_bounds",
    "decomposable",
    "dichotomous",
    "frechet",
    "is_decomposable",
    "is_dichotomous",
    "knowledge_bounds",
    "margins_of",
    "operator",
    "parts",
    "perfect_sequence",
    "project",
    "reducible",
]
