"""Who asks: a reader whom a proxy in front vouches for, or the holder of a token; otherwise the public.

Nobody is recognised by guess. A token that is wrong, a header that did not come from a trusted proxy, one that
stands twice or holds anything but a name, and a token beside a header all end the request: whoever says who
they are is never answered as the public.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from lustrum.answer.readers import EVERYBODY, Reader, check_name, reading_as
from lustrum.answer.tokens import Tokens
from lustrum.model import DatasetError, InputError
from lustrum.model.text import say
from lustrum.policy.policy import ROLES, Role
from lustrum.server.http.errors import Problem, response
from lustrum.server.http.middleware import HttpLayer
from lustrum.server.http.templating import Pages
from lustrum.server.settings import Settings

log = logging.getLogger("lustrum.server")

_VOUCHED = "lustrum.trusted"
_MOST_ROLES = 4096  # characters of all roles and groups that a proxy states
_OF_PROXIES = ("basic", "digest", "negotiate")
"""Kinds of ``Authorization`` that are meant for the proxy in front; some pass them on."""


class TrustedProxies(HttpLayer):
    """Takes the word of trusted proxies for the address of an asker, and notes that a request came from one."""

    def __init__(self, app: ASGIApp, trusted: str) -> None:
        super().__init__(app)
        self._proxies = ProxyHeadersMiddleware(app, trusted) if trusted else None  # type: ignore[arg-type]

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._proxies is None:
            await self.app(scope, receive, send)
            return
        peer = str((scope.get("client") or ("",))[0])
        trusted = {_VOUCHED: peer in self._proxies.trusted_hosts}
        await self._proxies({**scope, **trusted}, receive, send)  # type: ignore[arg-type]


class Readers(HttpLayer):
    """Finds out who asks; a request by somebody who cannot be recognised ends here."""

    def __init__(self, app: ASGIApp, settings: Settings, tokens: Tokens, pages: Pages) -> None:
        super().__init__(app)
        self._settings, self._tokens, self._pages = settings, tokens, pages

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            reader = self._reader(scope)
        except InputError as error:
            problem = Problem.of_status(401, error.args[0])
        except DatasetError as error:
            log.error("unavailable: %s", error)
            sentence = say("Tokens cannot be checked at the moment; please try again later.")
            problem = Problem.of_status(503, sentence, reason="unavailable")
        else:
            with reading_as(reader):
                await self.app(scope, receive, send)
            return
        refused = response(Request(scope), problem, self._pages)
        if problem.status == 401:
            refused.headers["WWW-Authenticate"] = "Bearer"
        await refused(scope, receive, send)

    def _reader(self, scope: Scope) -> Reader:
        headers = Headers(scope=scope)
        said = headers.getlist("authorization")
        tokens = [one for one in said if one.partition(" ")[0].lower() not in _OF_PROXIES]
        vouched = [name for name in self._settings.reader_headers if name in headers]
        if not tokens and not vouched:
            return EVERYBODY
        if tokens:
            kind, _, token = tokens[0].partition(" ")
            alone = len(said) == 1 and not vouched
            found = self._tokens.reader_of(token.strip()) if kind.lower() == "bearer" else None
            if found is None or not alone:
                raise InputError(
                    say("The token is not valid here: it is wrong, has ended or was revoked.")
                )
            return found
        try:
            if not scope.get(_VOUCHED):
                raise InputError("an address that is no trusted proxy names a reader")
            return self._vouched(headers)
        except InputError as error:
            log.warning("a reader is not recognised: %s", error)
            raise InputError(
                say("The proxy in front of this server does not say clearly who asks.")
            ) from None

    def _vouched(self, headers: Headers) -> Reader:
        """The reader whom the proxy names, with the highest of the roles it states."""
        settings = self._settings
        role: Role = "registered"
        name = check_name(_one(headers, settings.reader_header))
        if settings.roles_header in headers:
            stated = _one(headers, settings.roles_header)
            words = {word.strip() for word in stated.split(",")}
            if len(stated) > _MOST_ROLES or not stated.isascii() or not stated.isprintable():
                raise InputError("its roles are too many, or no plain words")
            role = max((role, *(one for one in ROLES if one in words)), key=ROLES.index)
        group = ""
        if settings.group_header:
            # A browser can make some proxies drop a header; nobody gets out of their group that way.
            group = check_name(_one(headers, settings.group_header))
        return Reader(name, role, group)


def named_by(settings: Settings, tokens: Tokens) -> Sequence[str]:
    """The headers by which readers are recognised; none where nobody can be."""
    headers = settings.reader_headers
    return ("Authorization", *headers) if headers or tokens.there else ()


def _one(headers: Headers, name: str) -> str:
    values = headers.getlist(name)
    if len(values) != 1:
        raise InputError(f"{name} stands {len(values)} times")
    return values[0]
