"""Linear programs, and the solvers that answer them. Vectors and matrices, nothing of the domain.

=============================  ====================================================================
:class:`LinearProblem`         rows and columns with their bounds
:class:`Solver`                loads a problem and minimises over it, again and again
:class:`Highs`                 HiGHS kept warm from one question to the next
:class:`Substituted`           a solver that is asked about the core that equations leave
:class:`ScipyHighs`            HiGHS as scipy ships it, from scratch each time
:func:`cheapest_flow`          the cheapest flow through a network, in whole numbers
:func:`minimise_quadratic`     the least of a separable convex quadratic under equations and bounds
:func:`lower_bound`            what multipliers prove about a minimum, however they were found
:class:`Prover`                the same for one problem and many questions
=============================  ====================================================================
"""

from lustrum.solve.duality import Prover, lower_bound
from lustrum.solve.highs import Highs
from lustrum.solve.network import Network, NetworkFlow, cheapest_flow
from lustrum.solve.problem import LinearProblem, Loaded, Optimum, Outcome, Solver
from lustrum.solve.quadratic import QuadraticOptimum, QuadraticProblem, minimise_quadratic
from lustrum.solve.scipy_highs import ScipyHighs
from lustrum.solve.substitution import Core, Substituted, core_of

__all__ = [
    "Core",
    "Highs",
    "LinearProblem",
    "Loaded",
    "Network",
    "NetworkFlow",
    "Optimum",
    "Outcome",
    "Prover",
    "QuadraticOptimum",
    "QuadraticProblem",
    "ScipyHighs",
    "Solver",
    "Substituted",
    "cheapest_flow",
    "core_of",
    "lower_bound",
    "minimise_quadratic",
]
