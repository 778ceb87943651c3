"""Where a published folder stands: in its place, or moved aside where a machine stopped meanwhile."""

from __future__ import annotations

from pathlib import Path

MANIFEST = "manifest.json"
ASIDE = ".old"


def standing(path: Path) -> Path:
    """Where the folder of a place is to be read: there, or where it was moved aside before a stop."""
    if not path.exists():
        for aside in moved_aside(path):
            return aside
    return path


def bundles_in(folder: Path) -> set[str]:
    """The names of the published folders that stand in a folder."""
    names = {path.parent.name for path in folder.glob(f"*/{MANIFEST}")}
    visible = {name for name in names if not name.startswith(".")}
    for name in names - visible:
        if name.endswith(ASIDE):
            visible.add(name[1:].rsplit(".", 2)[0])
    return visible


def moved_aside(path: Path) -> list[Path]:
    """The folders of a place that were moved aside."""
    manifests = path.parent.glob(f".{_escaped(path.name)}.*{ASIDE}/{MANIFEST}")
    return sorted(manifest.parent for manifest in manifests)


def _escaped(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)
