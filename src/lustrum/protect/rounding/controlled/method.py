"""Controlled rounding of one table or of several together: all numbers are multiples and add up.

Every published number becomes an adjacent multiple of the base, multiples stay, and all relations hold
(Cox and Ernst 1982). Where a table is a network, that is with one or two variables and subtotals along
one of them at most, the nearest such table is found exactly, and one that is right on average can be
drawn instead (Cox 1987). Small other tables are solved by integer program, large ones by search; there
an adjacent rounding need not exist (Causey, Cox and Ernst 1985), and some numbers may have to move further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import Channel, InputError, Release, Table
from lustrum.model.arrays import Array, Ints
from lustrum.model.chance import Chance, Seed, generator_of
from lustrum.model.parameters import parameter
from lustrum.model.text import say
from lustrum.numeric.compiled import compiled
from lustrum.numeric.structure import Structure, complete_relations
from lustrum.protect.abilities import Abilities, changed_by_rounding
from lustrum.protect.entropy_left import left_between_multiples
from lustrum.protect.method import TABULAR, MethodSpec, Stage, released, whole_counts
from lustrum.protect.rounding.cells import RoundingChannel
from lustrum.protect.rounding.controlled.linked import EXACT_CELLS, round_published, round_system
from lustrum.protect.rounding.controlled.local import sums_of, whole_base
from lustrum.protect.rounding.controlled.two_way import checked_counts, layout_of, nearest_rounding
from lustrum.protect.totals.inner_table import InnerTable

# Bounds of true counts for a reader of numbers whose inner cells were rounded.
#
# All intervals follow from published numbers and public parameters alone. The sum of the intervals of its
# inner cells is always a valid interval of a sum.


def small_bounds(published: npt.ArrayLike, base: int) -> tuple[Ints, Ints]:
    """Bounds of the true count of an inner cell where only counts below the base were rounded.

    0 can be anything below the base, the base can be 1 up to itself, and larger numbers are exact.

    >>> [ends.tolist() for ends in small_bounds([0, 3, 4], 3)]
    [[0, 1, 4], [2, 3, 4]]
    """
    shown = np.asarray(published, dtype=np.int64)
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


_NAME = "Controlled rounding"


@dataclass(frozen=True)
class ControlledRounding(MethodSpec):
    """Additive rounding to a base.

    ``unbiased`` is for tables that are networks. ``small_only`` rounds to 0 or to the base and keeps sums
    close. A search that is cut returns the best it has found; ``steps`` are counted, so that it is the same
    however busy a machine is.

    >>> table = Table.from_counts([[1, 5], [7, 0]])
    >>> ControlledRounding(base=3).apply(table, rng=np.random.default_rng(1)).published.tolist()
    [[0, 6], [6, 0]]
    """

    name: ClassVar[str] = "controlled-rounding"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
    base: int = parameter(3, "Numbers are published as multiples of this.", least=2)
    distance: Literal["l1", "l2"] = parameter(
        "l1", "How the nearest table is measured: by absolute or by squared changes.", brief=True
    )
    unbiased: bool = parameter(
        False, "Draw a table that is right on average instead of the nearest one.", brief=True
    )
    small_only: bool = parameter(False, "Round only inner counts below the base.", brief=True)
    steps: int = parameter(1000, "The most steps of a search.", least=0, brief=True)

    def check_together(self) -> None:
        """Small counts only are not right on average."""
        if self.unbiased and self.small_only:
            raise InputError(
                "Rounding of small counts only is not unbiased; choose one of the two."
            )

    @property
    def abilities(self) -> Abilities:
        """Inner cells below the base become multiples of it."""
        return Abilities(
            repeatable=True,
            changed=changed_by_rounding(self.base),
            entropy=left_between_multiples(self.base),
        )

    def draw(self, table: Table, rng: Chance) -> Release:
        inner = _checked(table)
        chance = inner.generator(table, rng, str(self.to_mapping()))
        network = None if self.small_only else _network(inner)
        if network is None:
            if self.unbiased:
                raise InputError(
                    "Unbiased controlled rounding is for one or two variables, with subtotals along one "
                    "of them at most; this table is none of these."
                )
            return self._together([table], chance)[0]
        counts = inner.counts(table)
        if self.unbiased:
            cells = network.unbiased(counts, self.base, chance)
        else:
            cells = network.nearest(counts, self.base, self.distance)
        channel = RoundingChannel(self.base) if self.unbiased else None
        return self._released(table, inner.added_up(cells), 0, channel)

    def apply_all(self, tables: Sequence[Table], rng: Seed = None) -> list[Release]:
        """Round several tables over one population, so that shared cells agree and all relations hold."""
        rng = generator_of(rng)
        if not tables:
            return []
        if self.unbiased:
            raise InputError("Unbiased controlled rounding is for one table, not for several.")
        first, *_ = [_checked(table) for table in tables]
        chance = first.generator(tables[0], rng, str(self.to_mapping()))
        return self._together(tables, chance)

    def _together(self, tables: Sequence[Table], rng: np.random.Generator) -> list[Release]:
        structure = Structure.of_tables([table.axes for table in tables])
        values = np.concatenate([table.values.ravel() for table in tables])
        inner = _inner_counts(structure, values)
        distance: Literal["absolute", "squares"] = (
            "absolute" if self.distance == "l1" else "squares"
        )
        if inner is None:
            if self.small_only:
                raise InputError(
                    "Rounding of small counts needs a table that shows all inner cells of the others."
                )
            rounding = round_published(
                values,
                complete_relations(structure),
                self.base,
                distance=distance,
                steps=self.steps,
                rng=rng,
            )
        else:
            rounding = round_system(
                structure,
                inner,
                self.base,
                rng=rng,
                how="auto" if structure.rows <= EXACT_CELLS and not self.small_only else "search",
                scope="small" if self.small_only else "all",
                distance=distance,
                steps=self.steps,
            )
        steps = int(rounding.steps.max(initial=0))
        bounds = None
        if self.small_only:
            assert rounding.inner is not None
            bounds = [sums_of(end, structure) for end in small_bounds(rounding.inner, self.base)]
        parts, first = [], 0
        for table in tables:
            here = slice(first, first + table.values.size)
            shape = table.shape
            ends = None if bounds is None else tuple(b[here].reshape(shape) for b in bounds)
            published = rounding.published[here].reshape(shape)
            parts.append(self._released(table, published, steps, None, ends))
            first = here.stop
        return parts

    def _released(
        self,
        table: Table,
        published: Ints,
        steps: int,
        channel: Channel | None,
        bounds: tuple[Ints, ...] | None = None,
    ) -> Release:
        if bounds is None:
            low, high = multiple_bounds(published, self.base, steps)
        else:
            low, high = bounds
        if table.structural is not None:
            low, high = np.where(table.structural, 0, low), np.where(table.structural, 0, high)
        return released(
            table, self, published, channel=channel, low=low, high=high, notes=self._notes(steps)
        )

    def _notes(self, steps: int) -> tuple[str, ...]:
        if self.small_only:
            return (
                say(
                    "Counts from 1 to {most} are shown as 0 or {base}; totals are the sums of what is "
                    "shown.",
                    most=self.base - 1,
                    base=self.base,
                ),
            )
        far = (
            say(
                "Every number is rounded to a multiple of {base}, less than {far} away from the true one.",
                base=self.base,
                far=self.base,
            )
            if steps == 0
            else say(
                "Every number is rounded to a multiple of {base}, less than {far} away from the true one, "
                "since no table of nearer numbers was found that adds up.",
                base=self.base,
                far=self.base * (steps + 1),
            )
        )
        right = (say("The numbers are right on average."),) if self.unbiased else ()
        return (far, *right, say("The rounded numbers add up to the rounded totals."))


def _checked(table: Table) -> InnerTable:
    """The inner cells of a table of counts whose totals are their sums."""
    counts = whole_counts(table, _NAME)
    inner = InnerTable.of(table.axes, _NAME)
    if not np.array_equal(inner.added_up(inner.counts(table)), counts):
        raise InputError(
            f"{_NAME} needs totals that are the sums of their parts; a total of this table is not."
        )
    return inner


@dataclass(frozen=True)
class _Network:
    """A table that is a network, transposed so that subtotals are along the rows."""

    turned: bool
    groups: tuple[tuple[int, ...], ...]
    rows: bool
    columns: bool
    grand: bool

    def nearest(self, counts: Ints, base: int, norm: Literal["l1", "l2"]) -> Ints:
        rounding = nearest_rounding(self._turn(counts), base, norm=norm, **self._shown())
        return self._turn(rounding.cells)

    def unbiased(self, counts: Ints, base: int, rng: np.random.Generator) -> Ints:
        return self._turn(unbiased_rounding(self._turn(counts), base, rng, **self._shown()))

    def _turn(self, cells: Ints) -> Ints:
        return np.ascontiguousarray(cells.T) if self.turned else cells

    def _shown(self) -> dict[str, Any]:
        return {
            "groups": self.groups,
            "rows": self.rows,
            "columns": self.columns,
            "grand": self.grand,
        }


def _network(inner: InnerTable) -> _Network | None:
    """How a table is a network, or None."""
    if len(inner.order) not in (1, 2):
        return None
    subtotals, total = [], []
    for below, size in zip(inner.below, inner.shape, strict=True):
        sets = {
            tuple(np.sort(part).tolist()) for part in np.split(below.indices, below.indptr[1:-1])
        }
        total.append(any(len(s) == size for s in sets))
        subtotals.append(tuple(sorted(s for s in sets if 1 < len(s) < size)))
    if len(inner.order) == 1:
        if not _nested(subtotals[0]):
            return None
        return _Network(False, subtotals[0], rows=False, columns=False, grand=total[0])
    turned = bool(subtotals[1])
    if turned and subtotals[0]:
        return None
    groups = subtotals[1] if turned else subtotals[0]
    if not _nested(groups):
        return None
    rows, columns = (total[0], total[1]) if turned else (total[1], total[0])
    return _Network(turned, groups, rows, columns, grand=rows and columns)


def _nested(groups: Sequence[tuple[int, ...]]) -> bool:
    sets = [frozenset(group) for group in groups]
    return all(a <= b or b <= a or not a & b for i, a in enumerate(sets) for b in sets[i + 1 :])


def _inner_counts(structure: Structure, values: Ints) -> Ints | None:
    """The inner cells of the hidden cube, where all of them are published somewhere."""
    matrix = structure.matrix
    single = np.flatnonzero(np.diff(matrix.indptr) == 1)
    cells = matrix.indices[matrix.indptr[single]]
    if np.unique(cells).size < structure.inner:
        return None
    inner = np.zeros(structure.inner, dtype=np.int64)
    inner[cells] = values[single]
    return inner


# Unbiased controlled rounding of one-way and two-way tables (Cox 1987), in whole numbers throughout.
#
# The published numbers are the flows of a circulation (see ``two_way``). If one of the numbers at a node is
# not a multiple of the base, at least one other is not either; so a walk along such numbers closes a cycle.
# Along it, all numbers can move up or down together and the table still adds up. The first multiple is
# reached after ``up`` units upwards or ``down`` units downwards; the cycle goes up with probability ``down /
# (up + down)``, which keeps every mean. Each move makes one more number a multiple, so the walk ends.
#
# Every published number, totals too, becomes one of its two adjacent multiples and is right on average. Two
# values with a known mean have known probabilities: up with ``r / b``. Each number on its own is therefore
# published as by :class:`~lustrum.protect.rounding.cells.RoundingChannel`, exactly; together they add up.


def unbiased_rounding(
    values: npt.ArrayLike,
    base: int,
    rng: np.random.Generator,
    *,
    groups: Sequence[Sequence[int]] = (),
    rows: bool = True,
    columns: bool = True,
    grand: bool = True,
) -> Ints:
    """Rounded inner cells; they and all published totals are adjacent multiples and right on average.

    The totals of the rounded table are the sums of its cells. Random numbers are whole numbers from the
    generator, so that the means are exact.

    >>> rounded = unbiased_rounding([[1, 5], [7, 0]], 3, np.random.default_rng(1))
    >>> rounded.tolist(), rounded.sum(axis=1).tolist()
    ([[3, 3], [6, 0]], [6, 6])
    """
    cells = checked_counts(values, base)
    layout = layout_of(cells, groups, rows, columns, grand)
    true = layout.published(cells)
    residue = true % base
    moving = np.flatnonzero(residue)
    left = residue[moving]
    while True:
        open_ = (left > 0) & (left < base)
        if not open_.any():
            break
        # One word for each cell is enough unless one is rejected, about once in 2**62 draws.
        random_words = rng.integers(0, 2**64, size=int(open_.sum()), dtype=np.uint64)
        _walk(layout.tail[moving], layout.head[moving], left, base, layout.nodes, random_words)
    true[moving] += left - residue[moving]
    return layout.inner(true).reshape(cells.shape)


@compiled
def _walk(  # pragma: no cover
    tail: Array, head: Array, left: Array, base: int, count: int, random_words: Array
) -> int:
    """Round the residues ``left`` on the arcs in place, while words last; returns how many were used."""
    size = np.zeros(count, dtype=np.int64)
    for arc in range(tail.size):
        if 0 < left[arc] < base:
            size[tail[arc]] += 1
            if head[arc] != tail[arc]:
                size[head[arc]] += 1
    begin = np.zeros(count + 1, dtype=np.int64)
    begin[1:] = np.cumsum(size)
    around = np.empty(begin[count], dtype=np.int64)
    size[:] = 0
    for arc in range(tail.size):
        if 0 < left[arc] < base:
            around[begin[tail[arc]] + size[tail[arc]]] = arc
            size[tail[arc]] += 1
            if head[arc] != tail[arc]:
                around[begin[head[arc]] + size[head[arc]]] = arc
                size[head[arc]] += 1

    path_index = np.full(count, -1, dtype=np.int64)
    nodes = np.empty(count + 1, dtype=np.int64)
    arcs = np.empty(count + 1, dtype=np.int64)
    most = np.uint64(0xFFFFFFFFFFFFFFFF)
    used = 0
    for start in range(count):
        nodes[0] = start
        path_index[start] = 0
        length = 0  # arcs walked; node number ``length`` is the present one
        while True:
            node = nodes[length]
            came_by = arcs[length - 1] if length else -1
            next_arc = -1
            at, last = begin[node], size[node] - 1
            k = last
            while k >= 0:
                arc = around[at + k]
                if left[arc] == 0 or left[arc] == base:
                    around[at + k] = around[at + last]
                    last -= 1
                    k = min(k, last)
                elif arc == came_by:
                    k -= 1
                else:
                    next_arc = arc
                    break
            size[node] = last + 1
            if next_arc < 0:
                break
            arcs[length] = next_arc
            length += 1
            end = head[next_arc] if tail[next_arc] == node else tail[next_arc]
            if path_index[end] < 0:
                nodes[length] = end
                path_index[end] = length
                continue
            first = path_index[end]
            up, down = base, base
            for k in range(first, length):
                room = left[arcs[k]]
                if tail[arcs[k]] == nodes[k]:
                    room = base - room
                up = min(up, room)
                down = min(down, base - room)
            total = np.uint64(up + down)
            while (
                used < random_words.size
                and most - random_words[used] < (most % total + np.uint64(1)) % total
            ):
                used += 1
            if used == random_words.size:
                return used
            step = up if random_words[used] % total < np.uint64(down) else -down
            used += 1
            for k in range(first, length):
                left[arcs[k]] += step if tail[arcs[k]] == nodes[k] else -step
                if k > first:
                    path_index[nodes[k]] = -1
            length = first
        path_index[start] = -1
    return used
