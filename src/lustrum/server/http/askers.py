"""Who asks, as far as a turn in a queue or a rate depends on it: an address on the network, never kept."""

from __future__ import annotations

import ipaddress
from contextvars import ContextVar

from starlette.types import ASGIApp, Receive, Scope, Send

_current: ContextVar[str] = ContextVar("lustrum_asker", default="")


def current_asker() -> str:
    """The address behind the request under way; empty where there is no request."""
    return _current.get()


def asker_of(scope: Scope) -> str:
    """The address that a request comes from; of IPv6 the network, since one customer has all of it.

    >>> asker_of({"client": ("2001:db8:1:2:3:4:5:6", 4711)})
    '2001:db8:1:2::'
    """
    text = str((scope.get("client") or ("unknown",))[0])
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return text
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)).network_address)


class AskerContext:
    """Lets whatever works on a request know whom it is for."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        token = _current.set(asker_of(scope))
        try:
            await self.app(scope, receive, send)
        finally:
            _current.reset(token)
