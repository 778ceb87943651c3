"""The public report of a bundle for readers: what was done, what stays open, how large errors are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from lustrum.protect.population.public import MARGIN_ENDS
from lustrum.protect.privacy import epsilon_of_rho, power_of_rho
from lustrum.public.bundle.files import Bundle

_USUAL_RHO = (0.5, 2.56, 5.12)


@dataclass(frozen=True)
class StillOpen:
    """What a number of a finest cell leaves open."""

    shown: int
    low: int
    high: int


@dataclass(frozen=True)
class TypicalError:
    """The typical error of a count by this many variables, plain and with own groups."""

    variables: int
    error: float
    with_own_groups: float


@dataclass(frozen=True)
class StatedMargins:
    """Margins of error of counts by this many variables, by size of the number, as ``MARGIN_ENDS`` has them."""

    variables: int
    own_groups: bool
    margins: tuple[int, ...]


@dataclass(frozen=True)
class KnownTotal:
    """An exact total that is public elsewhere, with the categories that it is of."""

    variables: tuple[str, ...]
    labels: tuple[str, ...]
    total: int


@dataclass(frozen=True)
class MeaningOfRho:
    """What a rho means for one person: the power of the best test at 1 % false alarms, and the epsilon."""

    rho: float
    power: float
    epsilon: float


@dataclass(frozen=True)
class StatedProtection:
    """All that the public report says, ready to be read.

    ``existence_public`` says whether everybody may know which finest cells are occupied; ``open`` is then about
    those, and all others are empty. ``proof`` is the promise of a population with a proof, of which nothing
    is certain; ``meaning`` says what its rho means, beside others. Its cells have margins of their own.
    """

    method: dict[str, Any]
    changed: float
    open: tuple[StillOpen, ...]
    errors: tuple[TypicalError, ...]
    known: tuple[KnownTotal, ...]
    digest: str
    existence_public: bool = False
    margins: tuple[StatedMargins, ...] = ()
    margin_ends: tuple[int, ...] = MARGIN_ENDS
    largest: int | None = None
    proof: Mapping[str, Any] | None = None
    meaning: tuple[MeaningOfRho, ...] = ()
    cells_have_margins: bool = False


def protection_of(bundle: Bundle) -> StatedProtection:
    """The public report of a bundle."""
    report = bundle.report
    base = report.support.base
    shown = np.arange(0, 4 * base, base)
    low, high = report.support.bounds(shown)
    public = bundle.sums is not None and bundle.sums.public.existence_public
    low = np.maximum(low, 1) if public else low
    known = []
    for totals in report.known:
        axes = totals.axes(bundle.dataset)
        variables = tuple(bundle.dataset.variable(name).label for name, _ in axes)
        cells = product(*(categories for _, categories in axes))
        for cell, total in zip(cells, totals.values, strict=True):
            known.append(KnownTotal(variables, tuple(c.label for c in cell), total))
    kinds = sorted({*report.errors, *report.group_errors})
    return StatedProtection(
        method=dict(report.method),
        changed=report.changed,
        open=tuple(
            StillOpen(int(s), int(a), int(b)) for s, a, b in zip(shown, low, high, strict=True)
        )
        if report.support.certain
        else (),
        errors=tuple(
            TypicalError(k, report.error(k), report.error(k, own_groups=True)) for k in kinds
        ),
        known=tuple(known),
        digest=bundle.digest,
        existence_public=public,
        margins=tuple(
            StatedMargins(
                k,
                own_groups,
                tuple(
                    report.margin(k, own_groups=own_groups, shown=size)
                    for size in (0, *MARGIN_ENDS)
                ),
            )
            for k in (kinds if report.noise is None else sorted(report.margins))
            for own_groups in ((False, True) if report.noise is None else (False,))
        ),
        largest=report.largest,
        proof=None
        if report.proof is None
        else {**report.proof, "rho": float(Fraction(report.proof["rho"]))},
        cells_have_margins=report.noise is not None,
        meaning=() if report.proof is None else tuple(_meaning_of(report.proof)),
    )


def _meaning_of(proof: Mapping[str, Any]) -> Iterator[MeaningOfRho]:
    """Of the rho that was spent, beside the usual ones."""
    delta = float(proof["delta"])
    for rho in sorted({*_USUAL_RHO, float(Fraction(proof["rho"]))}):
        yield MeaningOfRho(rho, power_of_rho(rho), round(epsilon_of_rho(rho, delta), 1))
