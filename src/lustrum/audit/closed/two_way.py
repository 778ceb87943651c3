"""Bounds of a hidden margin from margins that share variables with it: the matrix operator."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from lustrum.audit.bounding.compute import Bounds
from lustrum.audit.closed.decomposable import decomposable_arrays, sequence
from lustrum.audit.closed.graphs import perfect_sequence
from lustrum.audit.closed.margins import Axes, Margins
from lustrum.model import InputError
from lustrum.model.arrays import Ints


def operator(left: npt.ArrayLike, right: npt.ArrayLike) -> tuple[Ints, Ints]:
    """Sharp bounds of the hidden table I+K from IJ+ and +JK, as two matrices, low and high.

    A matrix product with other operations in place of the product (Chowdhury, Duncan, Krishnan and
    Roehrig 1999, as described by Duncan, Fienberg, Krishnan, Padman and Roehrig 2001, section 4)::

        sum over j of max(0, a_ij + b_jk - n_j)  <=  n_ik  <=  sum over j of min(a_ij, b_jk)

    Given j, the two margins are the row and column sums of a two-way table, so all j can reach their bounds
    at the same time.

    >>> low, high = operator([[3, 1], [2, 4]], [[5, 0], [2, 3]])
    >>> low.tolist(), high.tolist()
    ([[3, 0], [3, 2]], [[4, 1], [4, 3]])
    """
    a, b = np.asarray(left), np.asarray(right)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise InputError(
            f"The operator takes tables I x J and J x K, not shapes {a.shape} and {b.shape}."
        )
    cube = {"I": a.shape[0], "J": a.shape[1], "K": b.shape[1]}
    hidden_bounds = project(Margins.of(cube, {"IJ": a, "JK": b}), "IK")
    low, high = (
        e.astype(np.int64).reshape(a.shape[0], b.shape[1])
        for e in (hidden_bounds.low, hidden_bounds.high)
    )
    return low, high


def project(margins: Margins, target: str | Iterable[str]) -> Bounds:
    """Bounds of a hidden margin, from decomposable released margins of any dimension.

    Variables that are neither in the hidden margin nor shared are summed out, and margins that add no
    information are dropped; neither changes the bounds. If the remaining variables outside the hidden
    margin lie in every remaining margin, the table splits into one table for each combination of their
    categories. The bounds are then the sums of the cells' bounds, and sharp; one hidden margin between two
    released ones is always of this kind. Otherwise the same sums hold but may not be sharp. The cells come
    in the order of the variables in the cube.

    >>> seen = Margins.of(
    ...     {"I": 2, "J": 2, "K": 2}, {"IJ": [[3, 1], [2, 4]], "JK": [[5, 0], [2, 3]]}
    ... )
    >>> project(seen, "IK").high.tolist(), project(seen, "I")
    ([4.0, 1.0, 4.0, 3.0], Bounds(2 cells, 2 sharp, 2 exact))
    """
    wanted = margins.axes(target)
    hidden = wanted - margins.covered
    if hidden:
        raise InputError(f"No released margin shows {margins.label(hidden)}; leave it out.")
    sequence(margins)  # raises an error if the margins are not decomposable
    relevant = _relevant(margins.generators, wanted)
    left = Margins(margins.names, margins.shape, {g: margins.margin(g) for g in relevant})
    steps = perfect_sequence(relevant)
    assert steps is not None
    low, high = decomposable_arrays(left, steps)
    summed = left.covered - wanted
    sharp = all(summed <= g for g in relevant)
    low, high = (a.sum(axis=tuple(summed), keepdims=True) for a in (low, high))
    # Margins of the hidden margin may be known, and give narrower bounds than sums that are not sharp.
    for g in relevant:
        high = np.minimum(high, margins.margin(g & wanted))
    wanted_axes = sorted(wanted)
    other = tuple(a for a in range(len(margins.names)) if a not in wanted)
    part = Margins(
        tuple(margins.names[a] for a in wanted_axes),
        tuple(margins.shape[a] for a in wanted_axes),
        {},
        margins.decimals,
        margins.whole,
    )
    return part.bounds(np.squeeze(low, axis=other), np.squeeze(high, axis=other), sharp)


def _relevant(generators: Iterable[Axes], wanted: Axes) -> tuple[Axes, ...]:
    """The relevant margins of some variables (the reduction of Graham and of Yu and Özsoyoğlu 1979)."""
    relevant = set(generators)
    while True:
        count: dict[int, int] = {}
        for generator in relevant:
            for a in generator:
                count[a] = count.get(a, 0) + 1
        smaller = {frozenset(a for a in g if a in wanted or count[a] > 1) for g in relevant}
        smaller = {g for g in smaller if not any(g < h for h in smaller)}
        if smaller == relevant:
            return tuple(sorted(relevant, key=sorted))
        relevant = smaller
