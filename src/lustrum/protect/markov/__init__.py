"""Markov perturbation: people move within squares; margins and means are kept (Duncan and Fienberg 1999)."""

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
