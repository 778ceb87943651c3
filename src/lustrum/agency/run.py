"""Serve the agency's pages on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import uvicorn

from lustrum.agency.app import create_agency_app
from lustrum.agency.loopback import listen
from lustrum.rumap import Cases


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
