"""JSON in which every name of an object stands once: of two values, one would be left out without a word."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from lustrum.model import QueryError
from lustrum.model.text import say

_MISTAKE = "lustrum.mistake"


def read_json(text: str | bytes) -> Any:
    """What a text says; a name that stands twice in one object is a mistake.

    >>> read_json('{"by": ["sex"]}')
    {'by': ['sex']}
    """
    return json.loads(text, object_pairs_hook=_one_of_each)


def _one_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name, many in times.items() if many > 1)
        raise QueryError(say("The name {name!r} is given twice; give it once.", name=twice))
    return by_name


class JSONRoute(APIRoute):
    """A route that reads bodies in this way."""

    def get_route_handler(self) -> Any:
        """The handler, with such a request."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            response: Response = await handle(_Request(request.scope, request.receive))
            return response

        return handler


class _Request(Request):
    """A request that notes the mistake: an exception here would become one without words."""

    async def json(self) -> Any:
        """The body."""
        if not hasattr(self, "_json"):
            try:
                self._json = read_json(await self.body())
            except QueryError as error:
                self.scope[_MISTAKE] = error
                self._json = {}
        return self._json


def check_names(request: Request) -> None:
    """Refuse a request in whose body a name stood twice."""
    if _MISTAKE in request.scope:
        raise request.scope[_MISTAKE]
