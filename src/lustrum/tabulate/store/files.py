"""The files of a version: opened, compared with their digests, and watched while they answer."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from lustrum.model import DatasetError
from lustrum.model.workers import workers as available
from lustrum.runtime.durable import BINARY, read_at
from lustrum.tabulate.store.manifest import KEYS, RECORDS, FileMark, read_manifest

# Digests of large files, at the speed of memory.
#
# The digest is the tag of AES-GCM over the file as data to authenticate, with a fixed public key: a checksum
# of 128 bits that processors compute as fast as they read. It finds damage, not forgery: people who may write
# to the folder may replace anything in it. Files are read, not mapped, so that a file cut short meanwhile is
# an error and does not end the process.

SEGMENT = 1 << 26
"""Bytes that have a tag of their own, so that several processors can check one file."""

_BLOCK = 1 << 19  # stays in the cache between the read and the digest, and makes calls rare
_KEY, _NONCE = b"lustrum checksum", b"not a secret"


class Digest:
    """A digest that grows with the data: the tag of one segment, or SHA-256 of the tags of several."""

    def __init__(self) -> None:
        self._tags: list[bytes] = []
        self._begin()

    def _begin(self) -> None:
        self._tag = Cipher(algorithms.AES(_KEY), modes.GCM(_NONCE)).encryptor()
        self._room = SEGMENT

    def _end(self) -> None:
        self._tag.finalize()
        self._tags.append(self._tag.tag)

    def update(self, data: memoryview) -> None:
        while data:
            if not self._room:
                self._end()
                self._begin()
            part = data[: self._room]
            self._tag.authenticate_additional_data(part)
            self._room -= len(part)
            data = data[len(part) :]

    def result(self) -> str:
        """The digest of all data, in hexadecimal; nothing can be added afterwards."""
        self._end()
        return joined(self._tags)


def joined(tags: list[bytes]) -> str:
    """The digest of a file from the tags of its segments.

    Tags are sums, so that a tag of tags would not tell some changes of two segments apart; SHA-256 does.
    """
    return (tags[0] if len(tags) == 1 else hashlib.sha256(b"".join(tags)).digest()).hex()


def digest_of(handle: int, workers: int | None = None) -> str:
    """The digest of all bytes of an open file, by as many threads as there are processors."""
    starts = range(0, max(1, os.fstat(handle).st_size), SEGMENT)
    with ThreadPoolExecutor(min(len(starts), workers or available())) as pool:
        return joined(list(pool.map(lambda start: segment_tag(handle, start), starts)))


def segment_tag(handle: int, start: int) -> bytes:
    """The tag of the segment of an open file that begins there."""
    tag = Cipher(algorithms.AES(_KEY), modes.GCM(_NONCE)).encryptor()
    block, offset, end = memoryview(bytearray(_BLOCK)), start, start + SEGMENT
    while offset < end and (read := read_at(handle, block[: end - offset], offset)):
        tag.authenticate_additional_data(block[:read])
        offset += read
    tag.finalize()
    return tag.tag


class HashedFile:
    """A file being written; the digest is that of the bytes meant for it, not of what the disk made of them."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._digest = Digest()
        self.size = 0
        self.closed = False

    def digest(self) -> str:
        return self._digest.result()

    def write(self, data: bytes) -> int:
        left = memoryview(data).cast("B")
        self._digest.update(left)
        self.size += len(left)
        while left:
            left = left[os.write(self._handle, left) :]
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Nothing is held back."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def sync(self) -> None:
        os.fsync(self._handle)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            os.close(self._handle)


class DamagedError(DatasetError):
    """The files are not what was written; reading them again does not help."""


class VersionFiles:
    """The files of a version, open until they are closed, also where the folder is removed meanwhile.

    Opening looks at the manifest and at sizes. :meth:`check` reads every byte, and must come before the first
    answer.
    """

    def __init__(self, folder: Path) -> None:
        manifest = read_manifest(folder)
        self.version = folder.name
        self.manifest = manifest
        self.checked = False
        self.folder = folder
        self._wanted = manifest.files
        self._handles: list[int] = []
        self.size = 0
        try:
            for name in (RECORDS, KEYS):
                self._open(name, manifest.files[name])
            self._opened = self.marks()
        except BaseException:
            self.close()
            raise

    def _open(self, name: str, wanted: FileMark) -> None:
        try:
            handle = os.open(self.folder / name, os.O_RDONLY | BINARY)
        except FileNotFoundError:
            raise self.damaged(f"{name} is missing") from None
        except OSError as error:
            raise DatasetError(f"{self.folder / name} cannot be read: {error.strerror}.") from None
        self._handles.append(handle)
        size = os.fstat(handle).st_size
        if size != wanted.bytes:  # a shorter file under a memory map would end the process
            how = "shorter" if size < wanted.bytes else "longer"
            raise self.damaged(f"{name} is {how} than what was written")
        self.size += size

    @property
    def handles(self) -> tuple[int, ...]:
        return tuple(self._handles)

    def check(self) -> None:
        """Hold every byte to the manifest."""
        for handle, name in zip(self._handles, (RECORDS, KEYS), strict=True):
            try:
                digest = digest_of(handle)
            except OSError as error:
                raise DatasetError(
                    f"{self.folder / name} cannot be read: {error.strerror}."
                ) from None
            if digest != self._wanted[name].digest:
                raise self.damaged(f"{name} does not hold what was written")
        self.require_unchanged()
        self.checked = True

    def marks(self) -> tuple[tuple[int, int], ...]:
        """Size and last change of each file: the same marks, the same bytes."""
        return tuple((status.st_size, status.st_mtime_ns) for status in self._statuses())

    @property
    def identity(self) -> tuple[object, ...]:
        """Names the files on disk: another one after any repair, also one that keeps the times of change."""
        statuses = [(s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in self._statuses()]
        return (self.version, *statuses)

    def _statuses(self) -> list[os.stat_result]:
        try:
            return [os.fstat(handle) for handle in self._handles]
        except OSError as error:
            raise DatasetError(f"{self.folder} cannot be read: {error.strerror}.") from None

    def require_unchanged(self) -> None:
        """Refuse where a file is not as it was when it was opened."""
        if self.marks() != self._opened:
            raise self.damaged("its files changed while it was in use")

    def damaged(self, how: str) -> DamagedError:
        return DamagedError(f"The dataset in {self.folder} is damaged: {how}; ingest it again.")

    def close(self) -> None:
        while self._handles:
            os.close(self._handles.pop())
