"""The pages of maps: what is dropped in, the map as it grows, one method of it, the policy and the report."""

from __future__ import annotations

import base64
import binascii
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lustrum.agency.maps.inputs import cases_of_texts, methods_of, offered, write_policy
from lustrum.agency.maps.picture import detail_of, map_svg
from lustrum.agency.templating import AgencyPages, Handler
from lustrum.model import InputError, LustrumError
from lustrum.model.errors import choices
from lustrum.rumap import Cases, RUMap, growing_map, rumap, sweep_of
from lustrum.rumap.charts import distribution_chart, risk_table_chart, svg_of
from lustrum.rumap.choose import Choice, best_of
from lustrum.rumap.report import MapReport, report_html, write_pdf
from lustrum.runtime.stop import Stopped, stopping

_MOST_BYTES = 64 * 1024 * 1024
_RISKS = ("table-entropy", "cell-certainty", "attribute-inference", "close-estimates", "r2")


def _warm_up(methods: Sequence[Any]) -> None:
    text = b"area,faith,value\nA,F,1\nA,G,4\nB,F,9\nB,G,2\n"
    ru_map = rumap(cases_of_texts({"warm.csv": text}), methods, replications=1, workers=1)
    map_svg(ru_map, ru_map.tables[0], 0.1, "{index}")


class MapPages:
    """The handlers, with the maps that they share."""

    def __init__(
        self, pages: AgencyPages, data: Path | None, policy: Path, cases: Cases | None
    ) -> None:
        self._pages, self.data, self.policy_path, self.cases = pages, data, policy, cases
        self.jobs = MapJobs()

    def routes(self) -> list[Route]:
        """The routes of the maps."""
        point = "/maps/{number:int}/points/{index:int}"
        return [
            Route("/maps", self._guarded(self.home)),
            Route("/maps", self._guarded(self.start), methods=["POST"]),
            Route("/maps/{number:int}", self._guarded(self.map)),
            Route("/maps/{number:int}/state", self._guarded(self.state)),
            Route("/maps/{number:int}/stop", self._guarded(self.stop), methods=["POST"]),
            Route(point, self._guarded(self.point)),
            Route(point + "/{chart:str}.svg", self._guarded(self.chart)),
            Route(point + "/policy", self._guarded(self.policy), methods=["POST"]),
            Route("/maps/{number:int}/report.{kind:str}", self._guarded(self.report)),
            Route("/maps/{number:int}/points.csv", self._guarded(self.csv)),
        ]

    def warm_up(self) -> None:
        """Load and compile what every map needs, so that a first point does not wait for that."""
        _warm_up(methods_of({"random-rounding": "3"}))

    def warm_up_rest(self) -> None:
        """The other methods, one after the other; a map that somebody asked for has the processor to itself."""
        for method in offered():
            if self.jobs.all():
                return
            if method.ticked:
                _warm_up(methods_of({method.name: method.values}))

    def _guarded(self, handler: Handler) -> Handler:
        return self._pages.guarded(handler, "/maps")

    async def home(self, request: Request) -> Response:
        """The form, and the maps that are there."""
        given = list(self.cases.tables) if self.cases is not None else []
        return self._page(
            "maps.html", offered=offered(), risks=_RISKS, jobs=self.jobs.all(), given=given
        )

    async def start(self, request: Request) -> Response:
        """Begin a map from what was dropped in and ticked."""
        asked = await _json(request)
        files = {str(f["name"]): _decoded(str(f["content"])) for f in asked.get("files", [])}
        if files:
            cases: Cases = await run_in_threadpool(cases_of_texts, files, self.data)
        elif self.cases is not None:
            cases = self.cases
        else:
            raise InputError("Drop in a table or saved questions first.")
        limit = asked.get("limit")
        job = await run_in_threadpool(self._start, cases, asked, limit)
        return JSONResponse({"address": f"/maps/{job.number}"})

    def _start(self, cases: Cases, asked: dict[str, Any], limit: Any) -> MapJob:
        if limit is not None and not (isinstance(limit, int | float) and 0 <= limit <= 10):
            raise InputError("The limit of risk must be a number of 0 or more.")
        replications = asked.get("replications", 10)
        if type(replications) is not int or not 1 <= replications <= 1000:
            raise InputError("The number of draws must be a whole number from 1 to 1000.")
        risk, attacker = asked.get("risk"), asked.get("attacker")
        return self.jobs.start(
            cases,
            methods_of(asked.get("methods", {})),
            None if not risk else [str(risk)],
            None if not attacker or risk != "cell-certainty" else [str(attacker)],
            limit=None if limit is None else float(limit),
            replications=replications,
            seed=0,
        )

    async def map(self, request: Request) -> Response:
        """A map, as far as it is."""
        job = self.jobs.get(request.path_params["number"])
        fragment = await run_in_threadpool(self._fragment, job)
        return self._page("map.html", job=job, fragment=fragment, policy=str(self.policy_path))

    async def state(self, request: Request) -> Response:
        """How far a map is; the picture is sent along if there is something new."""
        job = self.jobs.get(request.path_params["number"])
        seen = request.query_params.get("seen", "")
        state: dict[str, object] = {"done": job.done, "total": job.total, "finished": job.finished}
        mark = f"{job.done}-{job.finished}"
        if seen != mark:
            state["html"] = await run_in_threadpool(self._fragment, job)
        return JSONResponse({**state, "mark": mark})

    async def stop(self, request: Request) -> Response:
        """Stop a map; what is there stays."""
        job = self.jobs.get(request.path_params["number"])
        job.stop()
        return JSONResponse({"stopped": True})

    async def point(self, request: Request) -> Response:
        """One method: what it publishes, and why it scored so."""
        job, ru_map, label, table = self._point(request)
        detail = await run_in_threadpool(detail_of, ru_map, label, table)
        index = request.path_params["index"]
        return self._page(
            "point.html", job=job, detail=detail, index=index, policy=str(self.policy_path),
            tables=ru_map.tables,
        )  # fmt: skip

    async def chart(self, request: Request) -> Response:
        """A picture for the page of a point."""
        _, ru_map, label, table = self._point(request)
        kind = request.path_params["chart"]
        makers: dict[str, Callable[..., Any]] = {
            "cells": risk_table_chart,
            "values": distribution_chart,
        }
        if kind not in makers:
            raise InputError("A point has the pictures 'cells' and 'values'.")

        def drawn() -> str:
            return svg_of(
                makers[kind](ru_map.sweep.cases.tables[table], ru_map.release(label, table))
            )

        return Response(await run_in_threadpool(drawn), media_type="image/svg+xml")

    async def policy(self, request: Request) -> Response:
        """Write the method into the policy."""
        job, ru_map, _, _ = self._point(request)
        index = request.path_params["index"]
        backup = await run_in_threadpool(write_policy, self.policy_path, ru_map, index, job.limit)
        message = f"The policy is in {self.policy_path}."
        if backup is not None:
            message += f" The one before is in {backup}."
        return JSONResponse({"said": message})

    async def report(self, request: Request) -> Response:
        """The report as a page or as PDF."""
        job = self.jobs.get(request.path_params["number"])
        ru_map = _some(job)
        kind = request.path_params["kind"]
        if kind not in ("html", "pdf"):
            raise InputError("A report is .html or .pdf.")

        def render() -> bytes:
            page = report_html(
                MapReport(ru_map, job.choice, job.limit, title=f"Choice of a method for {job.name}")
            )
            if kind == "html":
                return page.encode()
            import tempfile

            with tempfile.TemporaryDirectory(prefix="lustrum-report-") as folder:
                return write_pdf(page, Path(folder) / "report.pdf").read_bytes()

        content = await run_in_threadpool(render)
        media = "text/html; charset=utf-8" if kind == "html" else "application/pdf"
        names = {"Content-Disposition": f'attachment; filename="report.{kind}"'}
        return Response(content, media_type=media, headers=names)

    async def csv(self, request: Request) -> Response:
        """The tidy frame."""
        import io

        import pyarrow.csv

        ru_map = _some(self.jobs.get(request.path_params["number"]))
        out = io.BytesIO()
        pyarrow.csv.write_csv(ru_map.to_arrow(), out)
        names = {"Content-Disposition": 'attachment; filename="map.csv"'}
        return Response(out.getvalue(), media_type="text/csv; charset=utf-8", headers=names)

    def _fragment(self, job: MapJob) -> str:
        """The part of the page of a map that changes while it grows."""
        ru_map = job.ru_map
        shown = []
        for table in ru_map.tables if ru_map is not None else ():
            assert ru_map is not None
            points = ru_map.of(table)
            address = f"/maps/{job.number}/points/{{index}}?table={ru_map.tables.index(table)}"
            shown.append(
                {
                    "name": table,
                    "svg": map_svg(ru_map, table, job.limit, address),
                    "points": [
                        (p, points[by] if by >= 0 else None, by, address.format(index=p.index))
                        for p, by in zip(points, ru_map.dominators(table), strict=True)
                    ],
                    "families": list(dict.fromkeys(p.family for p in points if not p.is_corner)),
                }
            )
        return self._pages.part("_map.html", job=job, tables=shown, choice=job.choice, found=ru_map)

    def _point(self, request: Request) -> tuple[MapJob, RUMap, str, str]:
        job = self.jobs.get(request.path_params["number"])
        ru_map = _some(job)
        label = job.point(request.path_params["index"])
        number = request.query_params.get("table", "0")
        if not number.isdigit() or int(number) >= len(ru_map.tables):
            raise InputError("The map has no such table.")
        return job, ru_map, label, ru_map.tables[int(number)]

    def _page(self, template: str, **values: Any) -> Response:
        return self._pages.page(template, "/maps", **values)


def _some(job: MapJob) -> RUMap:
    if job.ru_map is None:
        raise InputError("The map has no point yet; wait a moment.")
    return job.ru_map


async def _json(request: Request) -> dict[str, Any]:
    said = request.headers.get("content-length", "")
    if not said.isdigit() or int(said) > _MOST_BYTES:
        raise InputError(f"A map takes files of up to {_MOST_BYTES // 2**20} MB.")
    try:
        payload = json.loads(await request.body())
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise InputError("The page sent something that is not JSON; load it again.") from None
    if not isinstance(payload, dict):
        raise InputError("The page sent something that is not an object; load it again.")
    return payload


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InputError("A file did not arrive whole; drop it in again.") from None


# --- Maps that are being made: each in a thread of its own, with what is there so far

_MOST = 20
"""Maps that are kept; the oldest finished one goes first."""


@dataclass(eq=False)
class MapJob:
    """One map: what was asked for, how far it is, and what is there."""

    number: int
    name: str
    limit: float | None
    ru_map: RUMap | None = None
    done: int = 0
    total: int = 0
    finished: bool = False
    problem: str = ""
    first_point: float | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def choice(self) -> Choice | None:
        """The best method under the limit, of what is there so far."""
        if self.limit is None or self.ru_map is None:
            return None
        return best_of(self.ru_map, self.limit)

    def stop(self) -> None:
        """Ask the map to stop; what is there stays."""
        self._stop.set()

    def wait(self, seconds: float) -> bool:
        """Wait until the map is finished; gives whether it is."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self.finished

    def point(self, index: int) -> str:
        """The label of a method of the map."""
        labels = self.ru_map.labels if self.ru_map is not None else ()
        if not 0 <= index < len(labels):
            raise InputError(f"The map has no method {index}; there are {len(labels)}.")
        return labels[index]


class MapJobs:
    """The maps of one page, by number."""

    def __init__(self) -> None:
        self._jobs: dict[int, MapJob] = {}
        self._lock = threading.Lock()
        self._next = 1

    def get(self, number: int) -> MapJob:
        """A map by its number."""
        job = self._jobs.get(number)
        if job is None:
            raise InputError(
                f"There is no map {number}; {choices(str(number), map(str, self._jobs))}."
            )
        return job

    def all(self) -> list[MapJob]:
        """All maps, the newest first."""
        return sorted(self._jobs.values(), key=lambda job: -job.number)

    def start(
        self,
        cases: Cases,
        methods: Sequence[Any],
        measures: Sequence[Any] | None,
        attackers: Sequence[str] | None,
        *,
        limit: float | None,
        replications: int,
        seed: int,
    ) -> MapJob:
        """Begin a map; mistakes in what is asked for are noticed at once."""
        sweep = sweep_of(cases, methods, measures, attackers, replications=replications, seed=seed)
        with self._lock:
            job = MapJob(self._next, ", ".join(cases.tables), limit)
            self._next += 1
            old = [n for n, j in self._jobs.items() if j.finished]
            for number in old[: max(0, len(self._jobs) - _MOST + 1)]:
                del self._jobs[number]
            self._jobs[job.number] = job
        job.total = len(sweep.methods) * replications
        started = time.perf_counter()

        def progress(done: int, total: int) -> None:
            job.done, job.total = done, total

        def run() -> None:
            try:
                with stopping(job._stop.is_set):
                    for ru_map in growing_map(sweep, progress):
                        job.ru_map = ru_map
                        if job.first_point is None:
                            job.first_point = time.perf_counter() - started
            except Stopped:
                job.problem = "The map was stopped; what is there stays."
            except LustrumError as error:
                job.problem = str(error)
            except Exception:
                # The text of an unforeseen exception may hold counts, and this page can be printed.
                job.problem = "The map failed because of a bug; run 'lustrum map' to see it."
            finally:
                job.finished = True

        job._thread = threading.Thread(target=run, name=f"map {job.number}", daemon=True)
        job._thread.start()
        return job

    def stop(self) -> None:
        """Stop all maps."""
        for job in self._jobs.values():
            job.stop()
