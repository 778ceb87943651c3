"""Which names this server answers to, and that only its own pages make a browser write to it.

Links and redirects are built from the ``Host`` header, so a name that the agency does not own must not get that
far: a page elsewhere could lead a browser here under its own name (DNS rebinding), or a cache could keep its
links.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from lustrum.model.text import say
from lustrum.server.http.errors import Problem, response
from lustrum.server.http.middleware import HttpLayer
from lustrum.server.http.templating import Pages
from lustrum.server.settings import host_address, requested_host

_RESERVED = (".localhost", ".test")  # RFC 6761: nobody can register a name below them
_PORTS = {"http": "80", "https": "443"}


class AllowedHosts(HttpLayer):
    """Answers only requests that name this server by a name it has.

    Without a list, these are names that nobody else can own: addresses, names without a dot, and names below
    ``.localhost`` and ``.test``.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], pages: Pages) -> None:
        super().__init__(app)
        self.hosts = frozenset(hosts)
        self.pages = pages

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if its host is ours."""
        # Health says nothing that a name could change, and those who watch it use all kinds of names.
        if scope["path"].startswith("/health"):
            await self.app(scope, receive, send)
            return
        host = Headers(scope=scope).get("host")
        if host is None or self._is_allowed(host):
            await self.app(scope, receive, send)
            return
        sentence = say(
            "This server does not answer to that name; use the address that you were given."
        )
        problem = Problem.of_status(421, sentence)
        await response(Request(scope), problem, self.pages)(scope, receive, send)

    def _is_allowed(self, header: str) -> bool:
        name = requested_host(header)
        if name is None:
            return False
        if "*" in self.hosts or name in self.hosts:
            return True
        address = host_address(name)
        if not self.hosts:
            return address is not None or "." not in name or name.endswith(_RESERVED)
        if address is not None:
            return address.is_loopback
        return name == "localhost" or any(
            listed.startswith(".") and name.endswith(listed) for listed in self.hosts
        )


class SameOriginWrites(HttpLayer):
    """Refuses a request that changes something if a page of another site made the browser send it.

    Browsers say where a request comes from (``Sec-Fetch-Site``, ``Origin``); programs say nothing and pass.
    """

    def __init__(self, app: ASGIApp, pages: Pages) -> None:
        super().__init__(app)
        self.pages = pages

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on unless it comes from another site."""
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        site = headers.get("sec-fetch-site", "none").strip().lower()
        origins = headers.getlist("origin")
        here = headers.get("host", "")
        if site in ("none", "same-origin") and all(_is_same(origin, here) for origin in origins):
            await self.app(scope, receive, send)
            return
        sentence = say("A page of another site may not ask for this; use the pages of this server.")
        problem = Problem.of_status(403, sentence)
        await response(Request(scope), problem, self.pages)(scope, receive, send)


def _is_same(origin: str, host: str) -> bool:
    """Whether an ``Origin`` names the host that was asked; the port that a scheme has anyway may be left out.

    >>> _is_same("https://a.example", "a.example:443"), _is_same("http://a.example:81", "a.example")
    (True, False)
    """
    try:
        parts = urlsplit(origin.strip().lower())
    except ValueError:
        return False
    if parts.scheme not in _PORTS:
        return False
    usual = f":{_PORTS[parts.scheme]}"
    return parts.netloc.removesuffix(usual) == host.strip().lower().removesuffix(usual)
