"""From a question to an answer or a refusal, in five steps, on protected numbers alone."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
