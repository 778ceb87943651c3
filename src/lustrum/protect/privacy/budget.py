"""A privacy budget: what releases of one dataset may cost together, and what they have cost.

Costs add up (sequential composition): of pure differential privacy in epsilon (Dwork, McSherry, Nissim and
Smith 2006), of zero-concentrated differential privacy in rho (Bun and Steinke 2016). A mechanism with
epsilon costs ``epsilon**2 / 2`` of a rho budget (Bun and Steinke 2016, Proposition 1.4).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Floats
from lustrum.numeric.arithmetic import exp, log, log1p, normal_cdf, normal_quantile

_GRID, _FINER = 400, 6


class BudgetSpentError(InputError):
    """A release costs more than the rest of the budget."""


@dataclass(frozen=True)
class Cost:
    """What one release costs: epsilon of a pure mechanism, or rho of a concentrated one."""

    epsilon: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        given = [c for c in (self.epsilon, self.rho) if c is not None]
        if len(given) != 1 or not 0 < given[0] < math.inf:
            raise InputError("A privacy cost is an epsilon or a rho, one of the two and above 0.")


class Budget:
    """A limit in epsilon or in rho, and a ledger of costs; it refuses costs beyond the limit.

    Sums are kept as exact fractions of the decimals that were written, so that ten times 0.1 is 1. The
    ledger holds labels and costs, nothing of the data, and may be public.

    >>> budget = Budget(epsilon=1.0)
    >>> budget.spend(Cost(epsilon=0.75), "area x age")
    >>> budget, budget.left
    (Budget(epsilon 1, spent 0.75 on 1 release), 0.25)
    """

    def __init__(self, *, epsilon: float | None = None, rho: float | None = None) -> None:
        limit = Cost(epsilon, rho)
        self.unit = "epsilon" if limit.epsilon is not None else "rho"
        self._limit = _exact(limit.epsilon if limit.epsilon is not None else limit.rho)
        self._entries: list[tuple[str, Fraction]] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        count = len(self._entries)
        releases = "1 release" if count == 1 else f"{count} releases"
        return f"Budget({self.unit} {self.limit:g}, spent {self.spent:g} on {releases})"

    @property
    def limit(self) -> float:
        return float(self._limit)

    @property
    def spent(self) -> float:
        return float(sum((c for _, c in self._entries), Fraction(0)))

    @property
    def left(self) -> float:
        return float(self._limit - sum((c for _, c in self._entries), Fraction(0)))

    @property
    def entries(self) -> tuple[tuple[str, float], ...]:
        return tuple((label, float(cost)) for label, cost in self._entries)

    def price(self, cost: Cost) -> float:
        return float(self._price(cost))

    def spend(self, cost: Cost, label: str) -> None:
        """Enter a cost, or refuse it; call this before the noise is drawn."""
        price = self._price(cost)
        with self._lock:
            spent = sum((c for _, c in self._entries), Fraction(0))
            if spent + price > self._limit:
                raise BudgetSpentError(
                    f"The release costs {self.unit} {float(price):g}, and "
                    f"{float(self._limit - spent):g} of {self.limit:g} is left."
                )
            self._entries.append((label, price))

    def to_mapping(self) -> dict[str, Any]:
        entries = [{"label": label, "cost": str(cost)} for label, cost in self._entries]
        return {self.unit: str(self._limit), "entries": entries}

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Budget:
        """A budget with its ledger as it was kept."""
        unit = "epsilon" if "epsilon" in mapping else "rho"
        limit = Fraction(mapping[unit])
        budget = cls(**{unit: float(limit)})
        budget._limit = limit
        budget._entries = [(str(e["label"]), Fraction(e["cost"])) for e in mapping["entries"]]
        return budget

    def _price(self, cost: Cost) -> Fraction:
        if self.unit == "epsilon":
            if cost.epsilon is None:
                raise InputError(
                    "A budget in epsilon pays for pure mechanisms only; Gaussian noise needs a "
                    "budget in rho."
                )
            return _exact(cost.epsilon)
        return _exact(cost.rho) if cost.rho is not None else _exact(cost.epsilon) ** 2 / 2


def _exact(number: float | None) -> Fraction:
    return Fraction(repr(float(number or 0)))


def epsilon_of_rho(rho: float, delta: float) -> float:
    """The least epsilon that rho-zCDP is known to give with a delta, from the same bound.

    >>> round(epsilon_of_rho(0.1, 1e-6), 3), round(0.1 + 2 * (0.1 * math.log(1e6)) ** 0.5, 3)
    (2.142, 2.451)
    """
    _check_delta(delta)

    small = float(log(delta))

    def epsilon(a: Floats) -> Floats:
        return np.asarray(a * rho + log1p(-1 / a) - (small + log(a)) / (a - 1))

    return max(0.0, _least(epsilon))


def power_of_rho(rho: float, false_alarms: float = 0.01) -> float:
    """How often the best test of one person's record is right that is wrong so often, at most.

    Behind Gaussian noise that costs rho, neighbours are two normal distributions the root of twice rho apart.

    >>> [round(100 * power_of_rho(rho)) for rho in (0.5, 2.56, 5.12)]
    [9, 47, 81]
    """
    return float(normal_cdf(math.sqrt(2 * rho) - normal_quantile(1 - false_alarms)))


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho that still gives (epsilon, delta)-differential privacy, from below."""
    _check_delta(delta)
    if not 0 < epsilon < math.inf:
        raise InputError(f"An epsilon is above 0, not {epsilon!r}.")
    low, high = 0.0, epsilon + 1.0
    while epsilon_of_rho(high, delta) < epsilon:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if epsilon_of_rho(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def _least(function: Callable[[Floats], Floats]) -> float:
    """The least value over orders above 1: a grid of their logarithms, and finer ones around the best."""
    low, high = -14.0, 14.0
    least = math.inf
    for _ in range(_FINER):
        logs = low + (high - low) * (np.arange(_GRID + 1) / _GRID)
        bounds = function(1 + exp(logs))
        at = int(bounds.argmin())
        # Any order gives a valid bound, so the smallest one found is valid.
        least = min(least, float(bounds[at]))
        low, high = float(logs[max(at - 1, 0)]), float(logs[min(at + 1, _GRID)])
    return least


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InputError(f"A delta lies between 0 and 1, not at {delta!r}.")
