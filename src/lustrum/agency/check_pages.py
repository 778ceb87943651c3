"""The checker's page over the folder of a session: its outputs with their risks, and a decision about each."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from lustrum.agency.door import Door
from lustrum.agency.templating import STATIC, AgencyPages, form_of
from lustrum.checking import CheckerFolder

_MOST_ROWS = 200
_AGAIN = "For a new one, end 'lustrum check' and start it again."


def create_check_app(folder: Path, *, keys: bool = True) -> Starlette:
    """The page of one folder; an error if it is not what its session wrote."""
    checked = CheckerFolder(folder)
    pages = AgencyPages(None, {"/": "Outputs", "/record": "Record"})
    door = Door(pages.closed, _AGAIN, keys=keys)

    async def outputs(request: Request) -> Response:
        return pages.page(
            "outputs.html",
            "/",
            session=checked.session,
            decided=await run_in_threadpool(checked.decisions),
            with_others=Counter(n for d in checked.session["differences"] for n in d["outputs"]),
            folder=folder,
        )

    async def output(request: Request) -> Response:
        one = checked.output(request.path_params["name"])
        files = await run_in_threadpool(checked.verified)
        about = [d for d in checked.session["differences"] if one["name"] in d["outputs"]]
        decided = await run_in_threadpool(checked.decisions)
        table = one["file"].endswith(".csv")
        return pages.page(
            "output.html",
            "/",
            one=one,
            differences=about,
            rows=_rows(files[f"outputs/{one['file']}"]) if table else None,
            evidence=_rows(files[f"evidence/{one['name']}.csv"]),
            decided=decided.get(one["name"]),
            most=_MOST_ROWS,
        )

    async def decide(request: Request) -> Response:
        name, form = request.path_params["name"], await form_of(request)
        await run_in_threadpool(checked.decide, name, form.get("do", ""), form.get("comment", ""))
        return RedirectResponse("/", 303)

    async def record(request: Request) -> Response:
        return pages.page(
            "record.html", "/record", entries=await run_in_threadpool(checked.history)
        )

    guarded = pages.guarded
    app = Starlette(
        routes=[
            Route("/", guarded(outputs)),
            Route("/outputs/{name}", guarded(output)),
            Route("/outputs/{name}", guarded(decide), methods=["POST"]),
            Route("/record", guarded(record, "/record")),
            Mount("/static", StaticFiles(directory=STATIC, packages=[("lustrum", "design")])),
        ],
        middleware=[Middleware(door.before)],
    )
    app.state.door = door
    return app


def _rows(data: bytes) -> list[list[str]]:
    """The first rows of a CSV file."""
    reader: Any = csv.reader(io.StringIO(data.decode("utf-8", "replace")))
    return [row for _, row in zip(range(_MOST_ROWS + 1), reader, strict=False)]
