"""Holdings that allow their values to be shown, or asked for protection, from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lustrum.model import InputError
from lustrum.model.keys import text_identity
from lustrum.sensitivity import Background, Request
from lustrum.sensitivity.rule import names_within


def read_waivers(waivers: Path | None, requests: Path | None = None) -> Background:
    """The holdings that gave a waiver, and those that asked for protection."""
    asked = _holdings(requests)
    if requests is not None and not asked:
        raise InputError(
            f"{requests} names nobody who asked for protection; name them, one a line."
        )
    return Background(waived=_holdings(waivers), requested=asked)


def refuse_requests(rule: Any) -> None:
    """Refuse the request rule where nobody can have asked: it would protect nobody."""
    if Request.name in names_within(rule):
        raise InputError(
            "The rule 'request' protects those who asked for it, and nobody is named here; name them in a file "
            "as 'requests' under [data] of a programme, or in a Background in Python."
        )


def _holdings(path: Path | None) -> list[int]:
    """Holdings one on each line; an empty line or a line after '#' is none."""
    if path is None:
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8; save it in that encoding.") from None
    names = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return [text_identity(name) for name in names]
