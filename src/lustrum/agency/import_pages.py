"""The pages of an import: a file is dropped in, its columns are guessed, a person corrects the guess."""

from __future__ import annotations

from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from lustrum.agency.intake import ENDINGS, Intake, Intakes
from lustrum.agency.tasks import AgencyTasks
from lustrum.agency.templating import AgencyPages, Handler, form_of
from lustrum.model import InputError, LustrumError
from lustrum.runtime.data_folder import datasets_in


class ImportPages:
    """The handlers, over one data folder."""

    def __init__(self, pages: AgencyPages, data: Path, tasks: AgencyTasks) -> None:
        self._pages, self._data, self._tasks = pages, data, tasks
        self._intakes = Intakes(data)

    def routes(self) -> list[Route]:
        """The routes of imports."""
        base_path = "/import/{number:int}"
        return [
            Route("/import", self._guarded(self.home)),
            Route("/import", self._guarded(self.named), methods=["POST"]),
            Route("/import/file", self._guarded(self.dropped), methods=["POST"]),
            Route(base_path, self._guarded(self.intake)),
            Route(base_path, self._guarded(self.change), methods=["POST"]),
        ]

    def clear(self) -> None:
        """Remove what was dropped in."""
        self._intakes.clear()

    async def home(self, request: Request) -> Response:
        """Where a file is dropped in or named."""
        intakes = self._intakes.all()
        return self._pages.page(
            "import.html", "/import", intakes=intakes, endings=",".join(ENDINGS)
        )

    async def named(self, request: Request) -> Response:
        """A file on this machine."""
        form = await form_of(request)
        path = Path(form.get("path", "").strip()).expanduser()
        if not path.is_absolute():
            raise InputError("Name the file by its whole place, such as /home/me/people.csv.")
        intake = await run_in_threadpool(self._intakes.look, path, dropped=False)
        return RedirectResponse(f"/import/{intake.number}", 303)

    async def dropped(self, request: Request) -> Response:
        """A file that a script sends as it is."""
        name = request.query_params.get("name", "")
        path = await self._intakes.receive(name, request.stream())
        intake = await run_in_threadpool(self._intakes.look, path, dropped=True)
        return JSONResponse({"address": f"/import/{intake.number}"})

    async def intake(self, request: Request) -> Response:
        """The guess, a preview, and the description that follows."""
        intake = self._intakes.get(request.path_params["number"])
        return await run_in_threadpool(self._page, intake)

    async def change(self, request: Request) -> Response:
        """Look at the description again, or import the file."""
        intake = self._intakes.get(request.path_params["number"])
        form = await form_of(request)
        intake.take(form)
        if form.get("do") != "import":
            return await run_in_threadpool(self._page, intake)
        there = await run_in_threadpool(datasets_in, self._data)
        name = intake.name or intake.draft.name
        if name in there and form.get("replace") != "yes":
            raise InputError(
                f"There is a dataset {name!r} already; give this one another name, or tick that it replaces it."
            )
        path = await run_in_threadpool(self._intakes.described, intake)
        arguments = [
            "ingest",
            str(intake.path),
            "--description",
            str(path),
            "--data",
            str(self._data),
        ]
        task = self._tasks.start(f"Import {name}", name, arguments)
        return RedirectResponse(f"/tasks/{task.number}", 303)

    def _page(self, intake: Intake) -> Response:
        text, mistake = "", ""
        try:
            text = intake.description()
        except LustrumError as error:
            mistake = str(error)
        return self._pages.page(
            "intake.html",
            "/import",
            intake=intake,
            guesses=[(guess, intake.choices.get(guess.name)) for guess in intake.draft.guesses()],
            text=text,
            mistake=mistake,
            replaces=(intake.name or intake.draft.name) in datasets_in(self._data),
        )

    def _guarded(self, handler: Handler) -> Handler:
        return self._pages.guarded(handler, "/import")
