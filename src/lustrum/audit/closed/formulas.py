"""Bounds by formula: Fréchet, Bonferroni, decomposable and dichotomous margins, and hidden ones."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from lustrum.audit.bounding.compute import Bounds
from lustrum.audit.closed.graphs import CliqueStep, perfect_sequence
from lustrum.audit.closed.margins import Axes, Margins
from lustrum.audit.knowledge.facts import ContradictionError
from lustrum.model import InputError
from lustrum.model.arrays import Ints

# Fréchet bounds: a cell is at most each margin over it, and large margins must overlap in it.


def frechet(margins: Margins) -> Bounds:
    """Bounds of every cell of the cube from any released margins.

    From one-way margins (Fréchet 1940), for a cube of k variables::

        max(0, n_1 + ... + n_k - (k - 1) N)  <=  n  <=  min(n_1, ..., n_k)

    In general the upper bound is the least margin over the cell. For the lower bound, margins are added one
    by one, each minus its overlap with one of the margins before it. Any tree of margins gives a bound; the
    trees with the largest overlaps are tried. Sharp for decomposable margins, one-way margins among them;
    elsewhere the bounds hold but may be wide.

    >>> found = frechet(Margins.of({"A": 2, "B": 2}, {"A": [3, 4], "B": [2, 5]}))
    >>> found.low.tolist(), found.high.tolist()
    ([0.0, 1.0, 0.0, 2.0], [2.0, 3.0, 2.0, 4.0])
    """
    low, high = frechet_arrays(margins)
    sharp = perfect_sequence(margins.generators) is not None
    return margins.bounds(*margins.spread(low, high), sharp)


def frechet_arrays(margins: Margins) -> tuple[Ints, Ints]:
    """The same over the covered variables, before the bounds are extended to the cube."""
    generators = margins.generators
    high = margins.margin(generators[0])
    for generator in generators[1:]:
        high = np.minimum(high, margins.margin(generator))
    low = np.zeros_like(high)
    for start in generators:
        low = np.maximum(low, _tree_sum(margins, generators, start))
    return low, high


def _tree_sum(margins: Margins, generators: tuple[Axes, ...], start: Axes) -> Ints:
    """The sum of the margins of a tree minus their overlaps; Prim's rule takes the largest first."""
    taken, covered = [start], start
    value = margins.margin(start)
    while covered != margins.covered:
        pairs = [(g, t) for g in generators if not g <= covered for t in taken]
        new, old = max(pairs, key=lambda p: len(p[0] & p[1]))
        shared = new & old
        # Other variables of the tree are summed out, because their overlap would not be known.
        margin_axes = (new - covered) | shared
        value = value + margins.margin(margin_axes) - margins.margin(shared)
        taken.append(margin_axes)
        covered = covered | margin_axes
    return value


def bonferroni(margins: Margins) -> Bounds:
    """Bounds of every cell from the one-way and two-way margins that follow from the released ones.

    A cell holds the people who are in all of its k categories. Let ``S1`` be the sum over categories of the
    number of people outside it, and ``S2`` the sum over pairs of the number outside both. Then::

        n  <=  N - S1 + S2                                      (Bonferroni 1936)
        n  <=  N - (2 / (h + 1)) S1 + (2 / (h (h + 1))) S2      (Dawson and Sankoff 1967)
        n  >=  N - S1 + sum of pairs along a spanning tree      (Hunter 1976, Worsley 1982)

    with ``h = 1 + floor(2 S2 / S1)``, and for every cell the tree that is best for it. For three variables
    the first is Fienberg's (1999) ``N - n_i - n_j - n_k + n_ij + n_ik + n_jk``. The upper bounds need all
    two-way margins; the lower one uses those that are known. The result is never wider than Fréchet's
    bounds, and sharp where they are.

    >>> corner = Margins.of_table([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 1], [0, 2], [1, 2]])
    >>> bonferroni(corner).high.tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    low, high = bonferroni_arrays(margins)
    sharp = perfect_sequence(margins.generators) is not None
    return margins.bounds(*margins.spread(low, high), sharp)


def bonferroni_arrays(margins: Margins) -> tuple[Ints, Ints]:
    """The same over the covered variables, before the bounds are extended to the cube."""
    low, high = frechet_arrays(margins)
    axes = sorted(margins.covered)
    if len(axes) < 2:
        return low, high
    N = margins.total
    missing = {a: N - margins.margin(frozenset({a})) for a in axes}
    pairs = {}
    all_known = True
    for a, b in combinations(axes, 2):
        both = frozenset({a, b})
        # The number outside both categories. A pair that is not known counts 0: a tree with the least
        # number that must be outside both gives no bound above 0.
        if margins.knows(both):
            pairs[a, b] = missing[a] + missing[b] - N + margins.margin(both)
        else:
            all_known = False
    shape = tuple(
        margins.shape[a] if a in margins.covered else 1 for a in range(len(margins.names))
    )
    S1 = np.broadcast_to(_total(missing.values()), shape)
    low = np.maximum(low, N - S1 + _best_tree(axes, pairs, shape))
    if all_known:
        S2 = np.broadcast_to(_total(pairs.values()), shape)
        h = 1 + 2 * S2 // np.maximum(S1, 1)
        missed = -((2 * S2 - 2 * h * S1) // (h * (h + 1)))  # raised to a whole number
        high = np.minimum(
            high, N - missed
        )  # never above N - S1 + S2, which is the formula for h = 1
    return low, high


def _total(arrays: Iterable[Ints]) -> Ints:
    total: Ints = np.zeros((), dtype=np.int64)
    for array in arrays:
        total = total + array
    return total


def _best_tree(axes: list[int], pairs: dict[tuple[int, int], Ints], shape: tuple[int, ...]) -> Ints:
    """The largest sum of pairs along a spanning tree, for each cell separately (Prim 1957)."""
    index = {a: i for i, a in enumerate(axes)}
    k = len(axes)
    weight = np.zeros((k, k, *shape), dtype=np.int64)
    for (a, b), array in pairs.items():
        weight[index[a], index[b]] = weight[index[b], index[a]] = array
    weight = weight.reshape(k, k, -1)
    cells = np.arange(weight.shape[2])
    reach = weight[0].copy()
    reach[0] = -1  # inside the tree; real weights are not negative
    value = np.zeros(cells.size, dtype=np.int64)
    for _ in range(k - 1):
        new = reach.argmax(axis=0)
        value += reach[new, cells]
        inside = reach < 0
        reach = np.maximum(reach, weight[new, :, cells].T)
        reach[inside] = -1
        reach[new, cells] = -1
    return value.reshape(shape)


def is_decomposable(margins: Margins) -> bool:
    """Whether the released margins are the maximal cliques of a chordal graph."""
    return perfect_sequence(margins.generators) is not None


def decomposable(margins: Margins) -> Bounds:
    """Sharp bounds of every cell from decomposable margins (Dobra and Fienberg 2000).

    With cliques C and separators S of the graph, each separator counted as often as it occurs::

        max(0, sum of n_C - sum of n_S)  <=  n  <=  min of n_C

    Tables of whole numbers reach both ends. A variable in no margin is unrestricted.

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
            "ask for reducible bounds or for the shuttle."
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
