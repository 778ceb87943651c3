"""How a new bundle comes to its place: at no moment is there none.

Where the system can exchange two names, the new bundle and the earlier one change places at one moment.
Elsewhere the earlier one is moved aside first; a process that reads between the two steps, also after the
machine stopped there, takes the one that was moved aside.
"""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

from lustrum.durable import exchange, sync
from lustrum.model import DatasetError
from lustrum.public.bundle.place import ASIDE, MANIFEST, moved_aside

__all__ = ["put_in_place"]


def put_in_place(draft: Path, path: Path) -> None:
    """Let a finished bundle take its place, and remove the one that stood there."""
    if path.exists():
        if not (path / MANIFEST).is_file() and any(path.iterdir()):
            raise DatasetError(
                f"{path} is there and is not a bundle; name another place for the bundle."
            )
        if not exchange(draft, path):
            _replace(draft, path)
    else:
        draft.rename(path)
    sync(path.parent)
    for aside in moved_aside(path):
        # One that is only half removed must not be taken for a bundle.
        gone = aside.with_name(f"{aside.name}.part")
        aside.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def _replace(draft: Path, path: Path) -> None:
    """In two steps; whatever stood there comes back if the second one fails."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}{ASIDE}")
    path.rename(aside)
    try:
        draft.rename(path)
    except BaseException:
        aside.rename(path)
        raise
