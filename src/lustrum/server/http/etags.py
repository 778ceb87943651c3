"""Conditional requests: a tag made from the very bytes that go out, so that it can tell nothing more.

The API compresses its answers itself, always to the same bytes, so that the tag is a strong one: a client
that has it has these bytes. Pages have no tags and are compressed apart.
"""

from __future__ import annotations

import gzip
import hashlib

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lustrum.runtime.remembered import Remembered
from lustrum.server.http.accept import preferred

SMALLEST = 2048
"""Bytes from which on an answer is compressed."""

LEVEL = 5
_LARGE = 1 << 16  # bytes from which on others need not wait for it
_API = "/api/"


class PageCompression(GZipMiddleware):
    """Compresses pages and files for browsers that take it; the API sees to its own answers."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app, minimum_size=SMALLEST, compresslevel=LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and compress its response."""
        if scope["type"] != "http" or scope["path"].startswith(_API):
            await self.app(scope, receive, send)
            return
        if not _takes_gzip(Headers(scope=scope)):
            # The layer below looks for the word alone, also where it says "gzip;q=0".
            headers = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
            scope = {**scope, "headers": headers}
        await super().__call__(scope, receive, send)


class ETags:
    """Compresses what the API sends, adds an ``ETag`` to GETs, and answers 304 to a client that has it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._compressed = Remembered[bytes](16 << 20, len)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and tag its response."""
        if scope["type"] != "http" or not scope["path"].startswith(_API):
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        known = _tags(asked.get("if-none-match", "")) if scope["method"] == "GET" else set()
        wanted = _takes_gzip(asked)
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
            await send(start)
            await send({"type": "http.response.body", "body": sent})

        await self.app(scope, receive, tag)

    def _pressed(self, body: bytes) -> bytes:
        """The compressed bytes, without the time that a file would state."""
        key = hashlib.sha256(body).digest()
        return self._compressed.get(key, lambda: gzip.compress(body, LEVEL, mtime=0))


def _takes_gzip(headers: Headers) -> bool:
    return "gzip" in preferred(headers.get("accept-encoding", ""))


def _tags(header: str) -> set[str]:
    """The tags of an ``If-None-Match`` header; weak and strong ones compare alike."""
    return {tag.strip().removeprefix("W/") for tag in header.split(",") if tag.strip()}
