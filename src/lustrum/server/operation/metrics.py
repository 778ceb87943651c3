"""What is counted and logged of the service: how many requests, how long, how they ended. Nothing of the data.

Figures for Prometheus are served on an address of their own, so that they can be kept from the public: refusals
by rule are the sum of what all askers were told, which no single one of them knows.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, ProcessCollector
from prometheus_client.metrics_core import InfoMetricFamily
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lustrum._version import __version__
from lustrum.answer import TableService
from lustrum.model import Decision
from lustrum.model.decided import Verdict
from lustrum.runtime.data_folder import CURRENT, MANIFEST
from lustrum.runtime.log_lines import FIELDS
from lustrum.runtime.remembered import bytes_held
from lustrum.server.http.middleware import HttpLayer

_STATES = ("ready", "starting", "checking", "unavailable")
_LOWEST = ("process_start_time_seconds", "process_max_fds")
"""Figures of a process whose sum would say nothing."""
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
        self.turned_away = counter(
            "lustrum_turned_away", "Requests answered by 429 or 503, by why.", ["status", "reason"]
        )
        # Of all processes: the sum, whether any of them says so, or what the last one saw of the one folder.
        summed = partial(Gauge, registry=self.registry, multiprocess_mode="livesum")
        highest = partial(Gauge, registry=self.registry, multiprocess_mode="livemax")
        latest = partial(Gauge, registry=self.registry, multiprocess_mode="livemostrecent")
        self.busy = summed("lustrum_answering", "Questions that are being answered.")
        self.waiting = summed("lustrum_waiting", "Questions that wait for their turn.")
        self.caches = summed("lustrum_cache_bytes", "Bytes that are remembered.", ["cache"])
        self.states = highest(
            "lustrum_dataset_state", "1 for the state of a dataset.", ["dataset", "state"]
        )
        self.changed = latest(
            "lustrum_changed_timestamp_seconds",
            "When the bundle, the records or the policy of a dataset were put in place.",
            ["dataset", "kind"],
        )
        self._datasets: set[str] = set()
        self.unsealed = latest("lustrum_unsealed_policies", "Policies without a seal.")
        self.at_hand = latest("lustrum_jobs_at_hand", "Tables in the background.", ["state"])
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

    def look(self, service: TableService, jobs: Callable[[], dict[str, int]]) -> None:
        """Take the figures that nobody counts: what there is, and in which state."""
        states = service.states()
        self._datasets |= set(states)  # one that is gone is in no state
        for name in self._datasets:
            for state in _STATES:
                self.states.labels(name, state).set(states.get(name) == state)
        for name in states:
            paths = {"bundle": service.bundle_path(name) / MANIFEST}
            if service.root is not None:
                paths["records"] = service.root / name / CURRENT
                paths["policy"] = service.policy_path(name)
            for kind, path in paths.items():
                with suppress(OSError):
                    self.changed.labels(name, kind).set(path.stat().st_mtime)
        self.unsealed.set(len(service.unsealed()))
        for name, size in bytes_held().items():
            self.caches.labels(name).set(size)
        for state, number in {"waiting": 0, "running": 0, **jobs()}.items():
            self.at_hand.labels(state).set(number)


class ServerCollector(Collector):
    """What the first process says of the server as a whole: its build, and the sum over all its processes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._cpu = 0.0
        self.restarts = Counter(
            "lustrum_worker_restarts",
            "Processes that were started again.",
            ["why"],
            registry=registry,
        )
        for why in ("died", "silent"):
            self.restarts.labels(why)
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """The figures of now."""
        about = {"version": __version__, "python": platform.python_version()}
        yield InfoMetricFamily("lustrum_build", "The version that runs.", about)
        found: dict[str, list[Metric]] = {}
        for pid in _family(os.getpid()):
            of_one = ProcessCollector(pid=partial(int, pid), registry=None)
            if hasattr(
                time, "CLOCK_BOOTTIME"
            ):  # told also where /proc/stat is hidden, as by our unit
                of_one._btime = round(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME))
            for metric in of_one.collect():
                found.setdefault(metric.name, []).append(metric)
        for name, metrics in found.items():
            values = [metric.samples[0].value for metric in metrics]
            value = min(values) if name in _LOWEST else sum(values)
            if name == "process_cpu_seconds":  # with a process that ended its part is gone
                value = self._cpu = max(self._cpu, value)
            metrics[0].samples = [metrics[0].samples[0]._replace(value=value)]
            yield metrics[0]


def _family(pid: int) -> Iterator[int]:
    """A process and all that it started, those that hold records too."""
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in path.read_text().split():
                yield from _family(int(child))


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

        # Routes are found further in, in a copy of the scope; this comes back with the name.
        seen: dict[str, str] = {}
        scope["lustrum.seen"] = seen
        try:
            await self.app(scope, receive, watch)
        finally:
            taken = time.perf_counter() - started
            route = seen.get("route", "other")
            if "reason" in seen:
                self.metrics.turned_away.labels(str(status), seen["reason"]).inc()
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
            if route is not None and "lustrum.seen" in scope:
                scope["lustrum.seen"].setdefault("route", str(getattr(route, "path", "static")))


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
