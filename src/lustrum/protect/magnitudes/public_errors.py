"""Typical errors of protected sums that everybody may know: coarse, and each over many cells.

Every figure is a mean over at least fifty cells, rounded up to a step whose starting point the key draws; see
:mod:`lustrum.protect.population.public`. Published sums alone decide which cells go into which figure, so that
the list of figures reveals nothing else. Where a register has too few cells for any figure, the largest error
that the method allows is stated instead: the mean over a handful of cells would reveal their noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from lustrum.model.arrays import Array, Floats, Ints, Mask
from lustrum.protect.magnitudes.factors import Factors
from lustrum.protect.population.public import coarse_error

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
    now: tuple[Ints, Floats],
    before: tuple[Ints, Floats],
    variables: Array,
    key: bytes,
    name: str,
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
