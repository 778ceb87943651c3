"""Tokens by which programs say who asks: drawn at random, kept as digests, with an end.

::

    <root>/ledger/tokens.json   readers, roles, datasets and ends, each with the digest of its secret

A token has an id, by which it is found, and a secret of 256 bits, of which one digest is enough. Whoever reads
the file learns who may ask, and cannot ask.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lustrum.answer.readers import Reader, check_name
from lustrum.answer.snapshot import Stamp, stamp_of
from lustrum.model import DatasetError, InputError
from lustrum.policy.policy import ROLES, Role
from lustrum.runtime.data_folder import LEDGER
from lustrum.runtime.durable import lock, outages, write_whole

FILE = "tokens.json"
MOST_DAYS = 3650
_TOKEN = re.compile(r"lustrum_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NOBODY = "0" * 64


@dataclass(frozen=True)
class Token:
    """One token as it is kept."""

    id: str
    reader: str
    role: Role
    group: str
    datasets: tuple[str, ...] | None
    made: str
    ends: str
    digest: str

    def is_over(self, now: datetime) -> bool:
        return now >= datetime.fromisoformat(self.ends)


class Tokens:
    """The tokens of a data folder; read again when their file changed."""

    def __init__(self, root: Path | None) -> None:
        self._path = None if root is None else root / LEDGER / FILE
        self._read: tuple[Stamp, dict[str, Token]] | None = None

    @property
    def there(self) -> bool:
        return self._path is not None and stamp_of(self._path) is not None

    def reader_of(self, text: str) -> Reader | None:
        """Who asks by a token; None where it is none, was revoked or has ended."""
        found = _TOKEN.fullmatch(text)
        token = self.all().get(found[1]) if found else None
        digest = _digest(found[2] if found else "")
        right = hmac.compare_digest(digest, token.digest if token else _NOBODY)
        if token is None or not right or token.is_over(datetime.now(UTC)):
            return None
        datasets = None if token.datasets is None else frozenset(token.datasets)
        return Reader(token.reader, token.role, token.group, datasets)

    def all(self) -> dict[str, Token]:
        """All tokens by their ids, also those that have ended; an error if the file is damaged."""
        stamp = None if self._path is None else stamp_of(self._path)
        if self._path is None or stamp is None:
            return {}
        if self._read is None or self._read[0] != stamp:
            with outages(self._path):
                raw = self._path.read_bytes()
            try:
                read = [_token(**words) for words in json.loads(raw)["tokens"]]
            except (ValueError, TypeError, KeyError, InputError):
                raise DatasetError(f"{self._path} is damaged; bring it back as it was.") from None
            self._read = stamp, {token.id: token for token in read}
        return self._read[1]

    def add(
        self, reader: str, role: Role, days: int, group: str = "", datasets: Collection[str] = ()
    ) -> str:
        """Make a token, and give what its holder sends; it is kept nowhere."""
        if not 1 <= days <= MOST_DAYS:
            raise InputError(f"A token lasts from 1 to {MOST_DAYS} days, not {days}.")
        made = datetime.now(UTC).replace(microsecond=0)
        secret = secrets.token_urlsafe(32)
        token = _token(
            secrets.token_hex(6),
            reader,
            role,
            group,
            sorted(datasets) or None,
            made.isoformat(),
            (made + timedelta(days=days)).isoformat(),
            _digest(secret),
        )
        with self._writing() as there:
            there.append(token)
        return f"lustrum_{token.id}_{secret}"

    def revoke(self, name: str) -> bool:
        """Take a token back by its id."""
        with self._writing() as there:
            kept = [token for token in there if token.id != name]
            found = len(kept) < len(there)
            there[:] = kept
        return found

    @contextmanager
    def _writing(self) -> Iterator[list[Token]]:
        if self._path is None:
            raise InputError("Tokens are kept in a data folder; name one with --data.")
        with outages(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self._path.with_name(".tokens.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            with outages(self._path):
                lock(handle, wait=True)
            self._read = None
            tokens = list(self.all().values())
            yield tokens
            raw = json.dumps({"tokens": [asdict(token) for token in tokens]}, indent=1)
            with outages(self._path):
                write_whole(self._path, raw.encode(), 0o600)
        finally:
            os.close(handle)


def _token(
    id: str,
    reader: str,
    role: Role,
    group: str,
    datasets: Sequence[str] | None,
    made: str,
    ends: str,
    digest: str,
) -> Token:
    """A token whose words are checked, from the command line or from the file."""
    check_name(reader)
    if group:
        check_name(group)
    if role not in ROLES[1:]:
        raise InputError(f"A token has the role {', '.join(ROLES[1:])}, not {role!r}.")
    if datetime.fromisoformat(ends).tzinfo is None or len(digest) != len(_NOBODY):
        raise InputError("A token has an end and a digest.")
    token = Token(id, reader, role, group, None, made, ends, digest)
    return token if datasets is None else replace(token, datasets=tuple(map(str, datasets)))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
