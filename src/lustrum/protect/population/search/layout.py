"""How the cells of all controlled tables lie in one array of errors, and how a finest cell finds its own.

The variables are split. The *outer* ones are the *major* variable, which has most codes, and where there are
many variables the one with most levels besides; the others are *inner* ones. A table is a table of inner
variables, a *slice table*, for every category of its outer ones. Slice tables that several outer levels share
lie side by side, in *runs*: a finest cell works out its places in the slice tables once, and finds its cells in
every run by adding where the run begins. While the search works on one area, what it reads fits the first
caches.

All tables of few variables are controlled, and of more variables those with the fewest cells. The errors of a
table that is not controlled grow with the number of finest cells in each of its cells. Tables of more
variables at coarse levels are the worst, so they are taken smallest first, up to a number of tables that
bounds the work and a number of cells that bounds the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import combinations, pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np

from lustrum.model import Dataset, InputError
from lustrum.model.arrays import Array
from lustrum.protect.population.search.levels import ControlledLevel, controlled_levels, find_level

_MOST_CELLS = 2**31
_MANY_VARIABLES = 5

KINDS = ("coarser", "finest", "own", "extra", "single")
"""Kinds of tables, which may cost differently: at coarser levels, at finest ones, the agency's own, those of
more variables, and those with single finest cells, which cost nothing."""


class TablesOf(NamedTuple):
    """The tables that change with a node, or with two, as stretches of one list."""

    first: Array  # where each stretch begins; one more at the end
    run: Array
    table: Array  # the slice table,
    stride: Array  # how far apart neighbours are, along one node or two,
    kind: Array  # and the kind of the table

    @classmethod
    def of(cls, stretches: list[list[tuple[int, ...]]], nodes: int) -> TablesOf:
        """Lay out lists of run, slice table, kind, and a stride for each node."""
        flat = np.array([e for many in stretches for e in many], dtype=np.int64)
        flat = flat.reshape(-1, 3 + nodes)
        return cls(
            np.cumsum([0, *(len(many) for many in stretches)]).astype(np.int64),
            flat[:, 0].astype(np.uint32),
            flat[:, 1].astype(np.uint32),
            np.ascontiguousarray(flat[:, 3] if nodes == 1 else flat[:, 3:]),
            flat[:, 2].astype(np.uint8),
        )


class SearchLayout(NamedTuple):
    """What the compiled search needs to know, as arrays.

    A *node* is a level of a variable; the last node is a dummy at position 0. ``position[k, code]`` is the
    category of a code at node ``k``. A slice table ``t`` has one more node than an earlier one, its parent; the
    first of them is the total.
    """

    variable_of: Array  # node -> row of the finest codes
    position: Array  # (nodes, codes)
    first_node: Array  # variable -> its first node; one more at the end
    table_parent: Array  # the slice table without the last node
    table_node: Array  # the last node,
    table_size: Array  # and its categories
    table_offset: Array
    table_end: Array
    run_node: Array  # (most, runs) nodes that say where a slice begins
    run_stride: Array
    run_offset: Array
    run_first: Array  # tables of the slice: from ...
    run_stop: Array  # ... to
    kind: Array  # (runs, tables): see ``KINDS``
    cell_kind: Array  # the same for every controlled cell
    nodes: TablesOf  # of every node
    pairs: TablesOf  # node * nodes + node -> of two nodes of different variables, the earlier one first


@dataclass(frozen=True)
class ControlledTable:
    """A controlled table: its levels, where its cells lie, and whether the agency asked for it."""

    levels: tuple[ControlledLevel, ...]
    start: int
    strides: tuple[int, ...]
    by_agency: bool = False
    extra: bool = False

    @property
    def label(self) -> str:
        """The levels crossed, in words."""
        return " x ".join(level.label for level in self.levels) or "all records"

    @property
    def finest(self) -> bool:
        """Whether every variable stands at its finest codes."""
        return all(level.finest for level in self.levels)

    @property
    def shape(self) -> tuple[int, ...]:
        """Categories along each variable."""
        return tuple(level.size for level in self.levels)

    def places(self) -> Array:
        """Where the cells of the table lie in the array of errors, in the table's shape."""
        places = np.full((), self.start, dtype=np.int64)
        for level, stride in zip(self.levels, self.strides, strict=True):
            places = places[..., None] + stride * np.arange(level.size)
        return places

    def categories(self, index: int) -> tuple[int, ...] | None:
        """The category along each variable of the cell at a place, if it is one of the table."""
        rest, categories = index - self.start, []
        for level, stride in zip(self.levels, self.strides, strict=True):
            category, rest = divmod(rest, stride)
            if not 0 <= category < level.size:
                return None
            categories.append(category)
        return tuple(categories) if rest == 0 else None


@dataclass(frozen=True, eq=False)
class TablePlan:
    """All controlled tables of a dataset and their layout."""

    dataset: Dataset
    variables: tuple[str, ...]
    major: str
    tables: tuple[ControlledTable, ...]
    cells: int
    layout: SearchLayout
    max_variables: int
    outer: int  # how many variables are outer ones; they are the last

    @cached_property
    def table_of_cell(self) -> Array:
        """The number of the table that a controlled cell belongs to."""
        tables = np.empty(self.cells, dtype=np.int32)
        for number, table in enumerate(self.tables):
            tables[table.places()] = number
        return tables

    def rows(self) -> list[int]:
        """The rows of finest codes that the search works with, the major variable last."""
        row_of = {v.name: i for i, v in enumerate(self.dataset.variables)}
        return [row_of[name] for name in self.variables]


def plan_tables(
    dataset: Dataset,
    max_variables: int = 3,
    agency_tables: Sequence[Sequence[str]] = (),
    *,
    finest_only: bool = False,
    extra_tables: int = 0,
    extra_cells: int = 10_000,
) -> TablePlan:
    """Plan the tables of up to ``max_variables`` variables, at all levels or at the finest ones only.

    The agency's own tables are planned too, and ``extra_tables`` tables of more variables, the smallest first,
    each of at most ``extra_cells`` cells.
    """
    levels = controlled_levels(dataset)
    if not levels:
        raise InputError("No variable of the dataset has two codes; there is nothing to control.")
    major = max(levels, key=lambda name: levels[name][0].size)
    outer = [major]
    inner = [name for name in levels if name != major]
    # Outer variables are the same whether all levels are planned or the finest, as stages share their cells.
    if len(levels) >= _MANY_VARIABLES:
        second = max(inner, key=lambda name: (len(levels[name]), levels[name][0].size))
        inner.remove(second)
        outer = [second, major]
    if finest_only:
        agency_tables = [
            w for w in agency_tables if all(find_level(levels, dataset, one).finest for one in w)
        ]
        levels = {
            name: variable_levels if name == major else variable_levels[:1]
            for name, variable_levels in levels.items()
        }
    builder = _Builder(dataset, levels, [*inner, *outer], len(inner), max_variables)
    return builder.build(agency_tables, extra_tables, extra_cells)


class _Builder:
    def __init__(
        self,
        dataset: Dataset,
        levels: dict[str, tuple[ControlledLevel, ...]],
        names: list[str],
        inner: int,
        max_variables: int,
    ) -> None:
        self.dataset, self.levels, self.names, self.max_variables = (
            dataset,
            levels,
            names,
            max_variables,
        )
        self.nodes = [(v, level) for v, name in enumerate(names) for level in levels[name]]
        self.dummy = len(self.nodes)
        self.first_outer = next(k for k, (v, _) in enumerate(self.nodes) if v >= inner)
        self.slice: list[Nodes] = []
        self.strides: list[tuple[int, ...]] = []
        self.offsets: list[int] = []
        # A run: its outer nodes, their strides, its offset, and the stretch of slice tables it has.
        self.runs: list[tuple[Nodes, tuple[int, ...], int, int, int]] = []
        self.agency_tables: set[Nodes] = set()
        self.cells = 0

    def build(
        self, agency_tables: Sequence[Sequence[str]], extra_tables: int, extra_cells: int
    ) -> TablePlan:
        self.agency_tables = {self._own_table(variables) for variables in agency_tables}
        chosen = set(all_tables(self.nodes, self.max_variables)) | self.agency_tables
        chosen.update(
            choose_extra_tables(self.nodes, self.max_variables, extra_tables, extra_cells)
        )
        self._lay_out_slices(chosen)
        self._lay_out_runs(chosen)
        if self.cells >= _MOST_CELLS:
            raise InputError(
                f"The controlled tables have {self.cells:,} cells; control tables of fewer variables."
            )
        return TablePlan(
            self.dataset,
            tuple(self.names),
            self.names[-1],
            tuple(self._tables()),
            self.cells,
            self._layout(),
            self.max_variables,
            len(self.names) - self.nodes[self.first_outer][0],
        )

    def _shows_finest(self, nodes: Nodes) -> bool:
        """Whether single finest cells are cells of a table.

        Errors of such a table cost nothing. Otherwise the search would move every finest cell to the nearest
        number, so that a shown number would tell the true one; and most of its errors are below the base.
        """
        return len(nodes) == len(self.names) and all(
            int(np.bincount(self.nodes[k][1].group_of).min()) == 1 for k in nodes
        )

    def _size(self, nodes: Nodes) -> int:
        return prod(self.nodes[k][1].size for k in nodes)

    def _strides(self, nodes: Nodes, unit: int) -> tuple[int, ...]:
        return tuple(unit * self._size(nodes[j + 1 :]) for j in range(len(nodes)))

    def _split(self, table: Nodes) -> tuple[Nodes, Nodes]:
        """The outer and the inner nodes of a table."""
        inner = tuple(k for k in table if k < self.first_outer)
        return table[len(inner) :], inner

    def _own_table(self, variables: Sequence[str]) -> Nodes:
        node_of = {id(level): k for k, (_, level) in enumerate(self.nodes)}
        levels = [find_level(self.levels, self.dataset, word) for word in variables]
        nodes = tuple(sorted(node_of[id(level)] for level in levels))
        if len({self.nodes[k][0] for k in nodes}) < len(nodes):
            raise InputError(
                f"A table to be controlled, {' x '.join(variables)}, names one variable twice."
            )
        return nodes

    def _lay_out_slices(self, chosen: set[Nodes]) -> None:
        wanted = {self._split(table)[1] for table in chosen}
        # The parents of a slice table are slice tables, whether a run has them or not.
        wanted |= {nodes[:end] for nodes in wanted for end in range(len(nodes))} | {()}
        apart = set(nodes_apart(self.nodes))
        offset = 0
        # In this order the slice tables of a run are one stretch for every number of variables.
        for nodes in sorted(
            wanted, key=lambda n: (len(n), not apart.issuperset(n), self._size(n), n)
        ):
            self.slice.append(nodes)
            self.strides.append(self._strides(nodes, 1))
            self.offsets.append(offset)
            offset += self._size(nodes)
        self.offsets.append(offset)

    def _lay_out_runs(self, chosen: set[Nodes]) -> None:
        table_index = {nodes: t for t, nodes in enumerate(self.slice)}
        within: dict[Nodes, list[int]] = {}
        for table in chosen:
            outer, inner = self._split(table)
            within.setdefault(outer, []).append(table_index[inner])
        for outer in sorted(within, key=lambda nodes: (len(nodes), nodes)):
            tables = sorted(within[outer])
            ends = [j for j in range(1, len(tables)) if tables[j] != tables[j - 1] + 1]
            for begin, end in pairwise([0, *ends, len(tables)]):
                first, stop = tables[begin], tables[end - 1] + 1
                size = self.offsets[stop] - self.offsets[first]
                offset = self.cells - self.offsets[first]
                self.runs.append((outer, self._strides(outer, size), offset, first, stop))
                self.cells += size * self._size(outer)

    def _kind(self, nodes: Nodes) -> int:
        if self._shows_finest(nodes):
            return KINDS.index("single")
        if nodes in self.agency_tables:
            return KINDS.index("own")
        if len(nodes) > self.max_variables:
            return KINDS.index("extra")
        finest = all(self.nodes[k][1].finest for k in nodes)
        return KINDS.index("finest" if finest else "coarser")

    def _tables(self) -> Iterator[ControlledTable]:
        for outer, strides, offset, first, stop in self.runs:
            for t in range(first, stop):
                nodes = (*self.slice[t], *outer)
                is_agency_table = nodes in self.agency_tables
                yield ControlledTable(
                    tuple(self.nodes[k][1] for k in (*outer, *self.slice[t])),
                    offset + self.offsets[t],
                    (*strides, *self.strides[t]),
                    is_agency_table,
                    len(nodes) > self.max_variables and not is_agency_table,
                )

    def _layout(self) -> SearchLayout:
        most_codes = max(level.group_of.size for _, level in self.nodes)
        position = np.zeros((self.dummy + 1, most_codes), dtype=np.uint32)
        for k, (_, level) in enumerate(self.nodes):
            position[k, : level.group_of.size] = level.group_of
        variable_of = np.array([v for v, _ in self.nodes] + [0], dtype=np.uint32)
        first_node = np.searchsorted(variable_of[:-1], np.arange(len(self.names) + 1))
        table_index = {nodes: t for t, nodes in enumerate(self.slice)}
        deep = max(1, *(len(run[0]) for run in self.runs))
        run_node = np.full((deep, len(self.runs)), self.dummy, dtype=np.uint32)
        run_stride = np.zeros((deep, len(self.runs)), dtype=np.uint32)
        kind = np.zeros((len(self.runs), len(self.slice)), dtype=np.uint8)
        entries: list[list[tuple[int, ...]]] = [[] for _ in self.nodes]
        pairs: list[list[tuple[int, ...]]] = [[] for _ in range(self.dummy**2)]
        for r, (outer, strides, _, first, stop) in enumerate(self.runs):
            run_node[: len(outer), r] = outer
            run_stride[: len(outer), r] = strides
            for t in range(first, stop):
                inner = self.slice[t]
                kind[r, t] = self._kind((*inner, *outer))
                table = (r, t, int(kind[r, t]))
                both = (
                    *zip(inner, self.strides[t], strict=True),
                    *zip(outer, strides, strict=True),
                )
                for k, stride in both:
                    entries[k].append((*table, stride))
                for (k, one), (other, two) in combinations(both, 2):
                    pairs[k * self.dummy + other].append((*table, one, two))
        # The tables that weigh most come first: they tell soonest that an exchange is not worth it.
        rank = [KINDS.index(kind) for kind in ("own", "finest", "extra", "coarser", "single")]
        pairs = [sorted(many, key=lambda entry: rank.index(entry[2])) for many in pairs]
        return SearchLayout(
            variable_of=variable_of,
            position=position,
            first_node=first_node.astype(np.int64),
            table_parent=np.array(
                [table_index[nodes[:-1]] for nodes in self.slice], dtype=np.uint32
            ),
            table_node=np.array(
                [nodes[-1] if nodes else self.dummy for nodes in self.slice], dtype=np.uint32
            ),
            table_size=np.array([self._size(nodes[-1:]) for nodes in self.slice], dtype=np.uint32),
            table_offset=np.array(self.offsets[:-1], dtype=np.uint32),
            table_end=np.array(self.offsets[1:], dtype=np.int64),
            run_node=run_node,
            run_stride=run_stride,
            # A run that begins with a later slice table has an offset below zero, which that table's adds back.
            run_offset=np.array([run[2] for run in self.runs], dtype=np.int64),
            run_first=np.array([run[3] for run in self.runs], dtype=np.int64),
            run_stop=np.array([run[4] for run in self.runs], dtype=np.int64),
            kind=kind,
            cell_kind=self._cell_kinds(kind),
            nodes=TablesOf.of(entries, 1),
            pairs=TablesOf.of(pairs, 2),
        )

    def _cell_kinds(self, kind: Array) -> Array:
        sizes = np.diff(self.offsets)
        parts = [np.zeros(0, dtype=np.uint8)]
        for r, (outer, _, _, first, stop) in enumerate(self.runs):
            slice_kinds = np.repeat(kind[r, first:stop], sizes[first:stop])
            parts.append(np.tile(slice_kinds, self._size(outer)))
        return np.concatenate(parts)


Nodes = tuple[int, ...]
_APART = 2
_RARER = 4


def all_tables(nodes: Sequence[tuple[int, ControlledLevel]], max_variables: int) -> list[Nodes]:
    """All tables of at most ``max_variables`` variables.

    A table is given by its nodes, in the order of their variables.
    """
    variables = sorted({variable for variable, _ in nodes})
    of_variable = {v: [k for k, (owner, _) in enumerate(nodes) if owner == v] for v in variables}
    return [
        table
        for order in range(max_variables + 1)
        for chosen in combinations(variables, order)
        for table in product(*(of_variable[v] for v in chosen))
    ]


def nodes_apart(nodes: Sequence[tuple[int, ControlledLevel]]) -> list[int]:
    """The finest level of every variable and those that are at least twice as coarse as the one before.

    What lies between two such levels errs little more than the finer of them.
    """
    selected: list[int] = []
    last: dict[int, int] = {}
    for k, (variable, level) in sorted(enumerate(nodes), key=lambda one: -one[1][1].size):
        if variable not in last or _APART * level.size <= last[variable]:
            last[variable] = level.size
            selected.append(k)
    return sorted(selected)


def choose_extra_tables(
    nodes: Sequence[tuple[int, ControlledLevel]], max_variables: int, tables: int, cells: int
) -> list[Nodes]:
    """Tables of more than ``max_variables`` variables, those with the fewest cells first.

    ``tables`` is how many there may be at most, and ``cells`` how many cells each may have. People ask less
    often for tables of more variables, so each further variable counts like four times the cells.
    """
    apart = nodes_apart(nodes)
    waiting: list[tuple[int, Nodes]] = [(1, ())]
    extra_tables: list[Nodes] = []
    # A table counts for more than those it extends, so that the smallest one waiting is the next.
    while waiting and len(extra_tables) < tables:
        size, table = heappop(waiting)
        if len(table) > max_variables:
            extra_tables.append(table)
        after = nodes[table[-1]][0] if table else -1
        rarer = _RARER if len(table) > max_variables else 1
        for k in apart:
            variable, level = nodes[k]
            if variable > after and size * level.size * rarer <= cells:
                heappush(waiting, (size * level.size * rarer, (*table, k)))
    return extra_tables
