"""SDMX REST 2.1, the interface of SDMX 3.0: structures as SDMX-ML 3.0, data as SDMX-CSV 2.0.

Clients of the interface before it ask under ``/sdmx/2.1`` and get SDMX-ML 2.1.

Each dataset and prepared table is a dataflow with all its variables as dimensions, each with the total ``_T``,
and what is shown as the last one. A dimension that a question does not name is its total: nobody means a table
of all variables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote

from fastapi import APIRouter, Request
from fastapi.responses import Response

from lustrum.answer import TableService
from lustrum.formats.jsonstat import JsonStat
from lustrum.formats.sdmx import (
    AGENCY,
    Dimension,
    Flow,
    SdmxCsv,
    SdmxStructure,
    dimension_names,
    generic_data,
    older_structure,
    sdmx_text,
    structure_message,
)
from lustrum.model import Axis, Category, QueryError, Release, TableAxis
from lustrum.model.variable import TOTAL_CODE
from lustrum.server.api.tables import today
from lustrum.server.http.errors import not_found
from lustrum.server.protocols.answering import Told, answered, with_contents
from lustrum.server.protocols.selections import Offer, PreparedOffer, listed_values, prepared_offers
from lustrum.server.service.answers import only
from lustrum.server.service.catalogue import catalogue
from lustrum.server.service.questions import Questions
from lustrum.server.service.served_dataset import find

CONTENTS = "STATISTIC"
_ALL = ("", "*", "all", "ALL")
_KINDS = ("dataflow", "datastructure", "codelist", "conceptscheme", "*", "structure")
_PREFIXES = ("DSD_", "CS_", "CL_")
_OLDER = "application/vnd.sdmx.{}+xml; version=2.1"
_IGNORED = ("references", "detail", "format", "dimensionAtObservation", "attributes", "measures")


def router(questions: Questions) -> APIRouter:
    """The routes under ``/sdmx/v2``, and Eurostat's way to ask for JSON-stat."""
    routes = APIRouter(include_in_schema=False)
    service = questions.service

    @routes.get("/sdmx/v2/structure/{kind}")
    @routes.get("/sdmx/v2/structure/{kind}/{agency}")
    @routes.get("/sdmx/v2/structure/{kind}/{agency}/{name}")
    @routes.get("/sdmx/v2/structure/{kind}/{agency}/{name}/{version}")
    def structure(
        kind: str, request: Request, agency: str = "*", name: str = "*", version: str = "*"
    ) -> Response:
        return Response(described(kind, agency, name, request), media_type=SdmxStructure.media_type)

    @routes.get("/sdmx/2.1/data/{flow}")
    @routes.get("/sdmx/2.1/data/{flow}/{key}")
    @routes.get("/sdmx/2.1/data/{flow}/{key}/{provider}")
    def older_data(
        flow: str, request: Request, key: str = "all", provider: str = "all"
    ) -> Response:
        """Data in the same way: ``/sdmx/2.1/data/LUSTRUM,demo,1.0.0/KEY``, as generic SDMX-ML."""
        *whose, name = flow.split(",")[:2]
        _check("dataflow", whose[0] if whose else AGENCY)
        return table(name, key, request, _OLDER.format("genericdata"))

    @routes.get("/sdmx/2.1/{kind}/{agency}")
    @routes.get("/sdmx/2.1/{kind}/{agency}/{name}")
    @routes.get("/sdmx/2.1/{kind}/{agency}/{name}/{version}")
    def older(
        kind: str, agency: str, request: Request, name: str = "all", version: str = "latest"
    ) -> Response:
        """Structures as clients of the interface before version 2 ask for them."""
        message = older_structure(described(kind, agency, name, request))
        return Response(message, media_type=_OLDER.format("structure"))

    def described(kind: str, agency: str, name: str, request: Request) -> str:
        only(request, *_IGNORED)
        _check(kind, agency)
        prepared = {} if name in service.names() else _prepared(service)
        if name in _ALL:
            datasets = catalogue(service).datasets
            flows = [Flow(d.name, d.title, ()) for d in datasets]
            flows += [Flow(flow, one.title, ()) for flow, one in prepared.items()]
            return structure_message(flows, stubs=True)
        plain = next((name.removeprefix(p) for p in _PREFIXES if name.startswith(p)), name)
        if kind == "codelist":
            flows_here = (*service.names(), *prepared)
            plain = max(
                (d for d in flows_here if plain.startswith(f"{d}_")), key=len, default=plain
            )
        found = prepared.get(plain) or Offer(find(service, plain))
        return structure_message([_flow(found, plain)])

    @routes.get("/sdmx/v2/data/{context}/{agency}/{name}")
    @routes.get("/sdmx/v2/data/{context}/{agency}/{name}/{version}")
    @routes.get("/sdmx/v2/data/{context}/{agency}/{name}/{version}/{key:path}")
    def data(
        context: str, agency: str, name: str, request: Request, version: str = "*", key: str = "*"
    ) -> Response:
        _check(context, agency)
        return table(name, key, request, SdmxCsv.media_type)

    def table(name: str, key: str, request: Request, media_type: str) -> Response:
        prepared = None if name in service.names() else _prepared(service).get(name)
        offer = prepared or Offer(find(service, name))
        said = _asked(offer, unquote(key).rstrip("/"), request)
        plain = media_type == SdmxCsv.media_type
        if isinstance(offer, PreparedOffer):
            text = SdmxCsv(flow=name).write(_part(offer, said))
            return Response(
                text if plain else generic_data(text, name, today()), media_type=media_type
            )
        axes, contents = _selected(offer, said)
        query = offer.query(axes, contents)

        def write(told: Told) -> str:
            release = with_contents(
                told.release, offer.of(told.answer.query), CONTENTS, "Statistic"
            )
            text = SdmxCsv(flow=offer.name).write(_whole(release, offer))
            return text if plain else generic_data(text, offer.name, told.about.date)

        ending = SdmxCsv.ending if plain else "xml"
        return answered(questions, query, request, ("sdmx", ending), write, media_type, ending)

    @routes.get("/api/dissemination/statistics/1.0/data/{name}")
    def statistics(name: str, request: Request) -> Response:
        """Eurostat's statistics API: ``?sex=1&age=*&format=JSON&lang=EN``."""
        offer = Offer(find(service, name))
        said: dict[str, list[str]] = {}
        for parameter, value in request.query_params.multi_items():
            said.setdefault(parameter, []).append(value)
        languages = [one.upper() for one in said.pop("lang", ["EN"])]
        if said.pop("format", ["JSON"]) != ["JSON"] or languages != ["EN"]:
            raise QueryError("This address answers with format=JSON and lang=EN.")
        contents = said.pop("statistic", ["count"])
        axes = [offer.mixed(offer.variable(one), codes) for one, codes in said.items()]
        known = [one.code for one in offer.contents]
        query = offer.query([axis for axis in axes if axis is not None], _known(known, contents))

        def write(told: Told) -> str:
            return JsonStat().write(told.release, told.title, told.about)

        return answered(
            questions, query, request, ("statistics",), write, JsonStat.media_type, JsonStat.ending
        )

    return routes


def _check(kind: str, agency: str) -> None:
    if kind not in _KINDS or agency not in (AGENCY, *_ALL):
        raise not_found(f"There are dataflows of the agency {AGENCY} here, with their structures.")


def _prepared(service: TableService) -> dict[str, PreparedOffer]:
    """The prepared tables by the names of their dataflows, which have no points."""
    offers, datasets = prepared_offers(service), service.names()
    names = dimension_names([*datasets, *(one.name for one in offers)])
    return dict(zip(names[len(datasets) :], offers, strict=True))


def _flow(offer: Offer | PreparedOffer, name: str) -> Flow:
    if isinstance(offer, PreparedOffer):
        release = with_contents(offer.release, offer.contents, CONTENTS, "Statistic")
        names = dimension_names([axis.name for axis in release.axes])
        every = tuple(Dimension.of(a, n) for a, n in zip(release.axes, names, strict=True))
        notes = tuple(("Note", str(note)) for note in release.notes)
        return Flow(name, offer.title, every, notes)
    dataset = offer.served.dataset
    total = (TOTAL_CODE, "Total")
    variables = [(v, (*offer.known(v).items(), total)) for v in offer.variables]
    names = dimension_names([*(v.name for v, _ in variables), CONTENTS])
    dimensions = [
        Dimension(n, v.label, codes) for n, (v, codes) in zip(names, variables, strict=False)
    ]
    contents = tuple((one.code, one.label) for one in offer.contents)
    notes = tuple(("Note", str(note)) for note in offer.served.policy.public_notes)
    every = (*dimensions, Dimension(names[-1], "Statistic", contents))
    return Flow(dataset.name, dataset.title, every, notes)


def _asked(offer: Offer | PreparedOffer, key: str, request: Request) -> dict[str, list[str]]:
    """The codes of a key with a place for each dimension, and of filters as ``c[sex]=1,2``, by dimension."""
    names = [d.name for d in _flow(offer, "").dimensions]
    said: dict[str, list[str]] = {}
    if key not in _ALL:
        places = key.split(".")
        if len(places) != len(names):
            raise QueryError(
                f"The key has {len(places)} places, but there are {len(names)} dimensions: {'.'.join(names)}."
            )
        for name, text in zip(names, places, strict=True):
            said[name] = text.split("+") if text not in _ALL else ["*"]
    filtered: set[str] = set()
    for name, value in request.query_params.multi_items():
        if name in _IGNORED:
            continue
        dimension = name[2:-1] if name.startswith("c[") and name.endswith("]") else ""
        if dimension not in names:
            raise QueryError(
                f"There is no filter {name[:80]!r} here; there are: c[{'], c['.join(names)}]."
            )
        if said.get(dimension, ["*"]) != ["*"] or dimension in filtered:
            raise QueryError(f"The dimension {dimension!r} is selected twice; select it once.")
        filtered.add(dimension)
        said[dimension] = listed_values(value.removeprefix("eq:"))
    if not said:
        raise QueryError(
            "Say which variables the table has: a key with a place for each dimension, or filters such as "
            f"c[{names[0]}]=*. A dimension that is not named is its total."
        )
    return {
        name: [sdmx_text(code) for code in said[name]] if name in said else [] for name in names
    }


def _part(offer: PreparedOffer, said: Mapping[str, Sequence[str]]) -> Release:
    """What of a prepared table is asked for, with all its dimensions; one that is not named is its total."""
    *dimensions, contents = said
    picks = []
    for variable, name in zip(offer.variables, dimensions, strict=True):
        axis = offer.axis(variable.name, said[name] or [TOTAL_CODE])
        picks.append([variable.codes.index(code) for code in axis.codes or ()])
    known = [one.code for one in offer.contents]
    _known(known, known if said[contents] in ([], ["*"]) else said[contents])
    part = with_contents(offer.release.take(picks), offer.contents, CONTENTS, "Statistic")
    axes = [replace(axis, name=name) for axis, name in zip(part.axes, said, strict=True)]
    return replace(part, axes=tuple(axes))


def _selected(offer: Offer, said: Mapping[str, Sequence[str]]) -> tuple[list[Axis], list[str]]:
    """Variables and contents of a question."""
    *dimensions, last = said
    axes = []
    for variable, name in zip(offer.variables, dimensions, strict=True):
        axes.append(offer.mixed(variable, said[name] or [TOTAL_CODE]))
    contents = said[last] or ["count"]
    every = [one.code for one in offer.contents]
    return [axis for axis in axes if axis is not None], _known(
        every, every[:1] if contents == ["*"] else contents
    )


def _known(known: Sequence[str], contents: Sequence[str]) -> list[str]:
    for text in contents:
        if text not in known:
            raise QueryError(
                f"There is no statistic {text[:80]!r} here; there are: {', '.join(known)}."
            )
    return list(contents)


def _whole(release: Release, offer: Offer) -> Release:
    """The release with all dimensions of its structure; those that were left out have their total."""
    there = {axis.name: axis for axis in release.axes}
    names = dimension_names([*(v.name for v in offer.variables), CONTENTS])
    axes = []
    for variable, name in zip(offer.variables, names, strict=False):
        total = Category(TOTAL_CODE, "Total", tuple(sorted(variable.everything)))
        axis = there.get(variable.name) or TableAxis(variable.name, variable.label, (total,))
        axes.append(replace(axis, name=name))
    axes.append(replace(release.axes[-1], name=names[-1]))
    shape = tuple(len(axis) for axis in axes)
    assert math.prod(shape) == release.numbers.size
    arrays = release.each_array(lambda array: array.reshape(shape))
    return replace(release, axes=tuple(axes), **arrays)
