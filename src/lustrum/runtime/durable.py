"""Files that are written as a whole or not at all, and whatever fails under one dataset as one sentence."""

from __future__ import annotations

import ctypes
import errno
import importlib
import logging
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lustrum.model import DatasetError, LustrumError
from lustrum.runtime.log_lines import where_it_happened
from lustrum.runtime.stop import Stopped

log = logging.getLogger("lustrum.runtime")

BINARY = getattr(os, "O_BINARY", 0)
"""Goes with ``os.open`` where ``os.read`` and ``os.write`` follow: Windows would change ends of lines."""

_LOCKED_AT, _READERS = 1 << 30, 64
"""Where Windows locks files, behind all that is read, and how many readers share a lock."""

_PLACE = threading.Lock()

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


@contextmanager
def outages(what: object) -> Iterator[None]:
    """Turn any failure of the system under ``what`` into one sentence; nothing is answered meanwhile."""
    try:
        yield
    except OSError as error:
        location = error.filename if error.filename is not None else what
        done = "written" if error.errno in _NO_ROOM else "reached"
        raise DatasetError(
            f"{location} cannot be {done}: {error.strerror or type(error).__name__}."
        ) from None


@contextmanager
def contained(what: str) -> Iterator[None]:
    """The boundary around one dataset: whatever reading or judging it raises is an error of it alone.

    Errors that say what is wrong stay as they are. Everything else is unforeseen: the log has its place, and
    no text of it goes out, since that may hold data. Ctrl-C and the end of the process pass.
    """
    try:
        with outages(what):
            yield
    except (LustrumError, Stopped):
        raise
    except Exception as error:
        log.error("unforeseen, with %s: %s", what, where_it_happened(error))
        raise DatasetError(
            f"{what} cannot be read or judged: {type(error).__name__} was not foreseen; the log says where."
        ) from None


def write_whole(path: Path, data: bytes | Iterable[bytes], mode: int = 0o644) -> None:
    """Put a file in place: written beside its place, in one piece or several, made durable, then renamed.

    Any moment at which the machine stops leaves the earlier file or the new one.
    """
    draft = _beside(path)
    try:
        _write(draft, data, mode)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    sync(path.parent)


@contextmanager
def taken_back_on_failure(path: Path, data: bytes, mode: int = 0o644) -> Iterator[None]:
    """Put a file in place while the block puts in place what belongs to it; if that fails, undo it.

    Then the earlier file stands there again, or none as before. Ctrl-C waits until both are in place.
    """
    draft, earlier = _beside(path), _beside(path)
    with _interrupts_later():
        try:
            with outages(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                _write(draft, data, mode)
                if path.exists():
                    _write(earlier, path.read_bytes(), path.stat().st_mode & 0o777)
            try:
                with outages(path):
                    draft.replace(path)
                    sync(path.parent)
                yield
            except BaseException:
                if earlier.exists():
                    earlier.replace(path)
                else:
                    path.unlink(missing_ok=True)
                raise
        finally:
            for left in (draft, earlier):
                with suppress(OSError):
                    left.unlink(missing_ok=True)


def replace_together(drafts: Sequence[Path], folder: Path) -> None:
    """Let durable files that belong together take their places in a folder, each under its own name.

    Earlier files are moved aside to the drafts before the first new one comes, so that a machine that stops
    leaves some out and never an earlier file beside a new one. After a failure the earlier ones are back.
    """
    if len(drafts) == 1:
        drafts[0].replace(folder / drafts[0].name)
        sync(folder)
        return
    aside: list[tuple[Path, Path]] = []
    moved: list[Path] = []
    with _interrupts_later():
        try:
            for draft in drafts:
                path, earlier = folder / draft.name, _beside(draft)
                if path.exists() or path.is_symlink():
                    path.replace(earlier)
                    aside.append((earlier, path))
            sync(folder)
            for draft in drafts:
                draft.replace(folder / draft.name)
                moved.append(folder / draft.name)
            sync(folder)
        except BaseException:
            for path in moved:
                path.unlink()
            for earlier, path in aside:
                earlier.replace(path)
            raise


def lock(handle: int, *, shared: bool = False, wait: bool = False) -> None:
    """Lock an open file against other processes; raises BlockingIOError where one has it."""
    try:
        import fcntl
    except ImportError:
        _lock_on_windows(handle, shared=shared, wait=wait)
        return
    fcntl.flock(
        handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    )


def _lock_on_windows(handle: int, *, shared: bool, wait: bool) -> None:
    """Lock a file until it is closed, by bytes of it: a reader has any one of them, a writer all."""
    locking: Any = importlib.import_module("msvcrt")
    first = secrets.randbelow(_READERS)
    while True:
        for place in range(_READERS) if shared else (0,):
            at = (first + place) % _READERS if shared else 0
            os.lseek(handle, _LOCKED_AT + at, os.SEEK_SET)
            try:
                locking.locking(handle, locking.LK_NBLCK, 1 if shared else _READERS)
                return
            except OSError:
                continue
            finally:
                os.lseek(handle, 0, os.SEEK_SET)
        if not wait:
            raise BlockingIOError(errno.EAGAIN, "locked by another process")
        time.sleep(0.02)


def read_at(handle: int, into: memoryview, offset: int) -> int:
    """Fill a buffer from a place in an open file, whatever other threads read; gives how many bytes it got."""
    if hasattr(os, "preadv"):
        return os.preadv(handle, [into], offset)
    with _PLACE:
        before = os.lseek(handle, 0, os.SEEK_CUR)
        os.lseek(handle, offset, os.SEEK_SET)
        found = os.read(handle, len(into))
        os.lseek(handle, before, os.SEEK_SET)
    into[: len(found)] = found
    return len(found)


def _beside(path: Path) -> Path:
    """A name beside a place, under which nobody looks for a file."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


def _write(path: Path, data: bytes | Iterable[bytes], mode: int) -> None:
    """Write a new file, in one piece or several, and make it durable."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        file.writelines([data] if isinstance(data, bytes) else data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block; other threads than the first one never get it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
    if pressed:
        signal.raise_signal(signal.SIGINT)


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable; Windows keeps names by itself."""
    windows = sys.platform == "win32"
    if windows and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
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
    arguments = (here, ends[0], here, ends[1], flag) if here is not None else (*ends, flag)
    return int(call(*arguments)) == 0


_RENAMES: dict[str, tuple[str, int | None, int]] = {
    "linux": ("renameat2", -100, 2),
    "darwin": ("renamex_np", None, 2),
}
"""The call that exchanges two names: its own name, what stands for the current folder, and its flag."""
