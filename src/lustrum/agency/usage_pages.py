"""The pages of operation: usage of the public server, tasks of these pages, a check of the data folder."""

from __future__ import annotations

import sqlite3
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from lustrum.agency.tasks import AgencyTasks
from lustrum.agency.templating import AgencyPages
from lustrum.ledger.acts import acts_of
from lustrum.local.service import health
from lustrum.model import InputError, LustrumError
from lustrum.runtime.data_folder import ACTS

_MOST_ACTS = 500
_AGAIN = "3"  # seconds after which the page of a running task loads itself again


class UsagePages:
    """The handlers, over one data folder."""

    def __init__(
        self, pages: AgencyPages, data: Path, tasks: AgencyTasks, metrics_port: int | None
    ) -> None:
        self._pages, self._data, self._tasks, self._port = pages, data, tasks, metrics_port

    def routes(self) -> list[Route]:
        guarded = self._pages.guarded
        return [
            Route("/usage", guarded(self.usage, "/usage")),
            Route("/check", guarded(self.check, "/check")),
            Route("/log", guarded(self.log, "/log")),
            Route("/tasks", guarded(self.tasks, "/tasks")),
            Route("/tasks/{number:int}", guarded(self.task, "/tasks")),
            Route("/tasks/{number:int}/stop", guarded(self.stop, "/tasks"), methods=["POST"]),
        ]

    async def usage(self, request: Request) -> Response:
        """How the public server is used, as counts."""
        usage, sentence = Usage(), ""
        if self._port is None:
            sentence = (
                "No server is named whose questions could be counted. Start it with 'lustrum serve "
                "--metrics-port 9100', and these pages with '--metrics-port 9100'."
            )
        else:
            try:
                usage = await run_in_threadpool(read_usage, self._port)
            except LustrumError as error:
                sentence = str(error)
        waiting = await run_in_threadpool(jobs_at_hand, self._data)
        return self._pages.page(
            "usage.html", "/usage", usage=usage, sentence=sentence, jobs=waiting, verdicts=VERDICTS
        )

    async def check(self, request: Request) -> Response:
        """What ``lustrum doctor`` finds."""
        findings = await run_in_threadpool(lambda: list(health(self._data)))
        ranked = sorted(findings, key=lambda one: ("bad", "note", "good").index(one.grade))
        return self._pages.page("check.html", "/check", found=ranked, data=str(self._data))

    async def log(self, request: Request) -> Response:
        """Who did what to the data folder."""
        acts, changed = await run_in_threadpool(acts_of, self._data)
        return self._pages.page(
            "log.html",
            "/log",
            acts=acts[:_MOST_ACTS],
            all=len(acts),
            changed=changed,
            file=str(self._data / ACTS),
        )

    async def tasks(self, request: Request) -> Response:
        return self._pages.page("tasks.html", "/tasks", tasks=self._tasks.all())

    async def task(self, request: Request) -> Response:
        """One task; while it runs the page loads itself again."""
        task = self._tasks.get(request.path_params["number"])
        page = self._pages.page("task.html", "/tasks", task=task)
        if task.state == "running":
            page.headers["Refresh"] = _AGAIN
        return page

    async def stop(self, request: Request) -> Response:
        task = self._tasks.get(request.path_params["number"])
        task.stop()
        return RedirectResponse(f"/tasks/{task.number}", 303)


# --- How the public server is used, as counts: questions by what became of them, refusals by reason, jobs
# The figures are those that the server counts for Prometheus, read from its port on this machine. They hold
# no address and no single question; neither does anything here.

_SECONDS = 5.0
_MOST_BYTES = 8 * 1024 * 1024
VERDICTS = ("answer", "partial", "refusal")


@dataclass(frozen=True)
class Usage:
    """Counts since the server was started."""

    questions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    refusals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    routes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    jobs: Mapping[str, int] = field(default_factory=dict)
    remembered: int = 0


def read_usage(port: int) -> Usage:
    """The counts of the server whose figures are on a port of this machine."""
    # No proxy stands between two processes of one machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=_SECONDS) as answer:
            text = answer.read(_MOST_BYTES).decode("utf-8", "replace")
    except (OSError, urllib.error.URLError):
        raise InputError(
            f"Nothing answers on port {port} of this machine; start the server with --metrics-port {port}."
        ) from None
    return usage_of(text)


def usage_of(text: str) -> Usage:
    """The counts in the text that Prometheus reads.

    >>> usage_of('lustrum_decisions_total{dataset="a",verdict="answer"} 3.0').questions
    {'a': Counter({'answer': 3})}
    """
    questions: dict[str, Counter[str]] = {}
    refusals: dict[str, Counter[str]] = {}
    routes: dict[str, Counter[str]] = {}
    jobs: Counter[str] = Counter()
    remembered = 0
    try:
        samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    except ValueError:
        raise InputError("The port of the figures does not answer as a server does.") from None
    for sample in samples:
        named, number = sample.labels, int(sample.value)
        if sample.name == "lustrum_decisions_total":
            questions.setdefault(named["dataset"], Counter())[named["verdict"]] += number
        elif sample.name == "lustrum_refusals_total":
            refusals.setdefault(named["dataset"], Counter())[named["rule"]] += number
        elif sample.name == "lustrum_requests_total":
            routes.setdefault(named["route"], Counter())[named["status"]] += number
        elif sample.name == "lustrum_jobs_total":
            jobs[named["state"]] += number
        elif sample.name == "lustrum_remembered_answers_total":
            remembered += number
    return Usage(questions, refusals, routes, jobs, remembered)


def jobs_at_hand(data: Path) -> dict[str, int] | None:
    """How many jobs the file of the server holds, by their state; None where there is no such file."""
    path = data / "jobs.sqlite"
    if not path.is_file():
        return None
    try:
        base = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_SECONDS)
        try:
            rows = base.execute("select state, count(*) from job group by state").fetchall()
        finally:
            base.close()
    except sqlite3.Error:
        return None
    return {str(state): int(number) for state, number in rows}
