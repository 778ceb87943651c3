"""How probable each value of a hidden cell is, from all tables of a fibre or from a sample of them.

A fibre is the set of all tables of whole numbers that fit what is known.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
