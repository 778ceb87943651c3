"""Linear programs, and the solvers that answer them. Vectors and matrices, nothing of the domain.

=============================  ====================================================================
:class:`LinearProblem`         rows and columns with their bounds
:class:`Solver`                whoever can load a problem and minimise over it, again and again
:class:`ScipyHighs`            HiGHS as scipy ships it
:func:`lower_bound`            what multipliers prove about a minimum, whoever found them
=============================  ====================================================================
"""

from lustrum.solve.duality import lower_bound
from lustrum.solve.problem import LinearProblem, Loaded, Optimum, Outcome, Solver
from lustrum.solve.scipy_highs import ScipyHighs

__all__ = [
    "LinearProblem",
    "Loaded",
    "Optimum",
    "Outcome",
    "ScipyHighs",
    "Solver",
    "lower_bound",
]
