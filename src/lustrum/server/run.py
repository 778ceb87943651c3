"""Serving: a socket first, so that a port in use is one clear sentence, then uvicorn on it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import secrets
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from prometheus_client import REGISTRY, CollectorRegistry, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from uvicorn.config import LOGGING_CONFIG

from lustrum.answer import TableService
from lustrum.model import InputError
from lustrum.runtime.log_lines import set_up
from lustrum.server.app import create_app
from lustrum.server.http.connections import BoundedProtocol, ConnectionLimits
from lustrum.server.http.rates import SharedHits
from lustrum.server.operation.lifecycle import (
    keep_arenas_few,
    leave_with_parent,
    notify,
    reloading_at_hangup,
)
from lustrum.server.operation.metrics import Metrics, ServerCollector
from lustrum.server.operation.processes import Processes, tcp_socket
from lustrum.server.settings import Settings

# --- One of several processes that serve the same data; what it needs to know stands in its environment

_TOLD = "LUSTRUM_WORKER"
_for_ever = ExitStack()
"""What holds until the process ends."""


@contextmanager
def worker_environment(
    service: TableService, settings: Settings, logs: str | None, shared: Path, processes: int
) -> Iterator[None]:
    """Processes that are started inside know what to serve, and where they share what they count."""
    os.environ[_TOLD] = json.dumps(
        {
            "root": None if service.root is None else str(service.root),
            "bundles": [str(path) for path in service.bundles],
            "prepared": [str(path) for path in service.prepared_folders.named],
            "folder": str(service.folder),
            "settings": settings.to_text(),
            "logs": logs,
            "sealed_only": service.sealed_only,
            "shared": str(shared),
            "rates_key": secrets.token_hex(32),
            "processes": processes,
        }
    )
    try:
        yield
    finally:
        del os.environ[_TOLD]


def application() -> FastAPI:
    raw = json.loads(os.environ[_TOLD])
    if raw["logs"]:
        set_up(raw["logs"])
    leave_with_parent()
    keep_arenas_few()
    settings = Settings.from_text(raw["settings"])
    service = TableService(
        None if raw["root"] is None else Path(raw["root"]),
        bundles=[Path(path) for path in raw["bundles"]],
        prepared=[Path(path) for path in raw["prepared"]],
        folder=Path(raw["folder"]),
        sealed_only=raw["sealed_only"],
        silence=settings.records_seconds,
    )
    _for_ever.enter_context(reloading_at_hangup(service))
    # In the multiprocess mode every process writes to files, which the first one reads.
    hits = None
    if settings.rate:
        hits = SharedHits(Path(raw["shared"]), raw["rates_key"], raw["processes"])
    return create_app(service, settings, Metrics(REGISTRY), hits)


_LINES: dict[str, Any] = LOGGING_CONFIG | {
    "handlers": {
        "own": {"class": "lustrum.runtime.log_lines.LimitedLines", "formatter": "default"}
    },
    "loggers": {name: {"handlers": ["own"]} for name in ("uvicorn", "lustrum")},
}
"""Without ``logs``, warnings in plain words, of which nobody can cause too many."""

SIGN_OF_LIFE = 60
"""Seconds for a worker's sign of life: one that compiles or solves may be silent for a while."""


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
    service: TableService,
    host: str = "127.0.0.1",
    port: int = 8000,
    ready: Callable[[str], None] | None = None,
    *,
    settings: Settings | None = None,
    workers: int = 1,
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
    logs: str | None = None,
) -> None:
    """Serve until interrupted (SIGINT or SIGTERM), then finish what is under way and return.

    SIGHUP reads all policies again and ends nothing. Workers that die are started again, and all of them
    end with this process, even if it is killed.

    ``ready`` gets the address once the server listens. Port 0 takes any free one. Several ``workers`` are
    processes that share the port and give the same answers. Figures for Prometheus are served on a port of
    their own, by default to this machine only. ``logs`` names the least level that is logged.
    """
    settings = settings or Settings()

    def listens(address: str) -> None:
        notify("READY=1")
        if ready:
            ready(address)

    if workers < 1:
        raise InputError(f"A server needs at least 1 worker, not {workers}.")
    if logs:
        set_up(logs)
    with _bound(host, port) as listening, ExitStack() as open_:
        open_.callback(service.close)
        open_.callback(notify, "STOPPING=1")
        address = _url(host, listening.getsockname()[1])
        options: dict[str, Any] = {
            "log_level": "warning",
            "log_config": None if logs else _LINES,
            "access_log": False,
            "server_header": False,
            "timeout_graceful_shutdown": 10,
            "http": partial(
                BoundedProtocol, limits=ConnectionLimits.of(settings, workers).within_open_files()
            ),
            # Besides, h11 keeps a request's head within bounds of its own.
            "ws": "none",
            "loop": "asyncio",  # the loop that asks a socket itself for what it accepts, see Handed
            "proxy_headers": False,  # the application does it, see TrustedProxies
        }
        if workers == 1:
            keep_arenas_few()
            metrics = Metrics()
            ServerCollector(metrics.registry)
            if metrics_port is not None:
                open_.enter_context(_metrics(metrics_host, metrics_port, metrics.registry))
            config = uvicorn.Config(create_app(service, settings, metrics), **options)
            server = _Server(config, lambda: listens(address))
            open_.enter_context(reloading_at_hangup(service))
            asyncio.run(server.serve(sockets=[listening]))
            return
        folder = open_.enter_context(tempfile.TemporaryDirectory(prefix="lustrum-metrics-"))
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        open_.callback(os.environ.pop, "PROMETHEUS_MULTIPROC_DIR", None)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=folder)  # type: ignore[no-untyped-call]
        whole = ServerCollector(registry)
        if metrics_port is not None:
            open_.enter_context(_metrics(metrics_host, metrics_port, registry))
        shared = open_.enter_context(tempfile.TemporaryDirectory(prefix="lustrum-shared-"))
        open_.enter_context(worker_environment(service, settings, logs, Path(shared), workers))
        # Whoever looked for what is there may have started one; the processes that answer have their own.
        service.let_records_go()
        config = uvicorn.Config(
            "lustrum.server.run:application", factory=True, workers=workers, **options
        )

        def restarted(pid: int | None, why: str) -> None:
            # What it was answering, and what it remembered, is gone with it.
            mark_process_dead(pid, folder)  # type: ignore[no-untyped-call]
            whole.restarts.labels(why).inc()

        Processes(config, listening, lambda: listens(address), SIGN_OF_LIFE, restarted).run()


@contextmanager
def _metrics(host: str, port: int, registry: CollectorRegistry) -> Iterator[None]:
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise InputError(_why(error, host, port, "--metrics-")) from None
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _url(host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def _bound(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise InputError(f"The port must be from 0 to 65535, not {port}; choose one with --port.")
    listening = tcp_socket(host)
    try:
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise InputError(_why(error, host, port)) from None
    listening.set_inheritable(True)
    return listening


def _why(error: OSError, host: str, port: int, option: str = "--") -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use; choose another with {option}port."
    if error.errno == errno.EACCES:
        return f"Port {port} on {host} is reserved; choose one from 1024 on with {option}port."
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        example = f"{option}host, such as 127.0.0.1"
        return f"This machine has no address {host!r}; choose one with {example}."
    return f"The server cannot listen on port {port} of {host}: {error.strerror}."
