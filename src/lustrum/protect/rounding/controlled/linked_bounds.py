"""Bounds of true counts for a reader of numbers whose inner cells were rounded.

All intervals follow from published numbers and public parameters alone. The sum of the intervals of its
inner cells is always a valid interval of a sum. A ``promise``, the largest error that the agency states in
advance, may only be used for a rounding that kept it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.numeric.structure import Structure
from lustrum.protect.rounding.controlled.local import Scope, sums_of, whole_base

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any


def inner_bounds(published: npt.ArrayLike, base: int, scope: Scope = "all") -> tuple[Ints, Ints]:
    """Bounds of the true count of a rounded inner cell.

    If all cells were rounded, less than one base away. If only small ones were, 0 can be anything below the
    base, the base can be 1 up to itself, and larger numbers are exact.

    >>> [ends.tolist() for ends in inner_bounds([0, 3, 6], 3)]
    [[0, 1, 4], [2, 5, 8]]
    >>> [ends.tolist() for ends in inner_bounds([0, 3, 4], 3, scope="small")]
    [[0, 1, 4], [2, 3, 4]]
    """
    whole_base(base)
    shown = np.asarray(published, dtype=np.int64)
    if scope == "all":
        return np.maximum(shown - base + 1, 0), shown + base - 1
    return np.where(shown == base, 1, shown), np.where(shown == 0, base - 1, shown)


def multiple_bounds(published: npt.ArrayLike, base: int, steps: int = 0) -> tuple[Ints, Ints]:
    """Bounds of the true count of a cell that was itself rounded to a multiple of the base.

    ``steps`` is how far beyond the neighbouring multiples cells may lie: stated in advance, and true of
    the rounding. Zeros stay zeros, so a number above 0 means a true count above 0.

    >>> [ends.tolist() for ends in multiple_bounds([0, 3, 6], 3)]
    [[0, 1, 4], [2, 5, 8]]
    """
    whole_base(base)
    if type(steps) is not int or steps < 0:
        raise InputError(f"The number of steps must be a whole number of 0 or more, not {steps!r}.")
    shown = np.asarray(published, dtype=np.int64)
    reach = base * (1 + steps) - 1
    return np.maximum(shown - reach, np.minimum(shown, 1)), shown + reach


def published_bounds(
    published: npt.ArrayLike,
    tables: Structure | Sparse,
    base: int,
    *,
    scope: Scope = "all",
    inner: npt.ArrayLike | None = None,
    promise: int | None = None,
) -> tuple[Ints, Ints]:
    """Bounds of the true values of sums of rounded inner cells, in the order of the structure.

    For a rounding that the search made; where published cells were rounded as such, see
    :func:`multiple_bounds`. Where the public sees all rounded inner cells, give them as ``inner``: the
    bounds of a sum are the sums of theirs. Otherwise a reader only knows the number of inner cells of a
    sum, and the bounds are the widest for this number; ``tables`` must then have all inner cells that could
    hold anybody, not only those that do. A ``promise`` narrows both.
    """
    whole_base(base)
    shown = np.asarray(published, dtype=np.int64).ravel()
    if inner is None:
        sizes = sums_of(np.ones(_width(tables), dtype=np.int64), tables)
        low, high = _behind(shown, sizes, base, scope)
    else:
        ends = inner_bounds(np.asarray(inner).ravel(), base, scope)
        low, high = sums_of(ends[0], tables), sums_of(ends[1], tables)
    if promise is not None:
        if type(promise) is not int or promise < base - 1:
            raise InputError(
                "The error that is promised must be a whole number of at least the base less one; "
                "a smaller one could give a rounded count away."
            )
        low, high = np.maximum(low, shown - promise), np.minimum(high, shown + promise)
    return low, high


def _width(tables: Structure | Sparse) -> int:
    return int(tables.inner if isinstance(tables, Structure) else tables.shape[1])


def _behind(shown: Ints, sizes: Ints, base: int, scope: Scope) -> tuple[Ints, Ints]:
    """Bounds of sums of this many unpublished inner cells."""
    if scope == "all":
        raised = np.minimum(sizes, shown // base)
        return shown - (base - 1) * raised, shown + (base - 1) * sizes
    # Each raised cell shows the base; all others show at most their true count.
    raised = np.where(shown % base == 0, shown // base, np.maximum(shown // base - 1, 0))
    raised = np.minimum(raised, np.where(shown == sizes * base, sizes, np.maximum(sizes - 1, 0)))
    zeros = np.where(shown > 0, np.maximum(sizes - 1, 0), sizes)
    return shown - (base - 1) * raised, shown + (base - 1) * zeros
