"""PxWebApi 2, as Statistics Sweden and Statistics Norway describe it: each dataset is one table.

A variable that is not selected is left out, and an answer takes the same five steps as any other: what the
policy refuses is a problem of status 403 with the reasons. ``docs/reference/http-api.md`` lists all of it.
"""

from __future__ import annotations

import base64
import binascii
import json
import threading
import zlib
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse, Response
from pydantic import SkipValidation

from lustrum.answer import TableService
from lustrum.formats.about import About
from lustrum.model import Axis, QueryError
from lustrum.server.http.errors import not_found
from lustrum.server.http.languages import current, in_language
from lustrum.server.protocols import pxweb_words
from lustrum.server.protocols.answering import Json, Told, answered, parameter, with_contents
from lustrum.server.protocols.pxweb_forms import (
    BASE,
    CONTENTS,
    FORMATS,
    Form,
    Selection,
    are_texts,
    level_of,
    selection_of,
)
from lustrum.server.protocols.pxweb_words import link, spoken
from lustrum.server.protocols.selections import Offer, PreparedOffer, listed_values, offered
from lustrum.server.service.questions import Questions
from lustrum.server.urls.forms import JSONRoute, check_names

_TRIED = 6  # variables that are tried for a first view


def router(questions: Questions) -> APIRouter:
    """The routes under ``/pxapi/v2``."""
    routes = APIRouter(prefix=BASE, route_class=SpokenRoute, include_in_schema=False)
    service = questions.service
    first_views = FirstViews(questions)

    @routes.get("/config")
    def config(request: Request) -> Response:
        _check(request)
        return _said(pxweb_words.config(questions))

    @routes.get("/tables")
    def tables(request: Request) -> Response:
        _check(request, "query", "pastdays", "includediscontinued", "pagenumber", "pagesize")
        return _said(pxweb_words.tables(service, request))

    @routes.get("/tables/{name}")
    def table(name: str, request: Request) -> Response:
        _check(request)
        return _said(
            {"language": current().code} | pxweb_words.table(offered(service, name), request)
        )

    @routes.get("/tables/{name}/metadata")
    def metadata(name: str, request: Request) -> Response:
        _check(request, "defaultselection", "savedquery", "codelist[]")
        offer = offered(service, name)
        if isinstance(offer, PreparedOffer):
            return _said(pxweb_words.prepared_metadata(offer, request))
        axes: Sequence[Axis] | None = None
        saved = parameter(request, "savedQuery")
        if saved:
            axes = selection_of(saved_query(saved).get("selection"), offer).axes
        elif parameter(request, "defaultSelection").lower() == "true":
            axes = first_views.of(offer).axes
        levels = {
            k: level_of(offer, offer.variable(k).name, v)
            for k, v in _bracketed(request, "codelist").items()
        }
        return _said(pxweb_words.metadata(offer, request, axes, levels))

    @routes.get("/tables/{name}/defaultselection")
    def default_selection(name: str, request: Request) -> Response:
        _check(request)
        offer = offered(service, name)
        return _said(pxweb_words.chosen(first_views.of(offer), offer, request))

    def data(
        offer: Offer | PreparedOffer, selection: Selection, form: Form, request: Request
    ) -> Response:
        if isinstance(offer, PreparedOffer):
            return _prepared(offer, selection, form, request)
        if not selection.given:
            selection = first_views.of(offer)
        query = selection.query(offer)
        words = ("pxweb", form.name, *form.options, ",".join(selection.heading or ("-",)))
        writer = FORMATS[form.name]

        def write(told: Told) -> str | bytes:
            contents = offer.of(told.answer.query)
            release = with_contents(told.release, contents, CONTENTS, "Contents")
            return form.write(release, told.title, told.about, selection.heading)

        return answered(questions, query, request, words, write, writer.media_type, writer.ending)

    @routes.get("/tables/{name}/data")
    def get_data(name: str, request: Request) -> Response:
        _check(
            request,
            "valuecodes[]",
            "codelist[]",
            "outputformat",
            "outputformatparams",
            "heading",
            "stub",
        )
        offer = offered(service, name)
        lists = _bracketed(request, "codelist")
        chosen = [
            {"variableCode": k, "valueCodes": listed_values(v), "codelist": lists.pop(k, None)}
            for k, v in _bracketed(request, "valuecodes").items()
        ]
        if lists:
            raise QueryError(
                f"The code list of {next(iter(lists))[:80]!r} comes without values of it."
            )
        placement = {
            place: listed_values(parameter(request, place))
            for place in ("heading", "stub")
            if parameter(request, place)
        }
        selection = selection_of({"selection": chosen, "placement": placement}, offer)
        return data(offer, selection, _form(request), request)

    @routes.post("/tables/{name}/data")
    def post_data(
        name: str, request: Request, body: Annotated[SkipValidation[Any], Body()] = None
    ) -> Response:
        _check(request, "outputformat", "outputformatparams")
        check_names(request)
        offer = offered(service, name)
        return data(offer, selection_of(body, offer), _form(request), request)

    @routes.get("/codelists/{name}")
    def code_list(name: str, request: Request) -> Response:
        _check(request)
        return _said(pxweb_words.code_list(service, name, request))

    @routes.post("/savedqueries")
    def save(request: Request, body: Annotated[SkipValidation[Any], Body()] = None) -> Response:
        _check(request)
        check_names(request)
        checked = checked_query(body, service)
        name = name_of(checked)
        return _said(saved_words(name, checked, request), status_code=201)

    @routes.get("/savedqueries/{name}")
    def saved(name: str, request: Request) -> Response:
        _check(request)
        return _said(saved_words(name, saved_query(name), request))

    @routes.get("/savedqueries/{name}/selection")
    def saved_selection(name: str, request: Request) -> Response:
        _check(request)
        found = saved_query(name)
        offer = offered(service, found["tableId"])
        return _said(
            pxweb_words.chosen(selection_of(found.get("selection"), offer), offer, request)
        )

    @routes.get("/savedqueries/{name}/data")
    def saved_data(name: str, request: Request) -> Response:
        _check(request, "outputformat", "outputformatparams")
        found = saved_query(name)
        offer = offered(service, found["tableId"])
        asked = bool(parameter(request, "outputFormat"))
        form = (
            _form(request)
            if asked
            else Form.of(found.get("outputFormat") or "", found.get("outputFormatParams") or ())
        )
        said = parameter(request, "lang") or found.get("language")
        with in_language(pxweb_words.spoken(said or ""), request.url.path):
            return data(offer, selection_of(found.get("selection"), offer), form, request)

    return routes


def _prepared(offer: PreparedOffer, selection: Selection, form: Form, request: Request) -> Response:
    """A part of a prepared table in a form."""
    release = with_contents(offer.part(selection.axes), offer.contents, CONTENTS, "Contents")
    host = str(request.base_url).rstrip("/")
    about = About(
        dataset=offer.folder.title,
        version=offer.folder.digest[:12],
        link=f"{host}/prepared/{offer.folder.name}/{offer.table.id}",
    )
    content = form.write(release, offer.title, about, selection.heading)
    writer = FORMATS[form.name]
    body = content.encode() if isinstance(content, str) else content
    disposition = f'attachment; filename="{offer.name}.{writer.ending}"'
    return Response(
        body, media_type=writer.media_type, headers={"Content-Disposition": disposition}
    )


def _said(body: Any, status_code: int = 200) -> JSONResponse:
    """An answer of JSON with its texts in the language of the request."""

    def said(value: object) -> Any:
        if isinstance(value, dict):
            return {key: said(one) for key, one in value.items()}
        return [said(one) for one in value] if isinstance(value, list) else current().say(value)

    return JSONResponse(said(body), status_code)


class SpokenRoute(JSONRoute):
    """A route that answers in the language that the parameter ``lang`` names, or that of its address."""

    def get_route_handler(self) -> Any:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            code = pxweb_words.spoken(parameter(request, "lang") or current().code)
            with in_language(code, request.url.path):
                response: Response = await handle(request)
                return response

        return handler


class FirstViews:
    """What is shown of a table if nothing is selected: the first variable, coarsest first, that is released.

    It is tried under the policy in force, and kept as long as numbers and policy stay what they are.
    """

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._lock = threading.Lock()
        self._known: dict[str, tuple[object, Selection]] = {}

    def of(self, offer: Offer | PreparedOffer) -> Selection:
        """The selection of a table, which is the whole of a prepared one."""
        if isinstance(offer, PreparedOffer):
            return Selection(tuple(offer.axis(v.name, ["*"]) for v in offer.variables), ())
        mark = None if offer.served.snapshot is None else offer.served.snapshot.mark
        with self._lock:
            known = self._known.get(offer.name)
        if known is None or known[0] != mark:
            known = (mark, self._first(offer))
            with self._lock:
                self._known[offer.name] = known
        return known[1]

    def _first(self, offer: Offer) -> Selection:
        for variable in offer.variables[:_TRIED]:
            levels = [None, *offer.levels(variable.name)]
            level = min(levels, key=lambda name: len(offer.codes(variable.name, name)))
            selection = Selection((Axis(variable.name, level),), ("count",))
            query = selection.query(offer)
            if self._questions.precheck(query).passes and self._questions.ask(query).release:
                return selection
        return Selection((), ("count",))


def _check(request: Request, *known: str) -> None:
    """No parameter that is not known, and none twice."""
    seen = set()
    for name, _ in request.query_params.multi_items():
        word, bracket, variable = name.partition("[")
        word = word.lower()  # words are read in any case, names of variables as they are
        if word + bracket + variable[-1:] not in (*known, "lang"):
            there = ", ".join(("lang", *known)).replace("[]", "[variable]")
            raise QueryError(f"There is no parameter {name[:80]!r} here; there are: {there}.")
        if (word, variable) in seen:
            raise QueryError(f"The parameter {name[:80]!r} is given twice; give it once.")
        seen.add((word, variable))


def _bracketed(request: Request, wanted: str) -> dict[str, str]:
    """The parameters ``wanted[variable]`` by variable."""
    found = {}
    for name, value in request.query_params.items():
        before, bracket, rest = name.partition("[")
        if bracket and before.lower() == wanted:
            found[rest.removesuffix("]")] = value
    return found


def _form(request: Request) -> Form:
    options = parameter(request, "outputFormatParams")
    return Form.of(parameter(request, "outputFormat"), listed_values(options))


# Saved queries: the name of a query holds the query, so that nothing is kept on the server.
#
# It is asked again whenever it is used, under the policy of that day.

_LONGEST_ID = 1500
_LARGEST_SAVED = 64 * 1024


def checked_query(body: Any, service: TableService) -> Json:
    """What is saved of a query: the words that the protocol knows, after they were read once."""
    if not isinstance(body, dict) or not isinstance(body.get("tableId"), str):
        raise QueryError("A saved query is an object with 'tableId', 'language' and 'selection'.")
    form = Form.of(_text(body.get("outputFormat")), _options(body.get("outputFormatParams")))
    offer = offered(service, body["tableId"])
    selection = selection_of(body.get("selection"), offer)
    if isinstance(offer, PreparedOffer):
        offer.part(selection.axes)
    else:
        selection.query(offer)
    language = spoken(_text(body.get("language")))
    kept: Json = {"tableId": offer.name, "language": language, "selection": body.get("selection")}
    return kept | {"outputFormat": form.name, "outputFormatParams": list(form.options)}


def _text(value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise QueryError("'outputFormat' and 'language' are texts, such as px and en.")
    return value or ""


def _options(value: Any) -> list[str]:
    if value is not None and not are_texts(value):
        raise QueryError("'outputFormatParams' is a list of texts.")
    return value or []


def name_of(saved: Json) -> str:
    packed = zlib.compress(json.dumps(saved, separators=(",", ":")).encode(), 9)
    name = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    if len(name) > _LONGEST_ID:
        raise QueryError(
            "The query is too long to be saved; select by expressions such as RANGE(a,b)."
        )
    return name


def saved_query(name: str) -> Json:
    """The query behind a name; whatever is none is not found."""
    try:
        packed = base64.b64decode(name + "=" * (-len(name) % 4), b"-_", validate=True)
        unpacked = zlib.decompressobj().decompress(packed, _LARGEST_SAVED)
        found = json.loads(unpacked)
        if not isinstance(found, dict) or not isinstance(found.get("tableId"), str):
            raise ValueError
        Form.of(_text(found.get("outputFormat")), _options(found.get("outputFormatParams")))
        spoken(_text(found.get("language")))
    except (ValueError, binascii.Error, zlib.error, QueryError, RecursionError):
        raise not_found("There is no such saved query; save it again.") from None
    return found


def saved_words(name: str, saved: Json, request: Request) -> Json:
    """A saved query as the protocol describes it."""
    return {
        "language": saved.get("language", "en"),
        "id": name,
        "savedQuery": {"id": name} | saved,
        "links": [
            link("self", request, f"/savedqueries/{name}"),
            link("data", request, f"/savedqueries/{name}/data"),
        ],
    }
