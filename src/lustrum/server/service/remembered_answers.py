"""Answers that were written once and are sent again: in memory, and on disk where the next process finds them.

Only answers from a public bundle are remembered: they follow from its numbers, the policy and the question
alone, never from what was asked before, from a limit or from a budget. The key names all of them, and the form
in which the answer was written, so that none is ever sent for another dataset, policy, version, form, language
or host. A fast answer shows that somebody asked the same before; nothing else follows from it.

::

    <folder>/.answers/<dataset>/<numbers and policy>/<two letters>/<key>

Entries are private to the server's own user, written as a whole, and checked when they are read: one that is
damaged, or stands under another key, is as good as none. Those of earlier numbers or policies are removed.
Where the disk is full, half of them are removed, so that jobs and other files have room, and answers are kept
in memory alone for a while; then one is tried again. No dependency of ours bounds a memory by bytes.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import logging
import math
import queue
import shutil
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from lustrum.answer import Snapshot
from lustrum.model import TableQuery
from lustrum.runtime.durable import write_whole
from lustrum.runtime.remembered import Remembered
from lustrum.server.settings import Settings

log = logging.getLogger("lustrum.server")

FOLDER = ".answers"
_FIRST_LINE = b"lustrum answer 2\n"
_OVERHEAD = (
    1536  # bytes of an entry in memory beside its body: the key, the objects and their places
)
_LARGEST = 4 << 20  # bytes of an answer that is kept
_MOST_WAITING = 200  # answers that wait to be written to disk
_LEFT = 0.75  # of the room on disk, after the oldest entries were removed
_LEAST = 0.5  # of the answers on a full disk, each time that it is found full
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FIRST_PAUSE = 10.0  # seconds without a try after one that failed; twice as many after the next
_LONGEST_PAUSE = 600.0


@dataclass(frozen=True)
class Key:
    """Where an answer is kept: all that it follows from, as digests."""

    dataset: str
    mark: str
    name: str

    @classmethod
    def of(cls, snapshot: Snapshot, query: TableQuery, form: Sequence[str]) -> Key:
        question = json.dumps(query.to_mapping(), sort_keys=True, ensure_ascii=False)
        mark = _digest(f"{snapshot.mark} {_code()}")
        # Answers under the policies of several roles stand beside each other.
        role = "" if snapshot.policy.role == "public" else f" {snapshot.policy.role}"
        return cls(
            _digest(query.dataset + role), mark, _digest(json.dumps([mark, question, *form]))
        )


@dataclass(frozen=True)
class Written:
    """An answer as it is sent."""

    dataset: str
    verdict: str
    media_type: str
    body: bytes
    disposition: str = ""
    question: str = ""
    rules: tuple[str, ...] = ()
    """The question and the rules that refused it, for the log."""


class RememberedAnswers:
    """The answers that a process has at hand; safe to share between threads."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder = folder / FOLDER
        self._room = settings.answers_disk << 20
        self._memory = Remembered[Written](
            settings.answers_memory << 20,
            lambda one: len(one.body) + len(one.question) + _OVERHEAD,
            "answers",
        )
        self.on = settings.answers_memory > 0
        self._waiting: queue.Queue[tuple[Key, Written] | None] = queue.Queue(_MOST_WAITING)
        self._writer: threading.Thread | None = None
        self._lock = threading.Lock()
        self._marks: dict[str, str] = {}
        self._unlooked: int | None = None
        self._failed = 0  # tries to write one after the other that failed
        self._resting_until = -math.inf

    def at_hand(self, key: Key) -> Written | None:
        return self._memory.find(key)

    def find(self, key: Key) -> Written | None:
        answer = self._memory.find(key)
        if answer is None and self._room:
            answer = _read(self._place(key), key)
            if answer is not None:
                self._memory.keep(key, answer)
        return answer

    def keep(self, key: Key, written: Written) -> None:
        """Keep an answer; it is written to disk later, if the disk keeps up."""
        if not self.on or len(written.body) > _LARGEST:
            return
        self._memory.keep(key, written)
        if not self._room or time.monotonic() < self._resting_until:
            return
        with self._lock:
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_all, name="answers", daemon=True)
                self._writer.start()
        with suppress(queue.Full):  # then it stays in memory
            self._waiting.put_nowait((key, written))

    def stop(self) -> None:
        """Write what waits, and end the thread that writes."""
        with self._lock:
            writer, self._writer = self._writer, None
        if writer is not None:
            self._waiting.put(None)
            writer.join(timeout=10)

    def _place(self, key: Key) -> Path:
        return self._folder / key.dataset / key.mark / key.name[:2] / key.name

    def _write_all(self) -> None:
        while (one := self._waiting.get()) is not None:
            if time.monotonic() >= self._resting_until:
                self._try_to_write(*one)

    def _try_to_write(self, key: Key, written: Written) -> None:
        try:
            self._write(key, written)
        except OSError as error:  # a full disk, or a folder that may only be read
            if not self._failed:
                log.warning("answers are not kept on disk for now: %s", error.strerror)
            pause = min(_FIRST_PAUSE * 2 ** min(self._failed, 10), _LONGEST_PAUSE)
            self._failed += 1
            self._resting_until = time.monotonic() + pause
            if error.errno in _FULL:
                self._make_room(_LEAST)
            return
        if self._failed:
            log.warning("answers are kept on disk again, after %d tries", self._failed)
            self._failed = 0

    def _write(self, key: Key, written: Written) -> None:
        if self._marks.get(key.dataset) != key.mark:
            self._forget_others(key)
        path = self._place(key)
        for folder in reversed(path.parents[:4]):
            folder.mkdir(mode=0o700, exist_ok=True)
        data = _as_bytes(key, written)
        write_whole(path, data, mode=0o600)
        self._unlooked = None if self._unlooked is None else self._unlooked + len(data)
        # Other processes write here too, so that sizes are looked up now and then.
        if self._unlooked is None or self._unlooked > self._room // 8:
            self._make_room()
            self._unlooked = 0

    def _forget_others(self, key: Key) -> None:
        """Remove the answers of a dataset that follow from earlier numbers or another policy."""
        folder = self._folder / key.dataset
        for other in folder.iterdir() if folder.is_dir() else ():
            if other.name != key.mark:
                shutil.rmtree(other, ignore_errors=True)
        self._marks[key.dataset] = key.mark

    def _make_room(self, full: float = 1.0) -> None:
        """Keep within the room there is; on a full disk, leave a part of what is kept to what matters more."""
        entries = sorted(_entries(self._folder))
        total = sum(size for _, size, _ in entries)
        if total <= self._room and full == 1.0:
            return
        most = min(_LEFT * self._room, full * total)
        for _, size, path in entries:
            if total <= most:
                break
            with suppress(OSError):
                path.unlink(missing_ok=True)
            total -= size


def _entries(folder: Path) -> Iterable[tuple[int, int, Path]]:
    """When each entry was written, its size and its place."""
    for path in folder.glob("*/*/*/*"):
        try:
            status = path.stat()
        except OSError:
            continue
        yield status.st_mtime_ns, status.st_size, path


def _as_bytes(key: Key, written: Written) -> bytes:
    header = {k: v for k, v in asdict(written).items() if k != "body"} | {"key": asdict(key)}
    inner = json.dumps(header).encode() + b"\n" + written.body
    return _FIRST_LINE + hashlib.sha256(inner).hexdigest().encode() + b"\n" + inner


def _read(path: Path, key: Key) -> Written | None:
    """An entry, if it is whole and stands where it belongs."""
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    first, _, rest = raw.removeprefix(_FIRST_LINE).partition(b"\n")
    if not raw.startswith(_FIRST_LINE) or hashlib.sha256(rest).hexdigest().encode() != first:
        return None
    line, _, body = rest.partition(b"\n")
    header = json.loads(line)
    if header.pop("key") != asdict(key):
        return None
    return Written(body=body, **{**header, "rules": tuple(header["rules"])})


@functools.cache
def _code() -> str:
    """Names the code that writes answers: one that was changed in place sends none of those of before."""
    root = Path(__file__).parents[2]
    files = [(str(path.relative_to(root)), path.stat()) for path in sorted(root.rglob("*.py"))]
    return _digest(repr([(name, file.st_size, file.st_mtime_ns) for name, file in files]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]
