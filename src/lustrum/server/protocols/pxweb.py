"""PxWebApi 2, as Statistics Sweden and Statistics Norway describe it: each dataset is one table.

A variable that is not selected is left out, and an answer takes the same five steps as any other: what the policy
refuses is a problem of status 403 with the reasons. ``docs/reference/protocols.md`` lists what is spoken.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import json
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse, Response
from limits import parse_many
from pydantic import SkipValidation

from lustrum._version import __version__
from lustrum.answer import TableService
from lustrum.formats.csv import Csv
from lustrum.formats.html import Html
from lustrum.formats.jsonstat import JsonStat
from lustrum.formats.parquet import Parquet
from lustrum.formats.px import Px
from lustrum.formats.xlsx import Xlsx
from lustrum.model import Axis, Dataset, QueryError, TableQuery, Variable
from lustrum.model.errors import choices
from lustrum.server.http.errors import not_found
from lustrum.server.protocols.answering import Json, Told, answered, parameter, with_contents
from lustrum.server.protocols.selections import Offer, listed_values, selected
from lustrum.server.service.catalogue import catalogue, means
from lustrum.server.service.questions import Questions
from lustrum.server.service.served_dataset import ServedDataset, find
from lustrum.server.urls.forms import JSONRoute, check_names

BASE = "/pxapi/v2"
CONTENTS = "ContentsCode"
FORMATS = {
    "json-stat2": JsonStat,
    "csv": Csv,
    "xlsx": Xlsx,
    "html": Html,
    "px": Px,
    "parquet": Parquet,
}
_SHOW = {"usecodes": "codes", "usetexts": "labels", "usecodesandtexts": "both"}
_SEPARATORS = {"separatortab": "\t", "separatorspace": " ", "separatorsemicolon": ";"}
_OPTIONS = {"csv": (*_SHOW, *_SEPARATORS, "includetitle"), "html": (*_SHOW, "includetitle")}
_PAGE = 100
_TRIED = 6  # variables that are tried for a first view
_LONGEST_ID = 1500
_LARGEST_SAVED = 64 * 1024


@dataclass(frozen=True)
class Selection:
    """What a request selects of a table, and where its variables stand."""

    axes: tuple[Axis, ...]
    contents: tuple[str, ...]
    heading: tuple[str, ...] | None = None
    given: bool = True

    def query(self, offer: Offer) -> TableQuery:
        """The question."""
        return offer.query(self.axes, self.contents)


@dataclass(frozen=True)
class Form:
    """A format with its options."""

    name: str = "json-stat2"
    options: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, options: Sequence[str]) -> Form:
        """A format by the words of a request."""
        name = name or "json-stat2"
        if name not in FORMATS:
            raise QueryError(f"There is no format {name[:80]!r}; {choices(name, FORMATS)}.")
        known = _OPTIONS.get(name, ())
        lowered = tuple(option.lower() for option in options)
        for option in lowered:
            if option not in known:
                there = ", ".join(known) or "none"
                raise QueryError(
                    f"The format {name} has no parameter {option[:80]!r}; there are: {there}."
                )
        for group in (_SHOW, _SEPARATORS):
            if sum(option in group for option in set(lowered)) > 1:
                raise QueryError(f"Of {', '.join(group)} name one.")
        return cls(name, lowered)

    def write(self, told: Told, selection: Selection, offer: Offer) -> str | bytes:
        """The table in it."""
        release = with_contents(told.release, offer.of(told.answer.query), CONTENTS, "Contents")
        show: Any = next((_SHOW[o] for o in self.options if o in _SHOW), "labels")
        if self.name == "px":
            return Px(heading=selection.heading).write(release, told.title, told.about)
        if self.name == "html":
            return Html(show=show).write(release, told.title, told.about)
        if self.name == "csv":
            text = Csv().write(release, told.title, told.about)
            return self._delimited(text, told, show, release.axes[-1].name)
        if self.name == "json-stat2":
            made = json.loads(JsonStat().write(release, told.title, told.about))
            return json.dumps(_by_code(made, offer.served.dataset), ensure_ascii=False)
        return FORMATS[self.name]().write(release, told.title, told.about)

    def _delimited(self, text: str, told: Told, show: str, last: str) -> str:
        """Our CSV with another delimiter, and with codes or labels alone."""
        if not self.options:
            return text
        head, *rows = csv.reader(io.StringIO(text, newline=""))
        stop = head.index(last) + 2
        dropped = {"codes": "_label", "labels": ""}.get(show)
        keep = [
            place
            for place, name in enumerate(head)
            if place >= stop or show == "both" or name.endswith("_label") == (dropped == "")
        ]
        out = io.StringIO()
        delimiter = next((_SEPARATORS[o] for o in self.options if o in _SEPARATORS), ",")
        writer = csv.writer(out, delimiter=delimiter)
        if "includetitle" in self.options:
            writer.writerow([str(told.title)])
        writer.writerows([line[place] for place in keep] for line in (head, *rows))
        return out.getvalue()


def router(questions: Questions) -> APIRouter:
    """The routes under ``/pxapi/v2``."""
    routes = APIRouter(prefix=BASE, route_class=JSONRoute, include_in_schema=False)
    service = questions.service
    first_views = FirstViews(questions)

    @routes.get("/config")
    def config(request: Request) -> JSONResponse:
        _check(request)
        return JSONResponse(_config(questions))

    @routes.get("/tables")
    def tables(request: Request) -> JSONResponse:
        _check(request, "query", "pastdays", "includediscontinued", "pagenumber", "pagesize")
        return JSONResponse(_tables(service, request))

    @routes.get("/tables/{name}")
    def table(name: str, request: Request) -> JSONResponse:
        _check(request)
        return JSONResponse({"language": "en"} | _table(find(service, name).dataset, request))

    @routes.get("/tables/{name}/metadata")
    def metadata(name: str, request: Request) -> JSONResponse:
        _check(request, "defaultselection", "savedquery", "codelist[]")
        offer = Offer(find(service, name))
        axes: Sequence[Axis] | None = None
        saved = parameter(request, "savedQuery")
        if saved:
            axes = _selection(_saved(saved).get("selection"), offer).axes
        elif parameter(request, "defaultSelection").lower() == "true":
            axes = first_views.of(offer).axes
        levels = {
            k: _level(offer, offer.variable(k), v)
            for k, v in _bracketed(request, "codelist").items()
        }
        return JSONResponse(_metadata(offer, request, axes, levels))

    @routes.get("/tables/{name}/defaultselection")
    def default_selection(name: str, request: Request) -> JSONResponse:
        _check(request)
        offer = Offer(find(service, name))
        return JSONResponse(_chosen(first_views.of(offer), offer, request))

    def data(offer: Offer, selection: Selection, form: Form, request: Request) -> Response:
        if not selection.given:
            selection = first_views.of(offer)
        query = selection.query(offer)
        words = ("pxweb", form.name, *form.options, ",".join(selection.heading or ("-",)))
        writer = FORMATS[form.name]

        def write(told: Told) -> str | bytes:
            return form.write(told, selection, offer)

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
        offer = Offer(find(service, name))
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
        selection = _selection({"selection": chosen, "placement": placement}, offer)
        return data(offer, selection, _form(request), request)

    @routes.post("/tables/{name}/data")
    def post_data(
        name: str, request: Request, body: Annotated[SkipValidation[Any], Body()] = None
    ) -> Response:
        _check(request, "outputformat", "outputformatparams")
        check_names(request)
        offer = Offer(find(service, name))
        return data(offer, _selection(body, offer), _form(request), request)

    @routes.get("/codelists/{name}")
    def code_list(name: str, request: Request) -> JSONResponse:
        _check(request)
        return JSONResponse(_code_list(service, name, request))

    @routes.post("/savedqueries")
    def save(request: Request, body: Annotated[SkipValidation[Any], Body()] = None) -> JSONResponse:
        _check(request)
        check_names(request)
        saved = _checked(body, service)
        return JSONResponse(_saved_words(_named(saved), saved, request), status_code=201)

    @routes.get("/savedqueries/{name}")
    def saved(name: str, request: Request) -> JSONResponse:
        _check(request)
        return JSONResponse(_saved_words(name, _saved(name), request))

    @routes.get("/savedqueries/{name}/selection")
    def saved_selection(name: str, request: Request) -> JSONResponse:
        _check(request)
        found = _saved(name)
        offer = Offer(find(service, found["tableId"]))
        return JSONResponse(_chosen(_selection(found.get("selection"), offer), offer, request))

    @routes.get("/savedqueries/{name}/data")
    def saved_data(name: str, request: Request) -> Response:
        _check(request, "outputformat", "outputformatparams")
        found = _saved(name)
        offer = Offer(find(service, found["tableId"]))
        asked = bool(parameter(request, "outputFormat"))
        form = (
            _form(request)
            if asked
            else Form.of(found.get("outputFormat") or "", found.get("outputFormatParams") or ())
        )
        return data(offer, _selection(found.get("selection"), offer), form, request)

    return routes


class FirstViews:
    """What is shown of a table if nothing is selected: the first variable, coarsest first, that is released.

    It is tried under the policy in force, and kept as long as numbers and policy stay what they are.
    """

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._lock = threading.Lock()
        self._known: dict[str, tuple[object, Selection]] = {}

    def of(self, offer: Offer) -> Selection:
        """The selection of a dataset."""
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
            levels = [None, *(level.name for level in offer.served.levels(variable))]
            level = min(levels, key=lambda name: len(offer.codes(variable, name)))
            selection = Selection((Axis(variable.name, level),), ("count",))
            query = selection.query(offer)
            if self._questions.precheck(query).passes and self._questions.ask(query).release:
                return selection
        return Selection((), ("count",))


# --- What a request says


def _check(request: Request, *known: str) -> None:
    """No parameter that is not known, none twice, and no language but English."""
    seen = set()
    for name, _ in request.query_params.multi_items():
        plain = name.lower()
        bracketed = f"{plain.partition('[')[0]}[]" if plain.endswith("]") else plain
        if bracketed not in (*known, "lang"):
            there = ", ".join(("lang", *known)).replace("[]", "[variable]")
            raise QueryError(f"There is no parameter {name[:80]!r} here; there are: {there}.")
        if name in seen:
            raise QueryError(f"The parameter {name[:80]!r} is given twice; give it once.")
        seen.add(name)
    if parameter(request, "lang") not in ("", "en"):
        raise QueryError("The tables speak English; leave 'lang' out, or say lang=en.")


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


def _selection(body: Any, offer: Offer) -> Selection:
    """A selection in the words of the protocol; every mistake is one clear sentence."""
    if body is None:
        body = {"selection": []}
    if not isinstance(body, dict) or not isinstance(body.get("selection"), list):
        raise QueryError(
            'A selection is an object such as {"selection": [{"variableCode": "sex", "valueCodes": ["*"]}]}.'
        )
    axes: list[Axis] = []
    contents: list[str] = []
    for one in body["selection"]:
        name, values = (
            (one.get("variableCode"), one.get("valueCodes"))
            if isinstance(one, dict)
            else (None, None)
        )
        values = [] if values is None else values
        if not isinstance(name, str) or not _texts(values):
            raise QueryError(
                "Each variable of a selection needs a 'variableCode' and a list 'valueCodes'."
            )
        if name == CONTENTS:
            every = [content.code for content in offer.contents]
            contents += selected(values, every, CONTENTS) if values else []
        elif values:
            level = _level(offer, offer.variable(name), one.get("codelist") or one.get("codeList"))
            axes.append(offer.axis(name, values, level))
        else:
            offer.variable(name)
    ordered, heading = _placed(body.get("placement"), axes)
    given = bool(body["selection"])
    return Selection(tuple(ordered), tuple(contents) or ("count",), heading, given)


def _texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _placed(placement: Any, axes: list[Axis]) -> tuple[list[Axis], tuple[str, ...] | None]:
    """The variables in the order of stub and heading, and those of the heading."""
    if not placement:
        return axes, None
    if not isinstance(placement, dict):
        raise QueryError("'placement' is an object with 'stub' and 'heading'.")
    stub, heading = placement.get("stub", []), placement.get("heading", [])
    if not _texts(stub) or not _texts(heading):
        raise QueryError("'stub' and 'heading' of a placement are lists of variables.")
    names = [axis.variable for axis in axes]
    for name in (*stub, *heading):
        if name not in (*names, CONTENTS):
            raise QueryError(
                f"The placement names {name[:80]!r}, which is not selected; {choices(name, names)}."
            )
    if len({*stub, *heading}) < len([*stub, *heading]):
        raise QueryError("The placement names a variable twice; name it once.")
    rest = [name for name in names if name not in (*stub, *heading)]
    order = [*stub, *rest, *heading]
    ordered = sorted(axes, key=lambda axis: order.index(axis.variable))
    return ordered, tuple(heading) if heading else None


# --- Code lists: one for each level, and one for the finest categories


def _list_id(dataset: str, variable: Variable, level: str | None) -> str:
    words = f"{dataset}.{variable.name}"
    return f"vs_{words}" if level is None else f"agg_{words}.{level}"


def _level(offer: Offer, variable: Variable, name: object) -> str | None:
    """The level that a code list is about."""
    if name in (None, "", _list_id(offer.name, variable, None)):
        return None
    known = {
        _list_id(offer.name, variable, one.name): one.name for one in offer.served.levels(variable)
    }
    if not isinstance(name, str) or name not in known:
        raise QueryError(
            f"Variable {variable.name!r} has no code list {str(name)[:80]!r}; {choices(str(name), known)}."
        )
    return known[name]


def _code_list(service: TableService, name: str, request: Request) -> Json:
    parts = name.removeprefix("agg_").removeprefix("vs_").split(".", 2)
    there = service.published(parts[0]) if parts[0] in service.names() else None
    offer = None if there is None else Offer(ServedDataset.of(there))
    known = {} if offer is None else {v.name: v for v in offer.variables}
    if offer is None or len(parts) < 2 or parts[1] not in known:
        raise not_found(
            f"There is no code list {name[:80]!r}; the metadata of each table name its own."
        )
    variable = known[parts[1]]
    level = _level(offer, variable, name)
    categories = variable.finest if level is None else variable.level(level).categories
    return {
        "language": "en",
        "languages": ["en"],
        **_list_words(offer.name, variable, level, request),
        "elimination": True,
        "values": [
            {"code": c.code, "label": c.label, "valueMap": [variable.codes[p] for p in c.members]}
            for c in categories
        ],
    }


def _list_words(dataset: str, variable: Variable, level: str | None, request: Request) -> Json:
    name = _list_id(dataset, variable, level)
    return {
        "id": name,
        "label": variable.label if level is None else variable.level(level).label,
        "type": "Valueset" if level is None else "Aggregation",
        "links": [_link("self", request, f"/codelists/{name}")],
    }


# --- Descriptions


def _config(questions: Questions) -> Json:
    settings = questions.settings
    item = (
        min(parse_many(settings.rate), key=lambda i: i.amount / i.get_expiry())
        if settings.rate
        else None
    )
    return {
        "apiVersion": "2.0.0",
        "appVersion": __version__,
        "languages": [{"id": "en", "label": "English"}],
        "defaultLanguage": "en",
        "maxDataCells": settings.background_cells,
        # A number that no program reaches stands for no limit: the protocol wants one of 1 or more.
        "maxCallsPerTimeWindow": 1_000_000 if item is None else item.amount,
        "timeWindow": 1 if item is None else item.get_expiry(),
        "license": "See the notes of each table.",
        "sourceReferences": [],
        "defaultDataFormat": "json-stat2",
        "dataFormats": list(FORMATS),
        "features": [{"id": "CORS", "params": [{"key": "enabled", "value": str(settings.cors)}]}],
    }


def _link(rel: str, request: Request, path: str) -> Json:
    return {
        "rel": rel,
        "hreflang": "en",
        "href": f"{str(request.base_url).rstrip('/')}{BASE}{path}",
    }


def _number(request: Request, name: str, otherwise: int) -> int:
    text = parameter(request, name) or str(otherwise)
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0 and len(text) < 9):
        raise QueryError(f"{name!r} is a whole number of 1 or more.")
    return int(text)


def _tables(service: TableService, request: Request) -> Json:
    wanted = parameter(request, "query")[:200]
    found = [
        d for d in catalogue(service).datasets if means(wanted, d.name, d.title, d.description)
    ]
    _number(request, "pastDays", 1)  # nothing says when a dataset changed, so that none is left out
    number, size = _number(request, "pageNumber", 1), _number(request, "pageSize", _PAGE)
    return {
        "language": "en",
        "tables": [_table(d, request) for d in found[(number - 1) * size : number * size]],
        "page": {
            "pageNumber": number,
            "pageSize": size,
            "totalElements": len(found),
            "totalPages": max(-(-len(found) // size), 1),
            "links": [],
        },
        "links": [_link("self", request, "/tables")],
    }


def _table(dataset: Dataset, request: Request) -> Json:
    path = f"/tables/{dataset.name}"
    rels = {"self": path, "metadata": f"{path}/metadata", "data": f"{path}/data"}
    return {
        "id": dataset.name,
        "label": dataset.title,
        "description": dataset.description,
        "updated": None,
        "firstPeriod": None,
        "lastPeriod": None,
        "category": "public",
        "variableNames": [*(v.label for v in dataset.variables), "Contents"],
        "discontinued": False,
        "paths": [],
        "links": [_link(rel, request, where) for rel, where in rels.items()],
    }


def _metadata(
    offer: Offer, request: Request, axes: Sequence[Axis] | None, levels: Mapping[str, str | None]
) -> Json:
    """The table without its cells: all variables, or those of a selection."""
    dataset = offer.served.dataset
    shown = [Axis(v.name, levels.get(v.name)) for v in offer.variables] if axes is None else axes
    dimension: Json = {}
    for axis in shown:
        variable = dataset.variable(axis.variable)
        categories = axis.categories(variable)
        lists = [
            _list_words(offer.name, variable, level, request)
            for level in (None, *(one.name for one in offer.served.levels(variable)))
        ]
        dimension[variable.name] = {
            "label": variable.label,
            "category": {
                "index": {c.code: place for place, c in enumerate(categories)},
                "label": {c.code: c.label for c in categories},
            },
            # Programs in use read the one name or the other.
            "extension": {
                "elimination": True,
                "show": "value",
                "codelists": lists,
                "codeLists": lists,
            },
        }
    dimension[CONTENTS] = {
        "label": "Contents",
        "category": {
            "index": {one.code: place for place, one in enumerate(offer.contents)},
            "label": {one.code: one.label for one in offer.contents},
            "unit": {
                one.code: {"base": one.unit, "decimals": one.decimals} for one in offer.contents
            },
        },
        "extension": {"elimination": False, "show": "value", "codelists": [], "codeLists": []},
    }
    areas = [g.variable for g in dataset.maps if g.variable in dimension]
    role = {"metric": [CONTENTS]} | ({"geo": areas} if areas else {})
    return {
        "version": "2.0",
        "class": "dataset",
        "href": _link("self", request, f"/tables/{offer.name}/metadata")["href"],
        "label": dataset.title,
        "source": dataset.title,
        "note": [*offer.served.policy.public_notes, *offer.served.sentences()],
        "role": role,
        "id": list(dimension),
        "size": [len(one["category"]["index"]) for one in dimension.values()],
        "dimension": dimension,
        "value": None,
        "extension": {"px": {"tableid": offer.name, "language": "en", "aggregallowed": False}},
    }


def _chosen(selection: Selection, offer: Offer, request: Request) -> Json:
    """A selection with its expressions turned into codes."""
    dataset = offer.served.dataset
    listed = []
    for axis in selection.axes:
        variable = dataset.variable(axis.variable)
        name = None if axis.level is None else _list_id(offer.name, variable, axis.level)
        codes = [category.code for category in axis.categories(variable)]
        listed.append({"variableCode": variable.name, "codelist": name, "valueCodes": codes})
    listed.append(
        {"variableCode": CONTENTS, "codelist": None, "valueCodes": list(selection.contents)}
    )
    heading = list(selection.heading or (CONTENTS,))
    stub = [one["variableCode"] for one in listed if one["variableCode"] not in heading]
    return {
        "language": "en",
        "selection": listed,
        "placement": {"heading": heading, "stub": stub},
        "links": [_link("data", request, f"/tables/{offer.name}/data")],
    }


def _by_code(made: Json, dataset: Dataset) -> Json:
    """A JSON-stat dataset in the one of its forms that the protocol's description has."""
    for name, one in made["dimension"].items():
        category = one["category"]
        category["index"] = {code: place for place, code in enumerate(category["index"])}
        one["extension"] = {"elimination": name != CONTENTS, "show": "value"}
        for unit in category.get("unit", {}).values():
            unit["base"] = unit.pop("label")
    areas = [g.variable for g in dataset.maps if g.variable in made["dimension"]]
    made["role"] = made.get("role", {}) | ({"geo": areas} if areas else {})
    if "status" in made:
        made["status"] = {str(i): s for i, s in enumerate(made["status"]) if s != "F"}
    made["source"] = dataset.title
    return made


# --- Saved queries: the name of a query holds the query, so that nothing is kept on the server
# It is asked again whenever it is used, under the policy of that day.


def _checked(body: Any, service: TableService) -> Json:
    """What is saved of a query: the words that the protocol knows, after they were read once."""
    if not isinstance(body, dict) or not isinstance(body.get("tableId"), str):
        raise QueryError("A saved query is an object with 'tableId', 'language' and 'selection'.")
    form = Form.of(_text(body.get("outputFormat")), _options(body.get("outputFormatParams")))
    offer = Offer(find(service, body["tableId"]))
    _selection(body.get("selection"), offer).query(offer)
    kept: Json = {"tableId": offer.name, "language": "en", "selection": body.get("selection")}
    return kept | {"outputFormat": form.name, "outputFormatParams": list(form.options)}


def _text(value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise QueryError("'outputFormat' is a text, such as px.")
    return value or ""


def _options(value: Any) -> list[str]:
    if value is not None and not _texts(value):
        raise QueryError("'outputFormatParams' is a list of texts.")
    return value or []


def _named(saved: Json) -> str:
    packed = zlib.compress(json.dumps(saved, separators=(",", ":")).encode(), 9)
    name = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    if len(name) > _LONGEST_ID:
        raise QueryError(
            "The query is too long to be saved; select by expressions such as RANGE(a,b)."
        )
    return name


def _saved(name: str) -> Json:
    try:
        packed = base64.b64decode(name + "=" * (-len(name) % 4), b"-_", validate=True)
        unpacked = zlib.decompressobj().decompress(packed, _LARGEST_SAVED)
        found = json.loads(unpacked)
        if not isinstance(found, dict) or not isinstance(found.get("tableId"), str):
            raise ValueError
        Form.of(_text(found.get("outputFormat")), _options(found.get("outputFormatParams")))
    except (ValueError, binascii.Error, zlib.error, QueryError, RecursionError):
        raise not_found("There is no such saved query; save it again.") from None
    return found


def _saved_words(name: str, saved: Json, request: Request) -> Json:
    return {
        "language": "en",
        "id": name,
        "savedQuery": {"id": name} | saved,
        "links": [
            _link("self", request, f"/savedqueries/{name}"),
            _link("data", request, f"/savedqueries/{name}/data"),
        ],
    }
