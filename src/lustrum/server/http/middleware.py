"""What holds for every request: headers, sizes, and that no exception text gets out."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lustrum.model.text import say
from lustrum.server.http.errors import incident, is_machine, response
from lustrum.server.http.languages import MOST_PATH
from lustrum.server.http.problems import Problem
from lustrum.server.http.templating import Pages

MAX_BODY = 64 * 1024
MAX_QUERY = 8 * 1024

CONTENT_POLICY = "Content-Security-Policy"

HEADERS = {
    CONTENT_POLICY: "; ".join(
        (
            "default-src 'none'",
            "style-src 'self'",
            "script-src 'self'",
            "img-src 'self' data:",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
            "connect-src 'self'",
        )
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def framed_by(sites: Sequence[str]) -> str:
    """The content policy of a page that these sites may show in a frame."""
    return HEADERS[CONTENT_POLICY].replace(
        "frame-ancestors 'none'", f"frame-ancestors {' '.join(sites)}"
    )


READABLE = {
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
"""What lets a page of any site read an answer; never with what a browser knows of its user (no credentials)."""


class SecurityHeaders:
    """Adds the security headers. Only files that never change may be kept: a saved link asks again.

    ``cors`` lets pages of other sites read the API by GET: nothing else of the server, and by no other method.
    """

    def __init__(self, app: ASGIApp, cors: bool = False) -> None:
        self.app = app
        self.cors = cors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and complete its response."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_static = scope["path"].startswith("/static/")
        tagged = scope["path"].startswith("/api/")
        readable = self.cors and tagged and scope["method"] in ("GET", "HEAD")

        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    # A page that certain sites may frame says so itself.
                    if name != CONTENT_POLICY or name not in headers:
                        headers[name] = value
                if readable:
                    headers.update(READABLE)
                good = message["status"] in (200, 304)
                headers["Cache-Control"] = (
                    "public, max-age=86400"
                    if is_static and good
                    # What has a tag may be kept, but a saved link asks again before it is used.
                    else "private, no-cache"
                    if tagged and good and "etag" in headers
                    else "no-store"
                )
            await send(message)

        await self.app(scope, receive, complete)


class HeadAsGet:
    """Answers HEAD as GET; the server in front leaves the body out."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self.app(scope, receive, send)


class UnexpectedErrors:
    """Ends an unforeseen exception here: its text may hold data, and a server further out would log it."""

    def __init__(self, app: ASGIApp, pages: Pages) -> None:
        self.app = app
        self.pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; whatever it raises becomes an incident."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watch(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watch)
        except Exception as error:
            problem = incident(error)
            if not started:
                await response(Request(scope), problem, self.pages)(scope, receive, send)


class SizeLimits:
    """Turns away what is longer than any question can be, before it is kept in memory."""

    def __init__(self, app: ASGIApp, pages: Pages) -> None:
        self.app = app
        self.pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if it is small enough."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if len(scope["path"]) > MOST_PATH:
            # What is sent does not repeat it.
            short = {**scope, "path": "/api" if is_machine(scope["path"]) else "/"}
            problem = Problem.of_status(414, say("There is no address as long as this one."))
            await self._refuse(problem, short, receive, send)
            return
        if len(scope["query_string"]) > MAX_QUERY:
            sentence = say(
                "The address is too long; {most} kB after the '?' is the most.",
                most=MAX_QUERY // 1024,
            )
            await self._refuse(Problem.of_status(414, sentence), scope, receive, send)
            return
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
            return
        try:
            body = await _body(scope, receive)
        except _CutOffError:
            return  # half a question is no question, and nobody is there to hear the answer
        if body is None:
            sentence = say("The body is too large; {most} kB is the most.", most=MAX_BODY // 1024)
            await self._refuse(Problem.of_status(413, sentence), scope, receive, send)
            return
        replayed = False

        async def replay() -> Message:
            nonlocal replayed
            if replayed:
                return await receive()
            replayed = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)

    async def _refuse(self, problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
        answer = response(Request(scope), problem, self.pages)
        answer.headers["Connection"] = "close"
        await answer(scope, receive, send)


class _CutOffError(Exception):
    """The body ended before its end."""


async def _body(scope: Scope, receive: Receive) -> bytes | None:
    """The body, or nothing if it is too large; what it says of its length is checked, not trusted."""
    said = Headers(scope=scope).get("content-length", "")
    if said.isdigit() and int(said) > MAX_BODY:
        return None
    chunks = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _CutOffError
        chunks += message.get("body", b"")
        if len(chunks) > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(chunks)
