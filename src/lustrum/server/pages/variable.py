"""A variable on a page of its own: its categories explained and searched."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from lustrum.answer import TableService
from lustrum.model import Category, QueryError, Variable
from lustrum.model.errors import choices
from lustrum.model.search_text import words_of
from lustrum.model.text import say
from lustrum.server.http.errors import not_found
from lustrum.server.http.languages import current
from lustrum.server.http.templating import Pages
from lustrum.server.service.served_dataset import ServedDataset, find

PAGE = 100
"""Categories on one page."""

_OWN = ("q", "level", "offset", "as")


def router(service: TableService, pages: Pages) -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    @routes.get("/datasets/{name}/variables/{variable}")
    def page(name: str, variable: str, request: Request) -> Response:
        served = find(service, name)
        names = [v.name for v in served.dataset.variables]
        if variable not in names:
            raise not_found(
                say(
                    "Dataset {dataset!r} has no variable {name!r}; {choices}.",
                    dataset=name,
                    name=variable,
                    choices=choices(variable, names),
                )
            )
        described = served.dataset.variable(variable)
        params = _own(request)
        kind = params.get("as", "")
        if kind:
            # Until version 0.1 categories were chosen on this page.
            rest = [pair for pair in request.query_params.multi_items() if pair[0] not in _OWN]
            asked = urlencode([*rest, ("tree", f"{kind}:{variable}")])
            return RedirectResponse(current().at(f"/datasets/{name}?{asked}"), status_code=303)
        for given in request.query_params:
            if given not in _OWN:
                raise QueryError(
                    say(
                        "There is no parameter {name!r}; {choices}.",
                        name=given,
                        choices=choices(given, _OWN),
                    )
                )
        level = params.get("level", "")
        wanted = params.get("q", "").strip()[:200]
        matches = described.search(words_of(wanted), level or None)
        offset = _offset(params.get("offset", ""), len(matches))
        shown = matches[offset : offset + PAGE]
        return pages.render(
            "variable.html",
            served=served,
            dataset=served.dataset,
            variable=described,
            level=level,
            levels=_levels(served, described),
            wanted=wanted,
            shown=shown,
            total=len(matches),
            offset=offset,
            size=PAGE,
            members=lambda c: _members(c, described),
            link=lambda **changed: _link(changed, level, wanted),
        )

    return routes


def _own(request: Request) -> dict[str, str]:
    params: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in _OWN:
            if name in params:
                raise QueryError(
                    say("The parameter {name!r} is given twice; give it once.", name=name)
                )
            params[name] = value
    return params


def _levels(served: ServedDataset, variable: Variable) -> list[tuple[str, str, int, bool]]:
    """Name, label, size, and whether it may be asked for."""
    offered = served.levels(variable)
    finest = ("", say("Every category"), len(variable.codes), True)
    return [finest, *((x.name, x.label, len(x.categories), x in offered) for x in variable.levels)]


def _members(category: Category, variable: Variable) -> list[str]:
    return [variable.labels[member] for member in category.members]


def _offset(text: str, total: int) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        raise QueryError(say("'offset' must be a whole number, not {text!r}.", text=text))
    return min(int(text), max(total - 1, 0)) // PAGE * PAGE


def _link(changed: dict[str, object], level: str, wanted: str) -> str:
    pairs = {"level": level, "q": wanted} | changed
    return "?" + urlencode({k: v for k, v in pairs.items() if v})
