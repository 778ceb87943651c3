"""Linear programs, and the solvers that answer them. Vectors and matrices, nothing of the domain.

=============================  ====================================================================
:class:`LinearProblem`         rows and columns with their bounds
:class:`Solver`                loads a problem and minimises over it, again and again
:class:`Highs`                 HiGHS kept warm from one question to the next
:class:`Substituted`           a solver that is asked about the core that equations leave
:func:`cheapest_flow`          the cheapest flow through a network, in whole numbers
:func:`minimise_quadratic`     the least of a separable convex quadratic under equations and bounds
:func:`lower_bound`            what multipliers prove about a minimum, however they were found
:class:`Prover`                the same for one problem and many questions
=============================  ====================================================================
"""

from typing import TYPE_CHECKING

from lustrum.lazy import offer
from lustrum.solve.duality import Prover, lower_bound
from lustrum.solve.highs import Highs
from lustrum.solve.problem import LinearProblem, Loaded, Optimum, Outcome, Solver
from lustrum.solve.substitution import Core, Substituted, core_of

if TYPE_CHECKING:
    from lustrum.solve.network import Network, NetworkFlow, cheapest_flow
    from lustrum.solve.quadratic import QuadraticOptimum, QuadraticProblem, minimise_quadratic

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
    "Solver",
    "Substituted",
    "cheapest_flow",
    "core_of",
    "lower_bound",
    "minimise_quadratic",
]

_LATER = {
    "network": "Network NetworkFlow cheapest_flow",
    "quadratic": "QuadraticOptimum QuadraticProblem minimise_quadratic",
}

__getattr__, __dir__ = offer(__name__, _LATER, __all__)
