"""The agency's pages from templates: everything is escaped, and a name that is missing is an error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from lustrum._version import __version__
from lustrum.model import InputError, LustrumError
from lustrum.policy.read import unsealed_in
from lustrum.runtime.data_folder import POLICIES

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
    "/log": "Log",
}
MOST_OF_FORM = 4 * 1024 * 1024


class AgencyPages:
    """Renders the templates of this room, over a data folder or without one."""

    def __init__(self, data: Path | None, sections: Mapping[str, str] | None = None) -> None:
        self._data = data
        usual = {"/maps": _SECTIONS["/maps"]} if data is None else _SECTIONS
        self._sections = usual if sections is None else sections
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters["number"] = lambda value: f"{value:,}"

    def part(self, template: str, **values: object) -> str:
        return self._environment.get_template(template).render(values)

    def page(self, template: str, here: str, status: int = 200, **values: object) -> HTMLResponse:
        """A page; ``here`` is the section that it belongs to."""
        unsealed = [] if self._data is None else unsealed_in(self._data / POLICIES)
        known = {"version": __version__, "sections": self._sections, "here": here}
        text = self.part(template, **known, unsealed=unsealed, **values)
        return HTMLResponse(text, status_code=status)

    def closed(self, sentence: str) -> str:
        """The page for somebody who is not let in, which tells nothing else."""
        known = {"version": __version__, "sections": {}, "here": "", "unsealed": []}
        return self.part("closed.html", **known, sentence=sentence)

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
    body = bytearray()
    async for block in request.stream():
        body += block
        if len(body) > MOST_OF_FORM:
            raise InputError(f"A form may hold up to {MOST_OF_FORM // 2**20} MB.")
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
