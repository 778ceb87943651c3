"""The tables of a map, and where they come from: each by itself, a hypercube, or records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from lustrum.model import (
    Category,
    Dataset,
    InputError,
    Release,
    Table,
    TableAxis,
    TableQuery,
    Variable,
)
from lustrum.model.arrays import Ints
from lustrum.model.errors import choices
from lustrum.model.finest import FinestCells
from lustrum.model.variable import TOTAL_CODE
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.abilities import ProtectsRecords, ProtectsTables, Rehearses
from lustrum.protect.method import released, whole_counts
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.report import SUPPORT, rehearsed_people
from lustrum.protect.totals.inner_table import InnerTable
from lustrum.rumap.grids import BeforeCounting, MapMethod

if TYPE_CHECKING:
    from lustrum.tabulate import KernelEngine

# A table as a population of its own, for methods that protect the finest cells once.
#
# The inner cells of the table stand for the finest cells of a dataset. Totals are then sums of protected
# cells, as every answer from a protected population is.


def protects_populations(method: Any) -> bool:
    """Whether a method protects the finest cells of a population, and not a table."""
    return "population" in getattr(method, "stages", ())


def released_population(method: Any, table: Table, rng: np.random.Generator) -> Release:
    """What a method for populations publishes of a table whose inner cells are all there is.

    The release has no channel: what a cell shows depends on the others. Its bounds are those that everybody may
    know of finest cells, added up.
    """
    whole_counts(table, "A protected population")
    inner = InnerTable.of(table.axes, "A protected population")
    counts = inner.counts(table)
    possible = inner.possible(table)
    dataset = Dataset(
        name="table",
        title="table",
        variables=tuple(
            Variable(name, name, codes, codes)
            for name, codes in (
                (name, tuple(str(i) for i in range(size)))
                for name, size in zip(inner.names, inner.shape, strict=True)
            )
        ),
    )
    where = np.nonzero(counts)
    cells = FinestCells(dataset, np.stack(where), counts[where])
    shown = np.zeros(inner.shape, dtype=np.int64)
    if isinstance(method, ProvenPopulation):
        protected, support = rehearsed_people(method, cells, rng), SUPPORT
    else:
        protected, support = method.protect(cells, rng.bytes(32)).cells, method.support
    shown[tuple(protected.codes.astype(np.intp))] = protected.counts
    low, high = support.bounds(shown)
    if possible is not None:
        # A cell that cannot hold anybody is 0, whatever the search was allowed to show there.
        shown, low, high = (np.where(possible, a, 0) for a in (shown, low, high))
    return released(
        table,
        method,
        inner.added_up(shown),
        low=inner.added_up(low),
        high=np.minimum(inner.added_up(high), UNBOUNDED),
    )


class Cases(Protocol):
    """Named tables, and what a method makes of them in one go."""

    @property
    def tables(self) -> Mapping[str, Table]: ...

    @property
    def identity(self) -> str: ...

    def protect(self, method: MapMethod, rng: np.random.Generator) -> dict[str, Release]:
        """All tables, protected by one draw of a method."""
        ...


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables that are protected one by one."""

    tables: Mapping[str, Table]

    @cached_property
    def identity(self) -> str:
        return _joined(f"{name} {digest(table)}" for name, table in self.tables.items())

    def protect(self, method: MapMethod, rng: np.random.Generator) -> dict[str, Release]:
        """Each table by itself, with chance of its own."""
        parts = zip(self.tables.items(), rng.spawn(len(self.tables)), strict=True)
        return {name: protected(method, table, stream) for (name, table), stream in parts}


@dataclass(frozen=True)
class HypercubeView:
    """A table of a hypercube: the variables that span it, the categories that are selected, and totals."""

    by: tuple[str, ...]
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    totals: bool = False


@dataclass(frozen=True, eq=False)
class HypercubeTables:
    """Tables added up from one hypercube, which methods can protect before anything is counted.

    >>> cube = Table.from_counts([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], names=["a", "b", "c"])
    >>> HypercubeTables(cube, {"t": HypercubeView(("b",), {"a": ("2",)})}).tables["t"].values.tolist()
    [11, 15]
    """

    cube: Table
    views: Mapping[str, HypercubeView]

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        return {name: self._table(view) for name, view in self.views.items()}

    @cached_property
    def identity(self) -> str:
        views = [
            f"{name} {view.by} {dict(view.where)} {view.totals}"
            for name, view in self.views.items()
        ]
        return _joined([digest(self.cube), *views])

    def protect(self, method: MapMethod, rng: np.random.Generator) -> dict[str, Release]:
        """The tables of the protected hypercube; any other method protects each table by itself."""
        if protects_populations(method):
            whole = released_population(method, self.cube, rng)
            return {name: self._added_up(view, method, whole) for name, view in self.views.items()}
        if not isinstance(method, BeforeCounting):
            return Tables(self.tables).protect(method, rng)
        parts = self._parts(method.within)
        releases = [protected(method.method, part, rng) for part in parts]
        if not all(bool(m.shown.all()) for m in releases):
            raise InputError(
                f"The method {method.method.name!r} leaves suppressed cells, from which no table can be "
                "added up."
            )
        axis = self._axis(method.within) if method.within else 0

        def joined(arrays: Sequence[Ints]) -> Ints:
            return arrays[0] if len(arrays) == 1 else np.concatenate(list(arrays), axis=axis)

        shown = joined([m.numbers for m in releases])
        return {
            name: self._release(view, method, shown, releases[0])
            for name, view in self.views.items()
        }

    def _release(
        self, view: HypercubeView, method: MapMethod, shown: Ints, cube_release: Release
    ) -> Release:
        table = self._table(view)
        return released(
            table,
            method,
            self._summed(view, shown),
            # The paper of 2015 judges a table by the channel of the hypercube (section 5.2).
            channel=cube_release.channel,
            low=np.zeros(table.shape, dtype=np.int64),
            high=np.full(table.shape, UNBOUNDED, dtype=np.int64),
        )

    def _added_up(self, view: HypercubeView, method: MapMethod, whole: Release) -> Release:
        """A table of a protected population: all that is known of it is added up too."""
        assert whole.least is not None
        assert whole.most is not None
        low, high = (self._summed(view, a) for a in (whole.least, whole.most))
        shown = self._summed(view, whole.numbers)
        return released(self._table(view), method, shown, low=low, high=high)

    def _parts(self, within: str) -> list[Table]:
        if not within:
            return [self.cube]
        axis = self._axis(within)
        every = [np.arange(n) for n in self.cube.shape]
        return [
            self.cube.take([*every[:axis], np.array([i]), *every[axis + 1 :]])
            for i in range(self.cube.shape[axis])
        ]

    def _axis(self, name: str) -> int:
        known = [axis.name for axis in self.cube.axes]
        if name not in known:
            raise InputError(f"The hypercube has no variable {name!r}; {choices(name, known)}.")
        return known.index(name)

    def _table(self, view: HypercubeView) -> Table:
        axes = tuple(self.cube.axes[self._axis(name)] for name in view.by)
        if view.totals:
            axes = tuple(_with_total(axis) for axis in axes)
        keys = self.cube.keys
        values = self._summed(view, self.cube.values)
        return Table(
            axes=axes,
            values=values,
            contributors=values,
            keys=None if keys is None else self._summed(view, keys),
            provenance={"query": {"where": dict(view.where)}} if view.where else {},
        )

    def _summed(self, view: HypercubeView, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        for name, codes in view.where.items():
            axis = self._axis(name)
            known = self.cube.axes[axis].codes
            for code in codes:
                if code not in known:
                    raise InputError(
                        f"The variable {name!r} has no code {code!r}; {choices(code, known)}."
                    )
            array = array.take([known.index(code) for code in codes], axis=axis)
        order = [self._axis(name) for name in view.by]
        rest = tuple(i for i in range(array.ndim) if i not in order)
        summed = array.sum(axis=rest, dtype=array.dtype)
        left = sorted(order)
        table_counts = summed.transpose([left.index(i) for i in order])
        if view.totals:
            for axis in range(table_counts.ndim):
                total = table_counts.sum(axis=axis, keepdims=True, dtype=table_counts.dtype)
                table_counts = np.concatenate([table_counts, total], axis=axis)
        return np.asarray(table_counts)


@dataclass(frozen=True, eq=False)
class RecordTables:
    """Tables counted from records by their questions, which methods for records can protect."""

    engine: KernelEngine
    queries: Mapping[str, TableQuery]

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        return {name: self.engine.tabulate(query) for name, query in self.queries.items()}

    @cached_property
    def identity(self) -> str:
        from lustrum.tabulate import records_of

        records = records_of(self.engine)
        columns = {**records.codes, **records.numbers, **records.ids}
        parts = [
            hashlib.sha256(np.ascontiguousarray(c).tobytes()).hexdigest() for c in columns.values()
        ]
        return _joined([*columns, *parts, *(f"{n} {q}" for n, q in self.queries.items())])

    def protect(self, method: MapMethod, rng: np.random.Generator) -> dict[str, Release]:
        """Tables of protected records; a method for tables protects each of them by itself."""
        from lustrum.tabulate import RecordsEngine, records_of

        if not isinstance(method, ProtectsRecords):
            return Tables(self.tables).protect(method, rng)
        changed = RecordsEngine(method.apply_records(records_of(self.engine), rng))
        return {name: method.publish(changed.tabulate(q)) for name, q in self.queries.items()}


def _with_total(axis: TableAxis) -> TableAxis:
    """The same axis with a category more that holds everybody."""
    members = tuple(sorted({m for category in axis.categories for m in category.members}))
    total = Category(TOTAL_CODE, "Total", members)
    return replace(axis, categories=(*axis.categories, total))


def cases_of(tables: Table | Sequence[Table] | Mapping[str, Table] | Cases) -> Cases:
    """Tables in any of the forms that a map takes, by name.

    >>> list(cases_of([Table.from_counts([1, 2]), Table.from_counts([3, 4])]).tables)
    ['table 1', 'table 2']
    """
    if isinstance(tables, Table):
        return Tables({"table": tables})
    if isinstance(tables, Mapping):
        by_name = dict(tables)
    elif isinstance(tables, Sequence):
        by_name = {f"table {i}": table for i, table in enumerate(tables, start=1)}
    else:
        return tables
    if not by_name or not all(isinstance(table, Table) for table in by_name.values()):
        raise InputError("A map needs one table or more, each a Table.")
    return Tables(by_name)


def protected(method: MapMethod, table: Table, rng: np.random.Generator) -> Release:
    if isinstance(method, BeforeCounting):
        raise InputError(f"{method.name!r} needs a hypercube; give the tables as a Cube of it.")
    if isinstance(method, ProtectsRecords) and not isinstance(method, ProtectsTables):
        raise InputError(f"The method {method.name!r} changes records; give the tables as Records.")
    if protects_populations(method):
        return released_population(method, table, rng)
    if isinstance(method, Rehearses):
        release: Release = method.rehearse(table, rng)
    else:
        release = method.apply(replace(table, keys=None) if table.keys is not None else table, rng)
    return release


def _joined(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def digest(table: Table) -> str:
    """What tells two tables apart. It follows from true counts and stays with the agency."""
    h = hashlib.sha256(repr((table.kind, table.decimals, table.shape)).encode())
    for axis in table.axes:
        h.update(repr((axis.name, [(c.code, c.members) for c in axis.categories])).encode())
    for array in (table.values, table.structural):
        h.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
    if table.contributions is not None:
        h.update(np.ascontiguousarray(table.contributions.value).tobytes())
    return h.hexdigest()
