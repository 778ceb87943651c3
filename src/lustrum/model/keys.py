"""Words from keys: a block cipher over 64-bit numbers, for record keys and for what cells make of them."""

from __future__ import annotations

import hashlib
import re

import numpy as np

from lustrum.model.arrays import Words

_PIECE = 1 << 12  # words at a time, whose blocks stay in the cache


def scramble(key: bytes, words: Words) -> Words:
    """Encrypt each 64-bit word as a block of its own and keep the first 64 bits.

    Without the 16-byte key, the results look like unrelated uniform words.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # Every block stands alone and none is longer than the cipher's own: that is what ECB is for.
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    flat = words.ravel()
    out = np.empty(flat.size, dtype=np.uint64)
    blocks = np.zeros((min(flat.size, _PIECE), 2), dtype="<u8")
    # The cipher asks for room for one more block than it fills.
    room = np.empty((len(blocks) + 1, 2), dtype="<u8")
    for start in range(0, flat.size, _PIECE):
        piece = flat[start : start + _PIECE]
        blocks[: piece.size, 0] = piece
        encryptor.update_into(blocks[: piece.size].data.cast("B"), room.data.cast("B"))
        out[start : start + piece.size] = room[: piece.size, 0]
    return out.reshape(words.shape)


def cell_words(keys: Words, purpose: str) -> Words:
    """A uniform word for each summed cell key: the same records give the same word in every table.

    The key of a total is the sum of the keys of its parts; the cipher breaks that relation, and sets
    purposes apart. The secrecy lies in the keys, so the cipher's own key may be known.
    """
    return scramble(hashlib.sha256(b"lustrum " + purpose.encode()).digest()[:16], keys)


# The identity of a record or holding whose id is a text.

_WHOLE = re.compile(r"0|[1-9][0-9]{0,18}")


def text_identity(text: str) -> int:
    """The 63-bit identity of a record or holding whose id is a text.

    A plain whole number is its own, so that a CSV file, where all is text, and a Parquet file of the
    same records give the same keys.

    >>> text_identity("17"), text_identity("017") == 17
    (17, False)
    """
    if _WHOLE.fullmatch(text) and int(text) < 1 << 63:
        return int(text)
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
