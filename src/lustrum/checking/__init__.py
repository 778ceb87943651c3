"""Output checking for researchers: outputs judged one by one and together, and a folder for the checker."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
