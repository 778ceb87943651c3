"""What PxWebApi 2 says of itself, its tables, their variables and code lists."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date

from fastapi import Request
from limits import parse_many

from lustrum._version import __version__
from lustrum.answer import TableService
from lustrum.formats.jsonstat import JsonStat
from lustrum.model import Axis, QueryError, Variable
from lustrum.model.errors import choices
from lustrum.model.variable import TOTAL_CODE
from lustrum.server.http.errors import not_found
from lustrum.server.http.languages import ENGLISH, current, languages
from lustrum.server.protocols.answering import Json, parameter, with_contents
from lustrum.server.protocols.pxweb_forms import (
    BASE,
    CONTENTS,
    FORMATS,
    Selection,
    by_code,
    level_of,
    list_id,
)
from lustrum.server.protocols.selections import Offer, PreparedOffer, prepared_offers
from lustrum.server.service.catalogue import catalogue, means
from lustrum.server.service.questions import Questions
from lustrum.server.service.served_dataset import ServedDataset, find

_PAGE = 100


def config(questions: Questions) -> Json:
    """How the API is set up."""
    settings = questions.settings
    readable = settings.lets_others(questions.service.is_public())
    item = (
        min(parse_many(settings.rate), key=lambda i: i.amount / i.get_expiry())
        if settings.rate
        else None
    )
    return {
        "apiVersion": "2.0.0",
        "appVersion": __version__,
        "languages": [{"id": one.code, "label": one.name} for one in languages().values()],
        "defaultLanguage": ENGLISH,
        "maxDataCells": settings.background_cells,
        # A number that no program reaches stands for no limit: the protocol wants one of 1 or more.
        "maxCallsPerTimeWindow": 1_000_000 if item is None else item.amount,
        "timeWindow": 1 if item is None else item.get_expiry(),
        "license": "See the notes of each table.",
        "sourceReferences": [],
        "defaultDataFormat": "json-stat2",
        "dataFormats": list(FORMATS),
        "features": [{"id": "CORS", "params": [{"key": "enabled", "value": str(readable)}]}],
    }


def link(rel: str, request: Request, path: str) -> Json:
    return {
        "rel": rel,
        "hreflang": current().code,
        "href": f"{str(request.base_url).rstrip('/')}{BASE}{path}",
    }


def spoken(code: str) -> str:
    """The language of a request, English where it names none."""
    code = code.lower() or ENGLISH
    if code not in languages():
        raise QueryError(f"There is no language {code[:20]!r}; {choices(code, languages())}.")
    return code


def _number(request: Request, name: str, otherwise: int) -> int:
    text = parameter(request, name) or str(otherwise)
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0 and len(text) < 9):
        raise QueryError(f"{name!r} is a whole number of 1 or more.")
    return int(text)


def tables(service: TableService, request: Request) -> Json:
    wanted = parameter(request, "query")[:200]
    found: list[Offer | PreparedOffer] = [
        Offer(find(service, d.name))
        for d in catalogue(service).datasets
        if means(wanted, d.name, d.title, d.description)
    ]
    found += [o for o in prepared_offers(service) if means(wanted, o.name, o.title, o.folder.title)]
    if parameter(request, "pastDays"):
        # Of what does not say when it was updated nothing is left out.
        first = date.fromordinal(max(date.today().toordinal() - _number(request, "pastDays", 1), 1))
        found = [o for o in found if not updated(o) or updated(o) >= first.isoformat()]
    number, size = _number(request, "pageNumber", 1), _number(request, "pageSize", _PAGE)
    return {
        "language": current().code,
        "tables": [table(one, request) for one in found[(number - 1) * size : number * size]],
        "page": {
            "pageNumber": number,
            "pageSize": size,
            "totalElements": len(found),
            "totalPages": max(-(-len(found) // size), 1),
            "links": [],
        },
        "links": [link("self", request, "/tables")],
    }


def updated(offer: Offer | PreparedOffer) -> str:
    """The day on which the numbers of a table were last updated, where its policy states one."""
    return "" if isinstance(offer, PreparedOffer) else offer.served.policy.updated


def table(offer: Offer | PreparedOffer, request: Request) -> Json:
    if isinstance(offer, PreparedOffer):
        title, description, period = offer.title, offer.folder.title, offer.folder.period
    else:
        title, description = offer.served.dataset.title, offer.served.dataset.description
        period = ""
    path, day = f"/tables/{offer.name}", updated(offer)
    rels = {"self": path, "metadata": f"{path}/metadata", "data": f"{path}/data"}
    return {
        "id": offer.name,
        "label": title,
        "description": description,
        "updated": f"{day}T00:00:00Z" if day else None,
        "firstPeriod": period or None,
        "lastPeriod": period or None,
        "category": "public",
        "variableNames": [*(v.label for v in offer.variables), "Contents"],
        "discontinued": False,
        "paths": [],
        "links": [link(rel, request, where) for rel, where in rels.items()],
    }


def metadata(
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
            for level in (None, *offer.levels(variable.name))
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
        "href": link("self", request, f"/tables/{offer.name}/metadata")["href"],
        "label": dataset.title,
        "source": dataset.title,
        **({"updated": f"{day}T00:00:00Z"} if (day := updated(offer)) else {}),
        "note": [*offer.served.policy.public_notes, *offer.served.sentences()],
        "role": role,
        "id": list(dimension),
        "size": [len(one["category"]["index"]) for one in dimension.values()],
        "dimension": dimension,
        "value": None,
        "extension": px_words(offer.name),
    }


def px_words(name: str) -> Json:
    """What metadata say of a table for programs that make PX of it."""
    return {"px": {"tableid": name, "language": current().code, "aggregallowed": False}}


def prepared_metadata(offer: PreparedOffer, request: Request) -> Json:
    """A prepared table without its cells."""
    release = with_contents(offer.release, offer.contents, CONTENTS, "Contents")
    made = by_code(json.loads(JsonStat().write(release, offer.title)))
    made.pop("status", None)
    for variable in offer.variables:
        made["dimension"][variable.name]["extension"] = {
            "elimination": TOTAL_CODE in variable.codes,
            "show": "value",
            "codelists": [],
            "codeLists": [],
        }
    made["note"] = [*offer.folder.notes, *made["note"]]
    href = link("self", request, f"/tables/{offer.name}/metadata")["href"]
    return made | {"href": href, "value": None, "extension": px_words(offer.name)}


def chosen(selection: Selection, offer: Offer | PreparedOffer, request: Request) -> Json:
    """A selection with its expressions turned into codes."""
    listed = []
    for axis in selection.axes:
        name = None if axis.level is None else list_id(offer.name, axis.variable, axis.level)
        codes = list(axis.codes or offer.codes(axis.variable, axis.level))
        listed.append({"variableCode": axis.variable, "codelist": name, "valueCodes": codes})
    prepared = isinstance(offer, PreparedOffer)
    contents = [one.code for one in offer.contents] if prepared else list(selection.contents)
    listed.append({"variableCode": CONTENTS, "codelist": None, "valueCodes": contents})
    heading = list(selection.heading or (CONTENTS,))
    stub = [one["variableCode"] for one in listed if one["variableCode"] not in heading]
    return {
        "language": current().code,
        "selection": listed,
        "placement": {"heading": heading, "stub": stub},
        "links": [link("data", request, f"/tables/{offer.name}/data")],
    }


def code_list(service: TableService, name: str, request: Request) -> Json:
    """A code list by its name; one that the policy keeps back is not there."""
    parts = name.removeprefix("agg_").removeprefix("vs_").split(".", 2)
    there = service.published(parts[0]) if parts[0] in service.names() else None
    offer = None if there is None else Offer(ServedDataset.of(there))
    known = {} if offer is None else {v.name: v for v in offer.variables}
    if offer is None or len(parts) < 2 or parts[1] not in known:
        raise not_found(
            f"There is no code list {name[:80]!r}; the metadata of each table name its own."
        )
    variable = known[parts[1]]
    level = level_of(offer, variable.name, name)
    categories = variable.finest if level is None else variable.level(level).categories
    return {
        "language": current().code,
        "languages": [*languages()],
        **_list_words(offer.name, variable, level, request),
        "elimination": True,
        "values": [
            {"code": c.code, "label": c.label, "valueMap": [variable.codes[p] for p in c.members]}
            for c in categories
        ],
    }


def _list_words(dataset: str, variable: Variable, level: str | None, request: Request) -> Json:
    name = list_id(dataset, variable.name, level)
    return {
        "id": name,
        "label": variable.label if level is None else variable.level(level).label,
        "type": "Valueset" if level is None else "Aggregation",
        "links": [link("self", request, f"/codelists/{name}")],
    }
