"""Bounds in closed form: formulas for the cells of a hidden cube, given its released margins.

===========================  ======================================================================
:func:`knowledge_bounds`     sharp bounds by formula, where knowledge consists of margins that have one
:func:`best_bounds`          the same for any knowledge, by programs where no formula applies
===========================  ======================================================================

Margins are a graph: two variables are joined if a margin holds both. Where a clique separates the graph, bounds
of the whole follow from bounds of its parts (Dobra and Fienberg 2000, 2001).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import TypeAlias

import numpy as np

from lustrum.audit.bounding.compute import Bounds, bounds
from lustrum.audit.knowledge.facts import CellRef, ContradictionError, Knowledge
from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.model.errors import kind_of
from lustrum.numeric.structure import UNBOUNDED, complete_relations

Axes: TypeAlias = frozenset[int]
"""Variables of the cube by their places; empty for the grand total."""


@dataclass(frozen=True, eq=False)
class Margins:
    """The published margins of a cube.

    Every array has all axes of the cube, with length 1 where it was summed over, so that formulas can
    broadcast.
    """

    names: tuple[str, ...]
    shape: tuple[int, ...]
    tables: Mapping[Axes, Ints]

    @property
    def generators(self) -> tuple[Axes, ...]:
        """The maximal margins, in a fixed order."""
        return _largest(self.tables)

    @property
    def covered(self) -> Axes:
        """The variables of all margins."""
        return frozenset().union(*self.tables)

    def margin(self, axes: Axes) -> Ints:
        """A margin that follows from a released one by adding up."""
        return _summed(next(table for key, table in self.tables.items() if axes <= key), axes)

    def knows(self, axes: Axes) -> bool:
        """Whether a margin follows from a released one by adding up."""
        return any(axes <= key for key in self.tables)

    def agree(self) -> bool:
        """Whether any two margins are the same on the variables they share."""
        return all(
            np.array_equal(_summed(left, one & other), _summed(right, one & other))
            for (one, left), (other, right) in combinations(self.tables.items(), 2)
        )

    def of(self, axes: Axes, tables: Mapping[Axes, Ints]) -> Margins:
        """Margins of a smaller cube, over some of the variables."""
        places = sorted(axes)
        rest = tuple(a for a in range(len(self.names)) if a not in axes)
        return Margins(
            tuple(self.names[a] for a in places),
            tuple(self.shape[a] for a in places),
            {
                frozenset(places.index(a) for a in key): np.squeeze(table, axis=rest)
                for key, table in tables.items()
            },
        )


def _summed(table: Ints, axes: Axes) -> Ints:
    rest = tuple(a for a in range(table.ndim) if a not in axes)
    return np.asarray(table.sum(axis=rest, keepdims=True, dtype=np.int64))


@dataclass(frozen=True)
class IrreduciblePart:
    """An irreducible part, the margins inside it, and what it shares with the parts before it.

    The first part shares nothing: its ``separator`` is None. An empty separator means the grand total.
    """

    axes: Axes
    generators: tuple[Axes, ...]
    separator: Axes | None

    @property
    def closed(self) -> bool:
        """Whether one margin holds the whole part."""
        return self.axes in self.generators


def joined(generators: Iterable[Axes]) -> dict[int, Axes]:
    """The neighbours of each variable.

    >>> joined([frozenset({0, 1}), frozenset({1, 2})])[1] == {0, 2}
    True
    """
    around: dict[int, set[int]] = {}
    for generator in generators:
        for a in generator:
            around.setdefault(a, set()).update(generator - {a})
    return {a: frozenset(around[a]) for a in sorted(around)}


def components(vertices: Iterable[int], graph: Mapping[int, Axes]) -> list[Axes]:
    """The connected pieces of some vertices, in a fixed order.

    >>> [sorted(c) for c in components([0, 1, 3], joined([frozenset({0, 1}), frozenset({3})]))]
    [[0, 1], [3]]
    """
    left, pieces = set(vertices), []
    while left:
        grown, edge = set[int](), {min(left)}
        while edge:
            grown |= edge
            left -= edge
            edge = {w for v in edge for w in graph.get(v, frozenset())} & left
        pieces.append(frozenset(grown))
    return pieces


def parts(generators: Iterable[Axes]) -> tuple[IrreduciblePart, ...]:
    """The irreducible parts, split wherever variables inside one margin separate the others.

    A separator must lie in one margin: then its own margin is known, and tables of the two sides that share
    it can always be joined. For each margin g, it suffices to look at the components that remain without g
    and at their neighbours in g: a separator inside g leaves the rest of g on one side, so the other side
    holds such a component. The margins need not be all cliques of the graph, which is slightly more general
    than the reducible graphs of Dobra and Fienberg (2000).

    >>> chain = [frozenset({0, 1}), frozenset({1, 2}), frozenset({2, 3}), frozenset({1, 3})]
    >>> [(sorted(p.axes), sorted(p.separator or ())) for p in parts(chain)]
    [([1, 2, 3], []), ([0, 1], [1])]
    """
    return _split(_largest(generators), None)


def _split(generators: tuple[Axes, ...], separator: Axes | None) -> tuple[IrreduciblePart, ...]:
    everything: Axes = frozenset().union(*generators)
    graph = joined(generators)
    splits: list[tuple[Axes, Axes]] = []
    for generator in generators:
        for piece in components(everything - generator, graph):
            shared = frozenset(w for v in piece for w in graph[v]) & generator
            if piece | shared != everything:
                splits.append((shared, piece))
    if not splits:
        return (IrreduciblePart(everything, generators, separator),)
    # The smallest first: a larger set may hold more than the separator and create a redundant part.
    shared, piece = min(splits, key=lambda pair: (len(pair[0]), sorted(pair[0]), sorted(pair[1])))
    near = _largest(g for g in generators if not g & piece)
    far = _largest([shared, *(g for g in generators if g <= piece | shared)])
    return _split(near, separator) + _split(far, shared)


def _largest(generators: Iterable[Axes]) -> tuple[Axes, ...]:
    """The maximal sets: those that no other set contains."""
    distinct = set(generators)
    return tuple(sorted((g for g in distinct if not any(g < h for h in distinct)), key=sorted))


def cell_ends(margins: Margins) -> tuple[Ints, Ints] | None:
    """Bounds of every cell of the cube from those of its irreducible parts (Dobra and Fienberg 2000).

    With lower bounds L and upper bounds U of the parts, and the known margins S that separate them::

        max(0, sum of L - sum of S)  <=  n  <=  min of U

    Tables of whole numbers reach both ends: tables of the parts that share S can be joined, and the parts are
    otherwise independent. A part that one margin holds is known. If all parts are, the margins are
    decomposable; one-way margins give the bounds of Fréchet (1940). Parts of two categories a variable have a
    formula if all their margins of one variable less are released. If another part is left, there is none.
    """
    ends = _covered_ends(margins)
    if ends is None:
        return None
    low, high = ends
    if any(size > 1 and axis not in margins.covered for axis, size in enumerate(margins.shape)):
        # All people may be in another category of a variable that no margin shows.
        low = np.zeros_like(low)
    return np.broadcast_to(low, margins.shape), np.broadcast_to(high, margins.shape)


def _covered_ends(margins: Margins) -> tuple[Ints, Ints] | None:
    """The same over the covered variables, before the bounds are extended to the cube."""
    low: Ints = np.zeros((), dtype=np.int64)
    high: Ints = np.full((), UNBOUNDED)
    for part in parts(margins.generators):
        if part.closed:
            least = most = margins.margin(part.axes)
        else:
            inner = margins.of(part.axes, {g: margins.margin(g) for g in part.generators})
            if not is_dichotomous(inner):
                return None
            shape = [n if a in part.axes else 1 for a, n in enumerate(margins.shape)]
            least, most = (end.reshape(shape) for end in _dichotomous(inner))
        shared = 0 if part.separator is None else margins.margin(part.separator)
        low, high = low + least - shared, np.minimum(high, most)
    return np.maximum(low, 0), high


def is_dichotomous(margins: Margins) -> bool:
    """Whether every variable has two categories and all margins without one variable are released.

    Variables with one category are ignored.
    """
    wide = frozenset(a for a, size in enumerate(margins.shape) if size > 1)
    if not wide or any(margins.shape[a] != 2 for a in wide):
        return False
    return all(margins.knows(wide - {a}) for a in wide)


def _dichotomous(margins: Margins) -> tuple[Ints, Ints]:
    """Sharp bounds of every cell of a 2 x 2 x ... x 2 table from all margins over one variable.

    Such margins leave a single unknown. Let x be the first cell and ``s`` the number of categories in which
    a cell differs from it::

        n = c + (-1)**s x,    so  max over even s of (-c)  <=  x  <=  min over odd s of c

    where the constants c follow from the margins, one flip at a time. These are the bounds that
    Fienberg (1999) gives for 2 x 2 x 2 and Dobra and Fienberg (2000) for any k.
    """
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
    return np.minimum(*ends), np.maximum(*ends)


def margin_ends(margins: Margins, wanted: Axes) -> tuple[Ints, Ints] | None:
    """Sharp bounds of a hidden margin, from decomposable released margins of any dimension.

    Variables that are neither in the hidden margin nor shared are summed out, and margins that add no
    information are dropped; neither changes the bounds. If the remaining variables outside the hidden
    margin lie in every remaining margin, the table splits into one table for each combination of their
    categories, and the bounds are the sums of the cells' bounds. One hidden margin between two released ones is
    always of this kind (the matrix operator of Chowdhury, Duncan, Krishnan and Roehrig 1999). Otherwise, and
    where no margin shows a variable, there is no formula.
    """
    if wanted - margins.covered or not all(part.closed for part in parts(margins.generators)):
        return None
    relevant = _relevant(margins.generators, wanted)
    left = Margins(margins.names, margins.shape, {g: margins.margin(g) for g in relevant})
    ends = _covered_ends(left)
    if ends is None or not all(left.covered - wanted <= g for g in relevant):
        return None
    other = tuple(a for a in range(len(margins.names)) if a not in wanted)
    return ends[0].sum(axis=other), ends[1].sum(axis=other)


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


def margins_of(known: Knowledge) -> Margins | None:
    """The margins that knowledge consists of, or None if it holds anything else.

    The cube must be one of its tables and wholly hidden, without bounds of its own; every other table
    is published exactly or hidden completely, and the only facts are that tables add up. Margins that
    contradict each other are none: narrowing raises a clear error for them.

    >>> from lustrum.audit import from_margins
    >>> known = from_margins({"A": 2, "S": 2}, {"A": [3, 4], "S": [2, 5]})
    >>> sorted(map(sorted, margins_of(known).tables)), margins_of(known.bound(0, high=2))
    ([[0], [1]], None)
    """
    structure = known.structure
    if structure is None or structure.columns is not None:
        return None
    names = tuple(v.name for v in structure.variables)
    counts = tuple(v.count for v in structure.variables)
    released: dict[Axes, Ints] = {}
    held = False
    for index, layout in enumerate(structure.tables):
        where = known.table(index)
        low, high = known.low[where], known.high[where]
        mine = [names.index(axis.name) for axis in layout.axes]
        atoms = structure.memberships(index)
        if layout.filters or not all(
            _in_order(atoms[a].items, atoms[a].indptr, counts[a]) for a in mine
        ):
            return None
        if bool((low == 0).all()) and bool((high >= UNBOUNDED).all()):
            held = held or len(mine) == len(names)
        elif np.array_equal(low, high) and bool((low >= 0).all()):
            shape = [count if a in mine else 1 for a, count in enumerate(counts)]
            order = np.argsort(mine, kind="stable")
            table = low.reshape(layout.shape).transpose(order).reshape(shape)
            if not np.array_equal(released.setdefault(frozenset(mine), table), table):
                return None
        else:
            return None
    margins = Margins(names, counts, released)
    return margins if held and released and _only_sums(known) and margins.agree() else None


def knowledge_bounds(known: Knowledge) -> Bounds | None:
    """Sharp bounds of all cells, including hidden margins, by formula; None if no formula applies.

    >>> from lustrum.audit import from_margins
    >>> shown = {"IJ": [[3, 1], [2, 4]], "JK": [[5, 0], [2, 3]]}
    >>> known = from_margins({"I": 2, "J": 2, "K": 2}, shown, hidden=["IK"])
    >>> knowledge_bounds(known).high[8:12].tolist()
    [4.0, 1.0, 4.0, 3.0]
    """
    margins = margins_of(known)
    if margins is None or known.structure is None:
        return None
    low, high = known.low.astype(np.float64), known.high.astype(np.float64)
    for index, layout in enumerate(known.structure.tables):
        where = known.table(index)
        if np.array_equal(known.low[where], known.high[where]):
            continue
        mine = [margins.names.index(axis.name) for axis in layout.axes]
        whole = len(mine) == len(margins.names)
        ends = cell_ends(margins) if whole else margin_ends(margins, frozenset(mine))
        if ends is None:
            return None
        # Formulas use the variable order of the cube; a table may use another.
        back = np.argsort(np.argsort(mine, kind="stable"), kind="stable")
        low[where], high[where] = (np.transpose(end, back).ravel() for end in ends)
    cells, sharp = np.arange(len(known), dtype=np.intp), np.ones(len(known), dtype=np.bool_)
    return Bounds(cells, low, high, sharp, known.decimals, known.whole)


def _in_order(items: object, indptr: object, count: int) -> bool:
    """Whether the categories of an axis are the single atoms of its variable, each at its place."""
    return np.array_equal(np.asarray(items), np.arange(count)) and np.array_equal(
        np.asarray(indptr), np.arange(count + 1)
    )


def _only_sums(known: Knowledge) -> bool:
    """Whether the facts are exactly those of the structure."""
    assert known.structure is not None
    if bool(known.fact_low.any()) or bool(known.fact_high.any()):
        return False
    plain = complete_relations(known.structure).matrix
    return bool(plain.shape == known.matrix.shape) and (plain != known.matrix).nnz == 0


def best_bounds(
    known: Knowledge,
    cells: Iterable[CellRef] | slice | None = None,
    *,
    seconds: float | None = None,
    workers: int | None = None,
    progress: Callable[[object], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Bounds:
    """Sharp whole-number bounds of the given cells, or all, at the least cost.

    Margins of a hidden cube for which a closed form is sharp need no solver. Everything else goes to
    :func:`~lustrum.audit.bounding.compute.bounds`: propagation, hot-started linear programs, and integer
    programs for what is still open. Where ``seconds`` end the work early, the bounds are wider than
    necessary and not sharp.

    >>> from lustrum.audit import from_margins
    >>> known = from_margins({"A": 2, "S": 2}, {"A": [3, 4], "S": [2, 5]})
    >>> found = best_bounds(known, slice(0, 4))
    >>> found.programs, found.low.tolist(), found.high.tolist()
    (0, [0.0, 1.0, 0.0, 2.0], [2.0, 3.0, 2.0, 4.0])
    """
    if not isinstance(known, Knowledge):
        raise InputError(
            f"Bounds follow from Knowledge, not from {kind_of(known)}; make it with from_release, from_tables "
            "or from_margins of lustrum.audit."
        )
    closed = knowledge_bounds(known) if known.whole else None
    if closed is not None:
        return closed.of(known, cells)
    return bounds(
        known,
        cells,
        integer=True,
        seconds=seconds,
        workers=workers,
        progress=progress,
        stop=stop,
    )
