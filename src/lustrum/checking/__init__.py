"""Output checking for researchers: outputs judged one by one and together, and a folder for the checker.

======================  ==========================================================================
:class:`Session`        a researcher's outputs, checked as they are made
:class:`OutputRules`    what a safe room asks of each of them
:class:`JointAudit`     which groups of few people all of them give away together
:class:`CheckerFolder`  a finalised session as its checker reads it
======================  ==========================================================================
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
