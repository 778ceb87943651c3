"""The pages that lead to a question: the catalogue, a dataset, the builder. They work without JavaScript.

The builder is one form. Its script asks for the same form again whenever a choice was made, and puts the parts
that changed into place; so there is one place where the form is made, and that is the server.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from lustrum.answer import TableService
from lustrum.model import QueryError, TableQuery
from lustrum.model.text import say
from lustrum.server.api.datasets import matches
from lustrum.server.http.templating import Pages
from lustrum.server.pages import variable as variable_pages
from lustrum.server.pages.builder import form
from lustrum.server.pages.hints import Hint, hint, mistaken
from lustrum.server.service.offer import Offer, catalogue, find, fitted
from lustrum.server.service.programmes import programmes
from lustrum.server.urls import forms

__all__ = ["router"]


def router(service: TableService, pages: Pages) -> APIRouter:
    """The routes of the catalogue and the builder."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def home(request: Request) -> Response:
        wanted = _search(request)
        everything = catalogue(service)
        found = [
            d
            for d in everything
            if matches(wanted, d.name, d.title, d.description, *(v.label for v in d.variables))
        ]
        return pages.render(
            "home.html",
            datasets=found,
            programmes=[p for p in programmes(service) if matches(wanted, p.title, p.period)],
            wanted=wanted,
            search=len(everything) > 1 or bool(wanted),
        )

    @routes.get("/accessibility")
    def accessibility() -> Response:
        return pages.render("accessibility.html")

    @routes.get("/datasets/{name}/about")
    def about(name: str, request: Request) -> Response:
        offer = find(service, name)
        wanted = _search(request)
        found = [
            v
            for v in offer.dataset.variables
            if matches(
                wanted, v.name, v.label, v.description, *v.labels, *(x.label for x in v.levels)
            )
        ]
        return pages.render(
            "about.html",
            offer=offer,
            dataset=offer.dataset,
            variables=found,
            wanted=wanted,
            protection=service.protection(name),
        )

    @routes.get("/datasets/{name}")
    def builder(name: str, request: Request) -> Response:
        offer = find(service, name)
        query = _asked(request, name)
        return pages.render(
            "builder.html",
            **_form(offer, query),
            hint=None if query is None else _hint(offer, query, request),
            lossy=query is not None and query != fitted(query),
        )

    @routes.get("/datasets/{name}/parts")
    def parts(name: str, request: Request) -> Response:
        offer = find(service, name)
        return pages.render("_form.html", **_form(offer, _asked(request, name)), hint=None)

    @routes.get("/datasets/{name}/hint")
    def live(name: str, request: Request) -> Response:
        offer = find(service, name)
        said: Hint | None
        try:
            query = _asked(request, name)
            said = None if query is None else _hint(offer, query, request)
        except QueryError as error:
            said = mistaken(error)
        return pages.render("_hint.html", dataset=offer.dataset, hint=said)

    routes.include_router(variable_pages.router(service, pages))
    return routes


def _form(offer: Offer, query: TableQuery | None) -> dict[str, Any]:
    return {
        "offer": offer,
        "dataset": offer.dataset,
        "form": form(offer, query),
        "question": "" if query is None else forms.write(fitted(query)),
    }


def _hint(offer: Offer, query: TableQuery, request: Request) -> Hint | None:
    return hint(offer, query, request.app.state.questions.precheck)


def _asked(request: Request, name: str) -> TableQuery | None:
    """The question that a form was left with."""
    pairs = forms.tidied(request.query_params.multi_items())
    return forms.read(pairs, name) if any(value for _, value in pairs) else None


def _search(request: Request) -> str:
    for name in request.query_params:
        if name != "q":
            raise QueryError(say("There is no parameter {name!r}; there is: q.", name=name))
    return request.query_params.get("q", "").strip()[:200]
