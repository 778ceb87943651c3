"""Controlled tabular adjustment: sensitive cells move far enough, the others as little as possible.

==================================  ====================================================================
:class:`ControlledAdjustment`       the method for tables
:func:`adjust`                      the same on arrays, for problems without a table
:class:`Adjusted`                   an adjusted table and how good it is
==================================  ====================================================================
"""

from lustrum.protect.adjustment.adjust import Adjusted, adjust
from lustrum.protect.adjustment.method import ControlledAdjustment

__all__ = ["Adjusted", "ControlledAdjustment", "adjust"]
