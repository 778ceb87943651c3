"""Where a bundle stands, and how a new one comes there: at no moment is there none.

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

__all__ = ["MANIFEST", "bundles_in", "put_in_place", "standing"]

MANIFEST = "manifest.json"
_ASIDE = ".old"


def standing(path: Path) -> Path:
    """Where the bundle of a place is to be read: there, or where it was moved aside before a stop."""
    if not path.exists():
        for aside in _aside(path):
            return aside
    return path


def bundles_in(folder: Path) -> set[str]:
    """The names of the bundles that stand in a folder."""
    found = {path.parent.name for path in folder.glob(f"*/{MANIFEST}")}
    visible = {name for name in found if not name.startswith(".")}
    for name in found - visible:
        if name.endswith(_ASIDE):
            visible.add(name[1:].rsplit(".", 2)[0])
    return visible


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
    for aside in _aside(path):
        # One that is only half removed must not be taken for a bundle.
        gone = aside.with_name(f"{aside.name}.part")
        aside.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def _replace(draft: Path, path: Path) -> None:
    """In two steps; whatever stood there comes back if the second one fails."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_ASIDE}")
    path.rename(aside)
    try:
        draft.rename(path)
    except BaseException:
        aside.rename(path)
        raise


def _aside(path: Path) -> list[Path]:
    found = path.parent.glob(f".{_escaped(path.name)}.*{_ASIDE}/{MANIFEST}")
    return sorted(manifest.parent for manifest in found)


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
