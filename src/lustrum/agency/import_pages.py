"""The pages of an import: a file is dropped in, its columns are guessed, a person corrects the guess."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import tomllib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from lustrum.agency.tasks import AgencyTasks
from lustrum.agency.templating import AgencyPages, Handler, form_of
from lustrum.model import Dataset, InputError, LustrumError
from lustrum.model.errors import choices
from lustrum.runtime.data_folder import datasets_in
from lustrum.runtime.durable import outages
from lustrum.tabulate import FileSource
from lustrum.tabulate.draft import ColumnChoice, Draft, look_at


class ImportPages:
    """The handlers, over one data folder."""

    def __init__(
        self, pages: AgencyPages, data: Path, tasks: AgencyTasks, files: Sequence[Path]
    ) -> None:
        self._pages, self._data, self._tasks = pages, data, tasks
        self._intakes = Intakes(data, files)

    def routes(self) -> list[Route]:
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
        folders = [str(folder) for folder in self._intakes.folders]
        return self._pages.page(
            "import.html", "/import", intakes=intakes, endings=",".join(ENDINGS), folders=folders
        )

    async def named(self, request: Request) -> Response:
        """A file on this machine."""
        form = await form_of(request)
        given = form.get("path", "").strip()
        path = await run_in_threadpool(self._intakes.found, given)
        intake = await run_in_threadpool(self._intakes.look, path, given)
        return RedirectResponse(f"/import/{intake.number}", 303)

    async def dropped(self, request: Request) -> Response:
        """A file that a script sends as it is."""
        name = request.query_params.get("name", "")
        path = await self._intakes.receive(name, request.stream())
        intake = await run_in_threadpool(self._intakes.look, path, path.name)
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


# --- A file on its way in: what was looked at, what a person said of it, and the description that follows
# Files that are dropped in are kept in a folder of the data folder that only its owner may read, until the
# pages are closed. Files on this machine are read where they are, through the handle that was opened when it
# was certain where they lie: who may write there cannot put another file in their place meanwhile.

MOST_BYTES = 4 << 30
MOST = 10
PREVIEW = 8
ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".csv.gz", ".tsv.gz")
FOLDER = ".import-"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(eq=False)
class Intake:
    """One file, with the choices of a person."""

    number: int
    path: Path
    shown: str
    draft: Draft = field(repr=False)
    rows: list[list[str]] = field(repr=False)
    columns: list[str]
    choices: dict[str, ColumnChoice] = field(default_factory=dict)
    name: str = ""
    title: str = ""
    unit: str = "person"
    units: str = "people"

    def take(self, form: Mapping[str, str]) -> None:
        """Take the fields of the form in."""
        self.name = form.get("name", "").strip()
        self.title = form.get("title", "").strip()
        self.unit = form.get("unit", "").strip() or "record"
        self.units = form.get("units", "").strip() or "records"
        self.choices = {
            guess.name: ColumnChoice(
                form.get(f"role.{guess.name}") or None,
                form.get(f"label.{guess.name}"),
                form.get(f"unit.{guess.name}", "").strip(),
                form.get(f"missing.{guess.name}", "").strip(),
                f"levels.{guess.name}" in form or f"role.{guess.name}" not in form,
            )
            for guess in self.draft.guesses()
        }

    def description(self) -> str:
        """The description that follows, checked; every mistake is one sentence."""
        name = self.name or self.draft.name
        if not _NAME.fullmatch(name):
            raise InputError(
                f"The name of a dataset has lower-case letters, digits, '-' and '_', unlike {name!r}."
            )
        text = self.draft.text(
            self.choices, name=name, title=self.title or None, unit=self.unit, units=self.units
        )
        Dataset.from_mapping(tomllib.loads(text))
        return text


class Intakes:
    """The files that are on their way in, by number."""

    def __init__(self, data: Path, folders: Sequence[Path]) -> None:
        self._data = data
        with outages("A folder of --files"):
            self.folders = [folder.resolve(strict=True) for folder in folders]
        self._intakes: dict[int, Intake] = {}
        self._handles: dict[Path, int] = {}
        self._folder: Path | None = None
        self._next = 1

    def get(self, number: int) -> Intake:
        intake = self._intakes.get(number)
        if intake is None:
            raise InputError(
                f"There is no file {number} any more; "
                f"{choices(str(number), map(str, self._intakes))}. Drop it in again."
            )
        return intake

    def all(self) -> list[Intake]:
        return sorted(self._intakes.values(), key=lambda one: -one.number)

    async def receive(self, name: str, body: AsyncIterator[bytes]) -> Path:
        """Keep a file that is dropped in, for its owner alone."""
        plain = Path(name.replace("\\", "/")).name
        if not plain.lower().endswith(ENDINGS):
            raise InputError(f"{plain!r} cannot be read; drop in a .csv, .tsv or .parquet file.")
        folder = Path(tempfile.mkdtemp(dir=self._own()))
        path, size = folder / plain, 0
        try:
            with outages(path), path.open("xb") as file:
                path.chmod(0o600)
                async for block in body:
                    size += len(block)
                    if size > MOST_BYTES:
                        raise InputError(
                            f"A file that is dropped in may have up to {MOST_BYTES // (1 << 30)} GB; name a "
                            "larger one by its place on this machine."
                        )
                    file.write(block)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return path

    def found(self, given: str) -> Path:
        """A place in the folder of these pages that stands for a file below a folder named at start."""
        path = Path(given)
        if not path.is_absolute() or "\0" in given:
            raise InputError("Name the file by its whole place, such as /home/me/people.csv.")
        try:
            lies = path.resolve()
        except (OSError, RuntimeError):
            raise InputError(f"{given} leads nowhere.") from None
        if ".." in path.parts or not any(lies.is_relative_to(folder) for folder in self.folders):
            raise InputError(
                f"{given} does not lie below a folder that was named at start (--files FOLDER); drop the file "
                "in instead."
            )
        try:
            handle = os.open(lies, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(f"{given} cannot be read: {error.strerror}.") from None
        opened = Path(f"/proc/{os.getpid()}/fd/{handle}")
        opened = opened if opened.exists() else lies  # systems without it read the file by its name
        if not stat.S_ISREG(os.fstat(handle).st_mode) or opened.resolve() != lies:
            os.close(handle)
            raise InputError(f"{given} is no file that stays where it is; drop it in instead.")
        stands = Path(tempfile.mkdtemp(dir=self._own())) / lies.name
        stands.symlink_to(opened)
        self._handles[stands] = handle
        return stands

    def look(self, path: Path, shown: str) -> Intake:
        """Look at all rows of a file, once."""
        source = FileSource(path)
        try:
            draft = look_at(source)
            columns = source.columns()
            rows = _first_rows(source, [column.name for column in draft.columns])
        except InputError as error:
            self._remove(path)
            raise InputError(str(error).replace(str(path), shown)) from None
        intake = Intake(
            self._next, path, shown, draft, rows, columns, name=draft.name, title=_title(draft.name)
        )
        self._next += 1
        for number in list(self._intakes)[: max(0, len(self._intakes) - MOST + 1)]:
            self.forget(number)
        self._intakes[intake.number] = intake
        return intake

    def described(self, intake: Intake) -> Path:
        """Write the description of a file beside the files that were dropped in."""
        text = intake.description()
        path = Path(tempfile.mkdtemp(dir=self._own())) / "description.toml"
        with outages(path):
            path.write_text(text, encoding="utf-8")
        return path

    def forget(self, number: int) -> None:
        """Give a file up; one that was dropped in is removed."""
        intake = self._intakes.pop(number, None)
        if intake is not None:
            self._remove(intake.path)

    def _remove(self, path: Path) -> None:
        shutil.rmtree(path.parent, ignore_errors=True)
        handle = self._handles.pop(path, None)
        if handle is not None:
            os.close(handle)

    def clear(self) -> None:
        """Remove all that was dropped in."""
        for number in list(self._intakes):
            self.forget(number)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _own(self) -> Path:
        if self._folder is None:
            with outages(self._data):
                self._data.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._folder = Path(tempfile.mkdtemp(".part", FOLDER, self._data))
        return self._folder


def _first_rows(source: FileSource, columns: list[str]) -> list[list[str]]:
    """The first rows of a file as texts."""
    for table, _ in source.batches(columns):
        lists = [table[column].slice(0, PREVIEW).to_pylist() for column in columns]
        return [
            ["" if value is None else str(value) for value in row]
            for row in islice(zip(*lists, strict=True), PREVIEW)
        ]
    return []


def _title(name: str) -> str:
    return name.replace("-", " ").replace("_", " ").capitalize()
