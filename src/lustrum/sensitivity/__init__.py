"""A-priori rules: which cells of a table tell too much, before anything is protected.

Each is a frozen spec; ``rule.judge(table)`` gives a :class:`Sensitivity`: the cells, status letters,
reasons in words, and the interval that must hide each cell. Waivers and requests
come in a :class:`Background`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
