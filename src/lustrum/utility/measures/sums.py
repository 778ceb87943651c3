"""What a table of protected sums is still worth: errors by size, and growth between two periods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.utility.compare import as_pair


@dataclass(frozen=True)
class SizeErrors:
    """Relative errors of the cells from ``least`` up to the next class: how many, mean and largest."""

    least: float
    cells: int
    mean: float
    largest: float


def relative_errors_by_size(
    original: npt.ArrayLike, published: npt.ArrayLike, edges: Sequence[float]
) -> tuple[SizeErrors, ...]:
    """``|F - G| / |F|`` by classes of ``|F|`` that begin at the edges; cells below the first edge are left out.

    >>> relative_errors_by_size([100, 10, 1000], [110, 12, 1001], edges=[1, 100])[1].mean
    0.0505
    """
    if list(edges) != sorted(set(edges)) or not len(edges) or edges[0] <= 0:
        raise InputError("The edges of size classes must rise and begin above 0.")
    F, G = as_pair(original, published)
    size = np.abs(F)
    size_errors = []
    for least, most in zip(edges, [*edges[1:], np.inf], strict=True):
        chosen = (size >= least) & (size < most)
        errors = np.abs(F - G)[chosen] / size[chosen]
        size_errors.append(
            SizeErrors(
                float(least),
                int(chosen.sum()),
                round(float(errors.mean()), 12) if errors.size else 0.0,
                float(errors.max(initial=0.0)),
            )
        )
    return tuple(size_errors)


@dataclass(frozen=True)
class GrowthErrors:
    """How far growth is off, in percentage points, and how often its sign is right."""

    cells: int
    mean: float
    median: float
    sign_kept: float


def growth_errors(
    now: npt.ArrayLike,
    before: npt.ArrayLike,
    shown_now: npt.ArrayLike,
    shown_before: npt.ArrayLike,
) -> GrowthErrors:
    """Compare growth of published numbers with true growth, over cells that had something in both.

    >>> growth_errors([110, 50], [100, 50], [121, 55], [110, 50])
    GrowthErrors(cells=2, mean=5.0, median=5.0, sign_kept=0.5)
    """
    F, G = as_pair(now, shown_now)
    earlier, shown = as_pair(before, shown_before)
    if F.shape != earlier.shape:
        raise InputError("The two periods must have the same cells.")
    held = (earlier > 0) & (shown > 0)
    true = 100 * (F[held] / earlier[held] - 1)
    published_growth = 100 * (G[held] / shown[held] - 1)
    off = np.round(np.abs(published_growth - true), 9)
    same_sign = np.sign(np.round(published_growth, 9)) == np.sign(np.round(true, 9))
    if not off.size:
        return GrowthErrors(0, 0.0, 0.0, 1.0)
    return GrowthErrors(
        int(off.size), float(off.mean()), float(np.median(off)), float(same_sign.mean())
    )
