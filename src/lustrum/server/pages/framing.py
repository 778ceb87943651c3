"""Tables on pages of other sites: who may show them, the code for it, and how editorial systems ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from markupsafe import Markup

from lustrum.answer import Snapshot
from lustrum.model.text import say
from lustrum.server.http.errors import not_found
from lustrum.server.http.languages import ENGLISH, current, in_language, languages
from lustrum.server.pages.workspace import default_query
from lustrum.server.service.questions import Questions
from lustrum.server.service.served_dataset import find
from lustrum.server.settings import Settings
from lustrum.server.table_view import titles
from lustrum.server.urls import display, forms


def router(questions: Questions) -> APIRouter:
    """The route that says how a table is shown elsewhere."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/oembed")
    def oembed(request: Request) -> Response:
        """What an editorial system asks to show a table by its address alone (oEmbed 1.0, JSON)."""
        asked = dict(request.query_params)
        host = str(request.base_url).rstrip("/")
        if asked.get("format", "json") != "json":
            return JSONResponse({"error": "Only JSON is written."}, 501)
        try:
            parts = urlsplit(asked.get("url", ""))
        except ValueError:  # brackets that hold no address
            raise not_found(say("The address is none of a table of this server.")) from None
        code, _, path = parts.path.lstrip("/").partition("/")
        if code not in languages():
            code, path = ENGLISH, parts.path.lstrip("/")
        place = path.split("/")
        ours = f"{parts.scheme}://{parts.netloc}" == host
        if (
            not ours
            or place[0] != "datasets"
            or len(place) not in (2, 3)
            or place[2:] not in _SHOWN
        ):
            raise not_found(say("The address is none of a table of this server."))
        may_be_framed(questions, place[1])
        pairs = [p for p in parse_qsl(parts.query) if p[0] not in ("tree", "under", "find", "q")]
        view, question = display.read(pairs)
        served = find(questions.service, place[1])
        query = forms.read(question, place[1]).in_codes(served.dataset)
        query = query if query.by else default_query(served)
        width, height = (_size(asked, "maxwidth", 720), _size(asked, "maxheight", FRAME_HEIGHT))
        with in_language(code, request.url.path):
            title = str(current().say(titles.title(query, served.dataset)))
            address = f"{host}{current().at(view.address(f'/datasets/{place[1]}/embed?{forms.write(query)}'))}"
        return JSONResponse(
            {
                "version": "1.0",
                "type": "rich",
                "provider_name": served.dataset.title,
                "provider_url": host,
                "title": title,
                "html": frame(address, title, height),
                "width": width,
                "height": height,
            }
        )

    return routes


FRAME_HEIGHT = 600
"""Pixels of a frame with a table, chart or map, unless the page that shows it wants fewer."""

_SHOWN: tuple[list[str], ...] = ([], ["table"], ["embed"])
"""What stands behind a dataset in addresses that show a table."""


def framing(snapshot: Snapshot | None, settings: Settings) -> list[str]:
    """The sites that may show the tables of a dataset: those that its policy names, otherwise all or none."""
    if snapshot is None:
        return []
    return snapshot.policy.embed or ["*"] * settings.lets_others(snapshot.from_bundle)


def may_be_framed(questions: Questions, name: str) -> list[str]:
    """The same, or a clear error where no site may."""
    sites = framing(find(questions.service, name).snapshot, questions.settings)
    if not sites:
        raise not_found(say("The tables of {name!r} may not be shown in frames.", name=name))
    return sites


def frame(address: str, title: str, height: int = FRAME_HEIGHT) -> str:
    """What a page of another site says to show a table."""
    return str(
        Markup(
            '<iframe src="{}" title="{}" width="100%" height="{}" style="border:0"></iframe>'
        ).format(address, title, height)
    )


def _size(asked: Mapping[str, str], name: str, most: int) -> int:
    text = asked.get(name, "")
    return min(most, int(text)) if text.isascii() and text.isdecimal() and len(text) < 8 else most
