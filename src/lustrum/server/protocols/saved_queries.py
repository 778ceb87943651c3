"""Saved queries: the name of a query holds the query, so that nothing is kept on the server.

It is asked again whenever it is used, under the policy of that day.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

from fastapi import Request

from lustrum.answer import TableService
from lustrum.model import QueryError
from lustrum.server.http.errors import not_found
from lustrum.server.protocols.answering import Json
from lustrum.server.protocols.pxweb_forms import Form, are_texts, selection_of
from lustrum.server.protocols.pxweb_words import link, spoken
from lustrum.server.protocols.selections import PreparedOffer, offered

_LONGEST_ID = 1500
_LARGEST_SAVED = 64 * 1024


def checked(body: Any, service: TableService) -> Json:
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


def saved(name: str) -> Json:
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
