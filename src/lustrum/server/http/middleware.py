"""What holds for every request: headers, sizes, tags, its asker and its language, and no exception text."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import ipaddress
import re
import secrets
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lustrum.model.text import say
from lustrum.runtime.log_lines import REQUEST
from lustrum.runtime.remembered import Remembered
from lustrum.runtime.stop import Stopped, stopping
from lustrum.server.http.errors import PROGRAMS, Problem, incident, is_machine, response
from lustrum.server.http.languages import (
    ENGLISH,
    MOST_PATH,
    MOST_QUERY,
    in_language,
    languages,
    preferred,
)
from lustrum.server.http.templating import Pages

MAX_BODY = 64 * 1024

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


READABLE = {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}
"""What lets a page of any site read an answer; never with what a browser knows of its user (no credentials)."""


class HttpLayer:
    """A layer around the application; whatever is no HTTP request passes through."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or pass something else on."""
        await (self.handle if scope["type"] == "http" else self.app)(scope, receive, send)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, changed or answered as this layer does."""
        raise NotImplementedError


class SecurityHeaders(HttpLayer):
    """Adds the security headers. Only files that never change may be kept: a saved link asks again.

    ``readable`` says whether pages of other sites may read the API by GET: nothing else of the server, and by
    no other method. ``named_by`` lists the headers by which readers are recognised: what is answered to them
    is for them alone, in no frame and on no page of another site.
    """

    def __init__(
        self, app: ASGIApp, readable: Callable[[], bool], named_by: Callable[[], Sequence[str]]
    ) -> None:
        super().__init__(app)
        self.readable = readable
        self.named_by = named_by

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and complete its response."""
        is_static = scope["path"].startswith("/static/")
        tagged = _split(scope["path"])[1].startswith(PROGRAMS)  # in any language
        from_elsewhere = "origin" in Headers(scope=scope)
        asked = tagged and from_elsewhere and scope["method"] in ("GET", "HEAD")
        named_by = self.named_by()
        is_named = any(name in Headers(scope=scope) for name in named_by)
        readable = asked and not is_named and self.readable()

        async def complete(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    # A page that certain sites may frame says so itself.
                    if name != CONTENT_POLICY or name not in headers or is_named:
                        headers[name] = value
                if not is_static:
                    for name in named_by:
                        headers.add_vary_header(name)
                if tagged:
                    headers.add_vary_header("Origin")
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


_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TRACE = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class RequestIds(HttpLayer):
    """Names every request: by the id that a proxy gave it, and by its trace (W3C traceparent)."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; log lines and problems have its id, and every answer states it."""
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        ids = {"request_id": given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(16)}
        trace = _TRACE.fullmatch(headers.get("traceparent", ""))
        if trace is not None:
            ids["trace_id"] = trace[1]

        async def state(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-ID"] = ids["request_id"]
            await send(message)

        token = REQUEST.set(ids)
        try:
            await self.app(scope, receive, state)
        finally:
            REQUEST.reset(token)


class HeadAsGet(HttpLayer):
    """Answers HEAD as GET; the server in front leaves the body out."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self.app(scope, receive, send)


class UnexpectedErrors(HttpLayer):
    """Ends an unforeseen exception here: its text may hold data, and a server further out would log it."""

    def __init__(self, app: ASGIApp, pages: Pages) -> None:
        super().__init__(app)
        self.pages = pages

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; whatever it raises becomes an incident."""
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


class SizeLimits(HttpLayer):
    """Turns away what is longer than any question can be, before it is kept in memory."""

    def __init__(self, app: ASGIApp, pages: Pages) -> None:
        super().__init__(app)
        self.pages = pages

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if it is small enough."""
        if len(scope["path"]) > MOST_PATH:
            # What is sent does not repeat it.
            short = {**scope, "path": "/api" if is_machine(scope["path"]) else "/"}
            problem = Problem.of_status(414, say("There is no address as long as this one."))
            await self._refuse(problem, short, receive, send)
            return
        if len(scope["query_string"]) > MOST_QUERY:
            sentence = say(
                "The address is too long; {most} kB after the '?' is the most.",
                most=MOST_QUERY // 1024,
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


# --- Who asks, as far as a turn in a queue or a rate depends on it: an address on the network, never kept

_asker: ContextVar[str] = ContextVar("lustrum_asker", default="")


def current_asker() -> str:
    """The address behind the request under way; empty where there is no request."""
    return _asker.get()


def asker_of(scope: Scope) -> str:
    """The address that a request comes from; of IPv6 the network, since one customer has all of it.

    >>> asker_of({"client": ("2001:db8:1:2:3:4:5:6", 4711)})
    '2001:db8:1:2::'
    """
    text = str((scope.get("client") or ("unknown",))[0])
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return text
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)).network_address)


class AskerContext(HttpLayer):
    """Lets whatever works on a request know whom it is for."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = _asker.set(asker_of(scope))
        try:
            await self.app(scope, receive, send)
        finally:
            _asker.reset(token)


# --- Notices that a client has disconnected, so that its question need not be finished


class DisconnectWatcher(HttpLayer):
    """Listens while a request is answered; what is done for it stops once its asker is gone."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = threading.Event()
        messages: asyncio.Queue[Message] = asyncio.Queue(maxsize=2)

        async def listen() -> None:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    gone.set()
                await messages.put(message)
                if message["type"] == "http.disconnect":
                    return

        listener = asyncio.ensure_future(listen())
        try:
            with stopping(gone.is_set):
                await self.app(scope, messages.get, send)
        except Stopped:
            if not gone.is_set():
                raise
        finally:
            listener.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listener


# --- Conditional requests: a tag made from the very bytes that go out, so that it can tell nothing more
# The API compresses its answers itself, always to the same bytes, so that the tag is a strong one: a client
# that has it has these bytes. Pages have no tags and are compressed apart. Starlette tags only files.

SMALLEST = 2048
"""Bytes from which on an answer is compressed."""

LEVEL = 5
_LARGE = 1 << 16  # bytes from which on others need not wait for it


class PageCompression(GZipMiddleware):
    """Compresses pages and files for browsers that take it; the API sees to its own answers."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, minimum_size=SMALLEST, compresslevel=LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and compress its response."""
        if scope["type"] != "http" or scope["path"].startswith(PROGRAMS):
            await self.app(scope, receive, send)
            return
        if not _takes_gzip(Headers(scope=scope)):
            # The layer below looks for the word alone, also where it says "gzip;q=0".
            headers = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
            scope = {**scope, "headers": headers}
        await super().__call__(scope, receive, send)


class ETags(HttpLayer):
    """Compresses what the API sends, tags GETs, and sends what is missing: nothing (304), or a range (206)."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)
        self._compressed = Remembered[bytes](16 << 20, len, "compressed")

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and tag its response."""
        if not scope["path"].startswith(PROGRAMS):
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        known = _tags(asked.get("if-none-match", "")) if scope["method"] == "GET" else set()
        part = asked.get("range", "") if scope["method"] == "GET" else ""
        wanted = _takes_gzip(asked) and not part
        start: Message | None = None
        body = bytearray()

        async def tag(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and message["status"] == 200:
                start = message
                return
            if start is None:
                await send(message)
                return
            body.extend(message.get("body", b""))
            if message.get("more_body", False):
                return
            headers, sent = MutableHeaders(scope=start), bytes(body)
            if len(sent) >= SMALLEST and "content-encoding" not in headers:
                headers.add_vary_header("Accept-Encoding")
                if wanted:
                    large = len(sent) > _LARGE
                    sent = (
                        await run_in_threadpool(self._pressed, sent)
                        if large
                        else self._pressed(sent)
                    )
                    headers["Content-Encoding"] = "gzip"
                    headers["Content-Length"] = str(len(sent))
            if scope["method"] == "GET":
                mark = f'"{hashlib.sha256(sent).hexdigest()[:32]}"'
                headers["ETag"] = mark
                if mark in known or "*" in known:
                    for name in (
                        "content-length",
                        "content-type",
                        "content-disposition",
                        "content-encoding",
                    ):
                        del headers[name]
                    await send({**start, "status": 304})
                    await send({"type": "http.response.body", "body": b""})
                    return
                headers["Accept-Ranges"] = "bytes"
                if part and asked.get("if-range", mark) == mark:
                    start, sent = _partial(start, sent, part)
            await send(start)
            await send({"type": "http.response.body", "body": sent})

        await self.app(scope, receive, tag)

    def _pressed(self, body: bytes) -> bytes:
        """The compressed bytes, without the time that a file would state."""
        key = hashlib.sha256(body).digest()
        return self._compressed.get(key, lambda: gzip.compress(body, LEVEL, mtime=0))


_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def _partial(start: Message, body: bytes, asked: str) -> tuple[Message, bytes]:
    """One range of bytes; all of them where the header asks for several, or is none."""
    found = _RANGE.fullmatch(asked.strip())
    if found is None or found[0] == "bytes=-":
        return start, body
    first, last = found[1], found[2]
    if first:
        begin, end = int(first), min(int(last) + 1 if last else len(body), len(body))
    else:
        begin, end = max(len(body) - int(last), 0), len(body)
    if last and first and int(last) < begin:
        return start, body
    headers = MutableHeaders(scope=start)
    if begin >= end:
        headers["Content-Range"], headers["Content-Length"] = f"bytes */{len(body)}", "0"
        return {**start, "status": 416}, b""
    headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(body)}"
    headers["Content-Length"] = str(end - begin)
    return {**start, "status": 206}, body[begin:end]


def _takes_gzip(headers: Headers) -> bool:
    return "gzip" in preferred(headers.get("accept-encoding", ""))


def _tags(header: str) -> set[str]:
    """The tags of an ``If-None-Match`` header; weak and strong ones compare alike."""
    return {tag.strip().removeprefix("W/") for tag in header.split(",") if tag.strip()}


# --- The language of a request, which stands in its address


class LanguagePrefix(HttpLayer):
    """Takes the language out of the address; the start page goes by what the browser prefers."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        code, rest = _split(path)
        if path == "/" and not scope["query_string"]:
            wanted = _preferred(Headers(scope=scope).get("accept-language", ""))
            if wanted != ENGLISH:
                other = RedirectResponse(
                    f"/{wanted}/", status_code=307, headers={"Vary": "Accept-Language"}
                )
                await other(scope, receive, send)
                return
        with in_language(code, _address(rest, scope["query_string"])):
            if rest != path:
                scope = {**scope, "path": rest, "raw_path": quote(rest).encode()}
            await self.app(scope, receive, send)


def _address(path: str, query: bytes) -> str:
    """An address on this server: two slashes at its beginning would name another one."""
    local_path = "/" + quote(path.lstrip("/")) if len(path) <= MOST_PATH else "/"
    return (
        f"{local_path}?{query.decode('latin-1')}"
        if query and len(query) <= MOST_QUERY
        else local_path
    )


def _split(path: str) -> tuple[str, str]:
    head, _, rest = path[1:].partition("/")
    if head in languages():
        return head, f"/{rest}"
    return ENGLISH, path


def _preferred(header: str) -> str:
    """The first language of an ``Accept-Language`` header that there is."""
    tags = (tag.partition("-")[0] for tag in preferred(header))
    return next((tag for tag in tags if tag in languages()), ENGLISH)
