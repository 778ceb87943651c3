"""Parquet files read a batch at a time, codes as entries of the dictionaries that the file holds itself.

A batch is a row group, or the next part of one that is larger. So the batches of a file do not depend on how
many threads read it, and memory depends neither on the number of records nor on the size of row groups.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lustrum.model import IngestError
from lustrum.model.errors import choices

if TYPE_CHECKING:
    from pyarrow import fs


BATCH = 1 << 20
"""Most rows of a batch, whatever they are read from."""

_READ_AHEAD = 1 << 20
"""Bytes of a column that are read at once; without it a column of a row group would be read whole."""

_PIECE = 1 << 17
"""Rows that are decoded at once: the reader makes room for several times as many."""


File: TypeAlias = Path | pa.NativeFile


def reads_plainly(path: File, columns: Collection[str]) -> bool:
    """Whether the columns are plain texts and numbers, whose values no reader changes.

    Dates, times, lists and the like are left to DuckDB, which has its own words for their values.
    """
    with pq.ParquetFile(path) as file:
        leaves = [file.schema.column(i) for i in range(len(file.schema))]
        stored = {leaf.path: leaf.logical_type.type for leaf in leaves}
        fields = {name: file.schema_arrow.field(name).type for name in columns}
    return all(
        "." not in name and name in stored and _is_plain(kind, stored[name])
        for name, kind in fields.items()
    )


def _is_plain(kind: pa.DataType, stored: str) -> bool:
    if _is_text(kind):
        return stored == "STRING"
    whole = pa.types.is_integer(kind)
    return bool(
        whole
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_decimal128(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def batches(
    path: File, columns: list[str], coded: Collection[str], rows: int
) -> Iterator[tuple[pa.Table, int]]:
    """The wanted columns in order of the file, at most so many rows at a time, and the rows of the file."""
    with pq.ParquetFile(
        path, read_dictionary=list(coded), pre_buffer=False, buffer_size=_READ_AHEAD
    ) as file:
        groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        sizes = (min(rows, group - at) for group in groups for at in range(0, group, rows))
        pieces = file.iter_batches(min(rows, _PIECE), columns=columns)
        for table in _cut(pieces, sizes):
            yield table.select(columns), file.metadata.num_rows


def _cut(pieces: Iterable[pa.RecordBatch], sizes: Iterable[int]) -> Iterator[pa.Table]:
    """Pieces of any size as tables of these sizes."""
    left = iter(pieces)
    piece: pa.RecordBatch | None = None
    for size in sizes:
        parts: list[pa.RecordBatch] = []
        while size:
            if piece is None or not piece.num_rows:
                piece = next(left, None)
                if piece is None:
                    raise pa.ArrowInvalid("it holds fewer records than it says")
                for column in piece.columns:
                    _check(column)
            parts.append(piece.slice(0, size))
            size -= parts[-1].num_rows
            piece = piece.slice(parts[-1].num_rows)
        yield pa.Table.from_batches(parts)


def _check(column: pa.Array) -> None:
    """Refuse texts that are not UTF-8 and entries that no dictionary has; the reader does not look."""
    texts = column
    if pa.types.is_dictionary(column.type):
        texts = column.dictionary
        ends = pc.min_max(column.indices)
        if ends["min"].is_valid and not 0 <= ends["min"].as_py() <= ends["max"].as_py() < len(
            texts
        ):
            raise pa.ArrowInvalid("a column has entries that are not in its dictionary")
    if _is_text(texts.type):
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            raise pa.ArrowInvalid("a text is not UTF-8") from None  # nothing that quotes it


# Records in many Parquet files: a folder, a pattern, or a place in an object store.
#
# A folder is read as a whole or not at all: every file in it must hold the columns that the description names,
# and what is no Parquet file is refused, not left out. Files come in the order of their names.

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
        if not reads_plainly(opened, held):
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
            for table, _ in batches(opened, held, inside, BATCH):
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
