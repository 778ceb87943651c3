"""Data folders of records in a database and of a copy of them, and the bundles that they give."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from pyarrow import csv, parquet
from rich.console import Console

import services
from lustrum.cli.protect import protect_dataset
from lustrum.cli.work import ingest_source, make_record_keys
from lustrum.tabulate import FrameSource, Store, ingest
from lustrum.tabulate.remote import Connection
from tabulate.worlds import SECRET, World

QUIET = Console(file=io.StringIO())
TOGETHER = """
import sys
from lustrum.cli import main
for line in {lines}:
    sys.argv = line.split()
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
"""


def in_one_process(lines: list[str], before: str = "", after: str = "") -> list[str]:
    """A program that runs commands one after the other, between what else is to be run."""
    return [sys.executable, "-c", before + TOGETHER.format(lines=lines) + after]


def toml(words: Mapping[str, Any]) -> str:
    """A file in TOML, nested tables inline."""

    def inline(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{json.dumps(k)} = {inline(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(inline, value)) + "]"
        return json.dumps(value)

    return "".join(f"{name} = {inline(value)}\n" for name, value in words.items())


def connected(
    world: World, folder: Path, owner: Connection, reader: Connection, file: Path | None = None
) -> Path:
    """The data folder after `lustrum keys` and `lustrum ingest`; keys in a file are loaded into SQLite."""
    data = folder / "data"
    data.mkdir()
    SECRET.write(data / "record-keys.secret")
    text = folder / "world.toml"
    text.write_text(toml(world.description))
    (folder / "owner.toml").write_text(toml(owner.to_mapping()))
    (folder / "reader.toml").write_text(toml(reader.to_mapping()))
    role = services.READER if owner.backend == "postgres" else None
    make_record_keys(text, folder / "owner.toml", role, file, data, QUIET)
    if file is not None:
        _load_keys(file, Path(str(reader.database)))
    ingest_source(None, text, None, None, folder / "reader.toml", data, QUIET)
    return data


def _load_keys(file: Path, database: Path) -> None:
    rows = (csv.read_csv if file.suffix == ".csv" else parquet.read_table)(file)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DROP TABLE keys")
        columns = ", ".join(f"{name} integer" for name in rows.column_names)
        connection.execute(f"CREATE TABLE keys ({columns})")
        values = [list(row.values()) for row in rows.to_pylist()]
        connection.executemany("INSERT INTO keys VALUES (?, ?, ?)", values)
        connection.commit()


def copied(world: World, folder: Path, policy: Path) -> Path:
    """The same records in a data folder of their own, under the same policy and secret."""
    data = folder / "copied"
    ingest(FrameSource(world.arrow()), world.dataset, Store(data), secret=SECRET)
    (data / "policies").mkdir()
    (data / "policies" / "world.toml").write_bytes(policy.read_bytes())
    return data


def bundle(data: Path) -> dict[str, bytes]:
    protect_dataset("world", data, QUIET)
    made = data / "bundles" / "world"
    return {p.name: p.read_bytes() for p in sorted(made.iterdir()) if p.is_file()}
