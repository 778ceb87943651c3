"""Risk measures, one a file: pure functions on arrays and small frozen specs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
