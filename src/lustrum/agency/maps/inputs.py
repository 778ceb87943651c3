"""What is dropped in: true tables as files, or saved questions about a dataset."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from lustrum.answer.replay import read_questions
from lustrum.model import InputError, Table
from lustrum.model.errors import choices
from lustrum.readers import (
    StatedTotals,
    confidential_table,
    read_table,
    recognise,
)
from lustrum.rumap import Cases, RecordTables, Tables
from lustrum.tabulate import Store

_QUESTIONS = (".json", ".jsonl", ".log")


def cases_of_files(
    files: Iterable[Path], data: Path | None = None, no_totals: Iterable[str] = ()
) -> Cases:
    """The tables of files: CSV or Parquet with true values, or questions about a dataset in a data folder.

    ``no_totals`` names dimensions that have no total among their codes; an empty name stands for all.
    """
    paths = list(files)
    if not paths:
        raise InputError("A map needs a table; name a file.")
    asked = [path for path in paths if path.suffix.lower() in _QUESTIONS]
    if asked and len(asked) < len(paths):
        raise InputError("A map is of files with tables, or of saved questions, not of both.")
    if asked:
        return _questions(asked, data)
    said = StatedTotals(none=frozenset(no_totals))
    tables: dict[str, Table] = {}
    for path in paths:
        file = read_table(path)
        table = confidential_table(file, recognise([file], said))
        tables[_free(path.stem, tables)] = table
    return Tables(tables)


def cases_of_texts(texts: Mapping[str, bytes], data: Path | None = None) -> Cases:
    """The same from the names and contents of files; totals are recognised where there are any."""
    with tempfile.TemporaryDirectory(prefix="lustrum-map-") as folder:
        paths = []
        for number, (name, content) in enumerate(texts.items()):
            subfolder = Path(folder) / str(number)
            subfolder.mkdir()
            path = subfolder / (Path(name).name or "table.csv")
            path.write_bytes(content)
            paths.append(path)
        try:
            return cases_of_files(paths, data)
        except InputError as error:
            if "no total is recognised" not in str(error):
                raise InputError(str(error).replace(f"{folder}/", "")) from None
        return cases_of_files(paths, data, no_totals=[""])


def _questions(paths: Iterable[Path], data: Path | None) -> Cases:
    if data is None:
        raise InputError(
            "Saved questions need the data that they are about; name the folder by --data."
        )
    queries = [query for path in paths for query in read_questions(path)]
    names = {query.dataset for query in queries}
    if len(names) > 1:
        raise InputError("The questions are about several datasets; a map is of one.")
    name = names.pop()
    store = Store(data)
    if name not in store.names():
        raise InputError(f"There is no dataset {name!r} in {data}; {choices(name, store.names())}.")
    engine = store.open(name)
    titled: dict[str, object] = {}
    named = {}
    for query in queries:
        by = " x ".join(axis.variable for axis in query.by) or "everybody"
        where = ", ".join(item.variable for item in query.where)
        name = _free(by + (f" where {where}" if where else ""), titled)
        titled[name] = None
        named[name] = query
    return RecordTables(engine, named)


def _free(name: str, taken: Mapping[str, object]) -> str:
    """A name that no other table has."""
    if name not in taken:
        return name
    number = 2
    while f"{name} {number}" in taken:
        number += 1
    return f"{name} {number}"
