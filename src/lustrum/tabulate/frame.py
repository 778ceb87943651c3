"""The in-memory engine: a pandas, polars or Arrow table, described or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lustrum.counting.engine import KernelEngine
from lustrum.model import (
    Axis,
    Dataset,
    Filter,
    IngestError,
    InputError,
    Table,
    TableQuery,
    Variable,
)
from lustrum.model.errors import choices, kind_of
from lustrum.tabulate.encode import encode
from lustrum.tabulate.keys import Secret

__all__ = ["FrameEngine", "as_arrow", "describe_frame"]


class FrameEngine(KernelEngine):
    """Answers from a table in memory.

    >>> people = pa.table({"area": ["N", "N", "S"], "faith": ["a", "b", "a"]})
    >>> Table.from_frame(people, by=["area", "faith"]).values.tolist()
    [[1, 1], [1, 0]]
    """

    def __init__(
        self,
        frame: object,
        dataset: Dataset,
        secret: Secret | None = None,
        workers: int | None = None,
    ) -> None:
        table = as_arrow(frame)
        super().__init__(dataset, [encode(table, dataset, "The frame", secret=secret)], workers)

    @staticmethod
    def tabulate_frame(
        frame: object,
        by: Sequence[str] | TableQuery,
        where: Mapping[str, str | Sequence[str]] | None = None,
        dataset: Dataset | None = None,
        secret: Secret | None = None,
        totals: bool = False,
        ranks: int = 0,
    ) -> Table:
        """Tabulate a frame at once; without a description the codes are those that occur.

        A categorical column of pandas, an Enum of polars and an ordered dictionary of Arrow know their
        categories: all of these are codes, in their order, also those that do not occur.
        """
        table = as_arrow(frame)
        if dataset is not None and not isinstance(dataset, Dataset):
            raise InputError(f"'dataset' is a lustrum Dataset, not {kind_of(dataset)}.")
        if secret is not None and not isinstance(secret, Secret):
            raise InputError(f"'secret' is a lustrum Secret, not {kind_of(secret)}.")
        if type(totals) is not bool:
            raise InputError(f"'totals' is True or False, not {totals!r}.")
        if isinstance(by, TableQuery):
            query = by
        else:
            if isinstance(by, str):
                raise InputError(f"'by' must be a list of columns, such as [{by!r}].")
            given: object = by
            columns: list[Any] = list(given) if isinstance(given, Iterable) else [given]
            if not all(isinstance(name, str) for name in columns):
                raise InputError(
                    "'by' must be a list of the names of columns, such as ['age', 'sex']."
                )
            filters = tuple(
                Filter(name, (codes,) if isinstance(codes, str) else tuple(codes))
                for name, codes in (where or {}).items()
            )
            axes = tuple(Axis(name, total=totals) for name in columns)
            query = TableQuery(dataset.name if dataset else "frame", axes, filters)
        if dataset is None:
            names = [a.variable for a in query.by] + [f.variable for f in query.where]
            dataset = describe_frame(table, list(dict.fromkeys(names)), query.dataset)
        return FrameEngine(table, dataset, secret).tabulate(query, ranks=ranks)


def as_arrow(frame: object) -> pa.Table:
    """An Arrow table over a frame, without a copy where the frame allows it."""
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    if isinstance(frame, Mapping):
        try:
            return pa.table(dict(frame))
        except (
            pa.ArrowInvalid,
            pa.ArrowTypeError,
            TypeError,
        ):  # Arrow's own message may quote a record
            raise InputError(
                "The columns of a frame must be equally long, and each must hold values of one type."
            ) from None
    raise InputError(
        f"A frame must be a pandas, polars or Arrow table, or a mapping of columns, not "
        f"{kind_of(frame)}."
    )


def describe_frame(table: pa.Table, names: Sequence[str], dataset: str = "frame") -> Dataset:
    """A description with the codes that occur in each column, sorted, or with its own categories."""
    return Dataset(
        name=dataset, title=dataset, variables=tuple(_describe(table, name) for name in names)
    )


def _describe(table: pa.Table, name: str) -> Variable:
    if name not in table.schema.names:
        raise IngestError(f"The frame has no column {name!r}; {choices(name, table.schema.names)}.")
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        chunks = column.chunks or [pa.array([], column.type)]
        if column.type.ordered or b"pandas" in (table.schema.metadata or {}):
            own = _sortable(chunks[0].dictionary).cast(pa.string()).to_pylist()
            if own and all(c.dictionary.equals(chunks[0].dictionary) for c in chunks):
                return Variable(name, name, tuple(own), tuple(own))
        column = pa.chunked_array([_sortable(c.dictionary).take(c.indices) for c in chunks])
    column = _sortable(column)
    found: Any = pc.drop_null(pc.unique(column))
    codes = found.take(pc.sort_indices(found)).cast(pa.string()).to_pylist()
    if not codes:
        raise IngestError(f"The frame, column {name!r}: there is no value; it needs at least one.")
    return Variable(name, name, tuple(codes), tuple(codes))


def _sortable(column: Any) -> Any:
    """Polars' texts are of a type that Arrow neither sorts nor takes from."""
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column
