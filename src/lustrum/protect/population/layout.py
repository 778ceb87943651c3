"""How the cells of all controlled tables lie in one array of errors, and how a finest cell finds its own.

The tables of at most ``ways`` variables are laid out in slices. One slice holds the tables of fewer than
``ways`` variables, all of them without the *major* variable, which is the one with most codes. There is
such a slice for every category of the major variable, at every level, and one for all people. A finest cell
works out its places within one slice and finds its cells in all others by adding where they begin. Tables
of exactly ``ways`` variables without the major one are slices again: for each category of their first
variable, the tables of the variables after it. While the search works on one area, what it reads fits the
first caches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from lustrum.arrays import Array
from lustrum.model import Dataset, InputError
from lustrum.protect.population.levels import ControlledLevel, controlled_levels, find_level

__all__ = ["ControlledTable", "Layout", "Plan", "plan_tables"]

_MOST_CELLS = 2**31


class Layout(NamedTuple):
    """What the compiled search needs to know, as arrays.

    A *node* is a level of a variable; the last node is a dummy at position 0. ``position[k, code]`` is the
    category of a code at node ``k``. Slice tables ``t`` have up to two nodes; runs ``r`` are slices.
    """

    variable_of: Array  # node -> row of the finest codes
    position: Array  # (nodes, codes)
    first_node: Array  # variable -> its first node; one more at the end
    table_node: Array  # (most, tables) nodes of a slice table
    table_stride: Array  # (most, tables)
    table_offset: Array
    run_node: Array  # (most, runs) nodes that say where a slice begins
    run_stride: Array
    run_offset: Array
    run_first: Array  # tables of the slice: from ...
    run_stop: Array  # ... to
    kind: Array  # (runs, tables): 0 for coarser levels, 1 for finest ones, 2 for the agency's own
    node_share: Array  # the share of tables with a node among all
    entry_first: Array  # node -> its first entry; one more at the end
    entry_run: Array  # every table cell that changes with a node: its run,
    entry_table: Array  # its slice table,
    entry_stride: Array  # how far apart neighbours are,
    entry_kind: Array  # and the kind of the table


@dataclass(frozen=True)
class ControlledTable:
    """A controlled table: its levels, where its cells lie, and whether the agency asked for it."""

    levels: tuple[ControlledLevel, ...]
    start: int
    strides: tuple[int, ...]
    own: bool = False

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


@dataclass(frozen=True, eq=False)
class Plan:
    """All controlled tables of a dataset and their layout."""

    dataset: Dataset
    variables: tuple[str, ...]
    major: str
    tables: tuple[ControlledTable, ...]
    cells: int
    layout: Layout

    def rows(self) -> list[int]:
        """The rows of finest codes that the search works with, the major variable last."""
        place = {v.name: i for i, v in enumerate(self.dataset.variables)}
        return [place[name] for name in self.variables]


def plan_tables(
    dataset: Dataset,
    ways: int = 3,
    own: Sequence[Sequence[str]] = (),
    *,
    finest_only: bool = False,
) -> Plan:
    """Plan the tables of up to ``ways`` variables at all levels, or at the finest, and the agency's own
    ones."""
    levels = controlled_levels(dataset)
    if not levels:
        raise InputError("No variable of the dataset has two codes; there is nothing to control.")
    major = max(levels, key=lambda name: levels[name][0].size)
    if finest_only:
        own = [w for w in own if all(find_level(levels, dataset, one).finest for one in w)]
        levels = {name: found if name == major else found[:1] for name, found in levels.items()}
    names = [*(name for name in levels if name != major), major]
    return _Builder(dataset, levels, names, ways).build(own)


class _Builder:
    def __init__(
        self,
        dataset: Dataset,
        levels: dict[str, tuple[ControlledLevel, ...]],
        names: list[str],
        ways: int,
    ) -> None:
        self.dataset, self.levels, self.names = dataset, levels, names
        self.ways = ways
        self.nodes = [(v, level) for v, name in enumerate(names) for level in levels[name]]
        self.dummy = len(self.nodes)
        self.slice: list[tuple[int, ...]] = []
        self.strides: list[tuple[int, ...]] = []
        self.offsets: list[int] = []
        # A run: nodes and strides of its beginning, its offset, and the slice tables it has.
        self.runs: list[tuple[tuple[int, ...], tuple[int, ...], int, int, int]] = []
        self.own: set[frozenset[int]] = set()
        self.cells = 0

    def size(self, node: int) -> int:
        return self.nodes[node][1].size

    def build(self, own: Sequence[Sequence[str]]) -> Plan:
        minor = range(len(self.names) - 1)
        for order in range(self.ways):
            found = [self._nodes_of(chosen) for chosen in combinations(minor, order)]
            # Tables of later variables come last, so that they are one stretch.
            for table in sorted(
                (t for many in found for t in many), key=lambda t: [self.nodes[k][0] for k in t]
            ):
                self._slice_table(table)
        slice_size = self._slice_size
        every = len(self.slice)
        for node in self._of_variable(len(self.names) - 1):
            self._run((node,), (slice_size,), self.cells, 0, every)
            self.cells += slice_size * self.size(node)
        self._run((), (), self.cells, 0, every)
        self.cells += slice_size
        if self.ways > 0:
            self._slices_of_first_variables(minor, every)
        self._add_own(own, every)
        if self.cells >= _MOST_CELLS:
            raise InputError(
                f"The controlled tables have {self.cells:,} cells; control tables of fewer variables."
            )
        return Plan(
            self.dataset,
            tuple(self.names),
            self.names[-1],
            tuple(self._tables(every)),
            self.cells,
            self._layout(every),
        )

    def _nodes_of(self, variables: Sequence[int]) -> list[tuple[int, ...]]:
        return list(product(*(self._of_variable(v) for v in variables)))

    def _of_variable(self, variable: int) -> list[int]:
        return [k for k, (v, _) in enumerate(self.nodes) if v == variable]

    def _slice_table(self, nodes: tuple[int, ...]) -> None:
        strides, size = [], 1
        for node in reversed(nodes):
            strides.append(size)
            size *= self.size(node)
        self.slice.append(nodes)
        self.strides.append(tuple(reversed(strides)))
        self.offsets.append(self._slice_size)
        self._slice_sizes = [*getattr(self, "_slice_sizes", []), size]

    @property
    def _slice_size(self) -> int:
        return sum(getattr(self, "_slice_sizes", []))

    def _run(
        self, nodes: tuple[int, ...], strides: tuple[int, ...], offset: int, first: int, stop: int
    ) -> None:
        self.runs.append((nodes, strides, offset, first, stop))

    def _slices_of_first_variables(self, minor: range, every: int) -> None:
        """The tables of exactly ``ways`` variables without the major one."""
        order = self.ways - 1
        for variable in minor:
            later = [
                t
                for t in range(every)
                if len(self.slice[t]) == order
                and all(self.nodes[k][0] > variable for k in self.slice[t])
            ]
            if not later:
                continue
            first = later[0]
            assert later == list(range(first, every)), "later variables are one stretch"
            size = self._slice_size - self.offsets[first]
            for node in self._of_variable(variable):
                self._run((node,), (size,), self.cells - self.offsets[first], first, every)
                self.cells += size * self.size(node)

    def _add_own(self, own: Sequence[Sequence[str]], every: int) -> None:
        known = {
            frozenset((*nodes, *self.slice[t]))
            for nodes, _, _, first, stop in self.runs
            for t in range(first, stop)
        }
        node_of = {id(level): k for k, (_, level) in enumerate(self.nodes)}
        for words in own:
            found = [find_level(self.levels, self.dataset, word) for word in words]
            nodes = tuple(sorted(node_of[id(level)] for level in found))
            if len({self.nodes[k][0] for k in nodes}) < len(nodes):
                raise InputError(
                    f"A table to be controlled, {' x '.join(words)}, names one variable twice."
                )
            self.own.add(frozenset(nodes))
            if frozenset(nodes) in known:
                continue
            known.add(frozenset(nodes))
            strides, size = [], 1
            for node in reversed(nodes):
                strides.append(size)
                size *= self.size(node)
            self._run(nodes, tuple(reversed(strides)), self.cells, every, every + 1)
            self.cells += size

    def _kind(self, nodes: Sequence[int]) -> int:
        if frozenset(nodes) in self.own:
            return 2
        return int(all(self.nodes[k][1].finest for k in nodes))

    def _tables(self, every: int) -> Iterator[ControlledTable]:
        for nodes, strides, offset, first, stop in self.runs:
            for t in range(first, stop):
                alone = t == every
                inner = () if alone else self.slice[t]
                inner_strides = () if alone else self.strides[t]
                start = offset + (0 if alone else self.offsets[t])
                yield ControlledTable(
                    tuple(self.nodes[k][1] for k in (*nodes, *inner)),
                    start,
                    (*strides, *inner_strides),
                    frozenset((*nodes, *inner)) in self.own,
                )

    def _layout(self, every: int) -> Layout:
        most_codes = max(level.group_of.size for _, level in self.nodes)
        position = np.zeros((self.dummy + 1, most_codes), dtype=np.uint32)
        for k, (_, level) in enumerate(self.nodes):
            position[k, : level.group_of.size] = level.group_of
        variable_of = np.array([v for v, _ in self.nodes] + [0], dtype=np.uint32)
        first_node = np.searchsorted(variable_of[:-1], np.arange(len(self.names) + 1))
        # The last slice table is a dummy at place 0, for runs that are a table by themselves.
        slice_nodes = [*self.slice, ()]
        deep = max(1, *(len(t) for t in slice_nodes))
        table_node = np.full((deep, every + 1), self.dummy, dtype=np.uint32)
        table_stride = np.zeros((deep, every + 1), dtype=np.uint32)
        for t, nodes in enumerate(self.slice):
            table_node[: len(nodes), t] = nodes
            table_stride[: len(nodes), t] = self.strides[t]
        deep = max(1, *(len(run[0]) for run in self.runs))
        run_node = np.full((deep, len(self.runs)), self.dummy, dtype=np.uint32)
        run_stride = np.zeros((deep, len(self.runs)), dtype=np.uint32)
        kind = np.zeros((len(self.runs), every + 1), dtype=np.uint8)
        entries: list[list[tuple[int, int, int, int]]] = [[] for _ in self.nodes]
        for r, (nodes, strides, _, first, stop) in enumerate(self.runs):
            run_node[: len(nodes), r] = nodes
            run_stride[: len(nodes), r] = strides
            for t in range(first, stop):
                w = self._kind((*nodes, *slice_nodes[t]))
                kind[r, t] = w
                for k, stride in zip(nodes, strides, strict=True):
                    entries[k].append((r, t, stride, w))
                if t < every:
                    for k, stride in zip(self.slice[t], self.strides[t], strict=True):
                        entries[k].append((r, t, stride, w))
        tables = sum(run[4] - run[3] for run in self.runs)
        flat = np.array([e for many in entries for e in many], dtype=np.int64).reshape(-1, 4)
        return Layout(
            variable_of=variable_of,
            position=position,
            first_node=first_node.astype(np.int64),
            table_node=table_node,
            table_stride=table_stride,
            table_offset=np.array([*self.offsets, 0], dtype=np.uint32),
            run_node=run_node,
            run_stride=run_stride,
            # Offsets of suffix slices may lie below zero: they come back when a table is added.
            run_offset=np.array([run[2] for run in self.runs], dtype=np.int64),
            run_first=np.array([run[3] for run in self.runs], dtype=np.int64),
            run_stop=np.array([run[4] for run in self.runs], dtype=np.int64),
            kind=kind,
            node_share=np.array([float(len(many)) for many in entries]) / tables,
            entry_first=np.cumsum([0, *(len(many) for many in entries)]).astype(np.int64),
            entry_run=flat[:, 0].astype(np.uint32),
            entry_table=flat[:, 1].astype(np.uint32),
            entry_stride=np.ascontiguousarray(flat[:, 2]),
            entry_kind=flat[:, 3].astype(np.uint8),
        )
