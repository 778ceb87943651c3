"""The digest of a file is the same by any way of reading it, and another one after any change."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lustrum.tabulate.store import files as digest
from lustrum.tabulate.store.files import Digest, digest_of


def plainly(data: bytes, segment: int) -> str:
    """The definition, at once: the tag of each segment, and SHA-256 of the tags where there are several."""
    gcm = AESGCM(b"lustrum checksum")
    tags = [
        gcm.encrypt(b"not a secret", b"", data[start : start + segment])
        for start in range(0, max(1, len(data)), segment)
    ]
    return (tags[0] if len(tags) == 1 else hashlib.sha256(b"".join(tags)).digest()).hex()


def streamed(data: bytes, step: int) -> str:
    found = Digest()
    for start in range(0, len(data), step):
        found.update(memoryview(data)[start : start + step])
    return found.result()


def read(path: Path, workers: int) -> str:
    handle = os.open(path, os.O_RDONLY)
    try:
        return digest_of(handle, workers)
    finally:
        os.close(handle)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 128, 640, 1000])
def test_all_ways_give_the_same_digest(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "SEGMENT", 64)
    monkeypatch.setattr(digest, "_BLOCK", 24)
    data = np.random.default_rng(size).bytes(size)
    (tmp_path / "file").write_bytes(data)
    ways = {plainly(data, 64), *(read(tmp_path / "file", w) for w in (1, 2, 5))}
    ways |= {streamed(data, step) for step in (1, 7, 64, 100, 5000)}
    assert len(ways) == 1


def test_any_change_gives_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "SEGMENT", 64)
    data = np.random.default_rng(1).bytes(300)
    seen = {streamed(data, 100)}
    changed = [data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :] for i in range(300)]
    changed += [data[:i] for i in range(300)]
    changed += [data + b"\0", data[64:128] + data[:64] + data[128:]]
    seen |= {streamed(other, 100) for other in changed}
    assert len(seen) == 1 + len(changed)
