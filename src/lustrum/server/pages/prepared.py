"""Pages of prepared tables: a programme, and each of its tables as a reader wants to look at it."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from lustrum.answer import TableService
from lustrum.model import LustrumError, QueryError
from lustrum.model.plugins import load, names
from lustrum.model.statistic import COUNT
from lustrum.model.text import say
from lustrum.public.prepared import PreparedFolder, PreparedTable
from lustrum.server.http.errors import documented, not_found
from lustrum.server.http.languages import current
from lustrum.server.http.templating import Pages
from lustrum.server.schemas import PreparedOut, PreparedSummary, PreparedTableOut, Programmes
from lustrum.server.service.answers import only
from lustrum.server.table_view import titles
from lustrum.server.table_view.arrange import arrange
from lustrum.server.table_view.chart import draw
from lustrum.server.table_view.controls import controls
from lustrum.server.table_view.figures import Signs
from lustrum.server.table_view.layout import grid
from lustrum.server.urls import display


def router(service: TableService, pages: Pages) -> APIRouter:
    """The routes of prepared tables."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/prepared/{name}")
    def programme(name: str, request: Request) -> Response:
        for key in request.query_params:
            raise QueryError(say("There is no parameter {name!r}; this page takes none.", name=key))
        folder = find_programme(service, name)
        listed = {path for table in folder.tables for path in table.files.values()}
        proofs = [path for path in sorted(folder.files) if path not in listed]
        return pages.render(
            "programme.html",
            programme=folder,
            files=[(path, file_address(name, path)) for path in proofs],
        )

    @routes.get("/prepared/{name}/{table}")
    def table(name: str, table: str, request: Request) -> Response:
        folder = find_programme(service, name)
        prepared_table = find_table(folder, table)
        view, rest = display.read(request.query_params.multi_items())
        for key, _ in rest:
            raise QueryError(say("A prepared table has no parameter {name!r}.", name=key))
        page = f"/prepared/{name}/{table}"
        release = folder.release(prepared_table)
        if prepared_table.response != COUNT:
            # What is no count has a name, by which the page knows what to call the figures.
            said = prepared_table.label.removeprefix(f"{prepared_table.title}: ").removesuffix(
                f" ({prepared_table.unit})"
            )
            release = replace(release, label=said)
        arranged = arrange(release, view)
        signs = Signs(*current().signs)
        shown = grid(arranged, signs)
        return pages.render(
            "prepared.html",
            programme=folder,
            table=prepared_table,
            title=prepared_table.label,
            grid=shown,
            chart=draw(arranged, signs) if view.form == "chart" else None,
            controls=controls(arranged, shown, page),
            captions=[],
            picture_name=f"{name}-{table}",
            card_link=str(request.base_url).rstrip("/") + current().at(view.address(page)),
            card_frame="",
            cut_by=", ".join(current().say(one) for one in shown.cut_by),
            done=arranged.release.notes,
            downloads=[
                (key, text, file_address(name, prepared_table.files[key]))
                for key, text in titles.file_kinds().items()
                if key in prepared_table.files
            ],
            here=view.address(page),
        )

    return routes


# --- The API's prepared tables: programmes, their tables, and their files as they were published


def api_router(service: TableService) -> APIRouter:
    """The routes of prepared tables; all of them only read."""
    routes = APIRouter(prefix="/api/v1")

    @routes.get("/prepared", summary="Prepared tables", responses=documented(400, 422, 429, 500))
    def every(request: Request) -> Programmes:
        """Every programme of prepared tables."""
        only(request)
        return Programmes(programmes=[PreparedSummary(**_head(f)) for f in programmes(service)])

    @routes.get(
        "/prepared/{name}",
        summary="One programme",
        responses=documented(400, 404, 422, 429, 500, 503),
    )
    def one(name: str, request: Request) -> PreparedOut:
        """Its tables with the addresses of their files."""
        only(request)
        folder = find_programme(service, name)
        listed = {path for table in folder.tables for path in table.files.values()}
        return PreparedOut(
            **{k: v for k, v in _head(folder).items() if k != "tables"},
            notes=list(folder.notes),
            tables=[
                PreparedTableOut(
                    id=table.id,
                    title=table.title,
                    label=table.label,
                    unit=table.unit,
                    cells=table.cells,
                    suppressed=table.suppressed,
                    files={key: file_address(name, path) for key, path in table.files.items()},
                )
                for table in folder.tables
            ],
            files={path: file_address(name, path) for path in folder.files if path not in listed},
        )

    @routes.get(
        "/prepared/{name}/files/{path:path}",
        summary="A file of a programme",
        response_class=Response,
        responses={
            200: {"content": {"application/octet-stream": {}}},
            **documented(400, 404, 422, 429, 500, 503),
        },
    )
    def file(name: str, path: str, request: Request) -> Response:
        """The bytes that were published, checked against their digest."""
        only(request)
        folder = find_programme(service, name)
        if path not in folder.files:
            raise not_found(f"There is no file {path!r} of the prepared tables {name!r}.")
        plain = path.replace("/", "-")
        return Response(
            folder.files[path],
            media_type=media_type(path),
            headers={"Content-Disposition": f'attachment; filename="{name}-{plain}"'},
        )

    return routes


def file_address(name: str, path: str) -> str:
    return f"/api/v1/prepared/{name}/files/{path}"


def _head(folder: PreparedFolder) -> dict[str, Any]:
    return {
        "name": folder.name,
        "title": folder.title,
        "period": folder.period,
        "dataset": folder.dataset,
        "tables": len(folder.tables),
        "digest": folder.digest,
    }


# --- The programmes of prepared tables that may be served

log = logging.getLogger("lustrum.server")

_MEDIA = {
    "csv": "text/csv; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "toml": "application/toml",
}
"""What files are that a browser should show, and those beside tables; of others their format says it."""


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
    ending = path.rsplit(".", 1)[-1]
    formats = (load("lustrum.formats", name) for name in names("lustrum.formats"))
    return _MEDIA.get(ending) or next(
        (one.media_type for one in formats if path.endswith(f".{one.ending}")),
        "application/octet-stream",
    )
