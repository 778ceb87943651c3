"""Linear structure: from the cells that nobody sees to the cells that are published."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
