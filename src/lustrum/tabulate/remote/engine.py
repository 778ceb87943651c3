"""The Ibis engine: records stay in a database, and only aggregated cells come here.

Filters, groupings and recodes are part of one GROUP BY that the database runs; sums of record keys come in two
parts of 32 bits. What is left here is to lay the groups out as a table and to add up its totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.model import Dataset, IngestError, Measure, QueryError, Table, TableQuery, Weight
from lustrum.model.arrays import Indices, Words
from lustrum.model.finest import FinestCells, code_type
from lustrum.model.variable import FRAME_ROOM
from lustrum.numeric.counting.cube import Cube, PossibleCells
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.numeric.counting.plan import AxisPlan, Plan
from lustrum.runtime.remembered import Remembered
from lustrum.tabulate.encode import encode_ids
from lustrum.tabulate.finest import strides
from lustrum.tabulate.remote.columns import (
    KEY_HIGH,
    KEY_LOW,
    MOST_CASES,
    RemoteColumns,
    aggregated,
    among,
    recoded,
    sums,
    without_key,
)
from lustrum.tabulate.remote.connection import Connection, Database
from lustrum.tabulate.remote.contributors import ranked_contributions

# Hold records in a database to their description, by aggregates alone.


def check_records(database: Database, columns: RemoteColumns) -> int:
    """Refuse records that an ingest would refuse, and gives how many there are.

    Rows cannot be named, since a table has no order: a sentence names the column.
    """
    table, dataset = columns.table, columns.dataset
    identity = table[str(dataset.record_id)]
    asked = {"rows": table.count(), "different": identity.nunique(), "present": identity.count()}
    for name in dataset.id_columns:
        column = table[name]
        asked[f"empty {name}"] = column.isnull().sum()
        if column.type().is_integer():
            asked[f"negative {name}"] = (column < 0).sum()
    numbers: list[Measure | Weight] = [
        *dataset.measures,
        *(c for w in dataset.weights for c in w.columns),
    ]
    for spec in numbers:
        if columns.missing_units(spec) is None:
            asked[f"empty {spec.name}"] = table[spec.name].isnull().sum()
        columns.whole(spec)
        asked[f"inexact {spec.name}"] = (~columns.is_exact(spec)).sum()
        if isinstance(spec, Weight):
            asked[f"negative {spec.name}"] = (table[spec.name].cast("float64") < 0).sum()
    for weight in dataset.weights:
        if weight.total is not None:
            asked[f"frame {weight.name}"] = columns.whole(weight).cast("float64").sum()
    for i, zero in enumerate(dataset.structural_zeros):
        hit: Any = None
        for name, members in zero.where.items():
            variable = dataset.variable(name)
            one = among(columns.raw(variable), variable, members)
            hit = one if hit is None else hit & one
        asked[f"zero {i}"] = hit.sum()
    answer_row = _first(
        database, table.aggregate(**{f"a{i}": e for i, e in enumerate(asked.values())})
    )
    answers = dict(zip(asked, answer_row, strict=True))
    if not answers["rows"]:
        raise IngestError(f"{columns.source} has no rows; it needs at least one.")
    for question, answer in answers.items():
        kind, _, name = question.partition(" ")
        where = f"{columns.source}, column {name!r}"
        if kind == "frame":
            _check_frame(dataset.weight(name), float(answer or 0.0), where)
        elif kind in _WRONG and answer:
            raise IngestError(f"{where}: {_WRONG[kind]}.")
        elif kind == "zero" and answer:
            zero = dataset.structural_zeros[int(name)]
            raise IngestError(
                f"{columns.source}: a record has a combination of {', '.join(zero.where)} that the description "
                f"says cannot exist ({zero.reason}); correct the record or the description."
            )
    if answers["different"] != answers["rows"]:
        raise IngestError(
            f"{columns.source}, column {dataset.record_id!r}: two records, or two keys, have the same record "
            "id; every record needs its own."
        )
    for variable in dataset.variables:
        plain = columns.unkeyed  # which codes there are needs no keys beside them
        groups = database.rows(plain.table.select(code=plain.raw(variable)).distinct())
        columns.positions(variable, groups.column("code"))
    return int(answers["rows"])


_WRONG = {
    "empty": "a value is missing; fill it, or say what a missing value stands for "
    "('missing' in the description)",
    "inexact": "a value is not a number with at most the described decimals; correct it, or raise "
    "'decimals' in the description",
    "negative": "a value is negative; identifiers and weights must not be",
}


def _first(database: Database, expression: Any) -> list[Any]:
    rows = database.rows(expression)
    return [rows.column(i)[0].as_py() for i in range(rows.num_columns)]


def _check_frame(weight: Weight, summed: float, where: str) -> None:
    assert weight.total is not None
    if abs(summed / 10**weight.decimals - weight.total) > FRAME_ROOM * weight.total:
        raise IngestError(
            f"{where}: the weights do not sum to the frame of {weight.total:,} units within {FRAME_ROOM:.1%}; "
            "calibrate them, or state another 'total' in the description."
        )


_FEW_GROUPS = 1 << 20
_BATCH = 1 << 20
_AXES_KEPT = 1024


@dataclass(frozen=True)
class _Key:
    """One grouping: a column of codes as they are, or an expression for atoms."""

    name: str
    expression: Any
    axis: AxisPlan | None = None
    recode: bool = False

    def group(self, column: Any) -> Any:
        """The grouping over a column of raw codes."""
        if self.axis is None or not self.recode:
            return column
        return recoded(column, self.axis.variable, self.axis.atoms.of_code)


class IbisEngine:
    """Answers from a table in DuckDB, PostgreSQL, Spark or another database that Ibis speaks to.

    ``checked`` says that the records were held to their description already, which is otherwise done before
    the first question.
    """

    def __init__(
        self, connection: Connection | Database, dataset: Dataset, *, checked: bool = False
    ) -> None:
        self.database = connection if isinstance(connection, Database) else Database(connection)
        self._dataset = dataset
        settings = self.database.connection
        records = self.database.table(settings.table)
        keys = None if settings.keys is None else self.database.table(settings.keys)
        self.columns = RemoteColumns(dataset, records, keys, settings.name)
        self._checked = checked
        self._largest: dict[tuple[str | None, str | None], float] = {}
        self._axes = Remembered[AxisPlan](_AXES_KEPT)
        self._possible = PossibleCells(dataset)

    def __repr__(self) -> str:
        return f"IbisEngine({self._dataset.name!r})"

    @property
    def dataset(self) -> Dataset:
        return self._dataset

    def check(self) -> int:
        """Hold all records to their description, by aggregates alone; gives how many there are."""
        rows = check_records(self.database, self.columns)
        self._checked = True
        return rows

    def tabulate(self, query: TableQuery, *, ranks: int = 0) -> Table:
        return self.cube(query, ranks=ranks).shown()

    def cube(self, query: TableQuery, *, unfiltered: bool = False, ranks: int = 0) -> Cube:
        """Count by atoms with one GROUP BY, which the database runs."""
        plan = Plan.of(query, self._dataset, unfiltered, self._axes)
        if not self._checked:
            self.check()
        self._check_range(query)
        measured = query.measure is not None or query.weight is not None
        keys = self._keys(plan)
        total = plan.size * plan.layers
        rows = self.database.rows(self._grouped(plan, keys, measured), few=total <= _FEW_GROUPS)
        cell = self._cells(plan, keys, rows)
        shape = (plan.layers, *plan.shape)

        inside = cell >= 0

        def spread(values: Any, kind: type) -> Any:
            out: Any = np.zeros(total, dtype=kind)
            np.add.at(out, cell[inside], values[inside])
            return out.reshape(shape)

        contributors = contributions = None
        if query.measure is not None:
            contributors, contributions = ranked_contributions(
                self.database, self.columns, plan, max(ranks, 1)
            )
        return Cube(
            plan,
            self._dataset,
            counts=spread(sums(rows, "n"), np.int64),
            keys=spread(self._summed_keys(rows), np.uint64) if self.columns.keyed else None,
            sums=spread(sums(rows, "s"), np.int64) if measured else None,
            contributors=contributors,
            contributions=contributions if ranks else None,
            possible=self._possible,
        )

    def finest_cells(self) -> FinestCells:
        """The occupied finest cells, with summed record keys if the records have any."""
        if not self._checked:
            self.check()
        variables = self._dataset.variables
        table = self.columns.table
        groups = {f"g{i}": self.columns.raw(v) for i, v in enumerate(variables)}
        rows = self.database.rows(aggregated(table, groups, self._totals()))
        number = np.zeros(rows.num_rows, dtype=np.uint64)
        for i, (variable, stride) in enumerate(zip(variables, strides(self._dataset), strict=True)):
            positions = self.columns.positions(variable, rows.column(f"g{i}"))
            number += positions.astype(np.uint64) * stride
        # A value that is missing and the code for it are one cell.
        numbers, inverse = np.unique(number, return_inverse=True)
        counts = np.zeros(numbers.size, dtype=np.int64)
        np.add.at(counts, inverse, sums(rows, "n"))
        keys = np.zeros(numbers.size, dtype=np.uint64)
        np.add.at(keys, inverse, self._summed_keys(rows))
        most = max(len(v.codes) for v in variables)
        codes = np.empty((len(variables), numbers.size), dtype=code_type(most))
        for row, stride in zip(codes, strides(self._dataset), strict=True):
            row[:] = numbers // stride
            numbers = numbers % stride
        return FinestCells(self._dataset, codes, counts, keys if self.columns.keyed else None)

    def in_memory(self) -> KernelEngine:
        """All records, read once into memory, for methods that change contributions one by one.

        Rows come in no order, so that what is made of them must not depend on one.
        """
        rows = self.database.rows(self.columns.described())
        starts = range(0, rows.num_rows, _BATCH)
        return KernelEngine(
            self._dataset, [self.columns.chunk(rows.slice(start, _BATCH)) for start in starts]
        )

    def counted_on_spark(self) -> tuple[Any, Any]:
        """Spark's session, and the counts of all groups of raw codes as a frame that stays there."""
        if not self._checked:
            self.check()
        groups = {f"g{i}": self.columns.raw(v) for i, v in enumerate(self._dataset.variables)}
        rows = aggregated(self.columns.table, groups, self._totals())

        def framed(backend: Any) -> tuple[Any, Any]:
            return backend._session, backend._session.sql(str(backend.compile(rows)))

        return self.database.run(framed)

    def record_ids(self) -> Words:
        """The identities of all records, in any order."""
        name = str(self._dataset.record_id)
        rows = self.database.rows(self.columns.table.select(name))
        return encode_ids(rows, name, self.columns.source).astype(np.uint64)

    def totals(self) -> tuple[int, int]:
        """How many records there are, and the sum of their keys: both change where a record does."""
        rows = self.database.rows(self.columns.table.aggregate(**self._totals()))
        keys = self._summed_keys(rows)
        return int(sums(rows, "n")[0]), int(keys[0])

    def _totals(self, measured: bool = False, query: TableQuery | None = None) -> dict[str, Any]:
        import ibis

        table = self.columns.table
        aggregates = {"n": ibis._.count()}
        if self.columns.keyed:
            aggregates["held"] = table[KEY_LOW].count()
            aggregates["high"] = table[KEY_HIGH].cast("int64").sum()
            aggregates["low"] = table[KEY_LOW].cast("int64").sum()
        if measured and query is not None:
            aggregates["s"] = self._amount(query).sum()
        return aggregates

    def _summed_keys(self, rows: pa.Table) -> Words:
        if not self.columns.keyed:
            return np.zeros(rows.num_rows, dtype=np.uint64)
        if (sums(rows, "n") != sums(rows, "held")).any():
            raise without_key(self.columns.source)
        high, low = (sums(rows, name).astype(np.uint64) for name in ("high", "low"))
        return (high << np.uint64(32)) + low

    def _amount(self, query: TableQuery) -> Any:
        if query.measure is None:
            return self.columns.whole(self._dataset.weight(str(query.weight)))
        value = self.columns.whole(self._dataset.measure(query.measure))
        if query.weight is None:
            return value
        weight = self.columns.whole(self._dataset.weight(query.weight))
        return value.cast("decimal(19,0)") * weight.cast("decimal(19,0)")

    def _check_range(self, query: TableQuery) -> None:
        """Refuse sums that could leave 64 bits."""
        asked = (query.measure, query.weight)
        if asked == (None, None):
            return
        if asked not in self._largest:
            size: Any = 1.0
            if query.measure is not None:
                size = (
                    self.columns.whole(self._dataset.measure(query.measure)).cast("float64").abs()
                )
            if query.weight is not None:
                size = self.columns.whole(self._dataset.weight(query.weight)).cast("float64") * size
            rows = self.database.rows(self.columns.table.aggregate(s=size.sum()))
            self._largest[asked] = float(rows.column("s")[0].as_py() or 0.0)
        if self._largest[asked] >= 2.0**62:
            raise QueryError(
                f"The sums of {query.measure or query.weight!r} do not fit 64 bits at their decimals; "
                "describe the column with fewer decimals, or ask without weights."
            )

    # --- grouping

    def _keys(self, plan: Plan) -> list[_Key]:
        """What to group by: codes as they are, recoded ones, and how many filters a record fails."""
        import ibis

        group_keys = []
        for i, axis in enumerate(plan.axes):
            of_code = axis.atoms.of_code
            if axis.atoms.count == 1 and bool((of_code >= 0).all()):
                continue  # a total alone
            codes = int((of_code >= 0).sum())
            recode = axis.atoms.count < codes <= MOST_CASES
            group_keys.append(_Key(f"g{i}", self.columns.raw(axis.variable), axis, recode))
        if plan.keep_dropped and plan.filters:
            failed: Any = ibis.literal(0)
            for item in plan.filters:
                passes = among(self.columns.raw(item.variable), item.variable, item.passing)
                failed = failed + ibis.ifelse(passes, 0, 1)
            group_keys.append(_Key("layer", failed))
        return group_keys

    def _grouped(self, plan: Plan, keys: list[_Key], measured: bool) -> Any:
        table = self.columns.table
        wanted = [(axis.variable, axis.atoms.of_code >= 0) for axis in plan.axes]
        if not plan.keep_dropped:
            wanted += [(item.variable, item.passes) for item in plan.filters]
        conditions = self.columns.conditions(wanted)
        aggregates = self._totals(measured, plan.query)
        # Grouped by codes as they are, few rows are left to be recoded instead of all.
        first = prod(len(k.axis.variable.codes) for k in keys if k.axis) <= _FEW_GROUPS
        later = first and any(k.recode for k in keys)
        groups = {k.name: k.expression if later else k.group(k.expression) for k in keys}
        grouped = table.filter(*conditions) if conditions else table
        counted = aggregated(grouped, groups, aggregates)
        if not later:
            return counted
        again = {k.name: k.group(counted[k.name]) for k in keys}
        return aggregated(counted, again, {n: counted[n].sum() for n in aggregates})

    def _cells(self, plan: Plan, keys: list[_Key], rows: pa.Table) -> Indices:
        """The cell of every group that came back; negative where it belongs to none."""
        cell = np.zeros(rows.num_rows, dtype=np.int64)
        inside = np.ones(rows.num_rows, dtype=np.bool_)
        steps = dict(zip(map(id, plan.axes), plan.strides, strict=True))
        for key in keys:
            if key.axis is None:
                cell += sums(rows, key.name) * plan.size
                continue
            if key.recode:
                atoms = self.columns.groups(key.axis.variable, rows, key.name)
            else:
                positions = self.columns.positions(key.axis.variable, rows.column(key.name))
                atoms = key.axis.atoms.of_code[positions]
            inside &= atoms >= 0
            cell += atoms * steps[id(key.axis)]
        return np.where(inside, cell, -1).astype(np.intp)
