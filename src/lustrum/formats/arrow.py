"""Arrow IPC: the columns of the Parquet file, as programs map them into memory."""

from __future__ import annotations

import io
from typing import ClassVar

from lustrum.formats.about import NOTHING, About
from lustrum.formats.parquet import Parquet
from lustrum.model import Release


class Arrow:
    """Writes an Arrow IPC file ("Feather 2"): one row a cell; the metadata say what it is."""

    name: ClassVar[str] = "arrow"
    title: ClassVar[str] = "Arrow IPC"
    media_type: ClassVar[str] = "application/vnd.apache.arrow.file"
    ending: ClassVar[str] = "arrow"
    tells_about: ClassVar[bool] = True

    def write(self, release: Release, label: str = "", about: About = NOTHING) -> bytes:
        import pyarrow as pa
        from pyarrow import ipc, parquet

        # Through the file of Parquet: one place decides what is a column and what nobody may see.
        content = Parquet().write(release, label, about)
        file = parquet.ParquetFile(io.BytesIO(content))
        names = file.schema_arrow.names
        words = [n for n in names if pa.types.is_string(file.schema_arrow.field(n).type)]
        table = parquet.read_table(io.BytesIO(content), read_dictionary=words)
        table = table.replace_schema_metadata(file.metadata.metadata or None).unify_dictionaries()
        out = io.BytesIO()
        with ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        return out.getvalue()
