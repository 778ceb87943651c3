"""Stochastic perturbation by a transition matrix, and the design and test of such matrices.

- :class:`StochasticPerturbation` is the method; :func:`perturb_by_words` draws from a matrix by uniform
  words.
- :class:`PerturbationDesign` finds the matrix of largest entropy for a variance and a largest change.
- :func:`differencing_risk` finds which parts and totals drawn by a matrix disclose a count.
- :func:`calibrated` makes a matrix keep the distribution of counts.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
