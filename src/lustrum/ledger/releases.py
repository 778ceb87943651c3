"""The book of what left the house: one line for each release, chained, sealed, and never taken back.

A line says when, to whom, which question under which policy, data and version of Lustrum, and the digest of the
decision; the decision itself and the policy stand beside the book, under their digests. Readers stand in it as
digests of a salt and their name. Name and salt stand beside it and can be erased; no line changes by that.

Each line holds the digest of the one before it (:mod:`lustrum.ledger.chain`) and a seal under a key of the data
folder, and the head of the book stands in a file of its own. So whoever changes, drops, swaps or cuts lines
without the key is found; a book that was exchanged together with its head is found by a head that was written
down elsewhere.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import tomllib
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lustrum.ledger.chain import (
    NOTHING,
    ChainEntry,
    ChangedLedgerError,
    digest_of,
    entry_in,
    line_of,
)
from lustrum.ledger.databases import BookDatabase, PostgreSQL, SQLite
from lustrum.model import DatasetError, InputError
from lustrum.runtime.data_folder import LEDGER
from lustrum.runtime.durable import lock, outages, write_whole

PUBLIC = "public"
"""The audience of what everybody may see."""

KEY, HEAD, BOOK, WHERE = "key", "head", "releases.sqlite", "database.toml"
_KEY_BYTES = 32
_ERASED = "erased: "  # no reader's name holds a space
_AT_ONCE = 500  # lines that are read from the database at the same time


@dataclass(frozen=True)
class Recorded:
    """One line of the book, with its number."""

    number: int
    said: Mapping[str, Any]
    digest: str

    @property
    def audience(self) -> str:
        """Who received it."""
        return str(self.said.get("audience", ""))


@dataclass(frozen=True)
class BookHead:
    """How far a book went at some time: the number of its last line, and the digest of that."""

    number: int
    digest: str

    @classmethod
    def from_text(cls, text: str) -> BookHead:
        """A head as it is printed.

        >>> BookHead.from_text(f"3:{'0' * 64}").number
        3
        """
        number, _, digest = text.strip().partition(":")
        if (
            not number.isdecimal()
            or len(digest) != len(NOTHING)
            or set(digest) - set("0123456789abcdef")
        ):
            raise InputError(
                "A head of the book is a number, a colon and 64 digits, as 'lustrum ledger verify' prints it."
            )
        return cls(int(number), digest)

    def __str__(self) -> str:
        return f"{self.number}:{self.digest}"


class OvertakenError(DatasetError):
    """Another process entered a line for the same readers first; what was decided has to be decided again."""


class ReleaseBook:
    """The book of a data folder; safe to share between threads, and between processes of one machine."""

    def __init__(self, root: Path) -> None:
        self.folder = root / LEDGER
        with outages(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._database = _database_of(self.folder)
        self._key = _key_in(self.folder / KEY)

    @classmethod
    def exists(cls, root: Path) -> bool:
        """Whether a data folder has a book."""
        return (root / LEDGER / KEY).exists()

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()

    # --- Entering

    def enter(
        self,
        said: Mapping[str, Any],
        *,
        audience: str = PUBLIC,
        dataset: str = "",
        contents: Mapping[str, bytes] | None = None,
        last: int | None = None,
    ) -> Recorded:
        """Add a line; when this returns, it is durable.

        ``last`` is the number of the last line by which something was decided: if there is a later one by
        now, whatever it is about, nothing is entered.
        """
        with self._database.transaction(alone=True):
            number, before = self._last()
            if last is not None and number != last:
                raise OvertakenError("Something else was recorded first.")
            at = datetime.now(UTC).isoformat(timespec="seconds")
            whole = {
                **said,
                "number": number + 1,
                "at": at,
                "audience": audience,
                "dataset": dataset,
            }
            line = line_of(whole, before)
            digest = digest_of(line)
            for name, content in (contents or {}).items():
                self._database.execute(
                    "INSERT INTO contents (digest, content) VALUES (?, ?) ON CONFLICT DO NOTHING",
                    (name, zlib.compress(content, 1)),
                )
            self._database.execute(
                "INSERT INTO entries (number, line, seal, audience, dataset) VALUES (?, ?, ?, ?, ?)",
                (number + 1, line, self._seal(digest), audience, dataset),
            )
        self._keep_head(BookHead(number + 1, digest))
        return Recorded(number + 1, whole, digest)

    def _last(self) -> tuple[int, str]:
        """The number and the digest of the last line; a book behind its own head takes no further line."""
        rows = self._database.execute(
            "SELECT number, line FROM entries ORDER BY number DESC LIMIT 1"
        )
        number, before = (rows[0][0], digest_of(bytes(rows[0][1]))) if rows else (0, NOTHING)
        kept = self._kept_head()
        if (kept.number, kept.digest) == (number, before):
            return number, before
        rows = self._database.execute("SELECT line FROM entries WHERE number = ?", (kept.number,))
        if kept.number and (not rows or digest_of(bytes(rows[0][0])) != kept.digest):
            raise ChangedLedgerError(
                f"The book of releases in {self._database.where} is older than its head; bring it "
                "back as it was."
            )
        return number, before

    def end(self) -> int:
        """The number of the last line."""
        with self._database.transaction():
            rows = self._database.execute("SELECT COALESCE(MAX(number), 0) FROM entries")
        return int(rows[0][0])

    def _seal(self, digest: str) -> str:
        return hmac.digest(self._key, digest.encode(), "sha256").hex()

    def _kept_head(self) -> BookHead:
        path = self.folder / HEAD
        with outages(path):
            if not path.exists():
                return BookHead(0, NOTHING)
            head, _, seal = path.read_text(encoding="utf-8", errors="replace").partition(" ")
        if not hmac.compare_digest(seal.encode(), self._seal(head).encode()):
            raise ChangedLedgerError(f"{path} was changed; bring back the file as it was.")
        return BookHead.from_text(head)

    def _keep_head(self, head: BookHead) -> None:
        """Write the head beside the book, after the line: a crash leaves one that the book still holds."""
        path, draft = self.folder / HEAD, self.folder / f".{HEAD}"
        with outages(path):
            handle = os.open(self.folder / f".{HEAD}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                lock(handle, wait=True)
                if self._kept_head().number < head.number:
                    draft.write_text(f"{head} {self._seal(str(head))}", encoding="utf-8")
                    draft.chmod(0o600)
                    draft.replace(path)
            finally:
                os.close(handle)

    # --- Reading

    def entries(
        self,
        after: int = 0,
        *,
        until: int | None = None,
        dataset: str | None = None,
        besides: str | None = None,
        audiences: tuple[str, ...] | None = None,
    ) -> Iterator[Recorded]:
        """The lines after a number, as they were written; an error at the first that is not.

        Those ``until`` another one, about one ``dataset``, or about all ``besides`` one.
        """
        chosen, values = "", list[str | int]()
        if until is not None:
            chosen, values = " AND number <= ?", [until]
        for word, name in (("=", dataset), ("<>", besides)):
            if name is not None:
                chosen, values = f"{chosen} AND dataset {word} ?", [*values, name]
        if audiences is not None:
            chosen += f" AND audience IN ({', '.join('?' * len(audiences))})"
            values += list(audiences)
        while True:
            with self._database.transaction():
                rows = self._database.execute(
                    f"SELECT number, line, seal FROM entries WHERE number > ?{chosen} "
                    f"ORDER BY number LIMIT {_AT_ONCE}",
                    [after, *values],
                )
            for number, raw, seal in rows:
                after = number
                yield self._recorded(number, bytes(raw), seal)
            if len(rows) < _AT_ONCE:
                return

    def _recorded(self, number: int, line: bytes, seal: str, before: str | None = None) -> Recorded:
        digest = digest_of(line)
        if hmac.compare_digest(seal.encode(), self._seal(digest).encode()):
            # What is sealed is what was written, so that its form is looked at with its place alone.
            entry = (
                ChainEntry(json.loads(line), digest) if before is None else entry_in(line, before)
            )
            if entry is not None and entry.said["number"] == number:
                return Recorded(number, entry.said, digest)
        raise ChangedLedgerError(
            f"Line {number} of the book of releases is not what was written; bring it back as it was."
        )

    def content(self, digest: str) -> bytes | None:
        """What stands beside the book under a digest; an error if it was changed."""
        return self.contents((digest,)).get(digest)

    def contents(self, digests: Collection[str]) -> dict[str, bytes]:
        """What stands beside the book under some digests, as far as it does."""
        if not digests:
            return {}
        wanted = ", ".join("?" * len(digests))
        with self._database.transaction():
            rows = self._database.execute(
                f"SELECT digest, content FROM contents WHERE digest IN ({wanted})", list(digests)
            )
        return {digest: _content(digest, bytes(content)) for digest, content in rows}

    def verify(self, *heads: BookHead) -> BookHead:
        """Check every line, seal and content, and that the book holds what others know of it; its head."""
        digests = {0: NOTHING}
        with self._database.transaction():
            kept = self._kept_head()
            self._last()
            rows = self._database.execute(
                "SELECT number, line, seal, audience, dataset FROM entries ORDER BY number"
            )
            before = NOTHING
            for at, (number, line, seal, audience, dataset) in enumerate(rows, start=1):
                if number != at:
                    raise ChangedLedgerError(
                        f"Line {at} of the book of releases is missing; bring it back as it was."
                    )
                one = self._recorded(number, bytes(line), seal, before)
                if (one.said["audience"], one.said["dataset"]) != (audience, dataset):
                    raise ChangedLedgerError(
                        f"Line {number} of the book of releases is filed under other words."
                    )
                before = digests[number] = one.digest
            for digest, content in self._database.execute("SELECT digest, content FROM contents"):
                _content(digest, bytes(content))
            for audience, salt, name in self._database.execute(
                "SELECT audience, salt, name FROM names"
            ):
                erased = name.startswith(_ERASED) and salt == self._seal(f"{audience} {name}")
                if not erased and audience != _audience(salt, name):
                    raise ChangedLedgerError(
                        f"A name beside the book of releases is not that of {audience}."
                    )
        for head in (*heads, kept):
            if digests.get(head.number) != head.digest:
                raise ChangedLedgerError(
                    f"The book of releases does not hold line {head.number} as it was: it was changed, cut, "
                    "or is older; bring it back as it was."
                )
        number = len(digests) - 1
        return BookHead(number, digests[number])

    # --- Readers

    def audience_of(self, name: str) -> str:
        """The word that stands for a reader in the book; made when the name is first met.

        A reader who was erased and comes back is known by a digest, and keeps the word without the name.
        Capital letters make no other reader.
        """
        name = name.lower()
        with self._database.transaction():
            rows = self._database.execute(
                "SELECT audience FROM names WHERE name IN (?, ?)", (name, self._erased(name))
            )
        if not rows:
            with self._database.transaction(alone=True):
                salt = secrets.token_hex(16)
                self._database.execute(
                    "INSERT INTO names (audience, salt, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    (_audience(salt, name), salt, name),
                )
                rows = self._database.execute("SELECT audience FROM names WHERE name = ?", (name,))
        return str(rows[0][0])

    def names(self) -> dict[str, str]:
        """The names of readers that were not erased, by the words that stand for them."""
        with self._database.transaction():
            return dict(
                self._database.execute(
                    "SELECT audience, name FROM names WHERE name NOT LIKE ?", (f"{_ERASED}%",)
                )
            )

    def erase(self, name: str) -> bool:
        """Erase a reader's name and its salt; a digest under the book's key stays.

        Without the key nobody can tell any more whose lines theirs are. With it one can try names, as the
        book itself does when a reader comes back: what they hold goes on to count.
        """
        name = name.lower()
        with self._database.transaction(alone=True):
            rows = self._database.execute("SELECT audience FROM names WHERE name = ?", (name,))
            for (audience,) in rows:
                word = self._erased(name)
                self._database.execute(
                    "UPDATE names SET salt = ?, name = ? WHERE audience = ?",
                    (self._seal(f"{audience} {word}"), word, audience),
                )
        return bool(rows)

    def _erased(self, name: str) -> str:
        return _ERASED + self._seal(f"reader {name}")


def _audience(salt: str, name: str) -> str:
    return digest_of(f"{salt} {name}".encode())[:32]


def _content(digest: str, packed: bytes) -> bytes:
    with suppress(zlib.error):
        content = zlib.decompress(packed)
        if digest_of(content) == digest:
            return content
    raise ChangedLedgerError(
        f"What stands beside the book of releases under {digest[:12]} is not what was written."
    )


def _database_of(folder: Path) -> BookDatabase:
    """The database that the folder names, by default a file in it."""
    path = folder / WHERE
    with outages(path):
        if not path.exists():
            return SQLite(folder / BOOK)
        try:
            raw = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not valid TOML: {error}.") from None
    if set(raw) != {"database"} or not isinstance(raw["database"], str):
        raise InputError(
            f"{path} holds one key, 'database', such as database = 'host=/run/postgresql dbname=ledger'."
        )
    return PostgreSQL(raw["database"])


def _key_in(path: Path) -> bytes:
    """The key of the book's seals, drawn when the book is begun."""
    with outages(path):
        if not path.exists():
            if (path.parent / HEAD).exists():
                raise DatasetError(f"{path} is gone; bring it back from a backup.")
            draft = path.with_name(f".{KEY}-{os.getpid()}")
            write_whole(draft, secrets.token_bytes(_KEY_BYTES), 0o600)
            with suppress(FileExistsError):
                os.link(draft, path)  # another process may have drawn one
            draft.unlink()
        key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise DatasetError(f"{path} is damaged; bring it back from a backup.")
    return key
