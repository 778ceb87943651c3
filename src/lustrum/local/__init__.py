"""Answers and records in one process: for the agency's own machine, for notebooks and for tests."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
