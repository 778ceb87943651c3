"""Who contributes most to a cell, ranked by the database.

An owner's contributions are added up within a published cell before they are ranked. Categories of an axis that
overlap, as a total and its parts do, are divided into lists that do not, and each combination of lists is one
question: group by cell and owner, rank, keep the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.model import Contributions, QueryError
from lustrum.model.arrays import Ints
from lustrum.numeric.counting.plan import AxisPlan, Plan
from lustrum.tabulate.remote.columns import (
    MOST_CASES,
    RemoteColumns,
    aggregated,
    identities,
    recoded,
    sums,
)
from lustrum.tabulate.remote.connection import Database


@dataclass(frozen=True)
class _Part:
    """Shown categories of an axis that share no code; ``of_code`` is the category of each code, or -1."""

    axis: AxisPlan
    of_code: Ints

    @property
    def is_total(self) -> bool:
        return bool((self.of_code == self.of_code[0]).all() and self.of_code[0] >= 0)

    @property
    def is_finest(self) -> bool:
        used = self.of_code[self.of_code >= 0]
        return bool(np.unique(used).size == used.size)


def ranked_contributions(
    database: Database, columns: RemoteColumns, plan: Plan, ranks: int
) -> tuple[Ints, Contributions]:
    """The number of contributors of each shown cell, and the largest contributions.

    Owners are ranked by the absolute size of what they contribute, ties by their identifier.
    """
    shape = tuple(len(axis.shown) for axis in plan.axes)
    size = prod(shape)
    weighted = plan.query.weight is not None
    contributors = np.zeros(size, dtype=np.int64)
    values = np.zeros((size, ranks), dtype=np.int64)
    owners = np.full((size, ranks), -1, dtype=np.int64)
    weights = np.zeros((size, ranks))
    for parts in product(*(_parts(axis) for axis in plan.axes)):
        rows = database.rows(_question(columns, plan, parts, ranks))
        cell = np.zeros(rows.num_rows, dtype=np.int64)
        inside = np.ones(rows.num_rows, dtype=np.bool_)
        for i, (part, most) in enumerate(zip(parts, shape, strict=True)):
            category = _categories(columns, part, rows, f"g{i}")
            inside &= category >= 0
            cell = cell * most + category
        cell, rank = cell[inside], sums(rows, "place")[inside]
        contributors[cell] = sums(rows, "everybody")[inside]
        values[cell, rank] = sums(rows, "value")[inside]
        owners[cell, rank] = identities(rows.column("owner"))[inside]
        if weighted:
            weights[cell, rank] = (sums(rows, "weight") / sums(rows, "records"))[inside]
    decimals = columns.dataset.weight(str(plan.query.weight)).decimals if weighted else 0
    return contributors.reshape(shape), Contributions(
        values.reshape(*shape, ranks),
        owners.reshape(*shape, ranks),
        weights.reshape(*shape, ranks) if weighted else None,
        decimals,
    )


def _parts(axis: AxisPlan) -> list[_Part]:
    codes = len(axis.variable.codes)
    code_maps: list[Ints] = []
    for number, category in enumerate(axis.shown):
        members = np.fromiter(category.members, dtype=np.intp)
        for of_code in code_maps:
            if (of_code[members] < 0).all():
                break
        else:
            of_code = np.full(codes, -1, dtype=np.int64)
            code_maps.append(of_code)
        of_code[members] = number
    return [_Part(axis, of_code) for of_code in code_maps]


def _question(columns: RemoteColumns, plan: Plan, parts: Sequence[_Part], ranks: int) -> Any:
    import ibis

    query, dataset, table = plan.query, columns.dataset, columns.table
    measure = dataset.measure(str(query.measure))
    wanted = [(part.axis.variable, part.of_code >= 0) for part in parts]
    wanted += [(item.variable, item.passes) for item in plan.filters]
    groups = {}
    for i, part in enumerate(parts):
        variable = part.axis.variable
        if part.is_finest:
            groups[f"g{i}"] = columns.raw(variable)
        elif not part.is_total:
            if len(variable.codes) > MOST_CASES:
                raise QueryError(
                    f"The largest contributions to groups of {variable.label!r}, which has more than "
                    f"{MOST_CASES:,} codes, cannot be found in a database; ask for single codes."
                )
            groups[f"g{i}"] = recoded(columns.raw(variable), variable, part.of_code)
    owner = table[measure.holding or str(dataset.record_id)]
    aggregates = {"value": columns.whole(measure).sum(), "records": ibis._.count()}
    if query.weight is not None:
        aggregates["weight"] = columns.whole(dataset.weight(query.weight)).sum()
    conditions = columns.conditions(wanted)
    chosen = table.filter(*conditions) if conditions else table
    summed = aggregated(chosen, {**groups, "owner": owner}, aggregates)
    cell = [summed[name] for name in groups]
    order = [summed["value"].abs().desc(), summed["owner"].asc()]
    ranked = summed.mutate(
        place=ibis.row_number().over(group_by=cell, order_by=order),
        everybody=summed.count().over(group_by=cell),
    )
    return ranked.filter(ranked["place"] < ranks)


def _categories(columns: RemoteColumns, part: _Part, rows: pa.Table, name: str) -> Ints:
    if name not in rows.schema.names:
        return np.full(rows.num_rows, part.of_code[0], dtype=np.int64)
    if part.is_finest:
        return part.of_code[columns.positions(part.axis.variable, rows.column(name))]
    return columns.groups(part.axis.variable, rows, name)
