"""Linear programs, and the solvers that answer them. Vectors and matrices, nothing of the domain."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
