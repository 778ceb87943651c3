"""One of several processes that serve the same data; what it needs to know stands in its environment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fastapi import FastAPI
from prometheus_client import REGISTRY

from lustrum.answer import TableService
from lustrum.log_lines import set_up
from lustrum.server.app import create_app
from lustrum.server.operation.metrics import Metrics
from lustrum.server.operation.signals import leave_with_parent, reloading_at_hangup
from lustrum.server.settings import Settings

__all__ = ["application", "worker_environment"]

_TOLD = "LUSTRUM_WORKER"
_for_ever = ExitStack()
"""What holds until the process ends."""


@contextmanager
def worker_environment(
    service: TableService, settings: Settings, logs: str | None
) -> Iterator[None]:
    """Processes that are started inside know what to serve."""
    os.environ[_TOLD] = json.dumps(
        {
            "root": None if service.root is None else str(service.root),
            "bundles": [str(path) for path in service.bundles],
            "prepared": [str(path) for path in service.shelf.named],
            "folder": str(service.folder),
            "settings": settings.to_text(),
            "logs": logs,
            "sealed_only": service.sealed_only,
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
    service = TableService(
        None if raw["root"] is None else Path(raw["root"]),
        bundles=[Path(path) for path in raw["bundles"]],
        prepared=[Path(path) for path in raw["prepared"]],
        folder=Path(raw["folder"]),
        sealed_only=raw["sealed_only"],
    )
    _for_ever.enter_context(reloading_at_hangup(service))
    # In the multiprocess mode every process writes to files, which the first one reads.
    return create_app(service, Settings.from_text(raw["settings"]), Metrics(REGISTRY))
