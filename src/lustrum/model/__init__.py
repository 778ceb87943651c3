"""The words of the domain: variables, queries, tables, releases, decisions. Frozen, no input or output."""

import lazy_loader

# The errors alone should not bring in numpy.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
