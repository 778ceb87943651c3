"""What the agency and the public may know of protected magnitudes.

The agency's report is measured against the truth and is confidential. The public report states how factors were
made, and typical relative errors by the number of variables, in coarse steps from a secret starting point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Array, Floats, Ints
from lustrum.protect.magnitudes.factors import Factors
from lustrum.protect.magnitudes.public_errors import (
    LARGEST,
    by_variables,
    errors_by_size,
    growth_by_variables,
    guesses_by_size,
    relative_errors,
)
from lustrum.protect.magnitudes.search import Ranking
from lustrum.protect.population.public import coarse_error
from lustrum.protect.population.search.layout import TablePlan

_RATE = 5.0
"""Rates of guesses are stated in steps of so many points."""


@dataclass(frozen=True)
class MeasureErrors:
    """Relative errors of one measure in per cent, over cells that are not sensitive. Confidential.

    ``guessed`` says how often contributions are guessed, see
    :func:`~lustrum.protect.magnitudes.public_errors.guesses_by_size`.
    """

    measure: str
    cells: int
    sensitive: int
    mean: float
    median: float
    total: float
    by_variables: Mapping[int, float]
    guessed: Mapping[int, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class MagnitudeReport:
    """What the agency may know: errors of every measure, against the truth."""

    measures: tuple[MeasureErrors, ...]

    def __repr__(self) -> str:
        return "MagnitudeReport(hidden)"

    def of(self, measure: str) -> MeasureErrors:
        """The errors of one measure."""
        return next(m for m in self.measures if m.measure == measure)

    def to_mapping(self) -> dict[str, Any]:
        """The report as plain values, for a confidential file."""
        return {
            "measures": [
                {
                    **vars(m),
                    "by_variables": {str(k): v for k, v in m.by_variables.items()},
                    "guessed": {str(k): list(v) for k, v in m.guessed.items()},
                }
                for m in self.measures
            ]
        }


@dataclass(frozen=True)
class PublicFactors:
    """What everybody may know: the method, its shares, and typical relative errors in per cent.

    ``errors`` are by the number of variables, ``by_size`` by the least published sum of a size class, in units
    of the last decimal. ``growth`` are typical errors of growth since the period before, in percentage points,
    by the number of variables. ``guessed`` is how often, in per cent, a plain guess of a contribution is within
    ``p`` percent, by the least protected value of a size class, and ``directed`` the same for readers who know
    its direction. ``classes`` are the variables that readers are taken to know as classes of a measure.
    """

    method: Mapping[str, Any]
    factors: Factors
    errors: Mapping[str, Mapping[int, float]]
    by_size: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    growth: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    guessed: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    directed: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def existence_public(self) -> bool:
        """Whether everybody may know that the finest cells with sums are the occupied ones."""
        return self.method.get("existence") == "public"

    def error(self, measure: str, variables: int) -> float:
        """The typical relative error of a sum by this many variables, in per cent."""
        return _of_kind(self.errors[measure], variables)

    def growth_error(self, measure: str, variables: int) -> float | None:
        """The typical error of growth by this many variables, in percentage points."""
        known = self.growth.get(measure)
        return _of_kind(known, variables) if known else None

    def to_mapping(self) -> dict[str, Any]:
        """The words as plain values, for a bundle."""
        return {
            "method": dict(self.method),
            "low": self.factors.low,
            "high": self.factors.high,
            "errors": _plain(self.errors),
            "by_size": _plain(self.by_size),
            "growth": _plain(self.growth),
            "guessed": _plain(self.guessed),
            "directed": _plain(self.directed),
            "classes": {name: list(variables) for name, variables in sorted(self.classes.items())},
        }

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> PublicFactors:
        """The words that :meth:`to_mapping` wrote."""
        try:
            return cls(
                dict(mapping["method"]),
                Factors(int(mapping["low"]), int(mapping["high"])),
                _read(mapping["errors"]),
                _read(mapping.get("by_size", {})),
                _read(mapping.get("growth", {})),
                _read(mapping.get("guessed", {})),
                _read(mapping.get("directed", {})),
                {
                    str(n): tuple(map(str, variables))
                    for n, variables in mapping.get("classes", {}).items()
                },
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError("The public words of the protected sums are damaged.") from None


def _of_kind(known: Mapping[int, float], variables: int) -> float:
    fitting = [k for k in sorted(known) if k >= variables]
    return known[fitting[0] if fitting else max(known)]


def _plain(errors: Mapping[str, Mapping[int, float]]) -> dict[str, dict[str, float]]:
    return {
        name: {str(k): v for k, v in sorted(kinds.items())}
        for name, kinds in sorted(errors.items())
    }


def _read(by_measure: Mapping[str, Mapping[str, float]]) -> dict[str, dict[int, float]]:
    return {
        str(name): {int(k): float(v) for k, v in kinds.items()}
        for name, kinds in by_measure.items()
    }


def measured(
    method: Mapping[str, Any],
    factors: Factors,
    plan: TablePlan,
    ranked_errors: Sequence[tuple[str, Ranking, Floats]],
    ratio: tuple[int, int],
    key: bytes,
    earlier: Mapping[str, str] | None = None,
    firms: Mapping[str, tuple[Ints, Ints]] | None = None,
    classes: Mapping[str, tuple[str, ...]] | None = None,
) -> tuple[PublicFactors, MagnitudeReport]:
    """Compute the errors of every measure, and coarse ones for the public.

    ``earlier`` maps a measure to the one that holds the period before, ``firms`` to the true and the protected
    value of every record, and ``classes`` to the variables that are classes of it.
    """
    share = Fraction(*ratio)
    guessed = {
        name: guesses_by_size(*values, factors, share) for name, values in (firms or {}).items()
    }
    variables = np.zeros(plan.cells, dtype=np.int64)
    for table in plan.tables:
        variables[table.places().ravel()] = len(table.levels)
    errors, public, by_size, growth = [], {}, {}, {}
    held = {name: (ranking.net, noise) for name, ranking, noise in ranked_errors}
    for name, ranking, noise in ranked_errors:
        summary = _errors(name, ranking, noise, variables, ratio)
        errors.append(replace(summary, guessed=guessed.get(name, {})))
        public[name] = by_variables(
            relative_errors(ranking.net, noise),
            ranking.net + noise != 0,
            variables,
            key,
            name,
            # Where other cells carry records, a sum can change by its whole amount.
            LARGEST if method["existence"] == "secret" else float(ceil(100 * factors.most)),
        )
        by_size[name] = errors_by_size(ranking.net, noise, key, name)
        before = held.get((earlier or {}).get(name, ""))
        if before is not None:
            growth[name] = growth_by_variables(held[name], before, variables, key, name)
    return (
        PublicFactors(
            dict(method),
            factors,
            public,
            by_size,
            growth,
            _coarse(guessed, 0, key, "guessed"),
            _coarse(guessed, 1, key, "directed"),
            dict(classes or {}),
        ),
        MagnitudeReport(tuple(errors)),
    )


def _coarse(
    rates: Mapping[str, Mapping[int, tuple[float, float]]], kind: int, key: bytes, word: str
) -> dict[str, dict[int, float]]:
    """One kind of rates in coarse steps, never below the measured one."""
    return {
        name: {
            size: min(coarse_error(both[kind], key, f"{name} {word} {size}", _RATE), 100.0)
            for size, both in sizes.items()
        }
        for name, sizes in rates.items()
    }


def _errors(
    name: str, ranking: Ranking, noise: Floats, variables: Array, ratio: tuple[int, int]
) -> MeasureErrors:
    sensitive = ranking.sensitive(ratio)
    chosen = (ranking.net != 0) & ~sensitive
    relative = 100 * np.abs(noise) / np.maximum(np.abs(ranking.net), 1)
    chosen_errors = relative[chosen]
    return MeasureErrors(
        measure=name,
        cells=int(chosen.sum()),
        sensitive=int(sensitive.sum()),
        mean=float(chosen_errors.mean()) if chosen_errors.size else 0.0,
        median=float(np.median(chosen_errors)) if chosen_errors.size else 0.0,
        total=float(relative[variables == 0].max(initial=0.0)),
        by_variables={
            int(k): float(relative[chosen & (variables == k)].mean())
            for k in np.unique(variables[chosen])
        },
    )
