"""The part that holds the records and the secret: it counts, protects, and hands out protected numbers.

Nothing here is imported by the part that answers; a contract in ``pyproject.toml`` holds that. A server runs
it in a process of its own, see :mod:`lustrum.answer.separate_process`; the command line of the agency and
notebooks use :func:`lustrum.local.local_service`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
