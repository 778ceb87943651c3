"""Files that are written as a whole or not at all, and outages of the disk as one sentence."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lustrum.model import DatasetError

__all__ = ["outages", "sync", "write_whole"]


@contextmanager
def outages(what: object) -> Iterator[None]:
    """Turn any failure of the system under ``what`` into one sentence; nothing is answered meanwhile."""
    try:
        yield
    except OSError as error:
        place = error.filename if error.filename is not None else what
        raise DatasetError(
            f"{place} cannot be reached: {error.strerror or type(error).__name__}."
        ) from None


def write_whole(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Put a file in place: written beside its place, made durable, then renamed.

    Any moment at which the machine stops leaves the earlier file or the new one.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
