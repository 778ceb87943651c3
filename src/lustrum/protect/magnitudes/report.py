"""What the agency and the public may know of protected magnitudes.

The agency's report is measured against the truth and is confidential. The public report states how factors were
made, and typical relative errors by the number of variables, in coarse steps from a secret starting point.

Every public figure is a mean over at least fifty cells, rounded up to a step whose starting point the key
draws; see :mod:`lustrum.protect.population.public`. Published sums alone decide which cells go into which
figure, so that the list of figures reveals nothing else. Where a register has too few cells for any figure,
the largest error that the method allows is stated instead: the mean over a handful of cells would reveal their
noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Array, Floats, Ints, Mask
from lustrum.protect.magnitudes.factors import VERSION, Factors
from lustrum.protect.magnitudes.search import Ranking
from lustrum.protect.population.public import coarse_error, of_kind
from lustrum.protect.population.search.layout import TablePlan

_RATE = 5.0
"""Rates of guesses are stated in steps of so many points."""


@dataclass(frozen=True)
class MeasureErrors:
    """Relative errors of one measure in per cent, over cells that are not sensitive. Confidential.

    ``guessed`` says how often contributions are guessed, see
    :func:`~lustrum.protect.magnitudes.report.guesses_by_size`.
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
    its direction. ``classes`` are the variables that readers are taken to know as classes of a measure,
    ``losses`` the measures with values below 0: their sums err by a share of gains and losses, and not of what
    is left of both. ``version`` is that of the method.
    """

    method: Mapping[str, Any]
    factors: Factors
    errors: Mapping[str, Mapping[int, float]]
    by_size: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    growth: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    guessed: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    directed: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    losses: tuple[str, ...] = ()
    version: int = VERSION

    @property
    def existence_public(self) -> bool:
        """Whether everybody may know that the finest cells with sums are the occupied ones."""
        return self.method.get("existence") == "public"

    def error(self, measure: str, variables: int) -> float:
        """The typical relative error of a sum by this many variables, in per cent."""
        return of_kind(self.errors[measure], variables)

    def growth_error(self, measure: str, variables: int) -> float | None:
        """The typical error of growth by this many variables, in percentage points."""
        known = self.growth.get(measure)
        return of_kind(known, variables) if known else None

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
            "losses": sorted(self.losses),
            "version": self.version,
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
                tuple(map(str, mapping.get("losses", ()))),
                int(mapping.get("version", 1)),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError("The public words of the protected sums are damaged.") from None


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
    earlier: Mapping[str, str],
    firms: Mapping[str, tuple[Ints, Ints]],
    classes: Mapping[str, tuple[str, ...]],
) -> tuple[PublicFactors, MagnitudeReport]:
    """Compute the errors of every measure, and coarse ones for the public.

    ``earlier`` maps a measure to the one that holds the period before, ``firms`` to the true and the protected
    value of every record, and ``classes`` to the variables that are classes of it.
    """
    share = Fraction(*ratio)
    guessed = {name: guesses_by_size(*values, factors, share) for name, values in firms.items()}
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
        before = held.get(earlier.get(name, ""))
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
            dict(classes),
            tuple(name for name, (true, _) in firms.items() if (true < 0).any()),
        ),
        MagnitudeReport(tuple(errors)),
    )


def refuse_unusable(
    plan: TablePlan, ranked_errors: Sequence[tuple[str, Ranking, Floats]], ratio: tuple[int, int]
) -> None:
    """Refuse a measure of gains and losses that cancel, so that noise is large beside what is left of them.

    Noise is a share of every gain and loss. Where it is more than half of the sum in most of the totals by one
    variable, of those that the p% rule does not call sensitive, the sums are of no use to anybody.
    """
    few = np.zeros(plan.cells, dtype=np.bool_)
    for table in plan.tables:
        few[table.places().ravel()] |= len(table.levels) < 2
    for name, ranking, noise in ranked_errors:
        cells = few & (ranking.total > 0) & ~ranking.sensitive(ratio)
        if bool((ranking.net[cells] == ranking.total[cells]).all()):
            continue
        error = float(
            np.median(100 * np.abs(noise[cells]) / np.maximum(np.abs(ranking.net[cells]), 1))
        )
        if error > _USABLE:
            raise InputError(
                f"Gains and losses of {name!r} nearly cancel: noise that hides each of them would be "
                f"{min(error, 9999):.0f} percent of the sums by one variable, typically. Describe gains and "
                "losses as two measures, or leave it out."
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


_USABLE = 50.0
"""Sums of gains and losses may typically err by so many per cent."""
_FEWEST = 50
_TENS = np.array([float(10**power) for power in range(23)])
"""Powers of ten that are exact."""
LARGEST = 100.0
"""Errors count as this many per cent at most, as do sums where there is nothing in truth."""


def relative_errors(total: Ints, noise: Floats) -> Floats:
    """The error of every sum in per cent of the true one, which may be negative."""
    relative = np.full(noise.shape, LARGEST)
    held = total != 0
    relative[held] = np.minimum(100 * np.abs(noise[held]) / np.abs(total[held]), LARGEST)
    return relative


def by_variables(
    errors: Floats, chosen: Mask, variables: Array, key: bytes, name: str, most: float
) -> dict[int, float]:
    """Typical errors by the number of variables, never smaller for more of them.

    ``chosen`` are cells that published sums single out. Kinds of tables with few of them are joined with the
    next; ``most`` is stated where all together are too few.
    """
    kinds = [int(k) for k in np.unique(variables) if k > 0]
    joined = _joined([(k, chosen & (variables == k)) for k in kinds])
    if not joined:
        return {max(kinds, default=1): most}
    return _rising(errors, joined, key, name)


def errors_by_size(total: Ints, noise: Floats, key: bytes, name: str) -> dict[int, float]:
    """Typical relative errors in per cent by powers of ten of published sums, never smaller for smaller sums.

    A class with few cells is joined with the next smaller one, and the smallest with the one before it. Sums
    below the smallest class take its error. Nothing is stated where all cells together are few.
    """
    published = np.abs(total + noise)
    digits = np.searchsorted(_TENS, np.maximum(published, 1.0), side="right") - 1
    sizes = sorted(np.unique(digits[published > 0]).tolist(), reverse=True)
    joined = _joined([(size, (published > 0) & (digits == size)) for size in sizes])
    errors = _rising(relative_errors(total, noise), joined, key, f"{name} size")
    return {10**size: error for size, error in errors.items()}


def guesses_by_size(
    true: Ints, shown: Ints, factors: Factors, share: Fraction
) -> dict[int, tuple[float, float]]:
    """How often, in per cent, a guess of a contribution is within a share, by powers of ten of shown values.

    The first figure is that of a reader who takes one direction for all contributions, the better of the two;
    the second is that of one who knows the direction of each. Both take the number that is right for small
    shares. Sizes of few contributions are joined with the next smaller one.
    """
    p, low = float(share), float(factors.least)
    size, seen = np.abs(true), np.abs(shown)
    up = np.abs(seen * ((1 - p) / (1 + low)) - size) <= p * size
    down = np.abs(seen * ((1 + p) / (1 - low)) - size) <= p * size
    known = np.where(seen > size, up, down)
    digits = np.searchsorted(_TENS, np.maximum(seen.astype(np.float64), 1.0), side="right") - 1
    sizes = sorted(np.unique(digits[size > 0]).tolist(), reverse=True)
    joined = _joined([(one, (size > 0) & (digits == one)) for one in sizes])
    return {
        10**one: (
            100 * int(max(up[rows].sum(), down[rows].sum())) / int(rows.sum()),
            100 * int(known[rows].sum()) / int(rows.sum()),
        )
        for one, rows in joined
    }


def growth_by_variables(
    now: tuple[Ints, Floats], before: tuple[Ints, Floats], variables: Array, key: bytes, name: str
) -> dict[int, float]:
    """Typical errors of growth in percentage points, over cells that show something in both periods.

    Each period is given by its true totals and their noise. Growth from or to nothing counts as the largest
    error.
    """
    (later, noise), (earlier, old_noise) = now, before
    shown, shown_before = later + noise, earlier + old_noise
    chosen = (shown > 0) & (shown_before > 0)
    held = chosen & (later > 0) & (earlier > 0)
    points = np.full(shown.shape, LARGEST)
    shown_growth, true = shown[held] / shown_before[held], later[held] / earlier[held]
    points[held] = np.minimum(100 * np.abs(shown_growth - true), LARGEST)
    return by_variables(points, chosen, variables, key, f"{name} growth", LARGEST)


def _joined(kinds: Sequence[tuple[int, Mask]]) -> list[tuple[int, Mask]]:
    """Kinds of tables with their cells, joined until each has many; a small last one joins the one before."""
    joined: list[tuple[int, Mask]] = []
    for kind, cells in kinds:
        if joined and joined[-1][1].sum() < _FEWEST:
            joined[-1] = (kind, joined[-1][1] | cells)
        else:
            joined.append((kind, cells))
    if len(joined) > 1 and joined[-1][1].sum() < _FEWEST:
        kind, cells = joined.pop()
        joined[-1] = (kind, joined[-1][1] | cells)
    return [one for one in joined if one[1].sum() >= _FEWEST]


def _rising(
    errors: Floats, kinds: Sequence[tuple[int, Mask]], key: bytes, name: str
) -> dict[int, float]:
    """The coarse mean error of every kind, none smaller than the one before."""
    mean_errors: dict[int, float] = {}
    most = 0.0
    for kind, cells in kinds:
        most = max(most, coarse_error(float(errors[cells].mean()), key, f"{name} {kind}"))
        mean_errors[kind] = most
    return mean_errors
