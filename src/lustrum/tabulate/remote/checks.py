"""Hold records in a database to their description, by aggregates alone."""

from __future__ import annotations

from typing import Any

from lustrum.model import IngestError, Measure, Weight
from lustrum.model.variable import FRAME_ROOM
from lustrum.tabulate.remote.columns import RemoteColumns, among
from lustrum.tabulate.remote.connection import Database


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
