"""The pages of operation: usage of the public server, tasks of these pages, a check of the data folder."""

from __future__ import annotations

from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from lustrum.agency.tasks import AgencyTasks
from lustrum.agency.templating import AgencyPages
from lustrum.agency.usage import VERDICTS, Usage, jobs_at_hand, read_usage
from lustrum.local.service import health
from lustrum.model import LustrumError

_AGAIN = "3"  # seconds after which the page of a running task loads itself again


class UsagePages:
    """The handlers, over one data folder."""

    def __init__(
        self, pages: AgencyPages, data: Path, tasks: AgencyTasks, metrics_port: int | None
    ) -> None:
        self._pages, self._data, self._tasks, self._port = pages, data, tasks, metrics_port

    def routes(self) -> list[Route]:
        """The routes of operation."""
        guarded = self._pages.guarded
        return [
            Route("/usage", guarded(self.usage, "/usage")),
            Route("/check", guarded(self.check, "/check")),
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

    async def tasks(self, request: Request) -> Response:
        """All tasks of these pages."""
        return self._pages.page("tasks.html", "/tasks", tasks=self._tasks.all())

    async def task(self, request: Request) -> Response:
        """One task; while it runs the page loads itself again."""
        task = self._tasks.get(request.path_params["number"])
        page = self._pages.page("task.html", "/tasks", task=task)
        if task.state == "running":
            page.headers["Refresh"] = _AGAIN
        return page

    async def stop(self, request: Request) -> Response:
        """End a task."""
        task = self._tasks.get(request.path_params["number"])
        task.stop()
        return RedirectResponse(f"/tasks/{task.number}", 303)
