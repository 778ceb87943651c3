"""Typical errors of protected sums that everybody may know: coarse, and each over many cells.

Every figure is a mean over at least fifty cells, rounded up to a step whose beginning the key draws; see
:mod:`lustrum.protect.population.public`. Classes of size are those of published sums, so that what is in a
class is public.
"""

from __future__ import annotations

import numpy as np

from lustrum.arrays import Array, Floats, Ints, Mask
from lustrum.protect.population.public import coarse_error

__all__ = ["by_variables", "errors_by_size", "growth_by_variables"]

_FEWEST = 50
_LARGEST = 100.0


def by_variables(
    errors: Floats, chosen: Mask, variables: Array, key: bytes, name: str
) -> dict[int, float]:
    """Typical errors by the number of variables, never smaller for more of them."""
    found: dict[int, float] = {}
    most, waiting = 0.0, np.zeros(variables.size, dtype=np.bool_)
    kinds = [int(k) for k in np.unique(variables) if k > 0]
    for kind in kinds:
        waiting |= chosen & (variables == kind)
        if waiting.sum() < _FEWEST and kind < kinds[-1]:
            continue
        own = float(errors[waiting].mean()) if waiting.any() else 0.0
        most = max(most, coarse_error(own, key, f"{name} {kind}"))
        found[kind] = most
        waiting[:] = False
    return found


def errors_by_size(total: Ints, noise: Floats, key: bytes, name: str) -> dict[int, float]:
    """Typical relative errors in per cent by powers of ten of published sums, never smaller for smaller sums.

    A class with few cells is joined with the next smaller one. Sums below the smallest class take its error.
    """
    published = total + noise
    held = (total > 0) & (published > 0)
    relative = np.minimum(100 * np.abs(noise[held]) / total[held], _LARGEST)
    digits = np.floor(np.log10(np.maximum(published[held], 1.0)) + 1e-12).astype(np.int64)
    found: dict[int, float] = {}
    most, waiting = 0.0, np.zeros(digits.size, dtype=np.bool_)
    for size in sorted(np.unique(digits).tolist(), reverse=True):
        waiting |= digits == size
        if waiting.sum() < _FEWEST:
            continue
        most = max(most, coarse_error(float(relative[waiting].mean()), key, f"{name} size {size}"))
        found[10**size] = most
        waiting[:] = False
    return found


def growth_by_variables(
    now: tuple[Ints, Floats],
    before: tuple[Ints, Floats],
    variables: Array,
    key: bytes,
    name: str,
) -> dict[int, float]:
    """Typical errors of growth in percentage points, over cells that hold something in both periods.

    Each period is given by its true totals and their noise.
    """
    (later, noise), (earlier, old_noise) = now, before
    shown, shown_before = later + noise, earlier + old_noise
    held = (later > 0) & (earlier > 0) & (shown_before > 0)
    true = later / np.maximum(earlier, 1)
    made = shown / np.where(held, shown_before, 1.0)
    points = np.minimum(100 * np.abs(made - true), _LARGEST)
    return by_variables(points, held, variables, key, f"{name} growth")
