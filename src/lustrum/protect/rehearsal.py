"""Noise from an ordinary generator: for studies and for numbers that are public anyway, never for records.

Such a generator can repeat its noise, which a study needs and a release must prevent. Nothing that measures
records can import this.
"""

from __future__ import annotations

import numpy as np

from lustrum.model.arrays import Ints
from lustrum.model.channel import StepChannel


def rehearsed_noise(channel: StepChannel, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
    """Steps of a channel whose steps are the same from every count."""
    first, chances = channel.steps(0)
    ends = np.cumsum(chances)
    steps = np.searchsorted(ends, rng.random(shape) * ends[-1], side="right")
    return np.asarray(first + np.minimum(steps, chances.size - 1), dtype=np.int64)
