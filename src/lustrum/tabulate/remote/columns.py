"""Columns of a table in a database as expressions: codes, recodes, filters, whole numbers, keys.

What Lustrum does with a column at ingest is said here in the words of a database. Texts and whole numbers are
grouped as they are, and their codes are found here, among the groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lustrum.model import (
    Dataset,
    DatasetError,
    DescriptionError,
    IngestError,
    Measure,
    Variable,
    Weight,
)
from lustrum.model.arrays import Indices, Ints, Mask
from lustrum.model.errors import choices
from lustrum.model.keys import text_identity
from lustrum.tabulate.encode import Chunk, encode

KEY_HIGH = "lustrum_key_high"
KEY_LOW = "lustrum_key_low"
"""A record key in two parts of 32 bits: sums of the parts fit 64 bits in every database."""

MOST_CASES = 1000
"""Codes of a recode that the database applies; with more, single codes travel and are recoded here."""

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


class RemoteColumns:
    """The described columns of a table of records, with keys beside them if there are any."""

    def __init__(self, dataset: Dataset, records: Any, keys: Any | None, source: str) -> None:
        self.dataset = dataset
        self.source = source
        self._check_names(records, keys)
        records = records.mutate(**{n: identifier(records[n]) for n in dataset.id_columns})
        self.unkeyed = self if keys is None else RemoteColumns(dataset, records, None, source)
        self.keyed = keys is not None or {KEY_HIGH, KEY_LOW} <= set(records.columns)
        self.table = records
        if keys is not None:
            record_id = str(dataset.record_id)
            parts = keys.select(
                lustrum_key_of=identifier(keys[record_id]),
                **{n: keys[n] for n in (KEY_HIGH, KEY_LOW)},
            )
            # A record without a key has to be noticed, not dropped.
            self.table = records.left_join(parts, records[record_id] == parts.lustrum_key_of)

    def _check_names(self, records: Any, keys: Any | None) -> None:
        dataset = self.dataset
        if dataset.record_id is None:
            raise DescriptionError(
                f"Dataset {dataset.name!r} has no 'record_id', which records in a database need: a table has "
                "no order by which a record could be known."
            )
        wanted = [
            *(v.name for v in dataset.variables),
            *(m.name for m in dataset.measures),
            *(c.name for w in dataset.weights for c in w.columns),
            *dataset.id_columns,
        ]
        for name in wanted:
            if name not in records.columns:
                raise IngestError(
                    f"{self.source} has no column {name!r}, which the description asks for; "
                    f"{choices(name, records.columns)}."
                )
        for variable in dataset.variables:
            kind = records[variable.name].type()
            if kind.is_floating() or kind.is_nested() or kind.is_binary():
                raise IngestError(
                    f"{self.source}, column {variable.name!r}: codes and identifiers must be texts or whole "
                    f"numbers, but the column is of type {kind}; store it as text."
                )
        for name in dataset.id_columns:
            kind = identifier(records[name]).type()
            if not (kind.is_integer() or kind.is_string()):
                raise IngestError(
                    f"{self.source}, column {name!r}: identifiers must be texts, whole numbers or UUIDs, but "
                    f"the column is of type {kind}; store it as text."
                )
        if keys is not None:
            for name in (dataset.record_id, KEY_HIGH, KEY_LOW):
                if name not in keys.columns:
                    raise DatasetError(
                        f"The table of keys has no column {name!r}; make it with 'lustrum keys'."
                    )

    # --- records one by one

    def described(self) -> Any:
        """Every record with all described columns, and the parts of its key if there are any."""
        dataset = self.dataset
        codes = {v.name: self.raw(v) for v in dataset.variables}
        numbers = [
            *(m.name for m in dataset.measures),
            *(c.name for w in dataset.weights for c in w.columns),
        ]
        plain = {name: self.table[name] for name in (*numbers, *dataset.id_columns)}
        parts = (KEY_HIGH, KEY_LOW) if self.keyed else ()
        return self.table.select(**codes, **plain, **{name: self.table[name] for name in parts})

    def chunk(self, records: pa.Table) -> Chunk:
        """Some of the records as an ingest would encode them, with the keys that they have."""
        encoded = encode(records, self.dataset, self.source)
        if not self.keyed:
            return encoded
        if records.column(KEY_HIGH).null_count or records.column(KEY_LOW).null_count:
            raise without_key(self.source)
        high, low = (sums(records, name).astype(np.uint64) for name in (KEY_HIGH, KEY_LOW))
        return replace(encoded, keys=(high << np.uint64(32)) + low)

    # --- variables

    def raw(self, variable: Variable) -> Any:
        """The column that groups are made of: as it is, or as a text."""
        column = self.table[variable.name]
        kind = column.type()
        return (
            column
            if kind.is_string() or kind.is_integer() or kind.is_boolean()
            else column.cast("string")
        )

    def positions(self, variable: Variable, column: pa.ChunkedArray) -> Indices:
        """The positions of groups' codes in the code list; a code that is not in it is an error."""
        return positions_of(self.source, variable, column)

    def conditions(self, wanted: Iterable[tuple[Variable, Mask]]) -> list[Any]:
        """Conditions that let only some codes of variables pass, in so far as some do not."""
        conditions = []
        for variable, passes in wanted:
            if not passes.all():
                positions = np.flatnonzero(passes).tolist()
                conditions.append(among(self.raw(variable), variable, positions))
        return conditions

    def groups(self, variable: Variable, rows: pa.Table, name: str) -> Ints:
        """The groups of a recode that came back; one of no group is a code that is not in the list."""
        if rows.column(name).null_count:
            raise DatasetError(
                f"{self.source}, column {variable.name!r}: a code is missing or not in the code list; the "
                "table changed since it was checked."
            )
        return sums(rows, name)

    # --- numbers

    def whole(self, spec: Measure | Weight) -> Any:
        """A number in whole units of its decimals."""
        column = self.table[spec.name]
        kind = column.type()
        factor = 10**spec.decimals
        if kind.is_integer():
            scaled = column.cast("int64") * factor if factor > 1 else column.cast("int64")
        elif kind.is_floating():
            scaled = (column.cast("float64") * float(factor)).round().cast("decimal(19,0)")
        elif kind.is_decimal() or kind.is_string():
            scaled = (column.cast(f"decimal(18,{spec.decimals})") * factor).cast("decimal(19,0)")
        else:
            raise IngestError(
                f"{self.source}, column {spec.name!r}: the column holds no numbers but {kind}; a measure or "
                "weight must."
            )
        missing = self.missing_units(spec)
        return scaled if missing is None else scaled.fill_null(missing)

    def missing_units(self, spec: Measure | Weight) -> int | None:
        """What a missing number stands for, in whole units."""
        missing = getattr(spec, "missing", None)
        if missing is None:
            return None
        try:
            units = Decimal(missing).scaleb(spec.decimals)
            if units == units.to_integral_value():
                return int(units)
        except InvalidOperation:
            pass
        raise DescriptionError(
            f"Measure {spec.name!r}: 'missing' must be a number with at most {spec.decimals} decimals."
        )

    def is_exact(self, spec: Measure | Weight) -> Any:
        """Whether a number has no more decimals than described, and is one that a sum can take."""
        column = self.table[spec.name]
        kind = column.type()
        factor = 10**spec.decimals
        size = column.cast("float64").abs()
        if kind.is_integer():
            return size < 0.99 * 2.0**63 / factor
        if kind.is_floating():
            scaled = size * float(factor)
            near = scaled * 1e-12 + 1e-6
            return ((scaled - scaled.round()).abs() <= near) & (scaled <= float(2**53))
        if kind.is_string():
            column = column.cast("decimal(38,18)")
        # Eighteen digits are kept, as at ingest.
        return (column == column.round(spec.decimals)) & (size < float(10 ** (18 - spec.decimals)))


def positions_of(source: str, variable: Variable, column: pa.ChunkedArray) -> Indices:
    """The positions of codes in the code list; a code that is not in it is an error."""
    texts = column.combine_chunks().cast(pa.string())
    index = pc.index_in(texts, value_set=pa.array(variable.codes, pa.string()))
    empty = np.asarray(pc.is_null(texts))
    positions = np.asarray(pc.fill_null(index, -1), dtype=np.intp).copy()
    if variable.missing is not None:
        positions[empty] = variable.codes.index(variable.missing)
    wrong = np.flatnonzero(positions < 0)
    if wrong.size:
        where = f"{source}, column {variable.name!r}"
        if empty[wrong[0]]:
            raise IngestError(
                f"{where}: a value is missing; fill it, or give the variable a code for missing values "
                "('missing' in the description)."
            )
        code = str(texts[int(wrong[0])].as_py())
        raise IngestError(
            f"{where}: the code {code[:60]!r} is not in the code list; {choices(code, variable.codes)}."
        )
    return positions


def without_key(source: str) -> DatasetError:
    """The error for records that have no key."""
    return DatasetError(
        f"{source} holds records without a record key; make keys for all of them with 'lustrum keys'."
    )


def identifier(column: Any) -> Any:
    """A column of identifiers as numbers or texts; no type that is cast here can lose a digit."""
    kind = column.type()
    if kind.is_uuid():
        return column.cast("string")
    if kind.is_decimal() and kind.scale == 0 and (kind.precision or 99) <= 18:
        return column.cast("int64")
    return column


def among(column: Any, variable: Variable, positions: Iterable[int]) -> Any:
    """Whether a column of raw codes has one of these."""
    kind = column.type()
    codes = [variable.codes[p] for p in sorted(positions)]
    raw_codes: list[Any] = list(codes)
    if kind.is_integer():
        raw_codes = [int(code) for code in codes if _WHOLE.fullmatch(code)]
    elif kind.is_boolean():
        raw_codes = [code == "true" for code in codes if code in ("true", "false")]
    passes = column.isin(raw_codes)
    if variable.missing in codes:
        passes = passes.fill_null(False) | column.isnull()
    return passes


def recoded(column: Any, variable: Variable, of_code: Ints) -> Any:
    """What each raw code stands for, by its position in the code list; an unknown code stands for nothing."""
    import ibis

    groups = [
        (among(column, variable, np.flatnonzero(of_code == group).tolist()), int(group))
        for group in np.unique(of_code[of_code >= 0])
    ]
    return ibis.cases(*groups).cast("int64")


def aggregated(table: Any, groups: Mapping[str, Any], aggregates: Mapping[str, Any]) -> Any:
    return table.aggregate(by=[e.name(name) for name, e in groups.items()], **aggregates)


def identities(column: pa.ChunkedArray | pa.Array) -> Ints:
    """The 63-bit identities of identifiers, numbers or texts, as at ingest."""
    if pa.types.is_integer(column.type):
        return np.asarray(column.cast(pa.int64()), dtype=np.int64)
    return np.array([text_identity(text) for text in column.to_pylist()], dtype=np.int64)


def sums(table: pa.Table, name: str) -> Ints:
    """A column of sums as whole numbers of 64 bits, whatever type the database gave them."""
    column = table.column(name)
    if pa.types.is_integer(column.type):
        return np.asarray(pc.fill_null(column, 0).cast(pa.int64()), dtype=np.int64)
    values = [0 if value is None else int(value) for value in column.to_pylist()]
    return np.array(values, dtype=np.int64)
