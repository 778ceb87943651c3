"""Bounds in closed form: formulas for the cells of a hidden cube, given its released margins."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
