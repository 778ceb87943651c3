"""What was read from files, kept for as long as they look as they did before they were read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lustrum.answer.snapshot import Snapshot
from lustrum.policy import Policy

Stamp = tuple[int, int, int]
"""The time of the last change of a file, its size and its inode."""


@dataclass(frozen=True)
class ReadPolicy:
    """A policy, with the stamp of its file."""

    stamp: Stamp
    policy: Policy


@dataclass(frozen=True)
class Standing:
    """A snapshot of files, with their stamps from before they were read."""

    stamps: tuple[tuple[Path, Stamp], ...]
    snapshot: Snapshot

    def is_current(self) -> bool:
        """Whether the files still look as they did then."""
        return all(stamp_of(path) == stamp for path, stamp in self.stamps)


def stamp_of(path: Path) -> Stamp | None:
    """How a file looks; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
