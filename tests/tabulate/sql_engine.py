"""The same answers from DuckDB: the second opinion on the kernel, with which it shares no loop."""

from __future__ import annotations

from contextlib import closing

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lustrum.model import Contributions, Dataset, QueryError, Table, TableQuery
from lustrum.numeric.counting.contributions import rank_contributions
from lustrum.numeric.counting.cube import Cube
from lustrum.numeric.counting.kernel import OUTSIDE
from lustrum.numeric.counting.plan import Chunk, Plan

_RECORDS = "lustrum_records"


class SqlEngine:
    """Answers by GROUP BY over a relation of encoded columns."""

    def __init__(self, dataset: Dataset, chunks: list[Chunk]) -> None:
        self._dataset = dataset
        self._connection = duckdb.connect()
        keyed = all(chunk.keys is not None for chunk in chunks)
        columns: dict[str, pa.ChunkedArray] = {}
        # Columns go by number: SQL does not tell "Sex" from "sex".
        self._column: dict[str, str] = {}
        for v in dataset.variables:
            self._column[v.name] = f"code_{len(columns)}"
            columns[self._column[v.name]] = pa.chunked_array([c.codes[v.name] for c in chunks])
        for name in (*(m.name for m in dataset.measures), *(w.name for w in dataset.weights)):
            self._column[name] = f"number_{len(columns)}"
            columns[self._column[name]] = pa.chunked_array([c.numbers[name] for c in chunks])
        for name in dataset.id_columns:
            self._column[name] = f"id_{len(columns)}"
            columns[self._column[name]] = pa.chunked_array([c.ids[name] for c in chunks])
        if keyed:
            columns["record_key"] = pa.chunked_array([c.keys for c in chunks])
        rows = sum(c.rows for c in chunks)
        columns["row_number"] = pa.chunked_array([np.arange(rows, dtype=np.int64)])
        self._keyed = keyed
        self._records = pa.table(columns)

    def __repr__(self) -> str:
        return f"SqlEngine({self._dataset.name!r})"

    @property
    def dataset(self) -> Dataset:
        """The description of the data."""
        return self._dataset

    def tabulate(self, query: TableQuery, *, ranks: int = 0) -> Table:
        """The table asked for."""
        return self.cube(query, ranks=ranks).shown()

    def cube(self, query: TableQuery, *, unfiltered: bool = False, ranks: int = 0) -> Cube:
        """Count by atoms with one GROUP BY."""
        plan = Plan.of(query, self._dataset, unfiltered)
        # A connection of its own: another thread's question would replace the lookups of this one.
        with closing(self._connection.cursor()) as connection:
            connection.register(_RECORDS, self._records)
            return self._count(connection, plan, ranks)

    def _count(self, connection: duckdb.DuckDBPyConnection, plan: Plan, ranks: int) -> Cube:
        query = plan.query
        total = plan.size * plan.layers
        joins, terms = self._index_terms(connection, plan)
        amount = self._amount(connection, query)
        key = "(sum(record_key) % 18446744073709551616)::UBIGINT" if self._keyed else "0::UBIGINT"
        rows = connection.sql(
            f"SELECT {terms} AS cell, count(*) AS n, {key} AS k, sum({amount})::BIGINT AS s "
            f"FROM {_RECORDS} {joins} GROUP BY cell HAVING cell >= 0"
        ).fetchnumpy()
        cell = np.asarray(rows["cell"], dtype=np.int64)

        def spread(name: str, kind: npt.DTypeLike) -> npt.NDArray[np.generic]:
            out = np.zeros(total, dtype=kind)
            out[cell] = np.asarray(rows[name]).astype(kind)
            return out.reshape((plan.layers, *plan.shape))

        measured = query.measure is not None or query.weight is not None
        contributors = contributions = None
        if query.measure is not None:
            contributors, contributions = self._contributions(connection, plan, joins, terms, ranks)
        return Cube(
            plan,
            self._dataset,
            counts=spread("n", np.int64).astype(np.int64),
            keys=spread("k", np.uint64).astype(np.uint64) if self._keyed else None,
            sums=spread("s", np.int64).astype(np.int64) if measured else None,
            contributors=contributors,
            contributions=contributions if ranks else None,
        )

    def _amount(self, connection: duckdb.DuckDBPyConnection, query: TableQuery) -> str:
        value = self._column[query.measure] if query.measure else "1"
        weight = self._column[query.weight] if query.weight else "1"
        amount = f"{value}::HUGEINT * {weight}::HUGEINT"
        if not (query.measure or query.weight):
            return amount
        largest = connection.sql(f"SELECT sum(abs({amount})) FROM {_RECORDS}").fetchall()[0][0]
        if (largest or 0) >= 1 << 62:
            raise QueryError(
                f"The sums of {query.measure or query.weight!r} do not fit 64 bits at their decimals; "
                "describe the column with fewer decimals, or ask without weights."
            )
        return amount

    def _index_terms(self, connection: duckdb.DuckDBPyConnection, plan: Plan) -> tuple[str, str]:
        joins, terms = [], []
        for number, (name, entry) in enumerate(plan.entries()):
            lookup = f"lustrum_entry_{number}"
            codes = np.arange(entry.size, dtype=np.int64)
            connection.register(lookup, pa.table({"code": codes, "entry": entry}))
            joins.append(f"JOIN {lookup} e{number} ON e{number}.code = {self._column[name]}")
            terms.append(f"e{number}.entry")
        return " ".join(joins), " + ".join(terms) or "0::BIGINT"

    def _contributions(
        self, connection: duckdb.DuckDBPyConnection, plan: Plan, joins: str, terms: str, ranks: int
    ) -> tuple[npt.NDArray[np.int64], Contributions]:
        query = plan.query
        assert query.measure is not None
        holding = self._dataset.measure(query.measure).holding or self._dataset.record_id
        owner = "row_number" if holding is None else self._column[holding]
        value = self._column[query.measure]
        weight = self._column[query.weight] if query.weight else "1::BIGINT"
        rows = connection.sql(
            f"SELECT {terms} AS cell, {owner} AS owner, {value} AS v, {weight} AS w "
            f"FROM {_RECORDS} {joins}"
        ).fetchnumpy()
        cell = np.asarray(rows["cell"], dtype=np.int64)
        cell = np.where(cell < plan.size, cell, OUTSIDE)
        return rank_contributions(
            plan,
            cell,
            np.asarray(rows["owner"], dtype=np.int64),
            np.asarray(rows["v"], dtype=np.int64),
            np.asarray(rows["w"], dtype=np.int64) if query.weight else None,
            max(ranks, 1),
            self._dataset.weight(query.weight).decimals if query.weight else 0,
        )
