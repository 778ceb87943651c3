"""Holdings that allow their values to be shown, from a file."""

from __future__ import annotations

from pathlib import Path

from lustrum.model import InputError
from lustrum.model.identity import text_identity
from lustrum.sensitivity import Background


def read_waivers(path: Path | None) -> Background:
    """The holdings that gave a waiver, one on each line; an empty line or a line after '#' is none."""
    if path is None:
        return Background()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8; save it in that encoding.") from None
    names = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return Background(waived=[text_identity(name) for name in names])
