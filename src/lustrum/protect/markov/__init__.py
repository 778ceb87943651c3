"""Markov perturbation: people move within squares; margins and means are kept (Duncan and Fienberg 1999).

======================================  ===========================================================
:class:`MarkovPerturbation`             the method
:class:`Moves`                          the boxes that keep given margins, in any number of dimensions
:func:`perturb_boxes`                   the perturbation of a plain array
:class:`StationarySquare`               the exact channel of one cell in one square
:func:`simulated_channel`               the simulated channel of a table, for the agency only
======================================  ===========================================================
"""

from lustrum.protect.markov.spec import (
    MarkovPerturbation,
    Moves,
    StationarySquare,
    perturb_boxes,
    simulated_channel,
)

__all__ = [
    "MarkovPerturbation",
    "Moves",
    "StationarySquare",
    "perturb_boxes",
    "simulated_channel",
]
