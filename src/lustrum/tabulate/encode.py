"""From columns as they come to columns as the kernel wants them: small integers.

Every mistake in the data is one sentence that names the source, the column, the row and what would
be right. A wrong code is quoted; a wrong number or identifier is not, for it may be somebody's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lustrum.model import (
    Dataset,
    DescriptionError,
    IngestError,
    Measure,
    StructuralZero,
    Variable,
    Weight,
)
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.model.errors import choices
from lustrum.model.finest import code_type
from lustrum.numeric.counting.plan import Chunk
from lustrum.tabulate.identities import text_identities
from lustrum.tabulate.keys import Secret, record_keys

__all__ = ["Chunk", "encode"]

_MOST_VALUES = 1 << 16  # of whole numbers that are looked up in advance, used or not


def encode(
    table: pa.Table, dataset: Dataset, source: str, first_row: int = 1, secret: Secret | None = None
) -> Chunk:
    """Encode the described columns of an Arrow table; ``first_row`` is the number of its first row."""
    rows = table.num_rows
    location = _Place(source, first_row)
    codes = {
        v.name: _all_codes(_column(table, v.name, location), v, location) for v in dataset.variables
    }
    numbers: dict[str, Ints] = {}
    described: list[Measure | Weight] = [
        *dataset.measures,
        *(c for w in dataset.weights for c in w.columns),
    ]
    for number in described:
        column = _whole(_column(table, number.name, location))
        numbers[number.name] = _numbers(column, number, location)
    ids = {name: encode_ids(table, name, source, first_row) for name in dataset.id_columns}
    for zero in dataset.structural_zeros:
        _check_structural(zero, codes, location)
    keys = None
    if secret is not None:
        identity = (
            np.arange(first_row, first_row + rows, dtype=np.uint64)
            if dataset.record_id is None
            else ids[dataset.record_id].astype(np.uint64)
        )
        keys = record_keys(secret, dataset.name, identity)
    return Chunk(rows, codes, numbers, ids, keys)


def encode_ids(table: pa.Table, name: str, source: str, first_row: int = 1) -> Ints:
    location = _Place(source, first_row)
    return _ids(_whole(_column(table, name, location)), name, location)


@dataclass(frozen=True)
class _Place:
    source: str
    first_row: int

    def at(self, column: str, position: int) -> str:
        return f"{self.source}, column {column!r}, row {self.first_row + position}"


def _column(table: pa.Table, name: str, location: _Place) -> pa.Array | pa.ChunkedArray:
    indices = table.schema.get_all_field_indices(name)
    if not indices:
        raise IngestError(
            f"{location.source} has no column {name!r}, which the description asks for; "
            f"{choices(name, table.schema.names)}."
        )
    if len(indices) > 1:
        raise IngestError(
            f"{location.source} has {len(indices)} columns named {name!r}; one is right."
        )
    return table.column(indices[0])


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _all_codes(column: pa.Array | pa.ChunkedArray, variable: Variable, location: _Place) -> Array:
    """The codes of a column, piece by piece where every piece is one of few values."""
    if isinstance(column, pa.ChunkedArray) and column.num_chunks > 1:
        known = pa.array(variable.codes, pa.string())
        quick = [_quick_codes(piece, variable, known) for piece in column.chunks]
        parts = [part for part in quick if part is not None]
        if len(parts) == len(quick):
            return np.concatenate(parts)
    return _codes(_whole(column), variable, location)


def _codes(column: pa.Array, variable: Variable, location: _Place) -> Array:
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())
    known = pa.array(variable.codes, pa.string())
    quick = _quick_codes(column, variable, known)
    if quick is not None:
        return quick
    if pa.types.is_dictionary(column.type):
        of_entry = pc.index_in(
            _as_text(column.dictionary, variable.name, location), value_set=known
        )
        index = pc.take(of_entry, column.indices)
        texts: Any = column
    else:
        texts = _as_text(column, variable.name, location)
        index = pc.index_in(texts, value_set=known)
    if index.null_count:
        gaps = np.asarray(pc.is_null(index))
        empty = np.asarray(pc.is_null(texts))
        if variable.missing is not None:
            filled = index.to_numpy(zero_copy_only=False).copy()
            filled[empty] = variable.codes.index(variable.missing)
            index = pa.array(filled, mask=gaps & ~empty)
            gaps = gaps & ~empty
        if gaps.any():
            position = int(np.argmax(gaps))
            where = location.at(variable.name, position)
            if empty[position]:
                raise IngestError(
                    f"{where}: the value is missing; fill it, or give the variable a code for "
                    "missing values ('missing' in the description)."
                )
            wrong = str(texts[position].as_py())
            raise IngestError(
                f"{where}: the code {wrong[:60]!r} is not in the code list; "
                f"{choices(wrong, variable.codes)}."
            )
    return _numpy(index).astype(code_type(len(variable.codes)))


def _quick_codes(column: pa.Array, variable: Variable, known: pa.Array) -> Array | None:
    """The codes of a column of few values, each looked up once; None where a value needs a closer look."""
    kind = column.type
    if pa.types.is_dictionary(kind) and _is_text(kind.value_type):
        entries, indices = column.dictionary.cast(pa.string()), column.indices
    elif pa.types.is_integer(kind) and len(column) > column.null_count:
        ends = pc.min_max(column)
        low, high = ends["min"].as_py(), ends["max"].as_py()
        if high - low > min(_MOST_VALUES, len(column)):
            return None
        entries = pa.array(range(low, high + 1), kind).cast(pa.string())
        wide = pa.uint64() if kind == pa.uint64() else pa.int64()
        indices = pc.subtract(column.cast(wide), pa.scalar(low, wide))
    else:
        return None
    positions = pc.index_in(entries, value_set=known)
    if entries.null_count or (indices.null_count and variable.missing is None):
        return None
    if indices.null_count:
        positions = pa.concat_arrays(
            [positions, pa.array([variable.codes.index(variable.missing)], positions.type)]
        )
        indices = pc.fill_null(indices.cast(pa.int64()), len(entries))
    if positions.null_count:
        # A value that is not in the code list may be one that no record has.
        unknown = pc.take(pc.is_null(positions), indices)
        if pc.any(unknown).as_py():
            return None
        positions = pc.fill_null(positions, 0)
    codes = pa.array(_numpy(positions).astype(code_type(len(variable.codes))))
    return _numpy(pc.take(codes, indices))


def _as_text(column: pa.Array, name: str, location: _Place) -> pa.Array:
    kind = column.type
    if pa.types.is_string(kind):
        return column
    bytes_ = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if pa.types.is_floating(kind) or pa.types.is_nested(kind) or bytes_:
        raise IngestError(
            f"{location.source}, column {name!r}: codes and identifiers must be texts or whole numbers, "
            f"but the column is of type {kind}; store it as text."
        )
    return column.cast(pa.string())


def _numbers(column: pa.Array, spec: Measure | Weight, location: _Place) -> Ints:
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.int64())
    if column.null_count:
        missing = getattr(spec, "missing", None)
        if missing is None:
            position = int(np.argmax(np.asarray(pc.is_null(column))))
            way_out = (
                ""
                if isinstance(spec, Weight)
                else (", or say what a missing value stands for ('missing' in the description)")
            )
            raise IngestError(
                f"{location.at(spec.name, position)}: the value is missing; fill it{way_out}."
            )
        if np.isnan(_scaled(pa.array([missing]), spec.decimals)).any():
            raise DescriptionError(
                f"Measure {spec.name!r}: 'missing' must be a number with at most {spec.decimals} "
                "decimals."
            )
        if not pa.types.is_floating(column.type):
            column = column.cast(pa.string())  # where any number of decimals fits
        column = pc.fill_null(column, pa.scalar(missing).cast(column.type))
    scaled = _scaled(column, spec.decimals)
    bad = ~np.isfinite(scaled)
    if scaled.dtype.kind == "f":
        scaled = np.where(bad, 0, scaled)
        nearest = np.rint(scaled)
        # A float carries about 15 digits: what is further off than that is a real decimal too many.
        bad |= np.abs(scaled - nearest) > 1e-6 + 1e-12 * np.abs(scaled)
        bad |= np.abs(scaled) > 2**53
        scaled = np.where(bad, 0, nearest).astype(np.int64)
    if isinstance(spec, Weight) and not bad.any():
        negative = scaled < 0
        if negative.any():
            raise IngestError(
                f"{location.at(spec.name, int(np.argmax(negative)))}: a weight must not be negative; "
                "correct it."
            )
    if bad.any():
        raise IngestError(
            f"{location.at(spec.name, int(np.argmax(bad)))}: the value is not a number with at most "
            f"{spec.decimals} decimals; correct it, or raise 'decimals' in the description."
        )
    return scaled.astype(np.int64)


def _scaled(column: pa.Array, decimals: int) -> Array:
    """The column times ``10**decimals``: exact integers, or floats with NaN where it is no number."""
    kind = column.type
    factor = 10**decimals
    if pa.types.is_integer(kind):
        whole = _numpy(column)
        most = (2**63 - 1) // factor
        wide = whole > most if whole.dtype.kind == "u" else (whole > most) | (whole < -most)
        if wide.any():
            return np.where(wide, np.nan, 0.0)
        return np.asarray(whole.astype(np.int64) * factor)
    if _is_text(kind) or pa.types.is_decimal(kind):
        try:
            return _decimal_words(column.cast(pa.decimal128(18, decimals)))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return _one_by_one(column, decimals)
    if pa.types.is_floating(kind):
        return np.asarray(_numpy(column.cast(pa.float64())) * factor)
    return np.full(len(column), np.nan)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _decimal_words(column: pa.Array) -> Ints:
    """The integers behind a column of decimals of at most 18 digits: the low words of their 128 bits."""
    words = np.frombuffer(column.buffers()[1], dtype="<i8").reshape(-1, 2)
    return words[column.offset : column.offset + len(column), 0].astype(np.int64)


def _one_by_one(column: pa.Array, decimals: int) -> Array:
    """The slow way for a column with a mistake in it, to find where the mistake is."""
    kind = pa.decimal128(18, decimals)
    out = np.full(len(column), 0.0)
    for position, value in enumerate(column):
        try:
            pa.array([value.as_py()], column.type).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            out[position] = np.nan
            break
    return out


def _ids(column: pa.Array, name: str, location: _Place) -> Ints:
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.int64())
    if column.null_count:
        position = int(np.argmax(np.asarray(pc.is_null(column))))
        raise IngestError(
            f"{location.at(name, position)}: an identifier is missing; every record needs one."
        )
    if pa.types.is_integer(column.type):
        whole = _numpy(column)
        outside = (whole < 0) | (whole > 2**63 - 1)
        if outside.any():
            raise IngestError(
                f"{location.at(name, int(np.argmax(outside)))}: an identifier is negative or has more "
                "than 63 bits; use smaller numbers, or texts."
            )
        return whole.astype(np.int64)
    if pa.types.is_dictionary(column.type):
        entries = _as_text(column.dictionary, name, location)
        return text_identities(entries)[_numpy(column.indices)]
    return text_identities(_as_text(column, name, location))


def _numpy(column: pa.Array) -> Array:
    out: Array = column.to_numpy(zero_copy_only=False)
    return out


def _check_structural(zero: StructuralZero, codes: Mapping[str, Array], location: _Place) -> None:
    hit: Mask | None = None
    for name, members in zero.where.items():
        here = np.isin(codes[name], np.fromiter(members, dtype=codes[name].dtype))
        hit = here if hit is None else hit & here
    if hit is not None and hit.any():
        columns: Sequence[str] = list(zero.where)
        raise IngestError(
            f"{location.at(columns[0], int(np.argmax(hit)))}: the record has a combination of "
            f"{', '.join(columns)} that the description says cannot exist ({zero.reason}); correct the "
            "record or the description."
        )
