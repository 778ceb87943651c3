"""A variable on a page of its own: its categories explained, searched, and chosen from without a script."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from lustrum.answer import TableService
from lustrum.model import Category, Filter, QueryError, TableQuery, Variable
from lustrum.model.errors import choices
from lustrum.model.search_text import words_of
from lustrum.model.text import say
from lustrum.model.variable import categories_of, example_of
from lustrum.server.http.errors import not_found
from lustrum.server.http.languages import current
from lustrum.server.http.templating import Pages
from lustrum.server.service.served_dataset import ServedDataset, find, fitted
from lustrum.server.urls import forms
from lustrum.server.urls.code_lists import listed

PAGE = 100
"""Categories on one page."""

MANY = 40
"""So many chosen categories are listed one by one beside those of the page; more are kept together."""

_OWN = ("q", "level", "offset", "as", "add", "then")
_KINDS = {"codes": "codes", "where": "among"}


def router(service: TableService, pages: Pages) -> APIRouter:
    """The routes of variables."""
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
        if kind and kind not in _KINDS:
            raise QueryError(say("'as' must be 'codes' or 'where', not {kind!r}.", kind=kind))
        pairs = [(k, v) for k, v in request.query_params.multi_items() if k not in _OWN]
        query = fitted(forms.read(forms.tidied(pairs), name))
        added, mistake = params.get("add", ""), ""
        codes, every = _chosen(query, described, kind)
        try:
            codes += [category.code for category in categories_of(added, described, every)]
        except QueryError as error:
            mistake = error.args[0]
        rank = {category.code: i for i, category in enumerate(every)}
        chosen = sorted(dict.fromkeys(codes), key=lambda code: rank.get(code, len(rank)))
        query = _with(query, described, kind, chosen)
        if params.get("then") and not mistake:
            target = f"/datasets/{name}?{forms.write(query)}"
            return RedirectResponse(current().at(target), status_code=303)
        level = params.get("level", "")
        if kind == "codes":
            level = next(a for a in query.by if a.variable == variable).level or ""
        wanted = params.get("q", "").strip()[:200]
        matches = described.search(words_of(wanted), level or None)
        offset = _offset(params.get("offset", ""), len(matches))
        shown = matches[offset : offset + PAGE]
        on_page = {c.code for c in shown}
        others = [described.category(code) for code in chosen if code not in on_page]
        return pages.render(
            "variable.html",
            served=served,
            dataset=served.dataset,
            variable=described,
            kind=kind,
            level=level,
            levels=_levels(served, described, kind),
            wanted=wanted,
            added=added if mistake else "",
            mistake=mistake,
            example=example_of(described, every),
            shown=shown,
            total=len(matches),
            offset=offset,
            size=PAGE,
            chosen=set(chosen),
            others=others if len(others) <= MANY else [],
            together=(len(others), listed([c.code for c in others]))
            if len(others) > MANY
            else None,
            list_name=_KINDS.get(kind, ""),
            members=lambda c: _members(c, described),
            carried=_carried(query, described, kind),
            question=forms.write(query),
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


def _chosen(
    query: TableQuery, variable: Variable, kind: str
) -> tuple[list[str], tuple[Category, ...]]:
    """The codes chosen so far, and the categories that they are chosen from."""
    codes: list[str] = []
    every = variable.finest
    if kind == "codes":
        axis = next((a for a in query.by if a.variable == variable.name), None)
        if axis is None:
            raise QueryError(
                say(
                    "The variable {variable!r} is not in the table; add by={variable}.",
                    variable=variable.name,
                )
            )
        codes = list(axis.codes or ())
        every = variable.level(axis.level).categories if axis.level else every
    elif kind == "where":
        codes = [c for item in query.where if item.variable == variable.name for c in item.codes]
    for code in codes:
        variable.category(code)
    return codes, every


def _with(query: TableQuery, variable: Variable, kind: str, codes: list[str]) -> TableQuery:
    if kind == "codes":
        return replace(
            query,
            by=tuple(
                replace(axis, codes=tuple(codes) or None, groups=())
                if axis.variable == variable.name
                else axis
                for axis in query.by
            ),
        )
    if kind == "where":
        rest = tuple(item for item in query.where if item.variable != variable.name)
        filters = (Filter(variable.name, tuple(codes)),) if codes else ()
        return replace(query, where=(*rest, *filters))
    return query


def _carried(query: TableQuery, variable: Variable, kind: str) -> list[tuple[str, str]]:
    """The rest of the question, as it goes along with the form."""
    return parse_qsl(forms.write(_with(query, variable, kind, [])))


def _levels(
    served: ServedDataset, variable: Variable, kind: str
) -> list[tuple[str, str, int, bool]]:
    """Name, label, size, and whether it may be asked for; a selection is made among those that may."""
    offered = served.levels(variable)
    finest = ("", say("Every category"), len(variable.codes), True)
    coarser = [(x.name, x.label, len(x.categories), x in offered) for x in variable.levels]
    return [finest, *(entry for entry in coarser if entry[3] or not kind)]


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
