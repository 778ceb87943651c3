"""The agency's application and the checker's page: no part of the public server."""

from __future__ import annotations

import csv
import io
import os
import signal
import sys
import tempfile
import threading
import webbrowser
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from lustrum.agency.dataset_pages import DatasetPages
from lustrum.agency.door import Door, key_file, listen, listen_on_file
from lustrum.agency.import_pages import ImportPages
from lustrum.agency.maps.pages import MapPages
from lustrum.agency.tasks import AgencyTasks
from lustrum.agency.templating import STATIC, AgencyPages, form_of
from lustrum.agency.usage_pages import UsagePages
from lustrum.checking import CheckerFolder
from lustrum.rumap import Cases
from lustrum.runtime.durable import outages

_AGAIN = "For a new one, run 'lustrum agency --address' with the same --data, as the user who started them."
_AGAIN_MAPS = "For a new one, end 'lustrum map --page' and start it again."


def create_agency_app(
    *,
    data: Path | None = None,
    policy: Path | None = None,
    cases: Cases | None = None,
    metrics_port: int | None = None,
    files: Sequence[Path] = (),
    keys: bool = True,
) -> Starlette:
    """The pages of one agency over its data folder; without one, those of maps alone.

    ``cases`` are tables that maps begin with. ``metrics_port`` is where the public server on this machine
    counts questions. ``files`` are folders below which a file to import may be named. Without ``keys``
    everybody who can connect is let in.
    """
    pages = AgencyPages(data)
    maps = MapPages(pages, data, policy or Path("policy-from-map.toml"), cases)
    tasks = AgencyTasks()
    door = Door(pages.closed, _AGAIN_MAPS if data is None else _AGAIN, keys=keys)
    routes = maps.routes()
    imports: ImportPages | None = None
    datasets: DatasetPages | None = None
    if data is None:
        routes.append(Route("/", _to_maps))
    else:
        imports = ImportPages(pages, data, tasks, files)
        datasets = DatasetPages(pages, data, tasks)
        routes += datasets.routes()
        routes += imports.routes()
        routes += UsagePages(pages, data, tasks, metrics_port).routes()
    static = StaticFiles(directory=STATIC, packages=[("lustrum", "design")])

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # What every map needs is loaded before the page opens, the rest while its first visitor reads.
        if data is None:
            await run_in_threadpool(maps.warm_up)
            rest = threading.Thread(target=maps.warm_up_rest, name="warm-up", daemon=True)
            rest.start()
        yield
        maps.jobs.stop()
        await run_in_threadpool(tasks.stop)
        if imports is not None:
            await run_in_threadpool(imports.clear)
        if datasets is not None:
            await run_in_threadpool(datasets.close)

    app = Starlette(
        routes=[*routes, Mount("/static", static)],
        middleware=[Middleware(door.before)],
        lifespan=lifespan,
    )
    app.state.jobs = maps.jobs
    app.state.tasks = tasks
    app.state.door = door
    return app


async def _to_maps(request: Request) -> Response:
    return RedirectResponse("/maps", 303)


# --- Serve the agency's pages on this machine


def serve_agency(
    host: str = "127.0.0.1",
    port: int = 8001,
    *,
    data: Path | None = None,
    policy: Path | None = None,
    cases: Cases | None = None,
    metrics_port: int | None = None,
    files: Sequence[Path] = (),
    socket_file: Path | None = None,
    browser: bool = False,
    ready: Callable[[str, str], object] | None = None,
) -> None:
    """Serve until stopped.

    ``cases`` are tables that maps begin with; ``policy`` is where a choice is written; ``metrics_port`` where
    the public server counts questions; ``files`` are folders below which a file to import may be named. With
    ``socket_file`` the pages listen on that file alone. ``ready`` is told where the pages are, and the address
    that lets one browser in.
    """

    def make(keys: bool) -> Starlette:
        return create_agency_app(
            data=data, policy=policy, cases=cases, metrics_port=metrics_port, files=files, keys=keys
        )

    serve_pages(
        make, host, port, folder=data, socket_file=socket_file, browser=browser, ready=ready
    )


def serve_pages(
    make: Callable[[bool], Starlette],
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    folder: Path | None = None,
    socket_file: Path | None = None,
    browser: bool = False,
    ready: Callable[[str, str], object] | None = None,
) -> None:
    """Serve an application behind its door until stopped; ``make`` is told whether keys let people in.

    The next address is kept in ``folder``, or in one of this process alone.
    """
    with ExitStack() as open_:
        on = listen(host, port) if socket_file is None else listen_on_file(socket_file)
        listening = open_.enter_context(on)
        app = make(socket_file is None)
        # No proxy in front is believed: whom the page answers is decided by the connection itself. No line
        # is written of a request, since its address may hold a key.
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
        )
        place = address = str(socket_file)
        if socket_file is None:
            name, bound = listening.getsockname()[:2]
            place = f"http://{f'[{name}]' if ':' in name else name}:{bound}"
            folder = folder or Path(open_.enter_context(tempfile.TemporaryDirectory()))
            with outages(folder):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = key_file(folder.absolute(), bound)
            open_.enter_context(app.state.door.kept(path, place))
            address = app.state.door.address(place)
            if browser and _has_browser():
                # By the file, since everybody may list the words that a process was started with.
                shown = (path.as_uri(),)
                threading.Thread(target=webbrowser.open, args=shown, daemon=True).start()
        if ready is not None:
            ready(place, address)
        if threading.current_thread() is threading.main_thread():
            # The server raises the signal once more when it has ended: what was written is then removed.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        uvicorn.Server(config).run(sockets=[listening])


def _has_browser() -> bool:
    """Whether there is a screen for one, or one was named; a browser of the terminal would take that."""
    named = any(os.environ.get(word) for word in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))
    return named or sys.platform in ("darwin", "win32")


_MOST_ROWS = 200
_CHECK_AGAIN = "For a new one, end 'lustrum check' and start it again."


def create_check_app(folder: Path, *, keys: bool = True) -> Starlette:
    """The page of one folder; an error if it is not what its session wrote."""
    checked = CheckerFolder(folder)
    pages = AgencyPages(None, {"/": "Outputs", "/record": "Record"})
    door = Door(pages.closed, _CHECK_AGAIN, keys=keys)

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
