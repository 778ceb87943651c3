"""Jobs for programs and for people: how far a table is that is made in the background."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import SkipValidation

from lustrum.model.text import say
from lustrum.server.http.errors import Problem, ProblemError, documented, not_found
from lustrum.server.http.languages import current
from lustrum.server.http.templating import Pages
from lustrum.server.schemas import AnswerOut, JobOut, TableQueryIn
from lustrum.server.service.answers import INCLUDE, included, only, question
from lustrum.server.service.jobs import Job
from lustrum.server.service.questions import Questions
from lustrum.server.service.served_dataset import find
from lustrum.server.table_view import titles
from lustrum.server.urls import display, forms
from lustrum.server.urls.forms import JSONRoute, check_names

TOKEN = "Cancel-Token"
"""The header with the token of a job that is to be cancelled."""

STEPS = {
    "": say("It waits for its turn."),
    "question": say("The question is looked at."),
    "numbers": say("Its protected numbers are made."),
    "judge": say("The rules are checked on the protected numbers."),
    "measure": say("The risk that is left to a reader is measured."),
    "finish": say("It is nearly done."),
}


def api_router(questions: Questions) -> APIRouter:
    """The routes under ``/api/v1/jobs``."""
    routes = APIRouter(prefix="/api/v1", route_class=JSONRoute)

    @routes.post(
        "/jobs",
        status_code=202,
        summary="Ask for a table in the background",
        responses={
            202: {"model": JobOut, "description": "The job, waiting, running or already done."},
            **documented(400, 413, 415, 422, 429, 500, 503),
        },
    )
    def post(body: Annotated[SkipValidation[TableQueryIn], Body()], request: Request) -> Response:
        """The job of a question; the same question gets the same job while it exists."""
        raw: Any = body
        check_names(request)
        if isinstance(raw, bytes):
            sentence = (
                "Send a table query as JSON, with the header 'Content-Type: application/json'."
            )
            raise ProblemError(Problem.of_status(415, sentence))
        only(request)
        query = question(raw)
        return accepted(questions.submit(query), request)

    @routes.get(
        "/jobs/{name}",
        summary="How far a job is",
        responses={200: {"model": JobOut}, **documented(400, 404, 422, 429, 500, 503)},
    )
    def get(name: str, request: Request) -> Response:
        """Its state, its step and the share that is done; kept for a day after its end."""
        only(request)
        return JSONResponse(_body(_found(questions, name), request))

    @routes.get(
        "/jobs/{name}/result",
        summary="What a job has found",
        responses={200: {"model": AnswerOut}, **documented(400, 404, 409, 422, 429, 500, 503)},
        openapi_extra={
            "parameters": [
                {
                    "name": "include",
                    "in": "query",
                    "description": INCLUDE,
                    "required": False,
                    "schema": {"type": "string"},
                }
            ]
        },
    )
    def result(name: str, request: Request) -> Response:
        """The answer, or a problem with status 409 while there is none."""
        include = included(request)
        only(request, "include")
        job = _found(questions, name)
        answer = questions.answer_of(job, "json")
        if answer is None:
            sentence = job.sentence or f"The job is {job.state}; ask again when it is done."
            if job.state == "done":
                sentence = "The data or the policy have changed since; ask for the table again."
            raise ProblemError(Problem("job", "No result", 409, sentence))
        return JSONResponse(answer.body(str(request.base_url).rstrip("/"), include))

    @routes.delete(
        "/jobs/{name}",
        status_code=204,
        summary="Cancel a job",
        responses=documented(400, 403, 404, 422, 429, 500, 503),
        openapi_extra={
            "parameters": [
                {
                    "name": TOKEN,
                    "in": "header",
                    "description": "The token that came with the job when it was asked for.",
                    "required": True,
                    "schema": {"type": "string"},
                }
            ]
        },
    )
    def delete(name: str, request: Request) -> Response:
        """The job is stopped unless somebody else waits for it too."""
        only(request)
        _cancel(questions, name, request.headers.get(TOKEN, ""))
        return Response(status_code=204)

    return routes


def router(questions: Questions, pages: Pages) -> APIRouter:
    """The page of a job, which reloads by itself until there is a table."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/jobs/{name}")
    def page(name: str, request: Request) -> Response:
        job = _found(questions, name)
        token = request.query_params.get("token", "")
        shown = [pair for pair in request.query_params.multi_items() if pair[0] != "token"]
        view, rest = display.read(shown)
        if rest:
            raise not_found(say("There is nothing at this address."))
        answer = questions.answer_of(job)
        if answer is not None:
            return RedirectResponse(current().at(view.address(answer.page)), status_code=303)
        served = find(questions.service, job.query.dataset)
        if job.state == "done":
            # The data or the policy have changed since: the table has to be made again.
            link = f"/datasets/{job.query.dataset}/table?{forms.write(job.query)}"
            return RedirectResponse(current().at(view.address(link)), status_code=303)
        rendered = pages.render(
            "job.html",
            job=job,
            token=token if token and questions.jobs.store.may_cancel(job.id, token) else "",
            sentence=current().gettext(job.sentence),
            step=STEPS.get(job.step, STEPS[""]),
            dataset=served.dataset,
            heading=titles.heading(job.query, served.dataset),
            title=titles.title(job.query, served.dataset),
        )
        if not job.ended:
            rendered.headers["Refresh"] = "2"
        return rendered

    @routes.post("/jobs/{name}/cancel")
    def cancel(name: str, request: Request) -> Response:
        _cancel(questions, name, request.query_params.get("token", ""))
        return RedirectResponse(current().at(f"/jobs/{name}"), status_code=303)

    return routes


def accepted(job: Job, request: Request) -> Response:
    """A job as the answer to a request for its table; nobody else gets the token."""
    body = _body(job, request) | {"token": job.token}
    headers = {"Location": body["links"]["self"], "Retry-After": "1"}
    return JSONResponse(body, status_code=202, headers=headers)


def _found(questions: Questions, name: str) -> Job:
    job = questions.find_job(name)
    if job is None:
        raise not_found(say("There is no such job; it may be too old. Ask for the table again."))
    return job


def _cancel(questions: Questions, name: str, token: str) -> None:
    if not questions.jobs.store.cancel(_found(questions, name).id, token):
        sentence = say(
            "Only those who asked for this table can cancel it, with the token they got."
        )
        raise ProblemError(Problem.of_status(403, sentence))


def _body(job: Job, request: Request) -> dict[str, Any]:
    host = str(request.base_url).rstrip("/")
    job_url = f"{host}/api/v1/jobs/{job.id}"
    links = {"self": job_url, "page": f"{host}/jobs/{job.id}"}
    return {
        "id": job.id,
        "state": job.state,
        "step": job.step,
        "share": job.share,
        "sentence": job.sentence,
        "query": job.query.to_mapping(),
        "links": links | ({"result": f"{job_url}/result"} if job.state == "done" else {}),
    }
