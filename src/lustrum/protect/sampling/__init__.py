"""Sampling: only some people are counted, and everybody knows how they were drawn."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
