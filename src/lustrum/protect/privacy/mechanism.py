"""Noise of differential privacy: drawn by OpenDP, and its exact channel.

No sampler is written here. OpenDP's are proven, exact on whole numbers, and fed by the operating system's
random source; they take no seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.model.channel import NEGLIGIBLE, StepChannel
from lustrum.numeric.arithmetic import exp, log
from lustrum.numeric.structure import UNBOUNDED


@dataclass(frozen=True)
class DiscreteNoiseChannel(StepChannel):
    """``P(published | true)`` of whole-number Laplace or Gaussian noise.

    Laplace: ``P(step k) = (1 - t) / (1 + t) * t**|k|`` with ``t = exp(-1 / scale)``. Gaussian: in
    proportion to ``exp(-k**2 / (2 scale**2))`` (Canonne, Kamath and Steinke 2020). Any count can lead to
    any published number, so the method alone gives no bounds.

    >>> channel = DiscreteNoiseChannel("laplace", 1.0)
    >>> round(channel.stay(5, 5), 6), round((1 - math.exp(-1)) / (1 + math.exp(-1)), 6)
    (0.462117, 0.462117)
    """

    mechanism: str
    scale: float
    clamp: bool = False

    def steps(self, true: int) -> tuple[int, Floats]:
        return -(self._chances.size // 2), self._chances

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """Every count there is."""
        shape = np.shape(published)
        return np.zeros(shape, dtype=np.int64), np.full(shape, UNBOUNDED, dtype=np.int64)

    def far(self) -> float:
        return float(self._chances[self._chances.size // 2])

    @cached_property
    def _chances(self) -> Floats:
        if self.mechanism == "laplace":
            end = math.ceil(-float(log(NEGLIGIBLE)) * self.scale) + 1
            weights = exp(-np.arange(end + 1) / self.scale)
        else:
            end = math.ceil(math.sqrt(-2 * float(log(NEGLIGIBLE))) * self.scale) + 1
            weights = exp(-0.5 * (np.arange(end + 1) / self.scale) ** 2)
        whole = np.concatenate((weights[:0:-1], weights))
        return np.asarray(whole / whole.sum())


@dataclass(frozen=True)
class Measured:
    """Noisy whole numbers and the scale of their noise."""

    values: Ints
    scale: float


def opendp() -> Any:
    """The package OpenDP; an error says how to install it if it is missing."""
    try:
        import opendp.prelude as package
    except ImportError as error:
        raise InputError(
            "Differential privacy needs the package OpenDP; install it with: "
            "pip install 'lustrum[privacy]'."
        ) from error
    package.enable_features("contrib")
    return package


def least_scale(mechanism: str, change: float, cost: float) -> float:
    """The scale of noise that hides a change at this cost, before anything is rounded up."""
    return change / cost if mechanism == "laplace" else change / math.sqrt(2 * cost)


def measure(values: Ints, mechanism: str, cells: int, records: int, cost: float) -> Measured:
    """Counts with noise, so that adding or taking ``records`` records away costs no more than ``cost``.

    Each record is counted in at most this many ``cells``: the counts then change by ``records * cells``
    in all and by ``records * sqrt(cells)`` in Euclidean distance. The cost is an epsilon for Laplace and a
    rho for Gaussian noise. OpenDP itself computes what its noise costs, rounded up, and its figure decides.
    """
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if mechanism == "laplace":
        make, metric = dp.m.make_laplace, dp.l1_distance(T="i64")
        change: float = records * cells
    else:
        make, metric = dp.m.make_gaussian, dp.l2_distance(T="f64")
        change = math.nextafter(records * math.sqrt(cells), math.inf)
    scale = least_scale(mechanism, change, cost)
    noise = make(domain, metric, scale=scale)
    while noise.map(change) > cost:
        scale *= 1 + 2.0**-50
        noise = make(domain, metric, scale=scale)
    drawn = np.array(noise(values.ravel().tolist()), dtype=np.int64)
    return Measured(drawn.reshape(values.shape), scale)
