"""How a server is run: limits on size, time and number, and what is kept of it all."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from limits import parse_many

from lustrum.answer.separate_process import LEAST_SILENCE, SILENCE
from lustrum.model import InputError
from lustrum.model.errors import choices
from lustrum.model.workers import workers as processors
from lustrum.server.host_names import listed_hosts


@dataclass(frozen=True)
class Settings:
    """Every setting has a default that suits one machine and the public.

    ======================  ====================================================================
    ``rate``                most tables and hints an address may ask for, as ``120/minute``; empty: no limit
    ``concurrency``         tables that are counted at the same time; the others wait
    ``patience``            seconds that a question waits for its turn before it is turned away
    ``seconds``             longest that a table may take while somebody waits for it
    ``background_cells``    tables with more cells than this are made in the background
    ``background_seconds``  longest that a table may take in the background
    ``keep_hours``          how long a table made in the background is kept
    ``trusted_proxies``     addresses whose word about the asker's own address is taken, with commas
    ``allowed_host``        names that the server answers to, with commas; ``.example.org``: all below it
    ``cors``                whether pages of other sites may read the API in the browsers of their visitors
    ``memory``              most memory that a question may need, in MiB; 0: a share of what the machine has
    ``connections``         connections of one process at the same time
    ``header_seconds``      longest that the headers of a request may take to arrive
    ``body_seconds``        longest that the body of a request may take to arrive
    ``idle_seconds``        how long a connection stays open between two requests
    ``send_seconds``        longest that a client may take to read what was sent to it
    ``records_seconds``     longest silence of the process that holds the records; then it is started again
    ``answers_memory``      MiB of answers from bundles that are remembered in memory; 0: none, nor on disk
    ``answers_disk``        MiB of answers from bundles that are remembered on disk; 0: none
    ======================  ====================================================================
    """

    rate: str = "300/minute"
    concurrency: int = 0
    patience: float = 20.0
    seconds: float = 30.0
    background_cells: int = 50_000
    background_seconds: float = 600.0
    keep_hours: float = 24.0
    trusted_proxies: str = ""
    allowed_host: str = ""
    cors: bool = False
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
        for name in (
            "patience",
            "seconds",
            "background_seconds",
            "keep_hours",
            "header_seconds",
            "body_seconds",
            "idle_seconds",
            "send_seconds",
        ):
            if not getattr(self, name) > 0:
                raise InputError(f"The setting {name!r} must be a number above 0.")
        if not self.records_seconds >= LEAST_SILENCE:
            raise InputError(
                f"The setting 'records_seconds' must be a number of {LEAST_SILENCE:g} or more: a sign of life "
                "comes each second."
            )
        for name in (
            "concurrency",
            "background_cells",
            "memory",
            "connections",
            "answers_memory",
            "answers_disk",
        ):
            if type(getattr(self, name)) is not int or getattr(self, name) < 0:
                raise InputError(f"The setting {name!r} must be a whole number of 0 or more.")
        if not self.connections:
            raise InputError("The setting 'connections' must be a whole number of 1 or more.")
        if type(self.cors) is not bool:
            raise InputError("The setting 'cors' must be true or false.")
        listed_hosts(self.allowed_host)
        if self.rate:
            try:
                parse_many(self.rate)
            except ValueError:
                raise InputError(
                    f"The setting 'rate' must be a number and a time, such as 120/minute, not {self.rate!r}."
                ) from None

    @property
    def at_once(self) -> int:
        """Tables that are counted at the same time: by default one for each processor."""
        return self.concurrency or processors()

    @property
    def host_names(self) -> tuple[str, ...]:
        """The names that the server answers to; none: those that nobody else can own."""
        return listed_hosts(self.allowed_host)

    def to_text(self) -> str:
        """The settings for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Settings:
        """The settings that another process was given."""
        raw: dict[str, Any] = json.loads(text)
        known = [field.name for field in fields(cls)]
        for name in raw:
            if name not in known:
                raise InputError(f"There is no setting {name!r}; {choices(name, known)}.")
        return cls(**raw)
