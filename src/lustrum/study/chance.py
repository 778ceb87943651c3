"""Simulated figures: their means and spreads, and how far two such runs may lie apart by chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.arithmetic import normal_quantile, student_quantile

_PAPER_SAMPLES = 1000
_ALARM = 0.001
"""How often a tolerance is exceeded by chance alone."""


@dataclass(frozen=True, eq=False)
class SampleFigures:
    """One figure per sample: its value, and the variance of a mean over draws that hides in it."""

    value: Floats
    noise: Floats
    populations: int

    @property
    def groups(self) -> Ints:
        """Which population each sample comes from."""
        return np.arange(self.value.size) % self.populations

    @property
    def mean(self) -> float:
        """Over all samples."""
        return float(self.value.mean())

    @property
    def sd(self) -> float:
        """Between samples of one population, as it would be with the paper's number of draws."""
        squares = float(((self.value - self._centres()[self.groups]) ** 2).sum())
        variance = squares / (self.value.size - self.populations)
        return float(np.sqrt(max(variance - float(self.noise.mean()), 0.0)))

    @property
    def mean_tolerance(self) -> float:
        """How far two means may lie apart: ours, and one of a single population as in the paper."""
        size, most = self.value.size, 1.0 - _ALARM / 2
        if self.populations > 1:
            between = float(self._centres().std(ddof=1))
            factor = student_quantile(most, self.populations - 1)
            return factor * between * float(np.sqrt(1.0 + 1.0 / self.populations)) + 5e-5
        spread = float(self.value.std(ddof=1))
        factor = student_quantile(most, size - 1)
        return factor * spread * float(np.sqrt(1.0 / size + 1.0 / _PAPER_SAMPLES)) + 5e-5

    @property
    def sd_tolerance(self) -> float:
        """The same for standard deviations, whose error grows with the fourth moment."""
        centred = self.value - self._centres()[self.groups]
        square = centred * centred
        mean = float(square.mean())
        kurtosis = max(3.0, float((square * square).mean()) / (mean * mean))
        # The variance of a standard deviation from one sample, to be divided by their number.
        single = mean * (kurtosis - 1.0) / 4.0
        variance = single * (1.0 / self.value.size + 1.0 / _PAPER_SAMPLES)
        if self.populations > 1:
            counts = np.bincount(self.groups, minlength=self.populations)
            squares = np.bincount(self.groups, square, self.populations)
            deviations = np.sqrt(squares / np.maximum(counts - 1, 1))
            # What the populations' own values differ by, less what they do by chance.
            variance += max(0.0, float(deviations.var(ddof=1)) - single / float(counts.mean()))
        return float(normal_quantile(1.0 - _ALARM / 2) * np.sqrt(variance)) + 5e-5

    def less(self, other: SampleFigures) -> SampleFigures:
        """The difference of two figures, sample by sample."""
        return SampleFigures(self.value - other.value, self.noise + other.noise, self.populations)

    def _centres(self) -> Floats:
        sums = np.bincount(self.groups, self.value, self.populations)
        return np.asarray(sums / np.bincount(self.groups, minlength=self.populations))
