"""Earlier names of :func:`~lustrum.audit.closed.closed_bounds`, which gives sharp bounds in the same time."""

from __future__ import annotations

import warnings

from lustrum.audit.bounding.compute import Bounds
from lustrum.audit.closed.choose import closed_bounds
from lustrum.audit.closed.margins import Margins


def sharp_bounds(margins: Margins) -> Bounds:
    """The bounds of :func:`closed_bounds`, with a warning."""
    text = "The shuttle is now lustrum.audit.closed.closed_bounds; call that."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return closed_bounds(margins)


shuttle = generalised = sharp_bounds
