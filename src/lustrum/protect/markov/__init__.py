"""Markov perturbation: people move within squares; margins and means are kept (Duncan and Fienberg 1999)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
