"""How a server is run: limits on size, time and number, and what is kept of it all."""

from __future__ import annotations

import ipaddress
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from limits import parse_many

from lustrum.answer.separate_process import LEAST_SILENCE, SILENCE
from lustrum.model import InputError
from lustrum.model.errors import check_known
from lustrum.model.workers import workers as processors

# --- Names and addresses of hosts, as settings list them and as requests name them

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
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


_HEADER = re.compile(
    r"(?!x-(forwarded-(for|host|proto)|request-id)\Z)(x|remote|cf)-[a-z0-9-]{1,60}", re.IGNORECASE
)
OTHER_SITES = ("bundles", "none", "all")


@dataclass(frozen=True)
class Settings:
    """Defaults suit one machine and the public; options of ``lustrum serve`` say what each setting means."""

    rate: str = "300/minute"
    concurrency: int = 0
    patience: float = 20.0
    seconds: float = 30.0
    background_cells: int = 50_000
    background_seconds: float = 600.0
    keep_hours: float = 24.0
    trusted_proxies: str = ""
    reader_header: str = ""
    roles_header: str = ""
    group_header: str = ""
    allowed_host: str = ""
    other_sites: str = "bundles"
    memory: int = 0
    connections: int = 1000
    header_seconds: float = 10.0
    body_seconds: float = 20.0
    idle_seconds: float = 5.0
    send_seconds: float = 30.0
    records_seconds: float = SILENCE
    answers_memory: int = 64
    answers_disk: int = 256

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if field.type == "float" and not (number and value > 0):
                raise InputError(f"The setting {name!r} must be a number above 0.")
            if field.type == "int" and (type(value) is not int or value < 0):
                raise InputError(f"The setting {name!r} must be a whole number of 0 or more.")
            if field.type == "bool" and type(value) is not bool:
                raise InputError(f"The setting {name!r} must be true or false.")
            if field.type == "str" and not isinstance(value, str):
                raise InputError(f"The setting {name!r} must be a text in quotes.")
        if not self.records_seconds >= LEAST_SILENCE:
            raise InputError(
                f"The setting 'records_seconds' must be a number of {LEAST_SILENCE:g} or more: a sign of life "
                "comes each second."
            )
        if not self.connections:
            raise InputError("The setting 'connections' must be a whole number of 1 or more.")
        listed_hosts(self.allowed_host)
        self._check_reader_headers()
        if self.other_sites not in OTHER_SITES:
            raise InputError(
                f"The setting 'other_sites' must be one of {', '.join(OTHER_SITES)}, not {self.other_sites!r}."
            )
        if self.rate:
            try:
                parse_many(self.rate)
            except ValueError:
                raise InputError(
                    f"The setting 'rate' must be a number and a time, such as 120/minute, not {self.rate!r}."
                ) from None

    @property
    def reader_headers(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.reader_header, self.roles_header, self.group_header)))

    def _check_reader_headers(self) -> None:
        names = [name.lower() for name in self.reader_headers]
        for name in names:
            if not _HEADER.fullmatch(name):
                raise InputError(
                    f"A reader is named by a header of its own, such as X-Forwarded-User, not {name!r}."
                )
        if len(set(names)) < len(names) or (names and not self.reader_header):
            raise InputError(
                "The settings 'reader_header', 'roles_header' and 'group_header' name different headers, and "
                "the last two need the first."
            )
        if not names:
            return
        for proxy in self.trusted_proxies.split(","):
            try:
                known = ipaddress.ip_network(proxy.strip()).prefixlen > 0
            except ValueError:
                known = False
            if not known:
                raise InputError(
                    "With 'reader_header', 'trusted_proxies' lists the addresses of the proxies that vouch for "
                    f"readers, and {proxy.strip()!r} is none."
                )

    def lets_others(self, public: bool) -> bool:
        """Whether pages of other sites may show and read tables; ``public``: they are from public bundles."""
        return self.other_sites == "all" or (public and self.other_sites == "bundles")

    @property
    def at_once(self) -> int:
        """Tables that are counted at the same time: by default one for each processor."""
        return self.concurrency or processors()

    @property
    def host_names(self) -> tuple[str, ...]:
        """The names that the server answers to; none: those that nobody else can own."""
        return listed_hosts(self.allowed_host)

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Settings:
        return cls._of(json.loads(text))

    @classmethod
    def from_file(cls, path: Path | None, **given: object) -> Settings:
        """The settings in a TOML file, if there is one; those that are given win over it.

        ``allowed_host`` may be a list there.
        """
        raw: dict[str, object] = {}
        if path is not None:
            try:
                raw = tomllib.loads(path.read_text(encoding="utf-8"))
            except OSError as error:
                raise InputError(f"{path} cannot be read: {error.strerror}.") from None
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise InputError(f"{path} is not valid TOML: {error}.") from None
        hosts = raw.get("allowed_host")
        if isinstance(hosts, list):
            raw["allowed_host"] = ",".join(map(str, hosts))
        return cls._of(raw | given)

    @classmethod
    def _of(cls, raw: Mapping[str, Any]) -> Settings:
        if isinstance(raw.get("cors"), bool):  # as files said until 0.2
            raw = {"other_sites": ("none", "all")[raw["cors"]], **raw}
            raw.pop("cors")
        check_known(raw, [field.name for field in fields(cls)], "There is no setting")
        return cls(**raw)
