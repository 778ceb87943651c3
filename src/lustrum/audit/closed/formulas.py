"""Bounds by formula: of decomposable and dichotomous margins, and of hidden ones."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np

from lustrum.audit.bounding.compute import Bounds
from lustrum.audit.closed.graphs import CliqueStep, perfect_sequence
from lustrum.audit.closed.margins import Axes, Margins
from lustrum.audit.knowledge.facts import ContradictionError
from lustrum.model import InputError
from lustrum.model.arrays import Ints


def is_decomposable(margins: Margins) -> bool:
    """Whether the released margins are the maximal cliques of a chordal graph."""
    return perfect_sequence(margins.generators) is not None


def decomposable(margins: Margins) -> Bounds:
    """Sharp bounds of every cell from decomposable margins (Dobra and Fienberg 2000).

    With cliques C and separators S of the graph, each separator counted as often as it occurs::

        max(0, sum of n_C - sum of n_S)  <=  n  <=  min of n_C

    Tables of whole numbers reach both ends. A variable in no margin is unrestricted. One-way margins give the
    bounds of Fréchet (1940).

    >>> seen = Margins.of(
    ...     {"I": 2, "J": 2, "K": 2}, {"IJ": [[3, 1], [2, 4]], "JK": [[5, 0], [2, 3]]}
    ... )
    >>> found = decomposable(seen)
    >>> found.low.astype(int).tolist(), found.high.astype(int).tolist()
    ([3, 0, 0, 0, 2, 0, 1, 2], [3, 0, 1, 1, 2, 0, 2, 3])
    """
    low, high = decomposable_arrays(margins, sequence(margins))
    return margins.bounds(*margins.spread(low, high), True)


def decomposable_arrays(margins: Margins, steps: tuple[CliqueStep, ...]) -> tuple[Ints, Ints]:
    """The same over the covered variables, before the bounds are extended to the cube."""
    low = high = margins.margin(steps[0].clique)
    for step in steps[1:]:
        clique = margins.margin(step.clique)
        low = low + clique - margins.margin(step.separator)
        high = np.minimum(high, clique)
    return np.maximum(low, 0), high


def sequence(margins: Margins) -> tuple[CliqueStep, ...]:
    """The cliques in a perfect order; raises an error that names an alternative if there is none."""
    steps = perfect_sequence(margins.generators)
    if steps is None:
        shown = ", ".join(margins.label(g) for g in margins.generators)
        raise InputError(
            f"The margins {shown} are not decomposable, so this closed form does not apply; "
            "ask for closed_bounds."
        )
    return steps


def is_dichotomous(margins: Margins) -> bool:
    """Whether every variable has two categories and all margins without one variable are released.

    Variables with one category are ignored.
    """
    wide = frozenset(a for a, size in enumerate(margins.shape) if size > 1)
    if not wide or any(margins.shape[a] != 2 for a in wide):
        return False
    return all(margins.knows(wide - {a}) for a in wide)


def dichotomous(margins: Margins) -> Bounds:
    """Sharp bounds of every cell of a 2 x 2 x ... x 2 table from all margins over one variable.

    Such margins leave a single unknown. Let x be the first cell and ``s`` the number of categories in which
    a cell differs from it::

        n = c + (-1)**s x,    so  max over even s of (-c)  <=  x  <=  min over odd s of c

    where the constants c follow from the margins, one flip at a time. These are the bounds that
    Fienberg (1999) gives for 2 x 2 x 2 and Dobra and Fienberg (2000) for any k.

    >>> cube = Margins.of_table([[[1, 2], [3, 0]], [[2, 2], [0, 4]]], [[0, 1], [0, 2], [1, 2]])
    >>> dichotomous(cube).low.astype(int).tolist(), dichotomous(cube).high.astype(int).tolist()
    ([1, 0, 1, 0, 0, 2, 0, 2], [3, 2, 3, 2, 2, 4, 2, 4])
    """
    if not is_dichotomous(margins):
        raise InputError(
            "This closed form needs variables of two categories and all margins without one of them."
        )
    wide = [a for a, size in enumerate(margins.shape) if size > 1]
    constant = np.zeros(margins.shape, dtype=np.int64)
    sign = np.ones(margins.shape, dtype=np.int64)
    for digits in product((0, 1), repeat=len(wide)):
        if not any(digits):
            continue
        flipped = digits.index(1)
        cell = [0] * len(margins.shape)
        for axis, digit in zip(wide, digits, strict=True):
            cell[axis] = digit
        before = list(cell)
        before[wide[flipped]] = 0
        both = margins.margin(frozenset(wide) - {wide[flipped]})
        constant[tuple(cell)] = both[tuple(before)] - constant[tuple(before)]
        sign[tuple(cell)] = -sign[tuple(before)]
    least = int((-constant[sign > 0]).max())
    most = int(constant[sign < 0].min())
    if least > most:
        raise ContradictionError("The margins agree in pairs, but no table has all of them.")
    ends = constant + sign * least, constant + sign * most
    return margins.bounds(np.minimum(*ends), np.maximum(*ends), True)


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
