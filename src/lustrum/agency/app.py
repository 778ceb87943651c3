"""The agency's application: routes put together. Nothing here is part of the public server."""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lustrum.agency.dataset_pages import DatasetPages
from lustrum.agency.import_pages import ImportPages
from lustrum.agency.maps.pages import MapPages
from lustrum.agency.tasks import AgencyTasks
from lustrum.agency.templating import STATIC, AgencyPages
from lustrum.agency.usage_pages import UsagePages
from lustrum.model import InputError
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


# --- Serve the agency's pages on this machine


def serve_agency(
    host: str = "127.0.0.1",
    port: int = 8001,
    *,
    data: Path | None = None,
    policy: Path | None = None,
    cases: Cases | None = None,
    metrics_port: int | None = None,
    ready: Callable[[str], object] | None = None,
) -> None:
    """Serve until stopped.

    ``cases`` are tables that maps begin with; ``policy`` is where a choice is written; ``metrics_port`` where
    the public server counts questions.
    """
    with listen(host, port) as listening:
        app = create_agency_app(data=data, policy=policy, cases=cases, metrics_port=metrics_port)
        # No proxy in front is believed: whom the page answers is decided by the connection itself.
        config = uvicorn.Config(app, log_level="warning", server_header=False, proxy_headers=False)
        name, bound = listening.getsockname()[:2]
        if ready is not None:
            ready(f"http://{f'[{name}]' if ':' in name else name}:{bound}")
        uvicorn.Server(config).run(sockets=[listening])


# --- What keeps the agency's page on this machine: where it listens, and whom it answers

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""Sent with every response: nothing is kept, framed or loaded from elsewhere."""

FORM = "application/x-www-form-urlencoded"
MOST_OF_FORM = 4 * 1024 * 1024
_HOST = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?")
"""The names of this machine, with a port or without, and nothing before or after them."""


def listen(host: str, port: int) -> socket.socket:
    """A socket on a loopback address; any other address is refused before and after binding."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise InputError(
            f"The page listens on a loopback address such as 127.0.0.1, not {host!r}."
        ) from None
    if not address.is_loopback:
        raise InputError(
            f"The page shows true counts and listens on this machine only; {host} is not a loopback address."
        )
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((str(address), port))
        bound = ipaddress.ip_address(listening.getsockname()[0])
        if not bound.is_loopback:
            raise InputError("The page could not be bound to a loopback address.")
    except OSError as error:
        listening.close()
        raise InputError(f"Port {port} of {host} cannot be used: {error.strerror}.") from None
    except InputError:
        listening.close()
        raise
    return listening


class LocalOnly:
    """Answers requests of this machine for this machine, and changes nothing on the word of another site.

    A request must come from a loopback address and name a loopback host, so that a name that somebody else
    points to this machine does not reach the page. Everything but reading also needs the origin of the page and
    a token that only the page knows: in a header or, where a plain form is sent, in its field ``token``.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        reason = self.refusal(scope)
        if reason is None and scope["method"] not in ("GET", "HEAD"):
            reason, receive = await self._token_checked(scope, receive)
        target: ASGIApp = self.app if reason is None else PlainTextResponse(reason, status_code=403)

        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start":
                named = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *named]
            await send(message)

        await target(scope, receive, complete)

    def refusal(self, scope: Scope) -> str | None:
        """Why a request is refused, or nothing."""
        headers = Headers(scope=scope)
        client = scope.get("client")
        if client is None or not _is_loopback(client[0]):
            return "This page answers this machine only."
        host = headers.get("host", "")
        if _HOST.fullmatch(host.strip().lower()) is None:
            return "This page answers requests for this machine only."
        site = headers.get("sec-fetch-site", "same-origin")
        if scope["method"] in ("GET", "HEAD"):
            # A picture or a frame on another site must not load what is here.
            return None if site in ("same-origin", "none") else "This page is for no other site."
        if site != "same-origin" or headers.get("origin", "") != f"http://{host}":
            return "Only the page itself may change something."
        return None

    async def _token_checked(self, scope: Scope, receive: Receive) -> tuple[str | None, Receive]:
        """Why a change is refused, or nothing; and the body of the request, which may have been read."""
        headers = Headers(scope=scope)
        given, again = headers.get("x-lustrum-token", ""), receive
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if not given and kind == FORM:
            body = await _read(receive)
            if body is None:
                return f"A form may hold up to {MOST_OF_FORM // 2**20} MB.", receive
            given = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0]
            again = _replayed(body)
        if not secrets.compare_digest(given.encode(), self.token.encode()):
            return "The token is missing or wrong; load the page again.", receive
        return None, again


async def _read(receive: Receive) -> bytes | None:
    """The whole body of a request; None where it is too long or did not arrive."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > MOST_OF_FORM:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replayed(body: bytes) -> Receive:
    """The body once more, for the page behind; then the end of the connection, as far as that page knows."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return receive


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
