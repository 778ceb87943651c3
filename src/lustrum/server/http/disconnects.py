"""Notices that a client has disconnected, so that its question need not be finished."""

from __future__ import annotations

import asyncio
import contextlib
import threading

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lustrum.runtime.stop import Stopped, stopping


class DisconnectWatcher:
    """Listens while a request is answered; what is done for it stops once its asker is gone."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
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
