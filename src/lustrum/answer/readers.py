"""Who asks: everybody, or a reader with a role for whom a proxy or a token of this server vouches.

A dataset has a policy for each role that it serves: ``policies/NAME.toml`` for the public, such as
``policies/NAME.licensed.toml`` for others. A reader is served by the policy of the highest role that they have
and that there is one for. All policies of a dataset protect in the same way, so that a population has one
number for everybody; what a higher role gets is finer tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from lustrum.model import InputError
from lustrum.policy.policy import ROLES, Role

_NAME = re.compile(r"[A-Za-z0-9._@+:/|=~-]{1,200}")


def check_name(name: str) -> str:
    """The name of a reader or a group, if it is one: no spaces, and nothing that could be two names.

    >>> check_name("anna@example.org")
    'anna@example.org'
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            "A reader or group is named by 1 to 200 letters, digits and ._@+:/|=~- without spaces."
        )
    return name


@dataclass(frozen=True)
class Reader:
    """A reader as somebody vouches for them; without a name it is the public."""

    name: str = ""
    role: Role = "public"
    group: str = ""
    datasets: frozenset[str] | None = None
    """The datasets that they may ask about; None: all."""

    def has(self, role: Role) -> bool:
        """Whether they have a role: that of their own, or one before it.

        >>> Reader("anna", "licensed").has("registered"), Reader().has("registered")
        (True, False)
        """
        return ROLES.index(role) <= ROLES.index(self.role)

    def may_ask_about(self, dataset: str) -> bool:
        """Whether what they were given covers a dataset."""
        return self.datasets is None or dataset in self.datasets


EVERYBODY = Reader()
_reader: ContextVar[Reader] = ContextVar("reader", default=EVERYBODY)


def current_reader() -> Reader:
    """Who receives what is answered now; everybody, where nobody vouches for a reader."""
    return _reader.get()


@contextmanager
def reading_as(reader: Reader) -> Iterator[None]:
    """What is asked inside is asked by a reader."""
    token = _reader.set(reader)
    try:
        yield
    finally:
        _reader.reset(token)
