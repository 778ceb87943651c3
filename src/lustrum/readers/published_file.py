"""A published file as a table: what a reader takes for codes, values and figures beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lustrum.model import InputError
from lustrum.model.errors import NotJudgedError
from lustrum.readers.columns import (
    ColumnNames,
    FileColumns,
    find_columns,
    is_flag,
    value_column,
)
from lustrum.readers.published.formulas import Formula, Sheet
from lustrum.readers.published.layouts import filled_down, melted
from lustrum.readers.published.number_text import printed, style_of
from lustrum.readers.published.reading import UNKNOWN, Bound, Reading, both
from lustrum.readers.published.values import (
    HIDDEN_SYMBOLS,
    PublishedColumn,
    is_numeric,
    published_column,
)
from lustrum.readers.rows import Rows
from lustrum.readers.status_letters import hides, judged
from lustrum.readers.table_file import Key, Number, TableFile, labels_of, unexplained

_COARSE = re.compile(r"thousand|million|tausend|mio|mill(?![a-z])|\b1000\b|t_?eur", re.IGNORECASE)


def published_table(rows: Rows, named: ColumnNames, reading: Reading) -> TableFile:
    """A published file, read as a reader would."""
    if reading.aliases:
        columns = {
            reading.aliases.get(name, name): contents for name, contents in rows.columns.items()
        }
        rows = replace(rows, columns=columns)
    others: tuple[str, ...] = ()
    if reading.wide:
        rows, named = _unpivoted(rows, named, reading)
    elif named.values == ("value",) and "value" not in rows.columns:
        rows, named, others = _with_values(rows, named, reading)
    else:
        named = named.in_file(rows)
    formulas = [Formula.of(formula_text).about(named.values) for formula_text in reading.formulas]
    explained = {name for formula in formulas for name in formula.explains}
    figures = explained | set(others)
    if reading.status is not None:
        named = replace(named, status=reading.status)
    columns_ = find_columns(rows, named, published=True, figures=figures)
    filled = filled_down(rows, columns_.dimensions)
    if figures - explained and not _once(filled, columns_.dimensions):
        # A column of numbers that tells rows apart is one of codes.
        columns_ = find_columns(rows, named, published=True, figures=explained)
        filled = filled_down(rows, columns_.dimensions)
    rows = filled
    if not len(rows):
        raise InputError(f"{rows.source}: there is no cell; a table needs at least one.")
    keys = tuple(zip(*(rows.columns[name] for name in columns_.dimensions), strict=True))
    read = {
        response: published_column(
            rows, response, reading, columns_.status.get(response), named.status_list
        )
        for response in columns_.values
    }
    read, further = _other_letters(rows, columns_, read)
    places: dict[Key, list[int]] = {}
    for row, key in enumerate(keys):
        places.setdefault(key, []).append(row)
    cells = tuple(places)
    read, repeated = _merged(rows, places, read)
    notes = [
        *rows.notes,
        *(note for contents in read.values() for note in contents.notes),
        *repeated,
    ]
    doubts = [
        *rows.doubts,
        *unexplained(rows, columns_, named, explained, published=True),
        *further,
    ]
    for response, contents in read.items():
        # A formula settles a doubt about shares in place of the values that it speaks of.
        settled = f"{response}%" in explained
        doubts += [d for d in contents.doubts if not (settled and "holds shares" in d)]
    texts = {
        name: [next((contents[row] for row in at if contents[row]), "") for at in places.values()]
        for name, contents in rows.columns.items()
    }
    shares = {
        f"{r}%": contents.shares for r, contents in read.items() if contents.shares is not None
    }

    def numbers(name: str) -> Sequence[Number]:
        if name in shares:
            return shares[name]
        style = style_of(texts[name], rows.delimiter, reading.thousands)
        parsed = [printed(text.removesuffix("%"), style) for text in texts[name]]
        return [None if number is None else number.value for number in parsed]

    values = {response: contents.values for response, contents in read.items()}
    for formula in formulas:
        # A formula may speak of values that the file does not show at all.
        if formula.parts["value"] not in {*values, *rows.columns}:
            values[formula.parts["value"]] = (None,) * len(cells)
    sheet = Sheet(
        rows.source,
        columns_.dimensions,
        cells,
        values,
        {**texts, **dict.fromkeys(shares, ())},
        numbers,
        reading.signed,
    )
    facts = tuple(fact for formula in formulas for fact in formula.facts(sheet))
    interval = None
    if columns_.interval is not None:
        ends = [numbers(name) for name in columns_.interval]
        interval = (tuple(ends[0]), tuple(ends[1]))
        doubts += _unread_ends(columns_.interval, interval, texts, reading)
    return TableFile(
        source=rows.source,
        dimensions=columns_.dimensions,
        cells=cells,
        codes=tuple(tuple(dict.fromkeys(key[i] for key in cells)) for i in range(len(cells[0]))),
        labels=labels_of(rows, columns_),
        values=values,
        status={
            response: tuple(texts[column])
            if (column := columns_.status.get(response))
            else ("",) * len(cells)
            for response in values
        },
        interval=interval,
        ignored=columns_.ignored,
        standing={response: contents.standing for response, contents in read.items()},
        doubts=tuple(f"{rows.source}: {doubt}" for doubt in dict.fromkeys(doubts)),
        places=[rows.places[at[0]] for at in places.values()],
        notes=tuple(f"{rows.source}: {note}" for note in dict.fromkeys(notes)),
        bounds={response: contents.bounds for response, contents in read.items()},
        facts=facts,
        parents=_parents(rows, columns_),
        maybe_zero={response: contents.maybe_zero for response, contents in read.items()},
        bracketed={response: contents.bracketed for response, contents in read.items()},
        signed=reading.signed,
        coarse=frozenset(r for r in read if _COARSE.search(r) or _multiplied(rows)),
    )


def _unread_ends(
    names: Sequence[str],
    ends: Sequence[Sequence[Number]],
    texts: Mapping[str, Sequence[str]],
    reading: Reading,
) -> list[str]:
    """A sentence for each end of intervals in which something stands that is no number and no symbol."""
    none = HIDDEN_SYMBOLS | reading.symbols.keys() | {""}
    return [
        f"the column {name!r} holds an end of an interval that is no number, such as {odd!r}; say --hidden "
        f"'{odd}' if it states nothing."
        for name, numbers in zip(names, ends, strict=True)
        if (
            odd := next(
                (
                    t
                    for t, n in zip(texts[name], numbers, strict=True)
                    if n is None and t.lower() not in none
                ),
                "",
            )
        )
    ]


def _once(rows: Rows, names: Sequence[str]) -> bool:
    keys = list(zip(*(rows.columns[name] for name in names), strict=True))
    return len(set(keys)) == len(keys)


def _multiplied(rows: Rows) -> bool:
    """Whether a column UNIT_MULT says that values are in thousands or more."""
    multipliers = next((c for name, c in rows.columns.items() if name.upper() == "UNIT_MULT"), ())
    return any(text not in ("", "0") for text in multipliers)


def _with_values(
    rows: Rows, named: ColumnNames, reading: Reading
) -> tuple[Rows, ColumnNames, tuple[str, ...]]:
    value_name, others = value_column(rows, lambda name: is_numeric(rows, name, reading))
    if value_name is None:
        raise NotJudgedError(
            f"{rows.source}: there is no column 'value', and several could hold values; name them "
            f"with --value, or "
            "say --wide NAME if one variable runs across the columns."
        )
    note = f"the values are those of the column {value_name!r}."
    return replace(rows, notes=(*rows.notes, note)), replace(named, values=(value_name,)), others


def _unpivoted(rows: Rows, named: ColumnNames, reading: Reading) -> tuple[Rows, ColumnNames]:
    """A table with one variable across as a table with a row for each cell."""
    assert reading.wide is not None
    head = [name for name in rows.columns if name not in named.beside]
    stubs = list(named.by or ())
    if not stubs:
        stubs = [
            name
            for index, name in enumerate(head)
            if index == 0 or is_numeric(rows, name, reading) == (0, 0)
        ]
    named_values = () if named.values == ("value",) else named.values
    unknown = next((name for name in (*stubs, *named_values) if name not in head), None)
    if unknown is not None:
        raise InputError(f"{rows.source}: there is no column {unknown!r} in the first line.")
    codes = list(named_values) or [name for name in head if name not in stubs]
    if reading.wide in rows.columns or len(codes) < 2:
        raise InputError(
            f"{rows.source}: --wide names the variable whose codes are the names of columns; there must be two "
            "such columns, and none of that name."
        )
    return (
        melted(rows, reading.wide, stubs, codes),
        replace(named, values=("value",), by=(*stubs, reading.wide), beside=()),
    )


def _merged(
    rows: Rows, places: Mapping[Key, Sequence[int]], read: Mapping[str, PublishedColumn]
) -> tuple[dict[str, PublishedColumn], list[str]]:
    """One row for each cell; a cell that is hidden in one row and shown in another is shown."""
    if len(places) == len(rows):
        return dict(read), []
    notes = ["cells that stand twice are read as one; a value that one of the rows shows is known."]
    out = {}
    for response, column in read.items():
        values: list[Number] = []
        bounds, standing = [], []
        shares: list[Number] = []
        for cell_index, at in enumerate(places.values()):
            known = list(dict.fromkeys(v for row in at if (v := column.values[row]) is not None))
            if len(known) > 1:
                raise NotJudgedError(
                    f"{rows.source}: a cell stands in {rows.places[at[0]]} and in {rows.places[at[1]]} with "
                    f"different values of {response!r}; name all columns of codes with --by, or leave "
                    f"a row out."
                )
            values.append(known[0] if known else None)
            if (known and any(column.values[row] is None for row in at)) or set(at) & {
                *column.standing
            }:
                standing.append(cell_index)
            bound: Bound | None = UNKNOWN
            for row in at:
                bound = None if bound is None else both(bound, column.bounds[row])
            if bound is None:
                raise NotJudgedError(
                    f"{rows.source}: a cell stands in {rows.places[at[0]]} and in {rows.places[at[1]]}, and "
                    f"what they say about {response!r} cannot both be true."
                )
            bounds.append(bound)
            if column.shares is not None:
                shares.append(
                    next((column.shares[row] for row in at if column.shares[row] is not None), None)
                )
        out[response] = replace(
            column,
            values=tuple(values),
            bounds=tuple(bounds),
            standing=tuple(standing),
            maybe_zero=_places(places, column.maybe_zero),
            bracketed=_places(places, column.bracketed),
            shares=None if column.shares is None else tuple(shares),
        )
    return out, notes


def _places(places: Mapping[Key, Sequence[int]], rows: Sequence[int]) -> tuple[int, ...]:
    """The cells that one of some rows is about."""
    return tuple(cell_index for cell_index, at in enumerate(places.values()) if set(at) & {*rows})


def _other_letters(
    rows: Rows, columns: FileColumns, read: Mapping[str, PublishedColumn]
) -> tuple[dict[str, PublishedColumn], list[str]]:
    """What further columns of letters or words say about numbers: two columns can contradict each other."""
    out, doubts = dict(read), list[str]()
    for name in columns.ignored:
        texts = rows.columns[name]
        letters = is_flag(rows, name)
        for response, column in read.items():
            there = [value is not None for value in column.values]
            if letters:
                standing, doubt = judged(name, texts, there)
                out[response] = replace(
                    column, standing=tuple(sorted({*out[response].standing, *standing}))
                )
                doubts += [doubt] if doubt else []
            elif word := next(
                (t for t, shown in zip(texts, there, strict=True) if shown and hides(t)), ""
            ):
                doubts.append(
                    f"numbers stand beside {word!r} in the column {name!r}, which could mean that they are "
                    f"hidden; say --status-column {name}, or --beside {name} if it tells nothing about them."
                )
    return out, doubts


def _parents(rows: Rows, columns: FileColumns) -> dict[str, dict[str, str]]:
    """For a dimension with a column that names a code of it in every row: the parent of each code."""
    parents: dict[str, dict[str, str]] = {}
    for name in columns.dimensions:
        codes = rows.columns[name]
        for other in columns.ignored:
            texts = rows.columns[other]
            pairs = dict(zip(codes, texts, strict=True))
            if (
                set(texts) <= {*codes, ""}
                and len(set(texts)) > 1
                and len(set(zip(codes, texts, strict=True))) == len(pairs)
                and all(code != parent for code, parent in pairs.items())
            ):
                parents[name] = {code: parent for code, parent in pairs.items() if parent}
                break
    return parents
