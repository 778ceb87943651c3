"""The programmes of prepared tables that may be served."""

from __future__ import annotations

import logging

from lustrum.answer import TableService
from lustrum.model import LustrumError
from lustrum.public.prepared import PreparedFolder, PreparedTable
from lustrum.server.http.problems import not_found

log = logging.getLogger("lustrum.server")

_MEDIA = {
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


def programmes(service: TableService) -> list[PreparedFolder]:
    """All that may be served; one that is damaged, or that other numbers would undo, is left out and logged."""
    folders = []
    for name in service.prepared_folders.names():
        try:
            folders.append(service.prepared(name))
        except LustrumError as error:
            log.error("prepared tables %s: %s", name, error)
    return folders


def find_programme(service: TableService, name: str) -> PreparedFolder:
    """One of them; a page that is not there where there is none."""
    if name not in service.prepared_folders.names():
        raise not_found(f"There are no prepared tables {name!r}.")
    return service.prepared(name)


def find_table(folder: PreparedFolder, name: str) -> PreparedTable:
    """One table; a page that is not there where there is none."""
    if name not in [table.id for table in folder.tables]:
        raise not_found(f"There is no prepared table {name!r}.")
    return folder.table(name)


def media_type(path: str) -> str:
    """What a file is, by its ending."""
    return _MEDIA[path.rsplit(".", 1)[-1]]
