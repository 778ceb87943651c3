"""Pages of prepared tables: a programme, and each of its tables as a reader wants to look at it."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import Response

from lustrum.answer import TableService
from lustrum.model import QueryError
from lustrum.model.statistic import COUNT
from lustrum.model.text import say
from lustrum.server.api.prepared import file_address
from lustrum.server.http.languages import current
from lustrum.server.http.templating import Pages
from lustrum.server.service.programmes import find_programme, find_table
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
            cut_by=", ".join(current().say(one) for one in shown.cut_by),
            done=arranged.release.notes,
            downloads=[
                (key, text, file_address(name, prepared_table.files[key]))
                for key, text in titles.FILE_KINDS.items()
                if key in prepared_table.files
            ],
            here=view.address(page),
        )

    return routes
