"""The agency's application: routes put together. Nothing here is part of the public server."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from lustrum.agency.dataset_pages import DatasetPages
from lustrum.agency.import_pages import ImportPages
from lustrum.agency.loopback import LocalOnly
from lustrum.agency.maps.pages import MapPages
from lustrum.agency.tasks import AgencyTasks
from lustrum.agency.templating import STATIC, AgencyPages
from lustrum.agency.usage_pages import UsagePages
from lustrum.rumap import Cases


def create_agency_app(
    *,
    data: Path | None = None,
    policy: Path | None = None,
    cases: Cases | None = None,
    metrics_port: int | None = None,
) -> Starlette:
    """The pages of one agency over its data folder; without one, those of maps alone.

    ``cases`` are tables that maps begin with. ``metrics_port`` is where the public server on this machine
    counts questions.
    """
    pages = AgencyPages(data=data is not None)
    maps = MapPages(pages, data, policy or Path("policy-from-map.toml"), cases)
    tasks = AgencyTasks()
    routes = maps.routes()
    imports: ImportPages | None = None
    datasets: DatasetPages | None = None
    if data is None:
        routes.append(Route("/", _to_maps))
    else:
        imports = ImportPages(pages, data, tasks)
        datasets = DatasetPages(pages, data, tasks)
        routes += datasets.routes()
        routes += imports.routes()
        routes += UsagePages(pages, data, tasks, metrics_port).routes()
    files = StaticFiles(directory=STATIC, packages=[("lustrum", "design")])

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
        routes=[*routes, Mount("/static", files)],
        middleware=[Middleware(LocalOnly, token=pages.token)],
        lifespan=lifespan,
    )
    app.state.jobs = maps.jobs
    app.state.tasks = tasks
    app.state.token = pages.token
    return app


async def _to_maps(request: Request) -> Response:
    return RedirectResponse("/maps", 303)
