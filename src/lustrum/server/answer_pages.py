"""The answer for people: a table, or a refusal with a way forward. Both work without a line of JavaScript."""

from __future__ import annotations

import shlex
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from lustrum.release import Desk
from lustrum.server import forms, words
from lustrum.server.answers import Answer, ask
from lustrum.server.layout import lay_out
from lustrum.server.offer import find
from lustrum.server.suggest import suggestions
from lustrum.server.templating import Pages
from lustrum.server.view import gauge, steps

__all__ = ["router"]


def router(desk: Desk, pages: Pages) -> APIRouter:
    """The routes of answers."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/datasets/{name}/table")
    def table(name: str, request: Request) -> Response:
        find(desk, name)
        answer = ask(desk, forms.read(request.query_params.multi_items(), name))
        if answer.release is None:
            return _refusal(answer, pages)
        host = str(request.base_url).rstrip("/")
        return pages.render(
            "answer.html",
            **_common(answer),
            grid=lay_out(answer.release),
            gauge=gauge(answer.decision, answer.offer.policy.risk.limit),
            notes=answer.notes,
            partial=answer.decision.reasons,
            csv=answer.api("csv"),
            json=answer.api(),
            permanent=host + answer.page,
            page=answer.page,
            curl=f"curl {shlex.quote(host + answer.api())}",
        )

    return routes


def _refusal(answer: Answer, pages: Pages) -> Response:
    return pages.render(
        "refusal.html",
        **_common(answer),
        reasons=answer.decision.reasons,
        suggestions=[
            (s.text, f"/datasets/{s.query.dataset}/table?{forms.write(s.query)}")
            for s in suggestions(answer.decision, answer.offer)
        ],
    )


def _common(answer: Answer) -> dict[str, Any]:
    dataset = answer.offer.dataset
    return {
        "dataset": dataset,
        "heading": words.heading(answer.query, dataset),
        "population": words.population(answer.query, dataset),
        "title": answer.title,
        "builder": answer.builder,
        "steps": steps(answer.decision.trace),
    }
