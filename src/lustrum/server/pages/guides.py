"""Pages that explain: the API, drawn from its own description, and how numbers are protected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response

from lustrum.answer import TableService
from lustrum.server.http.templating import Pages
from lustrum.server.pages.workspace import default_query
from lustrum.server.service.catalogue import catalogue
from lustrum.server.service.served_dataset import ServedDataset
from lustrum.server.urls import forms

BASE = 3
"""The steps of the example: what is published of a count is a multiple of this."""

EXAMPLE = (0, 1, 2, 3, 4, 5, 6)
"""True counts whose chances are shown."""


@dataclass(frozen=True)
class RouteParameter:
    """A parameter of a route; ``values`` are the ones that it may have, if they are few."""

    name: str
    location: str
    required: bool
    several: bool
    description: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Route:
    """A route of the API."""

    method: str
    path: str
    summary: str
    description: str
    parameters: tuple[RouteParameter, ...]
    answers: tuple[tuple[str, str], ...]

    @property
    def id(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", f"{self.method}{self.path}").strip("-")

    @property
    def form(self) -> bool:
        return self.method == "get" and all(p.location == "query" for p in self.parameters)


@dataclass(frozen=True)
class Chance:
    """What may be published of a true count, each with its chance in thirds."""

    true: int
    shown: tuple[tuple[int, int], ...]


def router(service: TableService, pages: Pages) -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    @routes.get("/api")
    def api(request: Request) -> Response:
        app: FastAPI = request.app
        host = str(request.base_url).rstrip("/")
        datasets = catalogue(service).datasets
        address = ""
        if datasets:
            snapshot = service.published(datasets[0].name)
            if snapshot is not None:
                query = default_query(ServedDataset.of(snapshot))
                address = f"{host}/api/v1/tables?dataset={query.dataset}&{forms.write(query)}"
        return pages.render(
            "api.html",
            routes=tuple(described(app.openapi())),
            examples=examples(address) if address else {},
            host=host,
        )

    @routes.get("/protection")
    def protection() -> Response:
        return pages.render(
            "protection.html",
            base=BASE,
            chances=[Chance(true, tuple(shown_as(true))) for true in EXAMPLE],
            readings=[(shown, *behind(shown)) for shown in range(0, 5 * BASE, BASE)],
        )

    return routes


def described(openapi: Mapping[str, Any]) -> Iterator[Route]:
    """The routes of the description that the server gives of itself."""
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield Route(
                method,
                path,
                operation.get("summary", ""),
                operation.get("description", ""),
                tuple(_parameter(p) for p in operation.get("parameters", ())),
                tuple(
                    (code, said["description"])
                    for code, said in operation["responses"].items()
                    if not said["description"].startswith("Problem details")
                ),
            )


def _parameter(raw: Mapping[str, Any]) -> RouteParameter:
    schema = raw.get("schema", {})
    several = schema.get("type") == "array"
    values = (schema.get("items", {}) if several else schema).get("enum", ())
    return RouteParameter(
        raw["name"],
        raw["in"],
        raw.get("required", False),
        several,
        raw.get("description", ""),
        tuple(map(str, values)),
    )


def examples(address: str) -> dict[str, str]:
    """The same table in the words of several programs, ready to be pasted."""
    csv = f"{address}&format=csv"
    return {
        "curl": f"curl -o table.csv '{csv}'",
        "pandas": f'import pandas as pd\n\ntable = pd.read_csv("{csv}", dtype=str)\nprint(table)',
        "polars": (
            f'from urllib.request import urlopen\n\nimport polars as pl\n\nfile = urlopen("{csv}").read()\n'
            "table = pl.read_csv(file, infer_schema=False)\nprint(table)"
        ),
        "R": f'table <- read.csv("{csv}", colClasses = "character")\nhead(table)',
        "JavaScript": (
            f'const answer = await fetch("{address}");\n'
            "const { table } = await answer.json();\nconsole.log(table.value);"
        ),
        "Power Query": (
            f'let\n  Source = Csv.Document(Web.Contents("{csv}"), [Encoding = 65001]),\n'
            "  Table = Table.PromoteHeaders(Source)\nin\n  Table"
        ),
    }


def shown_as(true: int) -> Iterator[tuple[int, int]]:
    """What may be published of a count, with chances in ``BASE`` parts that keep the mean.

    >>> list(shown_as(4))
    [(3, 2), (6, 1)]
    """
    below, rest = true - true % BASE, true % BASE
    yield below, BASE - rest
    if rest:
        yield below + BASE, rest


def behind(shown: int) -> tuple[int, int]:
    """The least and the largest true count that may stand behind a published one.

    >>> behind(3), behind(0)
    ((1, 5), (0, 2))
    """
    return max(0, shown - BASE + 1), shown + BASE - 1
