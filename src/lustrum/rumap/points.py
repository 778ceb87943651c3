"""Draws and points: one measured draw of a method, and what all its draws say together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lustrum.model.arrays import Floats
from lustrum.numeric.arithmetic import circle, expm1, log, student_quantile

ORIGINAL, NOTHING = "original data", "no data"
CORNERS = (NOTHING, ORIGINAL)
"""The two ends of every map."""

LEVEL = 0.95
"""The probability with which a confidence region holds the expected risk and utility."""


@dataclass(frozen=True)
class Draw:
    """The figures of one table under one draw of a method; ``note`` says why one is missing."""

    table: str
    method: int
    replication: int
    figures: Mapping[str, float]
    note: str = ""


@dataclass(frozen=True, eq=False)
class Point:
    """One method on one table: means over its draws, and how sure they are.

    The confidence region is the ellipse of Hotelling for the pair of means, and ``risk_range`` and
    ``utility_range`` are the intervals for one mean alone, all at 95 per cent. With one draw, as for a method
    without chance, they are the point itself.
    """

    table: str
    label: str
    family: str
    method: Mapping[str, Any]
    risk: float
    utility: float
    figures: Mapping[str, float]
    draws: int
    errors: tuple[float, float] = (0.0, 0.0)
    correlation: float = 0.0
    note: str = ""
    index: int = -1

    @property
    def is_corner(self) -> bool:
        return self.family in CORNERS

    @property
    def risk_range(self) -> tuple[float, float]:
        return _range(self.risk, self.errors[0], self.draws)

    @property
    def utility_range(self) -> tuple[float, float]:
        return _range(self.utility, self.errors[1], self.draws)

    def region(self, corners: int = 32) -> list[tuple[float, float]]:
        """The outline of the confidence region as pairs of utility and risk."""
        if self.draws < 3 or not all(e > 0 for e in self.errors):
            return [(self.utility, self.risk)]
        n = self.draws
        # The quantile of F with 2 and n - 2 degrees of freedom has a closed form.
        quantile = (n - 2) / 2 * expm1(-2 / (n - 2) * log(1.0 - LEVEL))
        size = np.sqrt(2 * (n - 1) / (n - 2) * quantile)
        rho = float(np.clip(self.correlation, -1.0, 1.0))
        first, sine = circle(corners)
        second = rho * first + np.sqrt(1 - rho * rho) * sine
        u = self.utility + size * self.errors[1] * first
        r = self.risk + size * self.errors[0] * second
        return list(zip(u.tolist(), r.tolist(), strict=True))

    def row(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "method": self.family,
            "label": self.label,
            "parameters": json.dumps(
                {k: v for k, v in self.method.items() if k != "method"}, default=str
            ),
            "risk": self.risk,
            "utility": self.utility,
            "risk_low": self.risk_range[0],
            "risk_high": self.risk_range[1],
            "utility_low": self.utility_range[0],
            "utility_high": self.utility_range[1],
            "draws": self.draws,
            "corner": self.is_corner,
            "note": self.note,
            **self.figures,
        }


class MapLike(Protocol):
    """What a chart or a report asks of a map."""

    @property
    def points(self) -> tuple[Point, ...]: ...

    @property
    def tables(self) -> tuple[str, ...]: ...

    @property
    def risk(self) -> str: ...

    @property
    def utility(self) -> str: ...

    @property
    def sign(self) -> float:
        """1 where a higher utility is better, -1 where a lower one is."""
        ...

    def of(self, table: str | None = None) -> tuple[Point, ...]: ...

    def dominators(self, table: str | None = None) -> list[int]:
        """For each point of a table the place of one that dominates it."""
        ...


def point_of(
    draws: Sequence[Draw],
    label: str,
    family: str,
    method: Mapping[str, Any],
    risk: str,
    utility: str,
) -> Point:
    columns = list(draws[0].figures)
    values = np.array([[d.figures[c] for c in columns] for d in draws], dtype=np.float64)
    mean = values.mean(axis=0)
    pair = values[:, [columns.index(risk), columns.index(utility)]]
    errors, correlation = (0.0, 0.0), 0.0
    if len(draws) > 1 and np.isfinite(pair).all():
        spread = pair.std(axis=0, ddof=1)
        error = spread / np.sqrt(len(draws))
        errors = float(error[0]), float(error[1])
        if (spread > 0).all():
            correlation = _correlation(pair[:, 0], pair[:, 1])
    return Point(
        table=draws[0].table,
        label=label,
        family=family,
        method=method,
        risk=float(mean[columns.index(risk)]),
        utility=float(mean[columns.index(utility)]),
        figures=dict(zip(columns, mean.tolist(), strict=True)),
        draws=len(draws),
        errors=errors,
        correlation=correlation,
        note=next((d.note for d in draws if d.note), ""),
        index=draws[0].method,
    )


def compared(figure: float) -> float:
    """A figure as choices compare it: to nine digits, far above the error of a sum.

    Figures that are equal but for the order of their sums are then equal, and the order of methods decides.

    >>> compared(0.1 + 0.2) == compared(0.3), compared(0.3000001) == compared(0.3)
    (True, False)
    """
    return float(f"{figure:.9g}")


def corner(table: str, name: str, figures: Mapping[str, float], risk: str, utility: str) -> Point:
    """One of the two ends of a map."""
    return Point(table, name, name, {}, figures[risk], figures[utility], dict(figures), 1)


def _range(mean: float, error: float, draws: int) -> tuple[float, float]:
    if draws < 2:
        return mean, mean
    reach = student_quantile((1 + LEVEL) / 2, draws - 1) * error
    return mean - reach, mean + reach


def _correlation(first: Floats, second: Floats) -> float:
    a, b = first - first.mean(), second - second.mean()
    correlation = float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
    return min(1.0, max(-1.0, correlation))
