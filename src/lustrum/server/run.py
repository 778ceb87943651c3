"""Serving: a socket first, so that a port in use is one clear sentence, then uvicorn on it."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from lustrum.model import InputError
from lustrum.release import Desk
from lustrum.server.app import create_app

__all__ = ["serve"]


class _Server(uvicorn.Server):
    """Tells when it really listens, and ends at a signal without raising it again."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._tell()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Finish what is under way; a second interrupt does not wait for it."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def serve(
    desk: Desk,
    host: str = "127.0.0.1",
    port: int = 8000,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until interrupted (SIGINT or SIGTERM), then finish what is under way and return.

    ``ready`` gets the address once the server listens. Port 0 takes any free one.
    """
    with _bound(host, port) as listening:
        address = _url(host, listening.getsockname()[1])
        config = uvicorn.Config(
            create_app(desk),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=10,
            # h11 keeps a request's head within bounds of its own.
            http="h11",
            ws="none",
        )
        server = _Server(config, lambda: ready(address) if ready else None)
        asyncio.run(server.serve(sockets=[listening]))


def _url(host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def _bound(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise InputError(f"The port must be from 0 to 65535, not {port}; choose one with --port.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise InputError(_why(error, host, port)) from None
    listening.set_inheritable(True)
    return listening


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use; choose another with --port."
    if error.errno == errno.EACCES:
        return f"Port {port} on {host} is reserved; choose one from 1024 on with --port."
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"This machine has no address {host!r}; choose one with --host, such as 127.0.0.1."
    return f"The server cannot listen on port {port} of {host}: {error.strerror}."
