"""How the cells of all controlled tables lie in one array of errors, and how a finest cell finds its own.

The variables are split. The *outer* ones are the *major* variable, which has most codes, and where there are
many variables the one with most levels besides; the others are *inner* ones. A table is a table of inner
variables, a *slice table*, for every category of its outer ones. Slice tables that several outer levels share
lie side by side, in *runs*: a finest cell works out its places in the slice tables once, and finds its cells in
every run by adding where the run begins. While the search works on one area, what it reads fits the first
caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from lustrum.model import Dataset
from lustrum.model.arrays import Array
from lustrum.protect.population.search.levels import ControlledLevel

# Which tables are controlled: all of few variables, and of more variables those with the fewest cells.

Nodes = tuple[int, ...]
"""A table by its nodes, each a level of a variable, in the order of their variables."""
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


KINDS = ("coarser", "finest", "own", "extra", "single")
"""Kinds of tables, which may cost differently: at coarser levels, at finest ones, the agency's own, those of
more variables, and those with single finest cells, which cost nothing."""
SHARED = len(KINDS)
"""Tables that a block shares with others have their kind and this more, and the errors of all blocks."""
Run = tuple[Nodes, tuple[int, ...], int, int, int]


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


class SearchCells(NamedTuple):
    """The cells that may move, sorted by the major variable."""

    codes: Array  # (cells, variables), the major variable last
    up: Array  # whether a cell shows its upper number
    group: Array  # -1: free; otherwise cells of one group keep their sum
    is_empty: Array  # empty in truth
    low_smallest: Array  # whether the lower number is the smallest one above 0
    high_smallest: Array
    first: Array  # major code -> its first cell; one more at the end
    block_first: Array  # major code -> its first slice; one more at the end
    slice_first: Array  # slice -> its first cell; one more at the end
    partner: Array  # (cells, variables): the next cell along a variable, or -1
    number: Array  # the place among all combinations of codes, modulo 2**64
    slot: Array  # where the number of a cell is found
    tied: bool  # whether any cell has a group
    kind: Array  # -1: free; otherwise the class of a cell, by its residue and whether it is below the base
    least_up: Array  # class -> the fewest of its cells that stand at their upper number,
    most_up: Array  # and the most


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
    own_cells: int  # the cells of shared tables come after these,
    shared_cells: Array  # and this is where each of them lies in the plan of shared tables

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
