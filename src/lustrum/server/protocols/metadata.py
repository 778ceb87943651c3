"""The catalogue in the words of portals and search engines: DCAT-AP, schema.org, and citations as CSL-JSON."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from lustrum.answer import TableService
from lustrum.server.protocols.answering import Json
from lustrum.server.service.answers import only
from lustrum.server.service.catalogue import catalogue
from lustrum.server.service.served_dataset import ServedDataset, find

_CONTEXT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "schema": "https://schema.org/",
}
_LANGUAGE = "http://publications.europa.eu/resource/authority/language/ENG"
_RIGHTS = "http://publications.europa.eu/resource/authority/access-right/PUBLIC"


def router(service: TableService) -> APIRouter:
    routes = APIRouter(prefix="/api/v1", include_in_schema=False)

    @routes.get("/catalogue.jsonld")
    def described(request: Request) -> JSONResponse:
        """All datasets, each a ``dcat:Dataset`` and a ``schema:Dataset``, and the services that answer."""
        only(request)
        host = str(request.base_url).rstrip("/")
        services = {
            f"{host}/api/v1": "Lustrum API",
            f"{host}/pxapi/v2": "PxWebApi 2",
            f"{host}/sdmx/v2": "SDMX REST",
        }
        body = {
            "@context": _CONTEXT,
            "@id": f"{host}/api/v1/catalogue.jsonld",
            "@type": "dcat:Catalog",
            "dct:title": "Tables that people make themselves",
            "dct:description": "Datasets of which protected tables can be asked for.",
            "dcat:dataset": [
                _dataset(find(service, d.name), host) for d in catalogue(service).datasets
            ],
            "dcat:service": [
                {
                    "@type": "dcat:DataService",
                    "dct:title": title,
                    "dcat:endpointURL": {"@id": address},
                }
                for address, title in services.items()
            ],
        }
        return JSONResponse(body, media_type="application/ld+json")

    @routes.get("/datasets/{name}/citation")
    def citation(name: str, request: Request) -> JSONResponse:
        """How to cite a dataset, as CSL-JSON; a table has its own citation in every file."""
        only(request)
        served = find(service, name)
        words: Json = {
            "id": served.dataset.name,
            "type": "dataset",
            "title": served.dataset.title,
            "URL": f"{str(request.base_url).rstrip('/')}/datasets/{name}",
        }
        policy = served.policy
        if policy.updated:
            words |= {"issued": {"date-parts": [[*map(int, policy.updated.split("-"))]]}}
        return JSONResponse([words | ({"container-title": policy.title} if policy.title else {})])

    return routes


def _dataset(served: ServedDataset, host: str) -> Json:
    dataset = served.dataset
    variables = [str(variable.label) for variable in served.variables]
    page = f"{host}/datasets/{dataset.name}"
    files = {
        "JSON-stat": f"{host}/api/dissemination/statistics/1.0/data/{dataset.name}",
        "PX": f"{host}/pxapi/v2/tables/{dataset.name}/data?outputFormat=px",
    }
    return {
        "@id": page,
        "@type": ["dcat:Dataset", "schema:Dataset"],
        "dct:identifier": dataset.name,
        "dct:title": dataset.title,
        "dct:description": dataset.description or dataset.title,
        "dct:language": {"@id": _LANGUAGE},
        "dct:accessRights": {"@id": _RIGHTS},
        "dcat:landingPage": {"@id": page},
        "dcat:keyword": variables,
        "dcat:distribution": [
            {"@type": "dcat:Distribution", "dct:title": name, "dcat:accessURL": {"@id": address}}
            for name, address in files.items()
        ],
        "schema:name": dataset.title,
        "schema:description": dataset.description or dataset.title,
        "schema:url": page,
        "schema:isAccessibleForFree": True,
        "schema:variableMeasured": variables,
        **(
            {"dct:modified": day, "schema:dateModified": day}
            if (day := served.policy.updated)
            else {}
        ),
    }
