"""Conditional requests: a tag made from the very bytes that go out, so that it can tell nothing more."""

from __future__ import annotations

import hashlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["ETags"]


class ETags:
    """Adds a weak ``ETag`` to what the API answers to GET, and answers 304 to a client that has it already."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and tag its response."""
        api = scope["type"] == "http" and scope["path"].startswith("/api/")
        if not api or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        known = _tags(Headers(scope=scope).get("if-none-match", ""))
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
            mark = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            headers = MutableHeaders(scope=start)
            headers["ETag"] = f"W/{mark}"
            if mark in known or "*" in known:
                for name in ("content-length", "content-type", "content-disposition"):
                    del headers[name]
                await send({**start, "status": 304})
                await send({"type": "http.response.body", "body": b""})
                return
            await send(start)
            await send({"type": "http.response.body", "body": bytes(body)})

        await self.app(scope, receive, tag)


def _tags(header: str) -> set[str]:
    """The tags of an ``If-None-Match`` header; weak and strong ones compare alike."""
    return {tag.strip().removeprefix("W/") for tag in header.split(",") if tag.strip()}
