"""ACRO's names over :class:`lustrum.Session`: ``from lustrum.acro import ACRO``, and scripts run as they are.

Names and meanings are those of its public documentation. Beyond it, suppression hides what would give a hidden
cell away, margins are true ones, and all outputs of a session are audited together.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
