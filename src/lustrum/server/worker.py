"""One of several processes that serve the same data; what it needs to know stands in its environment."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fastapi import FastAPI
from prometheus_client import REGISTRY

from lustrum.answer import TableService
from lustrum.runtime.log_lines import set_up
from lustrum.server.app import create_app
from lustrum.server.http.shared_rates import SharedHits
from lustrum.server.operation.arenas import keep_arenas_few
from lustrum.server.operation.metrics import Metrics
from lustrum.server.operation.signals import leave_with_parent, reloading_at_hangup
from lustrum.server.settings import Settings

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
            "coming": service.coming,
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
    """The application of this process."""
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
        coming=raw["coming"],
    )
    _for_ever.enter_context(reloading_at_hangup(service))
    # In the multiprocess mode every process writes to files, which the first one reads.
    hits = None
    if settings.rate:
        hits = SharedHits(Path(raw["shared"]), raw["rates_key"], raw["processes"])
    return create_app(service, settings, Metrics(REGISTRY), hits)
