"""Names and addresses of hosts, as settings list them and as requests name them."""

from __future__ import annotations

import ipaddress
import re

from lustrum.model import InputError

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?)*\.?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"(?::[0-9]{0,5})?")


def listed_hosts(text: str) -> tuple[str, ...]:
    """The names in a setting, with commas between them; one that begins with a dot stands for all below it.

    >>> listed_hosts("tables.example.org, .stat.example")
    ('tables.example.org', '.stat.example')
    """
    names = tuple(name.strip().lower() for name in text.split(",") if name.strip())
    for name in names:
        named = _NAME.fullmatch(name.removeprefix(".")) is not None
        if name != "*" and not named and host_address(name) is None:
            raise InputError(
                "An allowed host is a name such as tables.example.org or .example.org, without http:// "
                f"and without a port, not {name!r}."
            )
    return names


def requested_host(header: str) -> str | None:
    """The name in a ``Host`` header without its port, or nothing if it is none.

    >>> requested_host("Tables.example.org:8000"), requested_host("[::1]:80"), requested_host("a/b")
    ('tables.example.org', '::1', None)
    >>> requested_host("127.0.0.1"), requested_host("2130706433")
    ('127.0.0.1', None)
    """
    text = header.strip().lower()
    if text.startswith("["):
        name, closed, port = text[1:].partition("]")
        whole = bool(closed) and _PORT.fullmatch(port) is not None
        return name if whole and host_address(name) is not None else None
    name, colon, port = text.partition(":")
    if not _NAME.fullmatch(name) or not _PORT.fullmatch(colon + port):
        return None
    name = name.removesuffix(".")
    # A browser takes 2130706433 and 0x7f.1 for addresses; written so, nobody means this server.
    if _NUMBER.fullmatch(name.rpartition(".")[2]) and host_address(name) is None:
        return None
    return name


def host_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a name is, if it is one."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
