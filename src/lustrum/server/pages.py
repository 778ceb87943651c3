"""The pages that lead to a question: the catalogue and the builder. They work without JavaScript."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from lustrum.model import QueryError
from lustrum.release import Desk
from lustrum.server import forms
from lustrum.server.offer import catalogue, find, fits_form
from lustrum.server.templating import Pages
from lustrum.server.view import form

__all__ = ["router"]

FEW = 6
"""More datasets than this get a search field."""


def router(desk: Desk, pages: Pages) -> APIRouter:
    """The routes of the catalogue and the builder."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def home(request: Request) -> Response:
        for name in request.query_params:
            if name != "q":
                raise QueryError(f"There is no parameter {name!r}; there is: q.")
        wanted = request.query_params.get("q", "").strip()
        everything = catalogue(desk)
        found = [
            d
            for d in everything
            if wanted.casefold() in f"{d.name} {d.title} {d.description}".casefold()
        ]
        return pages.render(
            "home.html",
            datasets=found,
            wanted=wanted,
            search=len(everything) > FEW or bool(wanted),
        )

    @routes.get("/datasets/{name}")
    def builder(name: str, request: Request) -> Response:
        offer = find(desk, name)
        pairs = request.query_params.multi_items()
        query = forms.read(pairs, name) if pairs else None
        return pages.render(
            "builder.html",
            offer=offer,
            dataset=offer.dataset,
            form=form(offer, query),
            lossy=query is not None and not fits_form(query),
        )

    return routes
