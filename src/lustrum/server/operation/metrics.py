"""What is counted and logged of the service: how many requests, how long, how they ended. Nothing of the data.

Figures for Prometheus are served on an address of their own, so that they can be kept from the public.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lustrum.model import Decision
from lustrum.model.decision import Verdict
from lustrum.runtime.log_lines import FIELDS
from lustrum.server.http.middleware import HttpLayer

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The figures of one process, or of several where the multiprocess mode is on."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        self.requests = counter(
            "lustrum_requests", "Requests, by the route and how they ended.", ["route", "status"]
        )
        self.seconds = Histogram(
            "lustrum_request_seconds",
            "How long requests took.",
            ["route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.decisions = counter(
            "lustrum_decisions", "Questions, by what became of them.", ["dataset", "verdict"]
        )
        self.refusals = counter(
            "lustrum_refusals",
            "Refused questions, by the rules that refused them.",
            ["dataset", "rule"],
        )
        self.remembered = counter(
            "lustrum_remembered_answers", "Questions that an answer was at hand for."
        )
        self.busy = Gauge(
            "lustrum_answering",
            "Questions that are being answered.",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        self.jobs = counter(
            "lustrum_jobs", "Tables made in the background, by how they ended.", ["state"]
        )
        self.job_errors = counter(
            "lustrum_job_errors",
            "Times that the file of jobs did not answer the process that works on them.",
        )

    def decided(self, dataset: str, verdict: str, rules: Iterable[str]) -> None:
        """Count a question by what became of it, and a refused one for each rule that refused it."""
        self.decisions.labels(dataset, verdict).inc()
        for rule in sorted(set(rules)) if verdict == Verdict.REFUSAL.value else ():
            self.refusals.labels(dataset, rule).inc()


class RequestMetrics(HttpLayer):
    """Counts and times every request by its route, never by its address: that may hold a question."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, log: Callable[[Scope, int, float], None]
    ) -> None:
        super().__init__(app)
        self.metrics = metrics
        self.log = log

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and measure it."""
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


class RouteLabel(HttpLayer):
    """Stands just before the routes, and says which one was taken."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        try:
            await self.app(scope, receive, send)
        finally:
            route = scope.get("route")
            if route is not None and "lustrum.route" in scope:
                scope["lustrum.route"].append(str(getattr(route, "path", "static")))


# --- What the server logs of requests and questions: no count, no key and no address of an asker
# Questions are logged with what became of them, so that ``lustrum policy try`` can replay them under another
# policy. Of the answer only the verdict and the names of the rules are said.

log = logging.getLogger("lustrum.server")


def log_request(scope: Scope, status: int, seconds: float) -> None:
    """A request by its route."""
    fields = {
        "method": scope["method"],
        "route": scope["route_name"],
        "status": status,
        "milliseconds": round(seconds * 1000, 1),
    }
    log.info("request", extra={FIELDS: fields})


def log_decision(decision: Decision, seconds: float) -> None:
    """A question and what became of it."""
    fields = {
        "query": decision.query.to_mapping(),
        "verdict": decision.verdict.value,
        "rules": [reason.rule for reason in decision.reasons],
        "milliseconds": round(seconds * 1000, 1),
    }
    log.info("decision", extra={FIELDS: fields})


def log_repeat(question: str, verdict: str, rules: Sequence[str], seconds: float) -> None:
    """A question whose answer was remembered, and what became of it."""
    if not log.isEnabledFor(logging.INFO):
        return
    fields = {
        "query": json.loads(question),
        "verdict": verdict,
        "rules": list(rules),
        "milliseconds": round(seconds * 1000, 1),
        "remembered": True,
    }
    log.info("decision", extra={FIELDS: fields})
