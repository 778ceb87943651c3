"""A book of lines that are only ever added, chained by digests, durable, for all processes of a machine.

Each line is a JSON object with sorted keys, and names under ``before`` the digest of the line before it. So a
line that was changed, taken out, put in or moved is found, unless everything after it was written anew; that,
a changed last line and a shorter book are found by who knows a later digest: a bundle, a folder, a reader. A
last line that a crash or a full disk cut short was never entered, and the next entry takes its place.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lustrum.model import DatasetError, InputError
from lustrum.runtime.durable import BINARY, lock, outages, sync

BEFORE = "before"


def digest_of(data: bytes) -> str:
    """The digest by which lines and files are known."""
    return hashlib.sha256(data).hexdigest()


NOTHING = digest_of(b"")
"""What the first line of a book names as the line before it."""


class ChangedLedgerError(DatasetError):
    """A book does not hold what was written into it."""


@dataclass(frozen=True)
class ChainEntry:
    """One line: what it says, and its digest."""

    said: Mapping[str, Any]
    digest: str


class Chain:
    """The book in one file; ``loose`` allows lines of an earlier form, without a chain, at its beginning."""

    def __init__(self, path: Path, *, loose: bool = False) -> None:
        self.path, self._loose = path, loose

    def read(self) -> tuple[tuple[ChainEntry, ...], int]:
        """The lines before the first one that is not what was written, and its number; 0 if all are."""
        with outages(self.path):
            written = self.path.read_bytes() if self.path.exists() else b""
        entries: list[ChainEntry] = []
        before, chained, at = NOTHING, False, 0
        for number, line in enumerate(written.split(b"\n")[:-1], start=1):
            said = _object_in(line)
            if not chained and BEFORE not in said and self._loose:
                at += len(line) + 1
                before = digest_of(written[:at])
                if said:
                    entries.append(ChainEntry(said, digest_of(line)))
                continue
            chained = True
            entry = entry_in(line, before)
            if entry is None:
                return tuple(entries), number
            before = entry.digest
            entries.append(entry)
        return tuple(entries), 0

    def entries(self) -> tuple[ChainEntry, ...]:
        """All lines; an error if one was changed, taken out or moved."""
        entries, wrong = self.read()
        if wrong:
            raise ChangedLedgerError(
                f"{self.path}, line {wrong}: the ledger was changed; bring back the file as it was."
            )
        return entries

    def verify(self, *heads: str) -> None:
        """Check every line, and that the book holds the lines whose digests somebody knows."""
        known = {NOTHING, *(entry.digest for entry in self.entries())}
        if not known.issuperset(heads):
            raise ChangedLedgerError(
                f"{self.path} does not hold a line that was entered: it was changed, or is older; bring back "
                "the file as it was."
            )

    @property
    def head(self) -> str:
        """The digest of the last line."""
        entries = self.entries()
        return entries[-1].digest if entries else NOTHING

    def append(self, said: Mapping[str, Any]) -> str:
        """Add a line after those of all other processes; its digest."""
        with self.alone(wait=True) as add:
            return add(said)

    @contextmanager
    def alone(self, *, wait: bool) -> Iterator[Callable[[Mapping[str, Any]], str]]:
        """What adds lines while no other process may; BlockingIOError if one may and we do not wait."""
        with outages(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            key = self.path.with_name(f".{self.path.stem}.lock")
            handle = os.open(key, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            lock(handle, wait=wait)
            yield self._add
        finally:
            os.close(handle)

    def _add(self, said: Mapping[str, Any]) -> str:
        with outages(self.path):
            flags = os.O_RDWR | os.O_CREAT | BINARY | getattr(os, "O_NOFOLLOW", 0)
            handle = os.open(self.path, flags, 0o600)
            try:
                written = self.path.read_bytes()
                whole = written.rfind(b"\n") + 1
                last = written[:whole].rsplit(b"\n", 2)[-2] if whole else b""
                chained = BEFORE in _object_in(last)
                line = line_of(said, digest_of(last if chained else written[:whole]))
                os.ftruncate(handle, whole)
                os.lseek(handle, whole, os.SEEK_SET)
                left = memoryview(line + b"\n")
                while left:
                    left = left[os.write(handle, left) :]
                os.fsync(handle)
            finally:
                os.close(handle)
            sync(self.path.parent)
        return digest_of(line)


def line_of(said: Mapping[str, Any], before: str) -> bytes:
    """The line that says something, after the line with a digest; wherever the book is kept."""
    return _line({**said, BEFORE: before})


def entry_in(line: bytes, before: str) -> ChainEntry | None:
    """What a line says; None if it is not what was written after the line with a digest."""
    said = _object_in(line)
    if said.get(BEFORE) != before or not _is_canonical(said, line):
        return None
    return ChainEntry(said, digest_of(line))


def _line(said: Mapping[str, Any]) -> bytes:
    """The one form in which a line is written."""
    try:
        return json.dumps(said, sort_keys=True, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError):
        raise InputError("A line of a ledger holds texts and finite numbers.") from None


def _is_canonical(said: Mapping[str, Any], line: bytes) -> bool:
    try:
        return _line(said) == line
    except InputError:
        return False


def _object_in(line: bytes) -> dict[str, Any]:
    """What a line says; nothing if it is not a JSON object."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
