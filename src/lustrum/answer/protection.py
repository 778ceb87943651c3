"""The public report of a bundle for readers: what was done, what stays open, how large errors are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from lustrum.protect.population.public import MARGIN_ENDS
from lustrum.public.bundle.files import Bundle


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
class StatedProtection:
    """All that the public report says, ready to be read.

    ``existence_public`` says whether everybody may know which finest cells are occupied; ``open`` is then about
    those, and all others are empty. ``proof`` is the promise of a population with a proof, of which nothing
    is certain.
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
            for k in kinds
            for own_groups in (False, True)
        ),
        largest=report.largest,
        proof=None
        if report.proof is None
        else {**report.proof, "rho": float(Fraction(report.proof["rho"]))},
    )
