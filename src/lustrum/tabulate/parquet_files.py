"""Records in many Parquet files: a folder, a pattern, or a place in an object store.

A folder is read as a whole or not at all: every file in it must hold the columns that the description names,
and what is no Parquet file is refused, not left out. Files come in the order of their names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from lustrum.model import IngestError
from lustrum.model.errors import choices
from lustrum.tabulate import parquet

if TYPE_CHECKING:
    from pyarrow import fs

_STORES = ("s3", "gs", "gcs", "abfs", "abfss")
_SETTINGS = ("endpoint_override", "region", "scheme")
_PARTITION = re.compile(r"/([^/=]+)=([^/]*)(?=/)")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def is_many(place: str) -> bool:
    """Whether a place names a folder, a pattern or an object store, and not one file."""
    if "://" in place:
        return True
    path = Path(place)
    return path.is_dir() or ("*" in place and not path.exists())


@dataclass(frozen=True)
class ParquetFiles:
    """All Parquet files of a folder, of a pattern with ``*`` or ``**``, or of an object store.

    Credentials come from the environment or the machine's role, as pyarrow finds them; an address holds none.
    A column that no file holds may be part of the folders' names (``region=01/``), as Spark writes them.
    """

    place: str

    @property
    def name(self) -> str:
        """How the source is called in messages."""
        return self.place

    def __post_init__(self) -> None:
        if "://" not in self.place:
            return
        parts = urlsplit(self.place)
        words = [word for word, _ in parse_qsl(parts.query, keep_blank_values=True)]
        if parts.scheme not in _STORES:
            raise IngestError(
                f"Records are read from a file, a folder, or an address that begins with "
                f"{', '.join(f'{store}://' for store in _STORES)}."
            )
        # In an address of Azure the container stands before the account: abfs://container@account.
        plain = parts.scheme.startswith("abfs") and re.fullmatch(r"[\w-]+@[\w.-]+", parts.netloc)
        if not (plain or re.fullmatch(r"[\w.-]+", parts.netloc)) or set(words) - set(_SETTINGS):
            raise IngestError(
                "An address of records names a bucket, a folder and at most the settings "
                f"{', '.join(_SETTINGS)}. What else it holds may be a credential and is not repeated; give "
                "credentials by the environment."
            )

    def batches(
        self, columns: list[str], coded: Collection[str] = ()
    ) -> Iterator[tuple[pa.Table, int | None]]:
        """The wanted columns in order of the files' names, some rows at a time."""
        failed = ""
        try:
            system, files = self._files()
            rows, kinds = 0, None
            for file in files:
                with system.open_input_file(file.path) as opened:
                    count, found = self._looked_at(file, opened, columns)
                if kinds is not None and found != kinds:
                    wrong = next(n for n in columns if found.get(n) != kinds.get(n))
                    raise IngestError(
                        f"{file.path}, column {wrong!r}: it is of another type than in {files[0].path}, or "
                        "only one of them holds it; write all files alike."
                    )
                kinds = found
                rows += count
            for file in files:
                yield from self._read(system, file, columns, coded, rows)
            if _marks(self._files()[1]) != _marks(files):
                raise IngestError(
                    f"{self.place}: files changed while they were read; wait until they are complete."
                )
        except (pa.ArrowException, OSError) as error:
            failed = type(error).__name__
        if failed:
            raise IngestError(
                f"{self.place} cannot be read ({failed}); see that it is there and complete, and that the "
                "credentials of the environment allow to list and to read it."
            )

    def _looked_at(
        self, file: fs.FileInfo, opened: pa.NativeFile, columns: list[str]
    ) -> tuple[int, dict[str, pa.DataType]]:
        """How many rows a file has, and the types of wanted columns that it holds itself."""
        footer = pq.ParquetFile(opened)
        names = footer.schema_arrow.names
        folders = _folders(file.path)
        for name in columns:
            if names.count(name) + (name in folders) != 1:
                known = [*names, *folders]
                raise IngestError(
                    f"{file.path} has {known.count(name) or 'no'} columns {name!r}, which the description asks "
                    f"for; {choices(name, known)}."
                )
        held = [name for name in columns if name in names]
        opened.seek(0)
        if not parquet.reads_plainly(opened, held):
            raise IngestError(
                f"{file.path}: a column that the description names is neither a text nor a number; write it "
                "as text, or use a --query for DuckDB."
            )
        return footer.metadata.num_rows, {n: footer.schema_arrow.field(n).type for n in held}

    def _read(
        self,
        system: fs.FileSystem,
        file: fs.FileInfo,
        columns: list[str],
        coded: Collection[str],
        rows: int,
    ) -> Iterator[tuple[pa.Table, int]]:
        folders = _folders(file.path)
        held = [name for name in columns if name not in folders]
        with system.open_input_file(file.path) as opened:
            inside = [name for name in coded if name in held]
            for table, _ in parquet.batches(opened, held, inside, parquet.BATCH):
                for name in columns:
                    if name in folders:
                        value = pa.scalar(folders[name], pa.string())
                        table = table.append_column(name, pa.repeat(value, table.num_rows))
                yield table.select(columns), rows

    def _files(self) -> tuple[fs.FileSystem, list[fs.FileInfo]]:
        """The files in the order of their names, with size and time of change."""
        from pyarrow import fs

        if "://" in self.place:
            address, _, settings = self.place.partition("?")
            fixed = address.split("*")[0]
            fixed = fixed.rpartition("/")[0] if fixed != address else fixed
            system, folder = fs.FileSystem.from_uri(fixed + ("?" + settings if settings else ""))
            pattern = folder.rstrip("/") + address[len(fixed) :]
        else:
            system, pattern = fs.LocalFileSystem(), str(Path(self.place).absolute())
            fixed = pattern.split("*")[0]
            folder = fixed.rpartition("/")[0] if fixed != pattern else pattern
        chosen = system.get_file_info(fs.FileSelector(folder, recursive=True))
        files = sorted((f for f in chosen if f.type == fs.FileType.File), key=lambda f: str(f.path))
        hidden = re.compile(r"/[._][^/]*")
        files = [f for f in files if not hidden.search(f.path[len(folder) :])]
        if "*" in pattern:
            matches = re.compile(_expression(pattern))
            files = [f for f in files if matches.fullmatch(f.path)]
        for file in files:
            if not file.path.lower().endswith(".parquet"):
                raise IngestError(
                    f"{file.path} is no .parquet file; take it out of the folder, or name a pattern such as "
                    "folder/*.parquet."
                )
        if not files:
            raise IngestError(f"{self.place} holds no .parquet files.")
        return system, files


def _marks(files: list[fs.FileInfo]) -> list[tuple[str, int, int | None]]:
    """By what a file that changed is known."""
    return [(f.path, f.size, f.mtime_ns) for f in files]


def _folders(path: str) -> dict[str, str | None]:
    """What the names of folders say of all records below them."""
    found = {unquote(name): unquote(value) for name, value in _PARTITION.findall(path)}
    return {name: None if value == _NO_VALUE else value for name, value in found.items()}


def _expression(pattern: str) -> str:
    """A pattern of paths; only ``**`` goes beyond a folder."""
    words = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*"}
    parts = re.split(r"(\*\*/|\*\*|\*)", pattern)
    return "".join(words.get(part, re.escape(part)) for part in parts)
