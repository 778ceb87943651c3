"""Which tables of a dataset are controlled, and how they are laid out.

All tables of few variables are controlled, and of more variables those with the fewest cells. The errors of a
table that is not controlled grow with the number of finest cells in each of its cells. Tables of more
variables at coarse levels are the worst, so they are taken smallest first, up to a number of tables that
bounds the work and a number of cells that bounds the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import prod

import numpy as np

from lustrum.model import Dataset, InputError
from lustrum.model.arrays import Array
from lustrum.protect.population.search.layout import (
    KINDS,
    SHARED,
    ControlledTable,
    Nodes,
    Run,
    SearchLayout,
    TablePlan,
    TablesOf,
    all_tables,
    choose_extra_tables,
    nodes_apart,
)
from lustrum.protect.population.search.levels import (
    ControlledLevel,
    controlled_levels,
    find_level,
    renumbered,
)

_MOST_CELLS = 2**31
_MANY_VARIABLES = 5


def plan_tables(
    dataset: Dataset,
    max_variables: int = 3,
    agency_tables: Sequence[Sequence[str]] = (),
    *,
    finest_only: bool = False,
    extra_tables: int = 0,
    extra_cells: int = 10_000,
    shared: Shared | None = None,
) -> TablePlan:
    """Plan the tables of up to ``max_variables`` variables, at all levels or at the finest ones only.

    The agency's own tables are planned too, and ``extra_tables`` tables of more variables, the smallest first,
    each of at most ``extra_cells`` cells. ``shared`` are tables that a block shares with others: their errors
    lie in the plan once more.
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
    chosen = builder.chosen(agency_tables, extra_tables, extra_cells)
    return builder.build(chosen, shared)


@dataclass(frozen=True, eq=False)
class Shared:
    """Tables that blocks share; a block has ``members`` of the codes of the variable ``root``."""

    plan: TablePlan
    root: str
    members: Array

    def groups(self, level: ControlledLevel) -> Array:
        """The groups of a level for the codes that the block has."""
        return level.group_of[self.members] if level.variable == self.root else level.group_of


def plan_shared(
    dataset: Dataset,
    root: str,
    block_of: Array,
    max_variables: int = 3,
    agency_tables: Sequence[Sequence[str]] = (),
    extra_tables: int = 0,
    extra_cells: int = 10_000,
) -> TablePlan | None:
    """Plan those tables of a dataset whose cells lie in several blocks; None where there are none.

    ``block_of`` is the block of every code of the variable ``root``, whose coarser levels can
    cross blocks.
    """
    every = controlled_levels(dataset)
    crossing = tuple(level for level in every[root] if _crosses(level, block_of))
    levels = {name: of for name, of in {**every, root: crossing}.items() if of}
    if not levels:
        return None
    whole = _Builder(dataset, every, list(every), len(every) - 1, max_variables)
    mine = {id(level) for many in levels.values() for level in many}
    chosen = [
        tuple(whole.nodes[k][1] for k in nodes)
        for nodes in sorted(whole.chosen(agency_tables, extra_tables, extra_cells))
        if all(id(whole.nodes[k][1]) in mine for k in nodes)
    ]
    names = sorted(levels, key=lambda name: levels[name][0].size)
    builder = _Builder(dataset, levels, names, len(names) - 1, max_variables, whole=False)
    node_of = {id(level): k for k, (_, level) in enumerate(builder.nodes)}
    own = {frozenset(id(whole.nodes[k][1]) for k in nodes) for nodes in whole.agency_tables}
    tables = {tuple(sorted(node_of[id(level)] for level in table)): table for table in chosen}
    builder.agency_tables = {n for n, table in tables.items() if frozenset(map(id, table)) in own}
    return builder.build(set(tables))


def _crosses(level: ControlledLevel, block_of: Array) -> bool:
    """Whether a group of a level lies in more than one block."""
    pairs = np.unique(np.stack([level.group_of, block_of]), axis=1)
    return bool(pairs.shape[1] > level.size)


class _Builder:
    def __init__(
        self,
        dataset: Dataset,
        levels: dict[str, tuple[ControlledLevel, ...]],
        names: list[str],
        inner: int,
        max_variables: int,
        *,
        whole: bool = True,
    ) -> None:
        self.dataset, self.levels, self.names, self.max_variables = (
            dataset,
            levels,
            names,
            max_variables,
        )
        self.whole = whole  # whether the names are all variables
        self.divided: str | None = None  # the variable of which this is one block among others
        self.nodes = [(v, level) for v, name in enumerate(names) for level in levels[name]]
        self.dummy = len(self.nodes)
        self.first_outer = next(k for k, (v, _) in enumerate(self.nodes) if v >= inner)
        self.slice: list[Nodes] = []
        self.strides: list[tuple[int, ...]] = []
        self.offsets: list[int] = []
        # A run: its outer nodes, their strides, its offset, and the stretch of slice tables it has.
        self.runs: list[Run] = []
        self.agency_tables: set[Nodes] = set()
        self.cells = 0

    def chosen(
        self, agency_tables: Sequence[Sequence[str]], extra_tables: int, extra_cells: int
    ) -> set[Nodes]:
        """The tables to control."""
        self.agency_tables = {self._own_table(variables) for variables in agency_tables}
        extra = choose_extra_tables(self.nodes, self.max_variables, extra_tables, extra_cells)
        return {*all_tables(self.nodes, self.max_variables), *self.agency_tables, *extra}

    def build(self, chosen: set[Nodes], shared: Shared | None = None) -> TablePlan:
        """Lay out the chosen tables, and those that are shared after them."""
        copies = [] if shared is None else self._copies(shared)
        self.divided = None if shared is None else shared.root
        self._lay_out_slices(chosen | {nodes for _, nodes in copies})
        self._lay_out_runs(list(chosen))
        own_cells, own_runs = self.cells, len(self.runs)
        order = self._lay_out_runs([nodes for _, nodes in copies])
        numbers = [copies[j][0] for j in order]
        if self.cells >= _MOST_CELLS:
            raise InputError(
                f"The controlled tables have {self.cells:,} cells; control tables of fewer variables."
            )
        tables = list(self._tables(self.runs[:own_runs]))
        copied = list(self._tables(self.runs[own_runs:]))
        cells = np.zeros(self.cells - own_cells, dtype=np.int64)
        kinds: list[int] = []
        if shared is not None:
            for number, table in zip(numbers, copied, strict=True):
                there = shared.plan.tables[number]
                cells[table.places() - own_cells] = self._places(table, there, shared)
                kinds.append(SHARED + int(shared.plan.layout.cell_kind[there.start]))
        return TablePlan(
            self.dataset,
            tuple(self.names),
            self.names[-1],
            (*tables, *copied),
            self.cells,
            self._layout(own_runs, kinds),
            self.max_variables,
            len(self.names) - self.nodes[self.first_outer][0],
            own_cells,
            cells,
        )

    def _copies(self, shared: Shared) -> list[tuple[int, Nodes]]:
        """The number and the nodes of every shared table that can be told from the levels of this block."""
        nodes_of: dict[int, Nodes | None] = {}
        for table in shared.plan.tables:
            for level in table.levels:
                if id(level) not in nodes_of:
                    nodes_of[id(level)] = self._same_groups(level, shared)
        copies = []
        for number, table in enumerate(shared.plan.tables):
            found = [nodes_of[id(level)] for level in table.levels]
            nodes = tuple(sorted(k for some in found if some is not None for k in some))
            if None not in found and len({self.nodes[k][0] for k in nodes}) == len(nodes):
                copies.append((number, nodes))
        return copies

    def _same_groups(self, level: ControlledLevel, shared: Shared) -> Nodes | None:
        """The node with the groups that a level has in this block, none for a single group."""
        groups = shared.groups(level)
        if (groups == groups[0]).all():
            return ()
        groups = renumbered(groups)
        for k, (_, own) in enumerate(self.nodes):
            if own.variable == level.variable and np.array_equal(own.group_of, groups):
                return (k,)
        return None

    def _places(self, table: ControlledTable, there: ControlledTable, shared: Shared) -> Array:
        """Where the cells of a shared table lie in the plan of these, in the shape that it has here."""
        axis_of = {level.variable: axis for axis, level in enumerate(table.levels)}
        places = np.full(table.shape, there.start, dtype=np.int64)
        for level, stride in zip(there.levels, there.strides, strict=True):
            groups = shared.groups(level)
            axis = axis_of.get(level.variable)
            if axis is None:
                places += stride * groups[0]
                continue
            _, first = np.unique(table.levels[axis].group_of, return_index=True)
            along = [1] * len(table.shape)
            along[axis] = -1
            places += stride * groups[first].reshape(along)
        return places

    def _shows_finest(self, nodes: Nodes) -> bool:
        """Whether single finest cells are cells of a table.

        Errors of such a table cost nothing. Otherwise the search would move every finest cell to the nearest
        number, so that a shown number would tell the true one; and most of its errors are below the base.
        """
        return (
            self.whole
            and len(nodes) == len(self.names)
            and all(int(np.bincount(self.nodes[k][1].group_of).min()) == 1 for k in nodes)
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

    def _lay_out_runs(self, chosen: Sequence[Nodes]) -> list[int]:
        """Lay out the runs of some tables; says in which order these lie there."""
        table_index = {nodes: t for t, nodes in enumerate(self.slice)}
        within: dict[Nodes, list[tuple[int, int]]] = {}
        for number, table in enumerate(chosen):
            outer, inner = self._split(table)
            within.setdefault(outer, []).append((table_index[inner], number))
        order: list[int] = []
        for outer in sorted(within, key=lambda nodes: (len(nodes), nodes)):
            numbered = sorted(within[outer])
            tables = [t for t, _ in numbered]
            order += [number for _, number in numbered]
            ends = [j for j in range(1, len(tables)) if tables[j] != tables[j - 1] + 1]
            for begin, end in pairwise([0, *ends, len(tables)]):
                first, stop = tables[begin], tables[end - 1] + 1
                size = self.offsets[stop] - self.offsets[first]
                offset = self.cells - self.offsets[first]
                self.runs.append((outer, self._strides(outer, size), offset, first, stop))
                self.cells += size * self._size(outer)
        return order

    def _kind(self, nodes: Nodes) -> int:
        if self._shows_finest(nodes):
            return KINDS.index("single")
        if nodes in self.agency_tables:
            return KINDS.index("own")
        # A table of a block alone is one more variable of the whole, and at a coarse level.
        block = self.divided is not None and self.divided not in {
            self.nodes[k][1].variable for k in nodes
        }
        if len(nodes) + block > self.max_variables:
            return KINDS.index("extra")
        if block:
            return KINDS.index("coarser")
        finest = all(self.nodes[k][1].finest for k in nodes)
        return KINDS.index("finest" if finest else "coarser")

    def _tables(self, runs: Sequence[Run]) -> Iterator[ControlledTable]:
        for outer, strides, offset, first, stop in runs:
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

    def _layout(self, own_runs: int, shared_kinds: Sequence[int]) -> SearchLayout:
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
        shared = iter(shared_kinds)
        for r, (outer, strides, _, first, stop) in enumerate(self.runs):
            run_node[: len(outer), r] = outer
            run_stride[: len(outer), r] = strides
            for t in range(first, stop):
                inner = self.slice[t]
                kind[r, t] = self._kind((*inner, *outer)) if r < own_runs else next(shared)
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
        first_kinds = [
            KINDS.index(kind) for kind in ("own", "finest", "extra", "coarser", "single")
        ]
        rank = [*first_kinds, *range(SHARED, 2 * SHARED)]
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
