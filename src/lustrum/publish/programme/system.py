"""Linked tables of several responses as one system of cells, with the true values of all of them.

A reader sees all tables of a set together. Tables of one response are tied because they are sums of the same
people; responses are tied by relations such as ``turnover = domestic + export``. Responses without relations
make systems of their own. Cells that no table shows, but that follow from those shown, are part of a system.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from lustrum.audit import PublishedTable, Relation
from lustrum.audit.knowledge.published import hidden_cube
from lustrum.audit.knowledge.responses import Related, layout_key, related
from lustrum.model import (
    Axis,
    Category,
    Dataset,
    Group,
    InputError,
    Table,
    TableAxis,
    TableQuery,
    Variable,
)
from lustrum.model.arrays import Ints, Mask
from lustrum.model.errors import choices
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.numeric.structure import Structure, TableLayout
from lustrum.publish.programme.spec import COUNT, PreparedSet, ProgrammeTable, Source
from lustrum.publish.waivers import read_waivers
from lustrum.sensitivity import Background
from lustrum.tabulate import EmbeddedEngine, Store
from lustrum.tabulate.frame import FrameEngine
from lustrum.tabulate.keys import Secret
from lustrum.tabulate.sources import FileSource, read_description

MOST_CELLS = 2_000_000
"""Cells of a system, those that no table shows included; beyond, a set must be split."""


@dataclass(frozen=True, eq=False, repr=False)
class SystemPart:
    """One response in one layout: a table that is shown, or one that only follows from others."""

    response: str
    layout: TableLayout
    query: TableQuery
    true: Table
    table: ProgrammeTable | None = None

    @property
    def shown(self) -> bool:
        return self.table is not None

    @property
    def name(self) -> str:
        """How messages call it."""
        return self.response if self.table is None else f"{self.table.name}, {self.response}"


@dataclass(frozen=True, eq=False, repr=False)
class ProgrammeSystem:
    """The parts of a system, and the cells of all of them, those of the hidden cube included."""

    responses: tuple[str, ...]
    parts: tuple[SystemPart, ...]
    relations: tuple[str, ...]
    decimals: int
    values: Ints
    layouts: tuple[TableLayout, ...]
    variables: tuple[Variable, ...]
    known: Related = field(repr=False)

    def __repr__(self) -> str:
        return f"ProgrammeSystem({', '.join(self.responses)}: {len(self.parts)} tables)"

    @property
    def counts(self) -> bool:
        return self.responses == (COUNT,)

    @property
    def single(self) -> bool:
        return len(self.parts) == 1 and self.values.size == self.parts[0].true.values.size

    def scale(self, part: SystemPart) -> int:
        return int(10 ** (self.decimals - part.true.decimals))

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """Where the cells of each part stand in the system."""
        taken = {name: iter(spans) for name, spans in self.known.spans.items()}
        return tuple(next(taken[part.response]) for part in self.parts)


def named_cells(part: SystemPart, key: Literal["frozen", "never"]) -> Mask:
    """The cells that a table of the programme names, flat."""
    mask = np.zeros(part.true.shape, dtype=np.bool_)
    named = () if part.table is None else getattr(part.table, key)
    for cell in named:
        index: list[Any] = [slice(None)] * len(part.true.axes)
        for at, axis in enumerate(part.true.axes):
            if axis.name in cell:
                code = cell[axis.name]
                if code not in axis.codes:
                    raise InputError(
                        f"Table {part.name.split(',')[0]!r}: {key!r} names the code {code!r} of {axis.name!r}, "
                        f"which it does not show; {choices(code, axis.codes)}."
                    )
                index[at] = axis.codes.index(code)
        mask[tuple(index)] = True
    flat: Mask = mask.ravel()
    return flat


def systems_of(table_set: PreparedSet, records: RecordSource, ranks: int) -> list[ProgrammeSystem]:
    """The systems of a set: responses that relations tie stand together."""
    shown = list(dict.fromkeys(r for table in table_set.tables for r in table.responses))
    relations = [Relation.of(equation) for equation in table_set.relations]
    every = list(dict.fromkeys([*shown, *(name for r in relations for name in r.weights)]))
    groups = _tied(every, relations)
    return [
        _system(table_set, records, names, ranks)
        for names in groups
        if any(name in shown for name in names)
    ]


def _tied(names: Sequence[str], relations: Sequence[Relation]) -> list[tuple[str, ...]]:
    group = {name: i for i, name in enumerate(names)}
    for relation in relations:
        first, *others = relation.weights
        for other in others:
            old, new = group[other], group[first]
            group = {name: new if g == old else g for name, g in group.items()}
    groups: dict[int, list[str]] = {}
    for name in names:
        groups.setdefault(group[name], []).append(name)
    return [tuple(members) for members in groups.values()]


def _system(
    table_set: PreparedSet, records: RecordSource, names: tuple[str, ...], ranks: int
) -> ProgrammeSystem:
    engine, dataset = records.engine, records.dataset
    shown: list[SystemPart] = []
    seen: dict[tuple[str, tuple[object, ...]], str] = {}
    for table in table_set.tables:
        for response in table.responses:
            if response not in names:
                continue
            layout = TableLayout.of_query(table.query, dataset)
            key = (response, layout_key(layout))
            if key in seen:
                raise InputError(
                    f"Tables {seen[key]!r} and {table.name!r} show the same cells of {response!r}; "
                    "one of them is enough."
                )
            seen[key] = table.name
            true = _tabulated(engine, table.query, response, ranks)
            shown.append(SystemPart(response, layout, table.query, true, table))
    layouts = list({layout_key(part.layout): part.layout for part in shown}.values())
    asked = {layout_key(part.layout): part.query for part in shown}
    wanted = _unshown(layouts, table_set.unshown, dataset.variables)
    parts = list(shown)
    for response in names:
        for layout in [*layouts, *wanted] if table_set.unshown != "nothing" else ():
            mark = layout_key(layout)
            if (response, mark) in seen:
                continue
            query = asked.get(mark) or _query_of(
                layout, dataset.name, {v.name: v.codes for v in dataset.variables}
            )
            true = _tabulated(engine, query, response, ranks)
            parts.append(SystemPart(response, layout, query, true))
    parts.sort(key=lambda part: names.index(part.response))
    # A response that no table shows is still tied to the others by its relation.
    tables: dict[str, list[PublishedTable]] = {name: [] for name in names}
    decimals = max(part.true.decimals for part in parts)
    for part in parts:
        tables[part.response].append(PublishedTable.hidden(part.layout, decimals=decimals))
    _check_size([*layouts, *wanted], dataset.variables, len(names), table_set.name)
    tied = table_set.relations if len(names) > 1 else ()
    known = related(tables, tied, variables=dataset.variables)
    values = np.concatenate(
        [_values(engine, known.layouts, response, decimals) for response in names]
    )
    system = ProgrammeSystem(
        responses=names,
        parts=tuple(parts),
        relations=tied,
        decimals=decimals,
        values=values,
        layouts=known.layouts,
        variables=dataset.variables,
        known=known,
    )
    _check_values(system, table_set.name)
    return system


def _tabulated(engine: KernelEngine, query: TableQuery, response: str, ranks: int) -> Table:
    if response == COUNT:
        return engine.tabulate(query)
    asked = TableQuery(query.dataset, query.by, query.where, measure=response)
    return engine.tabulate(asked, ranks=ranks)


def _unshown(
    layouts: Sequence[TableLayout], how: str, variables: Sequence[Variable]
) -> list[TableLayout]:
    """Tables that follow from those shown by taking one away from another.

    A table of some variables, filters included, is cut into pieces by tables of the same variables or of some
    of them, and by people whom its filters leave out but another table counts: all combinations of these pieces
    follow by subtraction.
    """
    if how == "nothing":
        return []
    hidden_layouts: dict[tuple[object, ...], TableLayout] = {}
    for layout in layouts:
        near = [*_within(layout, layouts), *_without_one(layout, layouts)]
        structure = Structure.of_tables(near, variables=variables)
        atoms = {v.name: _atoms(v.name, v.label, v.atom_of, v.count) for v in structure.variables}
        pieces = TableLayout(tuple(atoms[axis.name] for axis in layout.parts))
        if not any(_holds(other, pieces) for other in layouts):
            hidden_layouts.setdefault(layout_key(pieces), pieces)
    if how == "all":
        cube = hidden_cube(layouts, variables)
        if cube is not None:
            hidden_layouts.setdefault(layout_key(cube), cube)
    return list(hidden_layouts.values())


def _within(layout: TableLayout, layouts: Sequence[TableLayout]) -> list[TableLayout]:
    """The tables whose variables are all among those of this one, itself included."""
    names = {axis.name for axis in layout.parts}
    return [other for other in layouts if {axis.name for axis in other.parts} <= names]


def _without_one(layout: TableLayout, layouts: Sequence[TableLayout]) -> list[TableLayout]:
    """The table less each variable that another table leaves out, which counts everybody along it."""
    parts = layout.parts
    return [
        TableLayout(tuple(other for other in parts if other.name != axis.name))
        for axis in parts
        if any(axis.name not in {p.name for p in one.parts} for one in layouts)
    ]


def _atoms(name: str, label: str, atom_of: Ints, count: int) -> TableAxis:
    return TableAxis(
        name,
        label,
        tuple(
            Category(
                f"atom {i + 1}", f"piece {i + 1}", tuple(np.flatnonzero(atom_of == i).tolist())
            )
            for i in range(count)
        ),
    )


def _holds(layout: TableLayout, pieces: TableLayout) -> bool:
    """Whether a table shows all cells of the pieces."""
    if {axis.name for axis in layout.parts} != {axis.name for axis in pieces.axes}:
        return False
    shown = {axis.name: {c.member_set for c in axis.categories} for axis in layout.parts}
    return all(
        category.member_set in shown[axis.name]
        for axis in pieces.axes
        for category in axis.categories
    )


def _query_of(
    layout: TableLayout, dataset: str, codes: Mapping[str, tuple[str, ...]]
) -> TableQuery:
    """The question for a layout without filters whose categories need not have codes of their own."""

    def axis(table_axis: TableAxis) -> Axis:
        groups = (
            Group(c.label, tuple(codes[table_axis.name][m] for m in c.members))
            for c in table_axis.categories
        )
        return Axis(table_axis.name, groups=tuple(groups))

    return TableQuery(dataset, tuple(axis(table_axis) for table_axis in layout.axes))


def _values(
    engine: KernelEngine, layouts: Sequence[TableLayout], response: str, decimals: int
) -> Ints:
    """The true values of all cells of a response, summed from the pieces of the hidden cube."""
    structure = Structure.of_tables(layouts, variables=engine.dataset.variables)
    inner = np.zeros(structure.inner, dtype=np.int64)
    for chunk in engine.chunks:
        cell = np.zeros(chunk.rows, dtype=np.int64)
        inside = np.ones(chunk.rows, dtype=np.bool_)
        for variable in structure.variables:
            codes = chunk.codes[variable.name].astype(np.int64)
            atom = variable.atom_of[codes]
            inside &= atom >= 0
            cell = cell * variable.count + atom
        amount = (
            np.ones(chunk.rows, dtype=np.int64) if response == COUNT else chunk.numbers[response]
        )
        np.add.at(inner, cell[inside], amount[inside])
    measure_decimals = 0 if response == COUNT else engine.dataset.measure(response).decimals
    values: Ints = np.concatenate([v.ravel() for v in structure.published(inner)])
    return values * int(10 ** (decimals - measure_decimals))


def _check_values(system: ProgrammeSystem, name: str) -> None:
    """Two ways to the same numbers must agree, and relations must hold before anything is protected."""
    for part, span in zip(system.parts, system.spans, strict=True):
        tabulated = part.true.values.ravel() * system.scale(part)
        if not np.array_equal(system.values[span], tabulated):
            raise InputError(f"Set {name!r}: {part.name} does not agree with its own records.")
    matrix = system.known.known.matrix
    if bool((matrix @ system.values != 0).any()):
        said = ", ".join(repr(relation) for relation in system.relations)
        raise InputError(
            f"Set {name!r}: the records do not obey {said or 'their totals'} in every cell; correct the "
            "records, or leave the relation out."
        )


def _check_size(
    layouts: Sequence[TableLayout], variables: Sequence[Variable], responses: int, name: str
) -> None:
    structure = Structure.of_tables(layouts, variables=variables)
    cube = int(np.prod(structure.shape, dtype=object))
    cells = responses * (cube + sum(int(np.prod(lay.shape, dtype=object)) for lay in layouts))
    if cells > MOST_CELLS:
        raise InputError(
            f"Set {name!r}: its tables have {cells} cells together with those that follow from them, and at "
            f"most {MOST_CELLS} can be protected at once; split the set, or use coarser levels."
        )


# The records behind a programme: a dataset of the data folder, or a file with its description.


log = logging.getLogger("lustrum.publish")


@dataclass(frozen=True, eq=False, repr=False)
class RecordSource:
    """The engine over the records, and what is known of their contributors beside them."""

    engine: KernelEngine
    background: Background

    @property
    def dataset(self) -> Dataset:
        return self.engine.dataset

    def described_by(self, dataset: Dataset) -> RecordSource:
        """The same records under a description that knows further groups of their codes."""
        return replace(self, engine=self.engine.described_by(dataset))

    def require_unchanged(self) -> None:
        """Refuse to go on where somebody changed the dataset meanwhile."""
        if isinstance(self.engine, EmbeddedEngine):
            self.engine.require_unchanged()


def open_records(source: Source, data: Path, workers: int | None = None) -> RecordSource:
    background = read_waivers(source.waivers, source.requests)
    if source.file is None:
        assert source.dataset is not None
        return _checked(Store(data).open(source.dataset, workers), background, source.requests)
    assert source.description is not None
    dataset = read_description(source.description)
    columns = [
        *(v.name for v in dataset.variables),
        *(m.name for m in dataset.measures),
        *(w.name for w in dataset.weights),
        *dataset.id_columns,
    ]
    parts = [table for table, _ in FileSource(source.file).batches(columns)]
    if not parts:
        raise InputError(f"{source.file} has no records.")
    secret = None if source.secret is None else Secret.load(source.secret)
    engine = FrameEngine(pa.concat_tables(parts), dataset, secret, workers)
    return _checked(engine, background, source.requests)


def _checked(engine: KernelEngine, background: Background, requests: Path | None) -> RecordSource:
    """The records, with those who asked for protection among them; a wrong spelling would protect nobody."""
    if requests is not None:
        columns = [ids for chunk in engine.chunks for ids in chunk.ids.values()]
        missing = background.requested.difference(
            *(ids[background.has_requested(ids)].tolist() for ids in columns)
        )
        if len(missing) == len(background.requested):
            raise InputError(
                f"{requests}: nobody named there has a record; write holdings as the records name them."
            )
        if missing:
            log.warning(
                f"{requests}: {len(missing):,} of {len(background.requested):,} names have no record; "
                "nothing is protected for them."
            )
    return RecordSource(engine, background)
