"""What stands in a data folder: one list for the store, backups, restores, the doctor and upgrades.

====================================  ==================================================================
``record-keys.secret``                the agency's secret
``<dataset>/current``, ``.../v...``   the records in force
``connections/*.json``                records that stay in a database, and how to reach them
``policies/*.toml``                   what the agency decided
``bundles/<dataset>/*``               public bundles
``prepared/<programme>/**``           folders of prepared tables
``reports/**``                        the agency's own: reports, traces, and the memories of releases
``releases/*.json``                   the digests of all releases of each dataset, in their order
``releases/*.people``                 digests of the people whom they hold
``budgets/*.jsonl``                   what releases with a proof may cost, and what they have cost
``ledger/*``                          the book of what left the house, its key and its head
``acts.jsonl``                        who sealed, imported, protected and released what, and when
====================================  ==================================================================

A later release starts from a memory: without it, cells that did not change would show other numbers. What can
be made again is not part of a backup: tables made in the background, locks, drafts, the state of a search that
was stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lustrum.model.errors import InputError, kind_of
from lustrum.runtime.durable import outages

CURRENT = "current"
CONNECTIONS = "connections"
POLICIES = "policies"
BUNDLES = "bundles"
PREPARED = "prepared"
REPORTS = "reports"
RELEASES = "releases"
BUDGETS = "budgets"
LEDGER = "ledger"
ACTS = "acts.jsonl"
PRIVATE = (LEDGER, REPORTS, RELEASES, BUDGETS, ACTS)
"""What only the agency may read; other books are copied after the ledger, which says how far they went."""
SEARCH_STATE = "search.state"
_AGAIN = ("jobs.sqlite", "jobs.sqlite-shm", "jobs.sqlite-wal", "jobs.sqlite-journal")
_DAMAGED = "jobs-damaged-"
_SECRETS = "record-keys."


def folder_at(given: object, word: str) -> Path:
    """A folder that somebody named by a path or a text; ``word`` is the argument, for the message."""
    if isinstance(given, Path) or (isinstance(given, str) and given):
        return Path(given)
    said = "an empty text" if given == "" else kind_of(given)
    raise InputError(f"{word!r} names a folder by its path, not by {said}.")


def folders_at(given: object, word: str) -> tuple[Path, ...]:
    """Several folders by their paths; one path alone is refused, since a text is a list of letters too."""
    if not isinstance(given, (list, tuple)):
        raise InputError(f"{word!r} is a list of folders, such as ['town'], not {kind_of(given)}.")
    return tuple(folder_at(path, word) for path in given)


def datasets_in(root: Path) -> list[str]:
    """The names of the datasets whose records stand in a folder."""
    with outages(root):
        return sorted(path.parent.name for path in root.glob(f"*/{CURRENT}"))


def kept_files(root: Path, part: str) -> Iterator[Path]:
    """The files of a part that a backup holds, in order; drafts and what was moved aside are left out."""
    if part == POLICIES:
        yield from sorted((root / POLICIES).glob("*.toml"))
        return
    for path in (root / part, *sorted((root / part).rglob("*"))):
        inside = path.relative_to(root / part).parts
        beside = path.name.startswith(SEARCH_STATE) or path.name.endswith(("-wal", "-shm"))
        if any(name.startswith(".") for name in inside) or beside:
            continue
        if path.is_file():
            yield path


def unknown_entries(root: Path) -> list[str]:
    """What stands in the folder and is on no list, so that no backup holds it."""
    entries = []
    for path in sorted(root.iterdir()):
        known = (
            path.name.startswith((".", _SECRETS, _DAMAGED))
            or path.name in (*_AGAIN, CONNECTIONS, POLICIES, BUNDLES, PREPARED, *PRIVATE)
            or (path.is_dir() and (path / CURRENT).exists())
        )
        if not known:
            entries.append(path.name)
    return entries


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
