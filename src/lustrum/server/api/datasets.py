"""The API's catalogue: datasets, their variables, their categories page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from lustrum.answer import TableService
from lustrum.model import Dataset, Hierarchy, Level, Variable
from lustrum.model.search_text import words_of
from lustrum.server.http.errors import documented, not_found
from lustrum.server.schemas import (
    Categories,
    CategoryOut,
    DatasetOut,
    Datasets,
    DatasetSummary,
    ProtectionOut,
)
from lustrum.server.service.answers import only
from lustrum.server.service.catalogue import catalogue
from lustrum.server.service.served_dataset import ServedDataset, find

# As many as the longest page of categories.
MOST_LISTED = 1000

Thing = TypeVar("Thing")
Limit = Annotated[int, Query(ge=1, le=MOST_LISTED, description="Most entries of a page.")]
Offset = Annotated[int, Query(ge=0, le=10_000_000, description="Entries to skip.")]
Search = Annotated[str, Query(max_length=200, description="Only what holds these letters.")]


def router(service: TableService) -> APIRouter:
    routes = APIRouter(prefix="/api/v1")

    @routes.get("/datasets", summary="The catalogue", responses=documented(400, 422, 429, 500))
    def datasets(
        request: Request, q: Search = "", limit: Limit = 100, offset: Offset = 0
    ) -> Datasets:
        """Every dataset that can be asked about, and the names of those that can be soon."""
        there = catalogue(service)
        published = [d for d in there.datasets if matches(q, d.name, d.title, d.description)]
        page, following = _page(published, request, limit, offset, ("q", "limit", "offset"))
        return Datasets(
            datasets=[DatasetSummary(**_summary(d)) for d in page],
            total=len(published),
            next=following,
            opening=[d.name for d in there.opening if matches(q, d.name, d.title)],
        )

    @routes.get(
        "/datasets/{name}",
        summary="One dataset",
        responses=documented(400, 404, 422, 429, 500, 503),
    )
    def dataset(name: str, request: Request) -> DatasetOut:
        """Its variables with codes, levels and what may be asked of them, and the policy."""
        only(request)
        return DatasetOut.model_validate(_described(find(service, name)))

    @routes.get(
        "/datasets/{name}/protection",
        summary="How a dataset is protected",
        responses=documented(400, 404, 422, 429, 500, 503),
    )
    def protection(name: str, request: Request) -> ProtectionOut:
        """The method, and for a protected population its public report: bounds and typical errors."""
        only(request)
        served = find(service, name)
        published = None if served.snapshot is None else served.snapshot.protection
        report = (
            None
            if published is None
            else {k: v for k, v in asdict(published).items() if k != "method"}
        )
        method = policy_words(served) if published is None else published.method
        return ProtectionOut.model_validate({"method": method, "report": report})

    @routes.get(
        "/datasets/{name}/variables/{variable}/categories",
        summary="Categories of a variable",
        responses=documented(400, 404, 422, 429, 500, 503),
    )
    def categories(
        name: str,
        variable: str,
        request: Request,
        level: Annotated[str, Query(description="Name of a level; the finest if empty.")] = "",
        within: Annotated[
            str,
            Query(max_length=200, description="Only what lies within the category of this code."),
        ] = "",
        q: Search = "",
        limit: Limit = 100,
        offset: Offset = 0,
    ) -> Categories:
        """The categories of a level, in order; with `q` those whose code or label holds it."""
        described = find(service, name).dataset.variable(variable)
        published = described.search(words_of(q), level or None)
        if within:
            whole = described.category(within).member_set
            published = [c for c in published if whole.issuperset(c.members)]
        known = ("level", "within", "q", "limit", "offset")
        page, following = _page(published, request, limit, offset, known)
        return Categories(
            categories=[CategoryOut(code=c.code, label=c.label) for c in page],
            total=len(published),
            next=following,
        )

    @routes.get(
        "/datasets/{name}/variables/{variable}/shapes",
        summary="Shapes of categories for maps",
        response_class=JSONResponse,
        responses=documented(400, 404, 422, 429, 500, 503),
    )
    def shapes(
        name: str,
        variable: str,
        request: Request,
        level: Annotated[str, Query(description="Name of a level; the finest if empty.")] = "",
    ) -> dict[str, Any]:
        """TopoJSON with the codes of tables as ids. Coordinates are those of a drawing, north above."""
        only(request, "level")
        dataset = find(service, name).dataset
        described = dataset.variable(variable)
        found = next((g for g in dataset.maps if g.variable == variable), None)
        if found is None:
            raise not_found(f"The variable {variable!r} of {name!r} has no map.")
        categories = described.level(level).categories if level else described.finest
        return found.topology(
            {c.code: (c.label, [described.codes[m] for m in c.members]) for c in categories}
        )

    return routes


def matches(wanted: str, *texts: str) -> bool:
    """Whether all words wanted are somewhere in the texts, in any case."""
    whole = " ".join(texts).casefold()
    return all(word in whole for word in wanted.casefold().split())


def _page(
    entries: Sequence[Thing], request: Request, limit: int, offset: int, known: tuple[str, ...]
) -> tuple[Sequence[Thing], str | None]:
    """The entries of a page, and the address of the next one."""
    only(request, *known)
    if offset + limit >= len(entries):
        return entries[offset:], None
    other_params = [
        (k, v) for k, v in request.query_params.multi_items() if k not in ("limit", "offset")
    ]
    pairs = [*other_params, ("limit", str(limit)), ("offset", str(offset + limit))]
    base = str(request.base_url).rstrip("/")
    return entries[offset : offset + limit], f"{base}{request.scope['path']}?{urlencode(pairs)}"


def _summary(dataset: Dataset) -> dict[str, Any]:
    return {key: getattr(dataset, key) for key in DatasetSummary.model_fields}


def _described(served: ServedDataset) -> dict[str, Any]:
    policy = served.policy
    return _summary(served.dataset) | {
        "variables": [_variable(v, served) for v in served.dataset.variables],
        "measures": [
            {
                "name": m.name,
                "label": m.label,
                "unit": m.unit,
                "decimals": m.decimals,
                "earlier": m.earlier,
            }
            for m in served.measures
        ],
        "weights": [{"name": w.name, "label": w.label} for w in served.weights],
        "policy": {
            "title": policy.title,
            "notes": list(policy.public_notes),
            "rules": policy.rules.model_dump(),
            "risk": policy.risk.model_dump(),
            "protection": policy_words(served),
        },
    }


def policy_words(served: ServedDataset) -> dict[str, Any]:
    """The method's own words, not the file's: what a method keeps to itself stays so."""
    method_mapping: dict[str, Any] = served.policy.method.to_mapping()
    return method_mapping


def _variable(variable: Variable, served: ServedDataset) -> dict[str, Any]:
    listed = variable.finest if _is_short(variable.codes) else None
    return {
        "name": variable.name,
        "label": variable.label,
        "description": variable.description,
        "size": len(variable.codes),
        "categories": listed and [{"code": c.code, "label": c.label} for c in listed],
        "hierarchies": [_hierarchy(h, variable, served) for h in variable.hierarchies],
    }


def _is_short(categories: Sequence[object]) -> bool:
    """Whether a description lists them; longer lists come in pages from a route of their own."""
    return len(categories) <= MOST_LISTED


def _hierarchy(hierarchy: Hierarchy, variable: Variable, served: ServedDataset) -> dict[str, Any]:
    offered = served.levels(variable)
    return {
        "name": hierarchy.name,
        "label": hierarchy.label,
        "levels": [
            {
                "name": level.name,
                "label": level.label,
                "offered": level in offered,
                "size": len(level.categories),
                "categories": _groups(level, variable) if _is_short(level.categories) else None,
            }
            for level in hierarchy.levels
        ],
    }


def _groups(level: Level, variable: Variable) -> list[dict[str, Any]]:
    named = _is_short(variable.codes)
    return [
        {
            "code": c.code,
            "label": c.label,
            "members": [variable.codes[p] for p in c.members] if named else None,
        }
        for c in level.categories
    ]
