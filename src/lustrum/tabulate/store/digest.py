"""Digests of large files, at the speed of memory.

The digest is the tag of AES-GCM over the file as data to authenticate, with a fixed public key: a checksum
of 128 bits that processors compute as fast as they read. It finds damage, not forgery: people who may write
to the folder may replace anything in it. Files are read, not mapped, so that a file cut short meanwhile is
an error and does not end the process.
"""

from __future__ import annotations

import os

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

__all__ = ["Digest", "HashedFile", "digest_of"]

_BLOCK = 1 << 19  # stays in the second-level cache between the read and the digest
_KEY, _NONCE = b"lustrum checksum", b"not a secret"


class Digest:
    """A digest that grows with the data."""

    def __init__(self) -> None:
        self._tag = Cipher(algorithms.AES(_KEY), modes.GCM(_NONCE)).encryptor()

    def update(self, data: memoryview) -> None:
        """Go on with more data."""
        self._tag.authenticate_additional_data(data)

    def result(self) -> str:
        """The digest of all data, in hexadecimal; nothing can be added afterwards."""
        self._tag.finalize()
        return self._tag.tag.hex()


def digest_of(handle: int) -> str:
    """The digest of all bytes of an open file."""
    found, block, place = Digest(), memoryview(bytearray(_BLOCK)), 0
    while read := os.preadv(handle, [block], place):
        found.update(block[:read])
        place += read
    return found.result()


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
