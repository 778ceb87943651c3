"""The identity of a record or holding whose id is a text."""

from __future__ import annotations

import hashlib
import re

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
