"""The API's prepared tables: programmes, their tables, and their files as they were published."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from lustrum.answer import TableService
from lustrum.public.prepared import PreparedFolder
from lustrum.server.http.problems import documented, not_found
from lustrum.server.schemas import PreparedOut, PreparedSummary, PreparedTableOut, Programmes
from lustrum.server.service.answers import only
from lustrum.server.service.programmes import find_programme, media_type, programmes


def router(service: TableService) -> APIRouter:
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
    """Where a file of a programme is served."""
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
