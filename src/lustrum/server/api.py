"""The API: what there is to ask, and tables.

A refusal is an answer with status 200: the question was understood, dealt with and decided. Only a
format that has no words for a refusal, such as CSV, turns it into a problem, lest a program take the
refusal for data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse, Response
from pydantic import SkipValidation

from lustrum.model import Dataset, Hierarchy, QueryError, Variable
from lustrum.model.errors import choices
from lustrum.model.plugins import load, names
from lustrum.release import Desk
from lustrum.server import forms, words
from lustrum.server.answers import Answer, ask, question
from lustrum.server.offer import Offer, catalogue, find
from lustrum.server.problems import MEDIA_TYPE, Problem, ProblemError
from lustrum.server.schemas import (
    AnswerOut,
    DatasetOut,
    Datasets,
    DatasetSummary,
    ProblemOut,
    TableQueryIn,
)

__all__ = ["router"]

_FORMATS = "lustrum.formats"
_PARAMETERS = {
    "dataset": "Name of the dataset.",
    "by": "A variable, or variable:level; once for each variable of the table, rows first.",
    "where": "Who is counted, as variable:code; repeated for one variable, any of its codes counts.",
    "totals": "'on' adds a total to every variable.",
    "measure": "A numeric column to sum instead of counting.",
    "weight": "A column of weights.",
    "query": "The JSON form of the whole question, instead of the parameters above.",
    "format": "'json' for the answer with its reasons, or the name of a format for the table alone.",
}


def router(desk: Desk) -> APIRouter:
    """The routes under ``/api/v1``."""
    routes = APIRouter(prefix="/api/v1")

    @routes.get("/datasets", summary="The catalogue", responses=_problems(500))
    def datasets() -> Datasets:
        """Every dataset that can be asked about."""
        return Datasets(datasets=[DatasetSummary(**_summary(d)) for d in catalogue(desk)])

    @routes.get("/datasets/{name}", summary="One dataset", responses=_problems(404, 422, 500, 503))
    def dataset(name: str) -> DatasetOut:
        """Its variables with codes, levels and what may be asked of them, and the policy."""
        return DatasetOut.model_validate(_described(find(desk, name)))

    @routes.post(
        "/tables",
        summary="Ask for a table",
        responses={200: {"model": AnswerOut}, **_problems(400, 413, 415, 422, 500, 503)},
    )
    def post(body: Annotated[SkipValidation[TableQueryIn], Body()], request: Request) -> Response:
        """The answer, or a refusal with reasons and a way forward; both come with status 200."""
        raw: Any = body
        if isinstance(raw, bytes):
            sentence = (
                "Send a table query as JSON, with the header 'Content-Type: application/json'."
            )
            raise ProblemError(Problem.of_status(415, sentence))
        return _enveloped(ask(desk, question(raw)), request)

    @routes.get(
        "/tables",
        summary="Ask for a table by a link",
        responses={
            200: {"model": AnswerOut, "content": {"text/csv": {"schema": {"type": "string"}}}},
            **_problems(400, 406, 414, 500, 503),
        },
        openapi_extra={"parameters": list(_parameters())},
    )
    def get(request: Request) -> Response:
        """The same question as on the page, in the same words; `format=csv` gives the table as CSV."""
        pairs = request.query_params.multi_items()
        own = [(k, v) for k, v in pairs if k not in ("dataset", "format")]
        named = [v for k, v in pairs if k == "dataset" and v]
        if len(named) != 1:
            raise QueryError("Name one dataset, such as dataset=demo.")
        wanted = _format(request)
        answer = ask(desk, forms.read(own, named[0]))
        return _enveloped(answer, request) if wanted is None else _alone(answer, wanted)

    return routes


def _enveloped(answer: Answer, request: Request) -> Response:
    return JSONResponse(answer.body(str(request.base_url).rstrip("/")))


def _alone(answer: Answer, wanted: str) -> Response:
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
    writer = load(_FORMATS, wanted)()
    name = words.file_name(answer.query, writer.ending)
    return Response(
        writer.write(release, answer.title),
        media_type=writer.media_type,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _format(request: Request) -> str | None:
    """The format wanted, by parameter or else by the ``Accept`` header; none is the answer as JSON."""
    said = [value for value in request.query_params.getlist("format") if value]
    if len(said) > 1:
        raise QueryError("The parameter 'format' stands twice; once is right.")
    if said:
        known = ("json", *names(_FORMATS))
        if said[0] not in known:
            raise QueryError(f"There is no format {said[0]!r}; {choices(said[0], known)}.")
        return None if said[0] == "json" else said[0]
    kinds = {load(_FORMATS, name).media_type: name for name in names(_FORMATS)}
    for kind in _accepted(request.headers.get("accept", "")):
        if kind in ("application/json", "application/*", "*/*"):
            return None
        if kind in kinds:
            return kinds[kind]
    return None


def _accepted(header: str) -> list[str]:
    """The media types of an ``Accept`` header, most wanted first."""
    ranked: list[tuple[float, str]] = []
    for entry in header.split(","):
        kind, *parameters = (part.strip() for part in entry.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter[2:])
                except ValueError:
                    weight = 0.0
        if kind and weight > 0:
            ranked.append((-weight, kind.lower()))
    return [kind for _, kind in sorted(ranked, key=lambda pair: pair[0])]


def _summary(dataset: Dataset) -> dict[str, Any]:
    return {key: getattr(dataset, key) for key in DatasetSummary.model_fields}


def _described(offer: Offer) -> dict[str, Any]:
    policy = offer.policy
    return _summary(offer.dataset) | {
        "variables": [_variable(v, offer) for v in offer.dataset.variables],
        "policy": {
            "title": policy.title,
            "notes": policy.notes,
            "rules": policy.rules.model_dump(),
            "risk": policy.risk.model_dump(),
            # The method's own words, not the file's: what a method keeps to itself stays so.
            "protection": policy.protect.spec().to_mapping(),
            "report": policy.report.model_dump(),
        },
    }


def _variable(variable: Variable, offer: Offer) -> dict[str, Any]:
    return {
        "name": variable.name,
        "label": variable.label,
        "description": variable.description,
        "categories": [{"code": c.code, "label": c.label} for c in variable.finest],
        "hierarchies": [_hierarchy(h, variable, offer) for h in variable.hierarchies],
    }


def _hierarchy(hierarchy: Hierarchy, variable: Variable, offer: Offer) -> dict[str, Any]:
    return {
        "name": hierarchy.name,
        "label": hierarchy.label,
        "levels": [
            {
                "name": level.name,
                "label": level.label,
                "offered": level in offer.levels(variable),
                "categories": [
                    {
                        "code": c.code,
                        "label": c.label,
                        "members": [variable.codes[p] for p in c.members],
                    }
                    for c in level.categories
                ],
            }
            for level in hierarchy.levels
        ],
    }


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {
        status: {
            "description": "Problem details (RFC 9457).",
            "content": {MEDIA_TYPE: {"schema": ProblemOut.model_json_schema()}},
        }
        for status in statuses
    }


def _parameters() -> Iterator[dict[str, Any]]:
    for name, description in _PARAMETERS.items():
        several = name in ("by", "where")
        text = {"type": "string"}
        yield {
            "name": name,
            "in": "query",
            "description": description,
            "required": name == "dataset",
            "schema": {"type": "array", "items": text} if several else text,
        }
