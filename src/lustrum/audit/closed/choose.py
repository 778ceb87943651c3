"""Which closed form is sharp for released margins, and the bounds it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from lustrum.audit.bounding.compute import Bounds, bounds
from lustrum.audit.closed.formulas import decomposable, dichotomous, is_dichotomous, project
from lustrum.audit.closed.graphs import IrreduciblePart, parts, perfect_sequence
from lustrum.audit.closed.margins import Margins
from lustrum.audit.knowledge.facts import CellRef, Knowledge
from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask
from lustrum.model.errors import kind_of
from lustrum.numeric.later import sparse
from lustrum.numeric.structure import UNBOUNDED, complete_relations

# Bounds of a whole cube from bounds of its parts, where margins separate the parts.


def reducible(margins: Margins) -> Bounds:
    """Bounds of every cell from those of the irreducible parts (Dobra and Fienberg 2000).

    With lower bounds L and upper bounds U of the parts, and the known margins S that separate them::

        max(0, sum of L - sum of S)  <=  n  <=  min of U

    Sharp, since tables of the parts that share S can be joined, and the parts are otherwise independent. Parts
    that one margin holds, and dichotomous parts, have a formula; programs bound the others.

    >>> table = np.arange(16).reshape(2, 2, 2, 2)
    >>> found = reducible(Margins.of_table(table, [[0, 1], [1, 2], [1, 3], [2, 3]]))
    >>> found
    Bounds(16 cells, 16 sharp, 0 exact)
    >>> found.high[:4].astype(int).tolist()
    [6, 6, 6, 6]
    """
    lows: list[Ints] = []
    highs: list[Ints] = []
    sharp: Mask = np.ones((), dtype=np.bool_)
    for part in parts(margins.generators):
        low, high, reached = _part_bounds(margins, part)
        sharp = sharp & reached
        if part.separator is not None:
            low = low - margins.margin(part.separator)
        lows.append(low)
        highs.append(high)
    low, high = lows[0], highs[0]
    for more, cap in zip(lows[1:], highs[1:], strict=True):
        low, high = low + more, np.minimum(high, cap)
    return margins.bounds(*margins.spread(np.maximum(low, 0), high), sharp)


def _part_bounds(margins: Margins, part: IrreduciblePart) -> tuple[Ints, Ints, Mask]:
    if part.closed:
        shown = margins.margin(part.axes)
        return shown, shown, np.ones((), dtype=np.bool_)
    inner = margins.part(part.axes, part.generators)
    part_bounds = dichotomous(inner) if is_dichotomous(inner) else _by_programs(inner)
    shape = [margins.shape[a] if a in part.axes else 1 for a in range(len(margins.shape))]
    low, high = (a.astype(np.int64).reshape(shape) for a in (part_bounds.low, part_bounds.high))
    return low, high, part_bounds.sharp.reshape(shape)


def _by_programs(margins: Margins) -> Bounds:
    """Bounds of every cell of the cube by programs, with one fact for each released sum."""
    rows, sums = [], []
    place = np.arange(margins.size)
    for generator in margins.generators:
        known = margins.margin(generator)
        row = np.broadcast_to(np.arange(known.size).reshape(known.shape), margins.shape).ravel()
        ones = np.ones(place.size, dtype=np.int64)
        rows.append(sparse.csr_array((ones, (row, place)), shape=(known.size, place.size)))
        sums.append(known.ravel())
    names = [f"cell {number}" for number in range(margins.size)]
    low, high = np.zeros_like(place), np.full_like(place, margins.total)
    values = np.concatenate(sums)
    facts = sparse.vstack(rows), values, values
    known_sums = Knowledge(names, low, high, *facts, margins.decimals, margins.whole)
    return bounds(known_sums, integer=margins.whole)


class ClosedForm(StrEnum):
    """The cheapest formula that is sharp for some margins."""

    FRECHET = "frechet"
    DECOMPOSABLE = "decomposable"
    DICHOTOMOUS = "dichotomous"
    REDUCIBLE = "reducible"
    NONE = "none"


@dataclass(frozen=True)
class FormulaChoice:
    """The formula that applies, and the parts that have none."""

    form: ClosedForm
    parts: tuple[IrreduciblePart, ...]
    unsolved: tuple[IrreduciblePart, ...]

    @property
    def sharp(self) -> bool:
        """Whether the closed form reaches every bound."""
        return self.form is not ClosedForm.NONE


def applicable(margins: Margins | Knowledge) -> FormulaChoice:
    """Which closed form is sharp for these margins.

    Fréchet for one-way margins, Dobra and Fienberg's for decomposable ones, the dichotomous one for two
    categories a variable and all margins of one variable less, and their combination over the parts of a
    reducible graph. Otherwise NONE; then ``unsolved`` lists the parts that need a search. Knowledge that
    holds more than margins of a cube has no closed form here.

    >>> pairs = [[0, 1], [0, 2], [1, 2]]
    >>> [applicable(Margins.of_table(np.ones(s), pairs)).form.value for s in ((2, 2, 2), (3, 2, 2))]
    ['dichotomous', 'none']
    >>> applicable(Margins.of_table(np.ones((3, 2, 2)), pairs[:2])).form.value
    'decomposable'
    """
    if isinstance(margins, Knowledge):
        known_margins = margins_of(margins)
        if known_margins is None:
            return FormulaChoice(ClosedForm.NONE, (), ())
        margins = known_margins
    generators = margins.generators
    pieces = parts(generators)
    unsolved = tuple(
        p for p in pieces if not p.closed and not is_dichotomous(margins.part(p.axes, p.generators))
    )
    if perfect_sequence(generators) is not None:
        form = (
            ClosedForm.FRECHET if all(len(g) <= 1 for g in generators) else ClosedForm.DECOMPOSABLE
        )
    elif unsolved:
        form = ClosedForm.NONE
    else:
        form = ClosedForm.DICHOTOMOUS if len(pieces) == 1 else ClosedForm.REDUCIBLE
    return FormulaChoice(form, pieces, unsolved)


def closed_bounds(margins: Margins) -> Bounds:
    """Sharp bounds by the best formula, and by programs where :func:`applicable` says that there is none.

    >>> closed_bounds(Margins.of_table(np.ones((3, 2, 2)), [[0, 1], [0, 2], [1, 2]]))
    Bounds(12 cells, 12 sharp, 0 exact)
    """
    if perfect_sequence(margins.generators) is not None:
        return decomposable(margins)
    return reducible(margins)


def margins_of(known: Knowledge) -> Margins | None:
    """The margins that knowledge consists of, or None if it holds anything else.

    The cube must be one of its tables and wholly hidden, without bounds of its own; every other table
    is published exactly or hidden completely, and the only facts are that tables add up.

    >>> from lustrum.audit import from_margins
    >>> known = from_margins({"A": 2, "S": 2}, {"A": [3, 4], "S": [2, 5]})
    >>> margins_of(known), margins_of(known.bound(0, high=2))
    (Margins(A 2 x S 2; A, S), None)
    """
    structure = known.structure
    if structure is None or structure.columns is not None:
        return None
    names = tuple(v.name for v in structure.variables)
    cube = {v.name: v.count for v in structure.variables}
    released: dict[str | tuple[str, ...], npt.ArrayLike] = {}
    held = False
    for index, layout in enumerate(structure.tables):
        where = known.table(index)
        low, high = known.low[where], known.high[where]
        mine = tuple(axis.name for axis in layout.axes)
        atoms = structure.memberships(index)
        if layout.filters or not all(
            _in_order(atoms[names.index(n)].items, atoms[names.index(n)].indptr, cube[n])
            for n in mine
        ):
            return None
        if bool((low == 0).all()) and bool((high >= UNBOUNDED).all()):
            held = held or set(mine) == set(names)
        elif np.array_equal(low, high) and bool((low >= 0).all()):
            if mine in released and not np.array_equal(released[mine], low.reshape(layout.shape)):
                return None  # a contradiction; narrowing raises a clear error for it
            released[mine] = low.reshape(layout.shape)
        else:
            return None
    if not held or not released or not _only_sums(known):
        return None
    # Two tables over the same variables are one margin; Margins reports an error if they differ.
    return Margins.of(cube, released, decimals=known.decimals, whole=known.whole)


def knowledge_bounds(known: Knowledge) -> Bounds | None:
    """Bounds of all cells, including hidden margins, by formula; None if no formula applies.

    >>> from lustrum.audit import from_margins
    >>> shown = {"IJ": [[3, 1], [2, 4]], "JK": [[5, 0], [2, 3]]}
    >>> known = from_margins({"I": 2, "J": 2, "K": 2}, shown, hidden=["IK"])
    >>> knowledge_bounds(known).high[8:12].tolist()
    [4.0, 1.0, 4.0, 3.0]
    """
    margins = margins_of(known)
    if margins is None or known.structure is None or not applicable(margins).sharp:
        return None
    low, high = known.low.astype(np.float64), known.high.astype(np.float64)
    sharp = np.ones(len(known), dtype=np.bool_)
    for index, layout in enumerate(known.structure.tables):
        where = known.table(index)
        if np.array_equal(known.low[where], known.high[where]):
            continue
        mine = tuple(axis.name for axis in layout.axes)
        if set(mine) == set(margins.names):
            table_bounds = closed_bounds(margins)
        else:
            try:
                table_bounds = project(margins, mine)
            except InputError:
                return None
        # Formulas use the variable order of the cube; a table may use another.
        order = sorted(range(len(mine)), key=lambda i: margins.names.index(mine[i]))
        back = np.argsort(order, kind="stable")
        shape = [layout.shape[i] for i in order]
        low[where], high[where], sharp[where] = (
            np.transpose(a.reshape(shape), back).ravel()
            for a in (table_bounds.low, table_bounds.high, table_bounds.sharp)
        )
    cells = np.arange(len(known), dtype=np.intp)
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
    workers: int | None = None,
    progress: Callable[[object], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Bounds:
    """Sharp whole-number bounds of the given cells, or all, at the least cost.

    Margins of a hidden cube for which a closed form is sharp need no solver. Everything else goes to
    :func:`~lustrum.audit.bounding.compute.bounds`: propagation, hot-started linear programs, and integer
    programs for what is still open.

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
    if closed is not None and bool(closed.sharp.all()):
        return closed.of(known, cells)
    return bounds(known, cells, integer=True, workers=workers, progress=progress, stop=stop)
