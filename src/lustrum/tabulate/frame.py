"""The in-memory engine: a pandas, polars or Arrow table, described or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lustrum.model import (
    Axis,
    Dataset,
    Filter,
    IngestError,
    InputError,
    Measure,
    Table,
    TableQuery,
    Variable,
    Weight,
)
from lustrum.model.errors import check_known, choices, kind_of
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.tabulate.encode import encode
from lustrum.tabulate.keys import Secret


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
        where: Mapping[str, Any] | None = None,
        dataset: Dataset | None = None,
        secret: Secret | None = None,
        totals: bool = False,
        ranks: int | None = None,
        measure: str | None = None,
        weight: str | None = None,
    ) -> Table:
        """Tabulate a frame at once; without a description the codes are those that occur.

        A categorical column of pandas, an Enum of polars and an ordered dictionary of Arrow know their
        categories: all of these are codes, in their order, also those that do not occur.
        """
        if dataset is not None and not isinstance(dataset, Dataset):
            raise InputError(f"'dataset' is a lustrum Dataset, not {kind_of(dataset)}.")
        if secret is not None and not isinstance(secret, Secret):
            raise InputError(f"'secret' is a lustrum Secret, not {kind_of(secret)}.")
        if type(totals) is not bool:
            raise InputError(f"'totals' is True or False, not {totals!r}.")
        if isinstance(by, TableQuery):
            if measure is not None or weight is not None:
                raise InputError("A TableQuery names its own measure and weight; leave them out.")
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
            axes = tuple(named_axis(name, dataset, total=totals) for name in columns)
            name = dataset.name if dataset else "frame"
            query = TableQuery(name, axes, _filters(where), measure, weight)
        used = None if dataset is not None else _used(query)
        table = as_arrow(frame, used)
        if dataset is None:
            names = [a.variable for a in query.by] + [f.variable for f in query.where]
            dataset = describe_frame(
                table,
                list(dict.fromkeys(names)),
                query.dataset,
                measure=query.measure,
                weight=query.weight,
            )
        if ranks is None:  # rules for sums look at the largest contributions
            ranks = 0 if query.measure is None else 3
        return FrameEngine(table, dataset, secret).tabulate(query, ranks=ranks)


def named_axis(name: str, dataset: Dataset | None, *, total: bool = False) -> Axis:
    """The axis that ``age`` names, or ``age:ten-year``: a level that the description knows.

    >>> named_axis("age:ten-year", None).variable
    'age:ten-year'
    """
    variable, colon, level = name.partition(":")
    if dataset is None or not colon or any(v.name == name for v in dataset.variables):
        return Axis(name, total=total)
    return Axis(variable, dataset.variable(variable).level(level).name, total=total)


def as_arrow(frame: object, columns: Sequence[str] | None = None) -> pa.Table:
    """An Arrow table over a frame, or over some of its columns, without a copy where the frame allows it.

    A column that is not used need not be one that Arrow can hold.
    """
    if isinstance(frame, pa.Table):
        return frame
    if type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns"):
        return _from_pandas(frame, columns)
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    if isinstance(frame, Mapping):
        used = {n: c for n, c in frame.items() if columns is None or n in columns}
        try:
            if len({len(column) for column in frame.values()}) > 1:
                raise TypeError  # also where only one of the columns is used
            return pa.table(used or dict(frame))
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


def _from_pandas(frame: Any, columns: Sequence[str] | None) -> pa.Table:
    """The columns of a pandas frame that are used; intervals, such as ``pandas.cut`` makes, become texts."""
    if columns is not None:
        there = [str(name) for name in frame.columns]
        for name in columns:
            if name not in there:
                raise _no_column(name, there)
        frame = frame.loc[:, [name in columns for name in there]]
    frame = frame.copy(deep=False)
    names = [str(name) for name in frame.columns]
    for name in names:
        if columns is not None and names.count(name) > 1:
            raise IngestError(
                f"The frame has {names.count(name)} columns named {name!r}; one is right."
            )
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        kind = column.dtype
        if str(kind).startswith("interval"):
            # A category for each interval, from the lowest on.
            frame = _replaced(frame, position, name, column.astype("category"))
            column = frame.iloc[:, position]
            kind = column.dtype
        if str(kind) == "category" and str(kind.categories.dtype).startswith("interval"):
            frame = _replaced(frame, position, name, column.cat.rename_categories(str))
    try:
        return pa.table(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError):
        wrong = next((name for at, name in enumerate(names) if not _holds(frame, at)), None)
        which = "A column of the frame" if wrong is None else f"The frame, column {wrong!r}"
        raise IngestError(  # Arrow's own message may quote a record
            f"{which}: its values are of several types, or of one that no table is made of; store them as "
            "text, for example with astype(str)."
        ) from None


def _replaced(frame: Any, position: int, name: Any, column: Any) -> Any:
    frame = frame.drop(columns=name) if list(frame.columns).count(name) == 1 else frame
    if name in list(frame.columns):
        raise IngestError(f"The frame has two columns named {str(name)!r}; one is right.")
    frame.insert(position, name, column)
    return frame


def _holds(frame: Any, position: int) -> bool:
    try:
        pa.table(frame.iloc[:, [position]])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError):
        return False
    return True


def describe_frame(
    table: pa.Table,
    names: Sequence[str],
    dataset: str = "frame",
    *,
    measure: str | None = None,
    weight: str | None = None,
    holding: str | None = None,
    record_id: str | None = None,
    decimals: int | None = None,
    described: Dataset | None = None,
) -> Dataset:
    """A description with the codes that occur in each column, sorted, or with its own categories.

    Variables of ``described`` keep their codes, labels and levels.
    ``measure`` and ``weight`` have as many decimals as their values are written with, or ``decimals``.
    """
    for name in (measure, weight, holding, record_id):
        if name is None:
            continue
        check_known((name,), table.schema.names, "The frame has no column", IngestError)
        if name in names:
            raise InputError(f"The column {name!r} cannot also span the table; choose another.")

    if described is not None and not isinstance(described, Dataset):
        raise InputError(f"'dataset' is a lustrum Dataset, not {kind_of(described)}.")
    known = {v.name: v for v in described.variables} if described is not None else {}

    def places(name: str) -> int:
        return _decimals(table.column(name), name) if decimals is None else decimals

    return Dataset(
        name=dataset,
        title=dataset,
        variables=tuple(known.get(name) or _describe(table, name) for name in names),
        measures=()
        if measure is None
        else (Measure(measure, measure, decimals=places(measure), holding=holding),),
        weights=()
        if weight is None
        else (Weight(weight, weight, _decimals(table.column(weight), weight)),),
        identifiers=() if holding is None else (holding,),
        record_id=record_id,
    )


def _used(query: TableQuery) -> list[str]:
    """The columns that a question is about."""
    names = [*(a.variable for a in query.by), *(f.variable for f in query.where)]
    return [*dict.fromkeys([*names, *(n for n in (query.measure, query.weight) if n is not None)])]


def _filters(where: Mapping[str, Any] | None) -> tuple[Filter, ...]:
    """Filters by the values of columns: one value or several, texts or whole numbers."""
    if where is not None and not isinstance(where, Mapping):
        raise InputError(
            "'where' maps columns to values, such as {'sex': 2} or {'area': ['n', 's']}."
        )
    filters = []
    for name, given in (where or {}).items():
        several = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
        values: list[Any] = list(given) if several else [given]
        if any(value is None or isinstance(value, float) for value in values):
            raise InputError(f"'where' of {name!r} names texts or whole numbers, no others.")
        filters.append(Filter(str(name), tuple(_code(value) for value in values)))
    return tuple(filters)


def _code(value: object) -> str:
    """A value as the code that a column of such values has."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _decimals(column: Any, name: str) -> int:
    """The most decimals that a value is written with, so that sums are exact."""
    kind = column.type
    if pa.types.is_integer(kind):
        return 0
    if not (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InputError(f"The column {name!r} holds no numbers; a measure or weight must.")
    most_decimals = 0
    for value in column.to_pylist():
        if value is not None and value == value:
            exact = Decimal(repr(value) if isinstance(value, float) else value).normalize()
            exponent = exact.as_tuple().exponent
            most_decimals = max(most_decimals, -exponent if isinstance(exponent, int) else 0)
    if most_decimals > 9:
        raise InputError(
            f"The column {name!r} has more than 9 decimals; round it, or say how many count with 'decimals'."
        )
    return most_decimals


def _describe(table: pa.Table, name: str) -> Variable:
    if name not in table.schema.names:
        raise _no_column(name, table.schema.names)
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        chunks = column.chunks or [pa.array([], column.type)]
        if column.type.ordered or b"pandas" in (table.schema.metadata or {}):
            categories = _sortable(chunks[0].dictionary).cast(pa.string()).to_pylist()
            if categories and all(c.dictionary.equals(chunks[0].dictionary) for c in chunks):
                return Variable(name, name, tuple(categories), tuple(categories))
        column = pa.chunked_array([_sortable(c.dictionary).take(c.indices) for c in chunks])
    column = _sortable(column)
    distinct_values: Any = pc.drop_null(pc.unique(column))
    codes = distinct_values.take(pc.sort_indices(distinct_values)).cast(pa.string()).to_pylist()
    if not codes:
        raise IngestError(f"The frame, column {name!r}: there is no value; it needs at least one.")
    return Variable(name, name, tuple(codes), tuple(codes))


def _no_column(name: str, there: Sequence[str]) -> InputError:
    variable, colon, level = name.partition(":")
    if colon and variable in there:
        return InputError(
            f"A frame does not say what the level {level!r} of {variable!r} is; give the description of its "
            "columns as 'dataset'."
        )
    return IngestError(f"The frame has no column {name!r}; {choices(name, there)}.")


def _sortable(column: Any) -> Any:
    """Polars' texts are of a type that Arrow neither sorts nor takes from."""
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column
