"""The pages that lead to a question: catalogue, dataset, variable, builder. They work without JavaScript.

Every choice is a link or a button that leads to the page as it is after it. The script asks for the same page
and puts the parts that changed into place, so that pages are made in one place, the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from lustrum.answer import Precheck, TableService
from lustrum.answer.preliminary import inner_count
from lustrum.model import Category, QueryError, Reason, TableQuery, Variable
from lustrum.model.errors import choices
from lustrum.model.search_text import words_of
from lustrum.model.text import say
from lustrum.numeric.compiled import is_compiling
from lustrum.server.http.errors import AGAIN, ProblemError, not_found
from lustrum.server.http.languages import current
from lustrum.server.http.templating import Pages
from lustrum.server.pages import cut_points, numbers, tree
from lustrum.server.pages.answer import answer_values, refusal_values
from lustrum.server.pages.framing import framing
from lustrum.server.pages.prepared import programmes
from lustrum.server.pages.workspace import default_query, fitting, search, workspace
from lustrum.server.service.catalogue import catalogue, means, meant
from lustrum.server.service.questions import Questions
from lustrum.server.service.served_dataset import ServedDataset, find
from lustrum.server.service.suggestions import advice
from lustrum.server.table_view.arrange import arrange
from lustrum.server.urls import display, forms
from lustrum.server.urls.display import TableView

MOST_LIVE = 20_000
"""Tables of more cells wait for a button."""


def router(service: TableService, pages: Pages) -> APIRouter:
    """The routes of the catalogue and the builder."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/")
    def home(request: Request) -> Response:
        wanted = _search(request)
        there = catalogue(service)
        matches = [
            d
            for d in there.datasets
            if means(
                wanted, d.name, d.title, d.description, d.units, *(v.label for v in d.variables)
            )
            or any(v.label_text.find(meant(wanted)).size for v in d.variables)
            or any(means(wanted, m.label) for m in d.measures)
        ]
        opening = [d for d in there.opening if means(wanted, d.name, d.title)]
        preparing = is_compiling()
        page = pages.render(
            "home.html",
            datasets=matches,
            programmes=[p for p in programmes(service) if means(wanted, p.title, p.period)],
            wanted=wanted,
            opening=opening,
            search=len(there.datasets) + len(there.opening) > 1 or bool(wanted),
            missing=there.unavailable,
            preparing=preparing,
        )
        if opening or preparing:
            page.headers["Refresh"] = AGAIN
        return page

    @routes.get("/accessibility")
    def accessibility() -> Response:
        return pages.render("accessibility.html")

    @routes.get("/datasets/{name}/about")
    def about(name: str, request: Request) -> Response:
        served = find(service, name)
        wanted = _search(request)
        matches = [v for v in served.dataset.variables if _is_meant(v, wanted)]
        return pages.render(
            "about.html",
            served=served,
            dataset=served.dataset,
            variables=matches,
            wanted=wanted,
            protection=served.snapshot and served.snapshot.protection,
        )

    @routes.get("/datasets/{name}")
    def builder(name: str, request: Request) -> Response:
        served = find(service, name)
        cuts, ends, rest = cut_points.split(request.query_params.multi_items())
        mistake = ""
        if cuts:
            try:
                return _cut(served, cuts, ends, rest)
            except QueryError as error:
                mistake = error.args[0]
        return _workspace(served, _read(served, rest), request, pages, mistake)

    @routes.get("/datasets/{name}/find")
    def find_words(name: str, request: Request) -> Response:
        served = find(service, name)
        asked = _read(served, request.query_params.multi_items())
        entries, matches = search(served, asked.query, asked.view, asked.wanted)
        return pages.render("_found.html", wanted=asked.wanted, entries=entries, found=matches)

    @routes.get("/datasets/{name}/tree")
    def branch(name: str, request: Request) -> Response:
        served = find(service, name)
        asked = _read(served, request.query_params.multi_items())
        return pages.render("_tree.html", dataset=served.dataset, **_tree(served, asked))

    routes.include_router(variable_router(service, pages))
    return routes


@dataclass(frozen=True)
class Asked:
    """What an address of the workspace says: the question, its view, a search, and an open tree."""

    query: TableQuery
    view: TableView
    wanted: str
    about: Sequence[tuple[str, str]]
    mistake: str
    anything: bool


def _cut(
    served: ServedDataset, cuts: dict[str, str], ends: set[str], rest: list[tuple[str, str]]
) -> Response:
    """Leads to the question with variables cut into own groups."""
    asked = _read(served, rest)
    query = cut_points.cut_all(asked.query, served.dataset, cuts, ends)
    view = fitting(asked.view, query).but()
    address = view.address(f"/datasets/{query.dataset}?{forms.write(query)}")
    return RedirectResponse(current().at(address), 303)


def _read(served: ServedDataset, pairs: Iterable[tuple[str, str]]) -> Asked:
    about, others = tree.split(pairs)
    wanted = next((value for name, value in others if name == "q"), "").strip()[:200]
    view, rest = display.read((name, value) for name, value in others if name != "q")
    tidied = forms.tidied(rest)
    asked = any(value for _, value in tidied)
    query = forms.read(tidied, served.dataset.name) if asked else default_query(served)
    query, mistake = tree.chosen(served, query.in_codes(served.dataset), about)
    return Asked(query, fitting(view, query), wanted, about, mistake, asked)


def _tree(served: ServedDataset, asked: Asked) -> dict[str, Any]:
    """The tree of categories that is open, and where its buttons lead."""
    fields = [*parse_qsl(forms.write(asked.query)), *asked.view.but().pairs()]
    address = asked.view.address(f"/datasets/{served.dataset.name}?{forms.write(asked.query)}")
    return {"tree": tree.tree(served, asked.query, asked.about, fields), "shut": address}


def _workspace(
    served: ServedDataset, asked: Asked, request: Request, pages: Pages, mistake: str
) -> Response:
    """The page of a dataset: the table beside what can be chosen.

    Where every question is protected by itself, or a table takes long, it is made when somebody asks for it.
    """
    questions: Questions = request.app.state.questions
    query, view, wanted = asked.query, asked.view, asked.wanted
    entries, matches = search(served, query, view, wanted) if wanted else ((), ())
    live = served.snapshot is not None and served.snapshot.from_bundle
    values = _tree(served, asked) | {
        "served": served,
        "dataset": served.dataset,
        "live": live,
        "space": workspace(served, query, view),
        "numbers": numbers.form(served, query, view),
        "mistake": mistake or asked.mistake,
        "wanted": wanted,
        "entries": entries,
        "found": matches,
        "kept": [*parse_qsl(forms.write(query)), *view.pairs()],
        "hint": None,
        "grid": None,
        "reasons": (),
        "suggestions": (),
        "waiting": "",
    }
    cells = inner_count(query, served.dataset) if query.by else 0
    if not live or not query.by or MOST_LIVE < cells <= served.rules.max_cells:
        # A table that may not be asked for is refused at once.
        values["waiting"] = f"/datasets/{served.dataset.name}/table?{forms.write(query)}"
        there = [(name, value) for name, value in asked.about if name == "tree"]
        here = view.address(f"/datasets/{served.dataset.name}?{forms.write(query)}")
        here += "".join(f"&tree={value}" for _, value in there)
        values["here"] = here if asked.anything else f"/datasets/{served.dataset.name}"
        if asked.anything and not live:
            values["hint"] = _hint(served, query, request)
        return pages.render("workspace.html", **values)
    answer = questions.ask(query)
    if answer.release is None:
        shown = refusal_values(answer, questions, "")
        here = view.address(answer.builder)
        return pages.render("workspace.html", **(values | shown | {"here": here}))
    host = str(request.base_url).rstrip("/")
    table = arrange(answer.release, view, answer.mapped)
    framed = bool(framing(answer.snapshot, questions.settings))
    shown = answer_values(answer, table, host, answer.builder, beside=True, framed=framed)
    entries_there = (entry for zone in values["space"].zones for entry in zone.entries)
    shown["levels_of_map"] = next((e.levels for e in entries_there if e.name == answer.mapped), ())
    return pages.render("workspace.html", **(values | shown))


def _is_meant(variable: Variable, wanted: str) -> bool:
    """Whether every word wanted is somewhere in a variable's words or labels."""
    text = f"{variable.name} {variable.description}".casefold()
    return all(
        any(word in text for word in synonyms) or variable.label_text.find([synonyms]).size
        for synonyms in meant(wanted)
    )


def _hint(served: ServedDataset, query: TableQuery, request: Request) -> PageHint | None:
    precheck = partial(request.app.state.questions.precheck, snapshot=served.snapshot)
    return hint(served, query, precheck)


def _search(request: Request) -> str:
    for name in request.query_params:
        if name != "q":
            raise QueryError(say("There is no parameter {name!r}; there is: q.", name=name))
    return request.query_params.get("q", "").strip()[:200]


# --- A hint for the builder: what would likely become of the question, and a change that would help


@dataclass(frozen=True)
class PageHint:
    """What would likely happen: ``likely``, ``part``, ``refused`` or ``mistake``; and the help there is.

    ``change`` says what would help, ``address`` is the query string of the question so changed.
    """

    state: str
    verdict: str
    reasons: tuple[Reason, ...] = ()
    change: str = ""
    address: str = ""


def hint(
    served: ServedDataset, query: TableQuery, precheck: Callable[[TableQuery], Precheck]
) -> PageHint | None:
    """The hint for a question; none while no variable is chosen, or while the server is too busy to tell."""
    if not query.by:
        return None
    try:
        seen = precheck(query)
        if seen.passes and not seen.reasons:
            return PageHint(
                "likely", say("Likely answered. The risk is measured when the table is made.")
            )
        if seen.passes:
            return PageHint("part", say("Likely answered in part."), seen.reasons)
        help_ = advice(query, seen.reasons, served, precheck)
    except QueryError as error:
        return mistaken(error)
    except ProblemError:
        return None
    verdict = say("Likely refused.")
    if help_ is None:
        return PageHint("refused", verdict, seen.reasons)
    return PageHint("refused", verdict, seen.reasons, help_.text, forms.write(help_.query))


def mistaken(error: QueryError) -> PageHint:
    """The hint for a question that cannot be read."""
    return PageHint("mistake", error.args[0])


PAGE = 100
"""Categories on one page."""

_OWN = ("q", "level", "offset", "as")


def variable_router(service: TableService, pages: Pages) -> APIRouter:
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
