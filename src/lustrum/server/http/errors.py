"""From exceptions to problems: JSON for the API, a page for people, the same sentence in both.

Only a :class:`~lustrum.model.QueryError` is the asker's own mistake and is shown word for word. Whatever
else goes wrong lies with the agency's files or with us: its text may hold a path or a number and stays inside.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from lustrum.model import DatasetError, DescriptionError, PolicyError, QueryError
from lustrum.model.errors import NotReadyError
from lustrum.model.text import say
from lustrum.runtime.log_lines import REQUEST, where_it_happened
from lustrum.server.http.templating import Pages
from lustrum.server.schemas import ProblemOut

# --- What went wrong, in the one shape of RFC 9457 that every route answers with

MEDIA_TYPE = "application/problem+json"
_TITLES = {
    400: say("Bad request"),
    401: say("Not recognised"),
    403: say("Not allowed"),
    404: say("Not found"),
    405: say("Method not allowed"),
    406: say("Not available in this format"),
    409: say("Not yet"),
    413: say("Body too large"),
    414: say("Address too long"),
    415: say("Not JSON"),
    421: say("Wrong host name"),
    422: say("Too large"),
    429: say("Too many requests"),
    503: say("Not available"),
}


@dataclass(frozen=True)
class Problem:
    """A problem as the asker sees it; ``detail`` is one sentence that says what would be right."""

    kind: str
    title: str
    status: int
    detail: str
    extra: Mapping[str, object] = field(default_factory=dict)
    retry: int | None = None
    reason: str = ""
    """Why somebody is asked to come again, for the operator's figures; one of a few words."""

    @classmethod
    def of_status(
        cls, status: int, detail: str, *, retry: int | None = None, reason: str = ""
    ) -> Problem:
        """A problem that says no more than its HTTP status and a sentence, and when to come again."""
        title = _TITLES.get(status, say("Not answered"))
        return cls(
            title.lower().replace(" ", "-"), title, status, detail, retry=retry, reason=reason
        )

    def body(self, instance: str) -> dict[str, object]:
        """The JSON form."""
        return {
            "type": f"urn:lustrum:problem:{self.kind}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            **self.extra,
        }


class ProblemError(Exception):
    """Ends a request with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.kind)
        self.problem = problem


def not_found(detail: str) -> ProblemError:
    """Ends a request for something that is not there."""
    return ProblemError(Problem.of_status(404, detail))


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a route can answer with, for the description of the API."""
    return {
        status: {
            "description": "Problem details (RFC 9457).",
            "content": {MEDIA_TYPE: {"schema": deepcopy(_problem_schema())}},
        }
        for status in statuses
    }


@cache
def _problem_schema() -> dict[str, Any]:
    return ProblemOut.model_json_schema()


log = logging.getLogger("lustrum.server")

UNAVAILABLE = say("This dataset cannot be asked about at the moment; please try again later.")
CHECKING = say("This dataset is being prepared and can be asked about soon; please try again.")
AGAIN = "5"
"""Seconds after which a page that waits for a dataset loads itself again."""
_SENTENCES = {
    400: say("The request could not be read."),
    404: say("There is nothing at this address."),
    405: say("This address does not take that kind of request."),
}


def install(app: FastAPI, pages: Pages) -> None:
    """Answer every exception of a route with a problem."""

    def respond(request: Request, problem: Problem) -> Response:
        return response(request, problem, pages)

    @app.exception_handler(ProblemError)
    def _problem(request: Request, error: ProblemError) -> Response:
        return respond(request, error.problem)

    @app.exception_handler(QueryError)
    def _query(request: Request, error: QueryError) -> Response:
        title = say("The question has a mistake")
        return respond(request, Problem("query", title, 400, error.args[0]))

    @app.exception_handler(DatasetError)
    @app.exception_handler(PolicyError)
    @app.exception_handler(DescriptionError)
    def _agency(request: Request, error: Exception) -> Response:
        # The sentences of these errors name files and keys of the agency, never anything of the data.
        log.error("unavailable: %s", error)
        return respond(request, Problem.of_status(503, UNAVAILABLE, reason="unavailable"))

    @app.exception_handler(NotReadyError)
    def _not_ready(request: Request, error: NotReadyError) -> Response:
        return respond(
            request, Problem.of_status(503, CHECKING, retry=int(AGAIN), reason="starting")
        )

    @app.exception_handler(RequestValidationError)
    def _validation(request: Request, error: RequestValidationError) -> Response:
        return respond(request, Problem("request", "Unreadable request", 422, _mistake(error)))

    @app.exception_handler(HTTPException)
    def _http(request: Request, error: HTTPException) -> Response:
        sentence = _SENTENCES.get(error.status_code, say("The request was not answered."))
        answer = respond(request, Problem.of_status(error.status_code, sentence))
        answer.headers.update(error.headers or {})
        return answer


def response(request: Request, problem: Problem, pages: Pages) -> Response:
    """A problem as JSON or as a page, whichever the address is for."""
    # Not `request.url`: that is built from the Host header, which may be nonsense.
    path: str = request.scope["path"]
    if problem.reason:
        request.scope.get("lustrum.seen", {})["reason"] = problem.reason
    if is_machine(path):
        body = problem.body(path) | REQUEST.get({})
        answer: Response = JSONResponse(body, status_code=problem.status, media_type=MEDIA_TYPE)
        return _with_retry(answer, problem)
    # A mistake in a question is mended where questions are made.
    name = path.split("/")[2] if problem.status == 400 and path.startswith("/datasets/") else None
    starting = problem.reason == "starting"
    status = 202 if starting else problem.status  # it was understood, and is shown soon
    page = pages.render("error.html", status, problem=problem, name=name, starting=starting)
    if starting:
        page.headers["Refresh"] = AGAIN
    return _with_retry(page, problem)


def _with_retry(answer: Response, problem: Problem) -> Response:
    if problem.retry is not None:
        answer.headers["Retry-After"] = str(problem.retry)
    return answer


PROGRAMS = ("/api/", "/pxapi/", "/sdmx/")
"""How addresses begin that give answers to programs."""


def is_machine(path: str) -> bool:
    """Whether an address is for programs rather than people."""
    return path == "/api" or path.startswith((*PROGRAMS, "/health"))


def incident(error: BaseException) -> Problem:
    """A bug of our own: a fixed sentence and a number to ask about; the log has the place."""
    number = secrets.token_hex(4)
    log.error("incident %s: %s", number, where_it_happened(error))
    return Problem(
        "internal",
        say("Something went wrong here"),
        500,
        say(
            "This is our mistake, not yours. Please try again later, or ask the agency about "
            "incident {incident}.",
            incident=number,
        ),
        {"incident": number},
    )


def _mistake(error: RequestValidationError) -> str:
    """The first mistake in a sentence. What was sent is not repeated."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return f"The body is not valid JSON, from character {first['loc'][-1]} on."
    if first["type"] == "missing" and tuple(first["loc"]) == ("body",):
        return "The body is missing; send a table query as JSON."
    location = " ".join(str(part) for part in first["loc"])
    return f"The {location} is wrong: {first['msg'][:1].lower()}{first['msg'][1:]}."
