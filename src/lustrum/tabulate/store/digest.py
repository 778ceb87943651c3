"""Digests of large files, at the speed of memory.

The digest is the tag of AES-GCM over the file as data to authenticate, with a fixed public key: a checksum
of 128 bits that processors compute as fast as they read. It finds damage, not forgery: people who may write
to the folder may replace anything in it. Files are read, not mapped, so that a file cut short meanwhile is
an error and does not end the process.
"""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from lustrum.model.workers import workers as available

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
        """Go on with more data."""
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
    while offset < end and (read := os.preadv(handle, [block[: end - offset]], offset)):
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
        """The digest of what was written, once all of it was."""
        return self._digest.result()

    def write(self, data: bytes) -> int:
        """Write all of it."""
        left = memoryview(data).cast("B")
        self._digest.update(left)
        self.size += len(left)
        while left:
            left = left[os.write(self._handle, left) :]
        return len(data)

    def tell(self) -> int:
        """How much was written."""
        return self.size

    def flush(self) -> None:
        """Nothing is held back."""

    def readable(self) -> bool:
        """It is for writing only."""
        return False

    def writable(self) -> bool:
        """It is for writing."""
        return True

    def seekable(self) -> bool:
        """It is written from the first byte to the last."""
        return False

    def sync(self) -> None:
        """Make it durable."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Let go of the file."""
        if not self.closed:
            self.closed = True
            os.close(self._handle)
