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

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
