"""The API's tables, and hints of what would become of a question.

A refusal is an answer with status 200: the question was understood, dealt with and decided. Only a
format that has no words for a refusal, such as CSV, turns it into a problem, so that no program
takes the refusal for data.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse, Response
from pydantic import SkipValidation
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lustrum.answer import Snapshot
from lustrum.answer.figures.words import summary
from lustrum.answer.readers import current_reader
from lustrum.formats.about import About
from lustrum.model import QueryError, TableQuery
from lustrum.model.errors import choices
from lustrum.model.plugins import load, names
from lustrum.runtime.remembered import Remembered
from lustrum.server.api.jobs import accepted
from lustrum.server.http.errors import Problem, ProblemError, documented
from lustrum.server.http.languages import current, preferred
from lustrum.server.http.middleware import HttpLayer
from lustrum.server.schemas import AnswerOut, HintOut, JobOut, ReasonOut, TableQueryIn
from lustrum.server.service.answers import (
    INCLUDE,
    ServedAnswer,
    included,
    only,
    question,
    snapshot_of,
)
from lustrum.server.service.jobs import Job
from lustrum.server.service.questions import Questions
from lustrum.server.service.remembered_answers import Key, Written
from lustrum.server.table_view import titles
from lustrum.server.table_view.percentages import as_shown
from lustrum.server.urls import display, forms
from lustrum.server.urls.forms import JSONRoute, check_names

# --- The same request again: its answer is sent without asking, while data and policy are what they were
# A repeated request has passed all that stands before it, among this the limit on how often an address may
# ask. Two files are looked at, the policy and the manifest of the bundle; if one has changed, the request
# goes on and is answered anew.

ROUTE = "/api/v1/tables"
_MOST = 20_000  # requests that are recognised


@dataclass(frozen=True)
class Answered:
    """What a request was answered with: the snapshot, and where the answer is kept."""

    snapshot: Snapshot
    key: Key


class RepeatedRequests(HttpLayer):
    """Stands before the routes and sends answers that are at hand."""

    def __init__(self, app: ASGIApp, questions: Questions) -> None:
        super().__init__(app)
        self._questions = questions
        self._known = Remembered[Answered](_MOST)
        self._in_force: dict[tuple[str, str], Snapshot] = {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what is known, or pass a request on and remember where its answer is."""
        if scope["path"] != ROUTE or not self._questions.answers.on:
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        message = await receive() if scope["method"] == "POST" else None
        # A body in several pieces is not recognised: its first piece may begin another question.
        whole = message is None or not message.get("more_body", False)
        request = _recognised(scope, message)
        answer = self._at_hand(request) if whole else None
        if answer is not None:
            scope.get("lustrum.seen", {})["route"] = ROUTE
            self._questions.count(answer, time.perf_counter() - started)
            await response(answer)(scope, receive, send)
            return
        noted: list[Answered] = []
        scope["lustrum.answered"] = noted
        given = message

        async def replay() -> Message:
            nonlocal given
            if given is None:
                return await receive()
            first, given = given, None
            return first

        await self.app(scope, replay, send)
        if noted and whole:
            self._remember(request, noted[0])

    def _remember(self, request: bytes, answered: Answered) -> None:
        """Requests of numbers or a policy that were replaced are let go; they would hold them in memory."""
        place = answered.snapshot.dataset.name, answered.snapshot.policy.role
        if self._in_force.get(place) is not answered.snapshot:
            self._in_force[place] = answered.snapshot
            self._known.clear()
        self._known.keep(request, answered)

    def _at_hand(self, request: bytes) -> Written | None:
        known = self._known.find(request)
        if known is None:
            return None
        now = self._questions.service.standing(known.snapshot.dataset.name)
        return self._questions.answers.at_hand(known.key) if now is known.snapshot else None


def response(written: Written) -> Response:
    """An answer on its way."""
    headers = {"Content-Disposition": written.disposition} if written.disposition else None
    return Response(written.body, media_type=written.media_type, headers=headers)


def _recognised(scope: Scope, message: Message | None) -> bytes:
    """A digest of all of a request that its answer can depend on: the request itself may be large."""
    header_names = (b"host", b"accept", b"content-type", b"content-encoding")
    request_parts = (
        scope["method"],
        scope["scheme"],
        scope.get("root_path", ""),
        tuple(scope.get("server") or ()),
        scope["query_string"],
        current().code,
        current_reader().role,
        today(),  # files say when they were asked for
        tuple((name, value) for name, value in scope["headers"] if name in header_names),
        None if message is None else message.get("body", b""),
    )
    return hashlib.sha256(repr(request_parts).encode()).digest()


_FORMATS = "lustrum.formats"
_JOB = {"model": JobOut, "description": "A large table, which is made in the background."}
_PARAMETERS = {
    "dataset": "Name of the dataset.",
    "by": "A variable, or variable:level; repeat it, or separate several by commas, rows first.",
    "where": "Who is counted, as variable:code; repeated for one variable, any of its codes counts.",
    "codes": "Only these categories of a variable in the table, as variable:1,2,7..12.",
    "group": "An own group of a variable in the table, as variable:label=1,2,7..12.",
    "among": "The same as 'where' for many codes, as variable:1,2,7..12.",
    "place": "Moves a variable of the table, as variable:rows, variable:columns or variable:layers.",
    "totals": "'on' adds a total to every variable.",
    "measure": "A numeric column to sum instead of counting.",
    "statistic": "What the cells show, such as count, mean:turnover or growth:turnover:turnover_before; "
    "once for each statistic of the table.",
    "weight": "A column of weights.",
    "query": "The JSON form of the whole question, instead of the parameters above.",
    "include": INCLUDE,
    "format": "'json' for the answer with its reasons, or the name of a format for the table alone.",
    "show": "In a file: counts (unasked), row-percent, column-percent, whole-percent or row-rate.",
    "decimals": "Of percentages, 0 to 3.",
    "comments": "'on' puts lines above a CSV that say what it is, each behind a #.",
    "guard": "'off' leaves the ' out that keeps spreadsheets from taking a text of a CSV for a formula.",
    "pivot": "Where a variable stands, as variable:rows or variable:columns: what percentages are of.",
}
_VIEW = ("show", "decimals", "pivot")
"""What of a view a file can have."""


def router(questions: Questions) -> APIRouter:
    """The routes under ``/api/v1``."""
    routes = APIRouter(prefix="/api/v1", route_class=JSONRoute)

    @routes.post(
        "/tables",
        summary="Ask for a table",
        responses={
            200: {"model": AnswerOut},
            202: _JOB,
            **documented(400, 413, 415, 422, 429, 500, 503),
        },
        openapi_extra={"parameters": list(_parameters("include"))},
    )
    def post(body: Annotated[SkipValidation[TableQueryIn], Body()], request: Request) -> Response:
        """The answer, or a refusal with reasons and a way forward; both come with status 200."""
        raw: Any = body
        check_names(request)
        if isinstance(raw, bytes):
            sentence = (
                "Send a table query as JSON, with the header 'Content-Type: application/json'."
            )
            raise ProblemError(Problem.of_status(415, sentence))
        include = included(request)
        only(request, "include")
        return _answered(questions, question(raw), request, None, include)

    @routes.get(
        "/tables",
        summary="Ask for a table by a link",
        responses={
            200: {"content": dict(_contents()), "description": "The answer, or the table alone."},
            202: _JOB,
            **documented(400, 406, 414, 429, 500, 503),
        },
        openapi_extra={"parameters": list(_parameters(*_PARAMETERS))},
    )
    def get(request: Request) -> Response:
        """The same question as on the page, in the same words; `format=csv` gives the table as CSV."""
        wanted, include = _format(request), included(request)
        pairs = request.query_params.multi_items()
        view, _ = display.read((name, value) for name, value in pairs if name in _VIEW)
        if view.derived and wanted is None:
            raise QueryError(
                "Percentages and differences are written into files; name one, such as format=csv."
            )
        query = _asked(request, "format", "include", "comments", "guard", *_VIEW)
        comments = request.query_params.get("comments", "")
        if comments not in ("", "on", "off") or (comments == "on" and wanted != "csv"):
            raise QueryError("'comments' is on or off, and on for format=csv alone.")
        guard = request.query_params.get("guard", "")
        if guard not in ("", "on", "off") or (guard == "off" and wanted != "csv"):
            raise QueryError("'guard' is on or off, and off for format=csv alone.")
        words = {"comments": True} if comments == "on" else {}
        words |= {"guard": False} if guard == "off" else {}
        return _answered(questions, query, request, wanted, include, view, words)

    @routes.get(
        "/hints",
        summary="What would likely become of a question",
        responses={**documented(400, 414, 429, 500, 503)},
        openapi_extra={
            "parameters": list(_parameters("dataset", *forms.PARAMETERS, *forms.CHOICES))
        },
    )
    def hints(request: Request) -> HintOut:
        """The preliminary rules alone, quick enough to be asked while a question is being made."""
        query = _asked(request)
        snapshot = snapshot_of(questions.service, query.dataset)
        seen = questions.precheck(query, snapshot)
        return HintOut(
            cells=seen.cells,
            most=snapshot.policy.rules.max_cells,
            passes=seen.passes,
            reasons=[ReasonOut(**vars(reason)) for reason in seen.reasons],
        )

    return routes


def _asked(request: Request, *others: str) -> TableQuery:
    """The question in the parameters of an address."""
    pairs = request.query_params.multi_items()
    query_pairs = [(k, v) for k, v in pairs if k not in ("dataset", *others)]
    named = [v for k, v in pairs if k == "dataset" and v]
    if len(named) != 1:
        raise QueryError("Name one dataset, such as dataset=demo.")
    return forms.read(query_pairs, named[0])


def _answered(
    questions: Questions,
    query: TableQuery,
    request: Request,
    wanted: str | None,
    include: tuple[str, ...],
    view: display.TableView | None = None,
    words: Mapping[str, bool] = MappingProxyType({}),
) -> Response:
    """The answer with its reasons, or in a format the table alone; or the job that makes it."""
    host, day = str(request.base_url).rstrip("/"), today()
    view = view or display.TableView()
    form = (
        f"{wanted or 'json'}{' with '.join(('', *words))}",
        ",".join(include),
        host,
        current().code,
        view.address(""),
        day if wanted else "",
    )

    def write(answer: ServedAnswer) -> Written:
        if wanted is None:
            return _enveloped(answer, host, include)
        return _alone(answer, wanted, view, host, day, words)

    def note(snapshot: Snapshot, key: Key) -> None:
        request.scope.get("lustrum.answered", []).append(Answered(snapshot, key))

    answer_or_job = questions.written(query, form, write, note)
    return (
        accepted(answer_or_job, request)
        if isinstance(answer_or_job, Job)
        else response(answer_or_job)
    )


def _enveloped(answer: ServedAnswer, host: str, include: tuple[str, ...]) -> Written:
    sent = JSONResponse(answer.body(host, include))
    verdict = answer.decision.verdict.value
    return Written(answer.query.dataset, verdict, "application/json", bytes(sent.body))


def today() -> str:
    """The day on which files say that they were asked for."""
    return datetime.now(UTC).date().isoformat()


def _alone(
    answer: ServedAnswer,
    wanted: str,
    view: display.TableView,
    host: str,
    day: str,
    words: Mapping[str, bool],
) -> Written:
    release = answer.release
    if release is None:
        problem = Problem(
            "refusal",
            "The table is not released",
            406,
            " ".join(reason.text for reason in answer.decision.reasons),
            {"reasons": [vars(reason) for reason in answer.decision.reasons]},
        )
        raise ProblemError(problem)
    writer = load(_FORMATS, wanted)(**words)
    name, table = (
        titles.file_name(answer.query, ending, view.show) for ending in (writer.ending, "csv")
    )
    about = about_answer(answer, host, day, view, table)
    told = {"about": about} if getattr(writer, "tells_about", False) else {}
    content = writer.write(as_shown(release, view), answer.title, **told)
    return Written(
        answer.query.dataset,
        answer.decision.verdict.value,
        writer.media_type,
        content.encode() if isinstance(content, str) else content,
        f'attachment; filename="{name}"',
    )


def about_answer(
    answer: ServedAnswer, host: str, day: str, view: display.TableView, table: str
) -> About:
    """What every file says of its table; ``table`` names the file of CSV beside a description."""
    return About(
        dataset=answer.publisher,
        version=answer.version,
        updated=answer.snapshot.policy.updated,
        date=day,
        selection=titles.selection(answer.query, answer.snapshot.dataset),
        link=host + view.address(answer.page),
        table=table,
        areas=tuple(shapes.variable for shapes in answer.snapshot.dataset.maps),
        more=_more(answer),
    )


def _more(answer: ServedAnswer) -> dict[str, str | float]:
    """What files say of the answer beside all that every table says of itself."""
    decision = answer.decision
    figures = {
        "Risk before protection": decision.risk_before,
        "Risk after protection": decision.risk_after,
        "Utility": decision.utility,
    }
    stated: dict[str, str | float] = {
        k: v for k, v in figures.items() if v is not None and decision.counted
    }
    stated |= {
        f"{one.label}: risk and error": said for one in decision.sums if (said := summary(one))
    }
    return stated | {"Citation": f"{answer.publisher}: {answer.title}. Question {answer.id}."}


def _format(request: Request) -> str | None:
    """The format wanted, by parameter or else by the ``Accept`` header; none is the answer as JSON."""
    said = [value for value in request.query_params.getlist("format") if value]
    if len(said) > 1:
        raise QueryError("The parameter 'format' is given twice; give it once.")
    if said:
        known = ("json", *names(_FORMATS))
        if said[0] not in known:
            raise QueryError(f"There is no format {said[0]!r}; {choices(said[0], known)}.")
        return None if said[0] == "json" else said[0]
    kinds = {load(_FORMATS, name).media_type: name for name in names(_FORMATS)}
    # Every browser says that it takes pages; who wants the table as one names the format.
    kinds.pop("text/html", None)
    for kind in preferred(request.headers.get("accept", "")):
        if kind in ("application/json", "application/*", "*/*"):
            return None
        if kind in kinds:
            return kinds[kind]
    return None


def _contents() -> Iterator[tuple[str, dict[str, Any]]]:
    """What a link to a table can bring: the answer as JSON, or the table alone in a format."""
    for name in names(_FORMATS):
        kind = load(_FORMATS, name).media_type
        if kind != "application/json":
            yield kind, {"schema": {"type": "string"}}
    alone = {
        "type": "object",
        "required": ["version", "class", "value"],
        "description": "A JSON-stat 2.0 dataset, for format=json-stat.",
    }
    answer = {"$ref": "#/components/schemas/AnswerOut"}
    yield "application/json", {"schema": {"anyOf": [answer, alone]}}


def _parameters(*wanted: str) -> Iterator[dict[str, Any]]:
    for name in wanted:
        several = name in ("by", "where", "pivot", *forms.CHOICES)
        text = {"type": "string"}
        yield {
            "name": name,
            "in": "query",
            "description": _PARAMETERS[name],
            "required": name == "dataset",
            "schema": {"type": "array", "items": text} if several else text,
        }
