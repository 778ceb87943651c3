"""The agency's pages from templates: everything is escaped, and a name that is missing is an error."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from lustrum._version import __version__
from lustrum.model import LustrumError

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
Handler = Callable[[Request], Awaitable[Response]]

_SECTIONS = {
    "/": "Datasets",
    "/import": "Import",
    "/maps": "Maps",
    "/usage": "Usage",
    "/tasks": "Tasks",
    "/check": "Check",
}


class AgencyPages:
    """Renders the templates of this room. ``token`` is known to its pages only; see ``loopback``."""

    def __init__(self, *, data: bool) -> None:
        self.token = secrets.token_urlsafe(24)
        self._sections = _SECTIONS if data else {"/maps": _SECTIONS["/maps"]}
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters["number"] = lambda value: f"{value:,}"

    def part(self, template: str, **values: object) -> str:
        """A part of a page."""
        return self._environment.get_template(template).render({"token": self.token, **values})

    def page(self, template: str, here: str, status: int = 200, **values: object) -> HTMLResponse:
        """A page; ``here`` is the section that it belongs to."""
        known = {"version": __version__, "sections": self._sections, "here": here}
        return HTMLResponse(self.part(template, **known, **values), status_code=status)

    def guarded(self, handler: Handler, here: str = "/") -> Handler:
        """Every mistake that was foreseen is one sentence: on a page for people, plain for scripts."""

        async def guarded(request: Request) -> Response:
            try:
                return await handler(request)
            except LustrumError as error:
                if "text/html" not in request.headers.get("accept", ""):
                    return PlainTextResponse(str(error), status_code=422)
                return self.page("mistake.html", here, 422, sentence=str(error))

        return guarded


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a plain form; of a field that is there twice the last one counts."""
    body = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(body, keep_blank_values=True))
