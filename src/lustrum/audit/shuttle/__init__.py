"""Bounds by the shuttle algorithm, which alternates between lower and upper bounds along sums.

=========================  ========================================================================
:func:`shuttle`            along the released sums alone (Buzzigoli and Giusti 1999)
:func:`generalised`        along the sums of all collapsed tables (Dobra 2002)
:func:`sharp_bounds`       the same with a search, sharp for whole numbers; :class:`Effort` limits it
=========================  ========================================================================
"""

from lustrum.audit.shuttle.lattice import Detail
from lustrum.audit.shuttle.search import Effort, generalised, sharp_bounds, shuttle

__all__ = ["Detail", "Effort", "generalised", "sharp_bounds", "shuttle"]
