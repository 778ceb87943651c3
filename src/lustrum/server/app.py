"""The application: routes, errors and headers put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse
from limits.storage import MemoryStorage
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.staticfiles import StaticFiles

from lustrum.answer import TableService
from lustrum.answer.readers import Reader, reading_as
from lustrum.answer.tokens import Tokens
from lustrum.numeric.compiled import is_compiling
from lustrum.server.api import datasets as api_datasets
from lustrum.server.api import jobs as job_routes
from lustrum.server.api import tables as api
from lustrum.server.api.tables import RepeatedRequests
from lustrum.server.http import errors
from lustrum.server.http.middleware import (
    AskerContext,
    DisconnectWatcher,
    ETags,
    HeadAsGet,
    LanguagePrefix,
    PageCompression,
    RequestIds,
    SecurityHeaders,
    SizeLimits,
    UnexpectedErrors,
)
from lustrum.server.http.origins import AllowedHosts, SameOriginWrites
from lustrum.server.http.rates import Rates
from lustrum.server.http.readers import Readers, TrustedProxies, named_by
from lustrum.server.http.templating import DESIGN, STATIC, Pages
from lustrum.server.operation.lifecycle import (
    feed_watchdog,
    keep_figures,
    keep_memory_small,
    load_loops,
    warm_up,
)
from lustrum.server.operation.metrics import Metrics, RequestMetrics, RouteLabel, log_request
from lustrum.server.pages import answer as answer_pages
from lustrum.server.pages import catalogue as pages
from lustrum.server.pages import framing, guides
from lustrum.server.pages import prepared as prepared_pages
from lustrum.server.protocols import metadata, pxweb, sdmx
from lustrum.server.service.questions import THREADS, Questions
from lustrum.server.settings import Settings

# --- Whether the server is up, for monitoring

health_routes = APIRouter(include_in_schema=False)


@health_routes.get("/health")
def health() -> dict[str, str]:
    """Up. Nothing is said about the data: watching a server must teach nothing about them."""
    return {"status": "ok"}


@health_routes.get("/health/ready")
def ready(request: Request) -> JSONResponse:
    """Whether questions are answered: after the warm-up, until the server shuts down, and about which datasets.

    One dataset that is damaged, or whose records do not answer, does not make the server unready: it answers
    about the others, and shows prepared tables. It is unready where nothing can be answered, also where the
    folder of data is gone.
    """
    if not request.app.state.ready:
        return JSONResponse({"status": "not ready"}, 503)
    service = request.app.state.questions.service
    named = service.states()
    with reading_as(Reader(role="staff")):  # those for some roles alone are counted, and not named
        others = service.states() if named.keys() != set(service.names()) else {}
    states = {**others, **named}
    some = "ready" in states.values() or bool(service.prepared_folders.names())
    whole = all(state == "ready" for state in states.values())
    status = ("ready" if whole else "degraded") if some else "not ready"
    return JSONResponse({"status": status, "datasets": named}, 200 if some else 503)


def create_app(
    service: TableService,
    settings: Settings | None = None,
    metrics: Metrics | None = None,
    hits: MemoryStorage | None = None,
) -> FastAPI:
    """The table builder over a service, ready to be served; ``hits`` are shared with other processes."""
    templates = Pages()
    settings = settings or Settings()
    metrics = metrics or Metrics()
    service.check_in_background()
    questions = Questions(service, settings, metrics)
    tokens = Tokens(service.root)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        # Questions wait for their turn in threads; there must be some left for everything else.
        current_default_thread_limiter().total_tokens = THREADS + 2 * settings.at_once + 40
        warming = asyncio.create_task(run_in_threadpool(warm_up, service))
        # Where loops have to be compiled first, visitors see pages meanwhile, and their questions wait.
        while not (await asyncio.wait({warming}, timeout=0.1))[0] and not is_compiling():
            pass
        questions.jobs.start()

        def ready(_: object) -> None:
            app.state.ready = True

        async def load() -> None:
            await asyncio.wait({warming})
            await run_in_threadpool(load_loops, service)

        if warming.done():
            ready(warming)
        warming.add_done_callback(ready)
        beside = [
            asyncio.create_task(feed_watchdog(service.lives)),
            asyncio.create_task(keep_memory_small()),
            asyncio.create_task(load()),
            asyncio.create_task(
                keep_figures(lambda: metrics.look(service, questions.jobs.store.counts))
            ),
        ]
        # What reaches every connection, also one that is turned away before it asks anything.
        yield {"turned_away": metrics.turned_away}
        warming.remove_done_callback(ready)
        app.state.ready = False
        for task in beside:
            task.cancel()
        await run_in_threadpool(questions.jobs.stop)
        await run_in_threadpool(questions.answers.stop)

    app = FastAPI(
        title="Lustrum",
        summary="Build your own tables without giving away anybody's secret.",
        version="1",
        # The usual documentation pages load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        lifespan=lifespan,
        middleware=[
            Middleware(TrustedProxies, trusted=settings.trusted_proxies),
            Middleware(RequestIds),
            Middleware(RequestMetrics, metrics=metrics, log=log_request),
            Middleware(
                SecurityHeaders,
                readable=lambda: settings.lets_others(service.is_public()),
                named_by=lambda: named_by(settings, tokens),
            ),
            Middleware(HeadAsGet),
            Middleware(LanguagePrefix),
            Middleware(PageCompression),
            Middleware(ETags),
            Middleware(UnexpectedErrors, pages=templates),
            Middleware(AllowedHosts, hosts=settings.host_names, pages=templates),
            Middleware(SameOriginWrites, pages=templates),
            Middleware(Readers, settings=settings, tokens=tokens, pages=templates),
            Middleware(DisconnectWatcher),
            Middleware(AskerContext),
            Middleware(Rates, rate=settings.rate, pages=templates, hits=hits),
            Middleware(SizeLimits, pages=templates),
            Middleware(RepeatedRequests, questions=questions),
            Middleware(RouteLabel),
        ],
    )
    app.state.ready = False
    app.state.metrics = metrics
    app.state.questions = questions
    errors.install(app, templates)
    app.include_router(api_datasets.router(service))
    app.include_router(prepared_pages.api_router(service))
    app.include_router(api.router(questions))
    app.include_router(job_routes.api_router(questions))
    app.include_router(pxweb.router(questions))
    app.include_router(sdmx.router(questions))
    app.include_router(metadata.router(service))
    app.include_router(pages.router(service, templates))
    app.include_router(prepared_pages.router(service, templates))
    app.include_router(guides.router(service, templates))
    app.include_router(answer_pages.router(questions, templates))
    app.include_router(framing.router(questions))
    app.include_router(job_routes.router(questions, templates))
    app.include_router(health_routes)
    files = StaticFiles(directory=STATIC, packages=[("lustrum", DESIGN.name)])
    app.mount("/static", files, name="static")
    return app
