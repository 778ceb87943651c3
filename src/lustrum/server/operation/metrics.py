"""Figures of the service for Prometheus: how many requests, how long, how they ended. Nothing of the data.

They are served on an address of their own, so that they can be kept from the public.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lustrum.model.decision import Verdict

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The figures of one process, or of several where the multiprocess mode is on."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.requests = Counter(
            "lustrum_requests",
            "Requests, by the route and how they ended.",
            ["route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "lustrum_request_seconds",
            "How long requests took.",
            ["route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.decisions = Counter(
            "lustrum_decisions",
            "Questions, by what became of them.",
            ["dataset", "verdict"],
            registry=self.registry,
        )
        self.refusals = Counter(
            "lustrum_refusals",
            "Refused questions, by the rules that refused them.",
            ["dataset", "rule"],
            registry=self.registry,
        )
        self.remembered = Counter(
            "lustrum_remembered_answers",
            "Questions that an answer was at hand for.",
            registry=self.registry,
        )
        self.busy = Gauge(
            "lustrum_answering",
            "Questions that are being answered.",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        self.jobs = Counter(
            "lustrum_jobs",
            "Tables made in the background, by how they ended.",
            ["state"],
            registry=self.registry,
        )
        self.job_errors = Counter(
            "lustrum_job_errors",
            "Times that the file of jobs did not answer the process that works on them.",
            registry=self.registry,
        )

    def decided(self, dataset: str, verdict: str, rules: Iterable[str]) -> None:
        """Count a question by what became of it, and a refused one for each rule that refused it."""
        self.decisions.labels(dataset, verdict).inc()
        for rule in sorted(set(rules)) if verdict == Verdict.REFUSAL.value else ():
            self.refusals.labels(dataset, rule).inc()


class RequestMetrics:
    """Counts and times every request by its route, never by its address: that may hold a question."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, log: Callable[[Scope, int, float], None]
    ) -> None:
        self.app = app
        self.metrics = metrics
        self.log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and measure it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 499  # its asker left before there was an answer

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        # Routes are found further in, in a copy of the scope; this list comes back with the name.
        route_names: list[str] = []
        scope["lustrum.route"] = route_names
        try:
            await self.app(scope, receive, watch)
        finally:
            taken = time.perf_counter() - started
            route = route_names[0] if route_names else "other"
            self.metrics.requests.labels(route, f"{status // 100}xx").inc()
            self.metrics.seconds.labels(route).observe(taken)
            self.log({**scope, "route_name": route}, status, taken)


class RouteLabel:
    """Stands just before the routes, and says which one was taken."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        try:
            await self.app(scope, receive, send)
        finally:
            route = scope.get("route")
            if route is not None and "lustrum.route" in scope:
                scope["lustrum.route"].append(str(getattr(route, "path", "static")))
