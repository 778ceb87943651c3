"""Files that are written as a whole or not at all, and outages of the disk as one sentence."""

from __future__ import annotations

import ctypes
import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lustrum.model import DatasetError


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


def write_whole(path: Path, data: bytes | Iterable[bytes], mode: int = 0o644) -> None:
    """Put a file in place: written beside its place, in one piece or several, made durable, then renamed.

    Any moment at which the machine stops leaves the earlier file or the new one.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
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


def exchange(first: Path, second: Path) -> bool:
    """Let two files or folders change places at one moment; False where the system has no such call."""
    renames = _RENAMES.get(sys.platform)
    if renames is None:
        return False
    name, here, flag = renames
    call = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if call is None:
        return False
    ends = (os.fsencode(first), os.fsencode(second))
    words = (here, ends[0], here, ends[1], flag) if here is not None else (*ends, flag)
    return int(call(*words)) == 0


_RENAMES: dict[str, tuple[str, int | None, int]] = {
    "linux": ("renameat2", -100, 2),
    "darwin": ("renamex_np", None, 2),
}
"""The call that exchanges two names: its own name, what stands for the current folder, and its flag."""
